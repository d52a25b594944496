//! The short way for the commonest documents: elements with ASCII names, without
//! attributes, comments or anything else, written as C14N writes them. Such a text
//! is its own canonical form, and one pass shows it to be well-formed and within
//! the limits. Whatever is not so plain takes the long way, which alone refuses.

use super::{DEPTH, Limits};

/// The root's name of a text that is plain and within the limits.
pub(super) fn root<'a>(text: &'a str, limits: &Limits) -> Option<&'a str> {
    if text.len() > limits.bytes {
        return None;
    }
    let most = limits.depth.min(DEPTH) as usize;
    let mut open: Vec<&str> = Vec::with_capacity(8);
    let (mut root, mut nodes) = (None, 0);
    let mut rest = text;
    loop {
        let tag = rest.strip_prefix('<')?;
        let (name, after) = tag.split_once('>')?;
        match name.strip_prefix('/') {
            Some(name) => {
                if open.pop()? != name {
                    return None;
                }
            }
            None => {
                if !is_name(name) || open.len() == most || (open.is_empty() && root.is_some()) {
                    return None;
                }
                root = root.or(Some(name));
                open.push(name);
                nodes += 1;
            }
        }
        if open.is_empty() {
            // Anything after the root is for the long way.
            return root.filter(|_| after.is_empty());
        }
        let end = after.find('<')?;
        nodes += text_nodes(&after[..end])?;
        if nodes > limits.nodes {
            return None;
        }
        rest = &after[end..];
    }
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let starts = bytes.next();
    starts.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// How many nodes the limits take a text for: its references count.
fn text_nodes(text: &str) -> Option<usize> {
    if text.is_empty() {
        return Some(0);
    }
    let mut nodes = 1;
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            b'&' => {
                let written = ["&amp;", "&lt;", "&gt;"];
                written.iter().find(|w| text[place..].starts_with(**w))?;
                nodes += 2;
            }
            b'>' => return None,
            // In what begins with the last, there are characters that XML has not.
            b'\t' | b'\n' | b' '..=0xee | 0xf0.. => {}
            _ => return None,
        }
    }
    Some(nodes)
}

#[cfg(test)]
mod tests {
    use super::super::canonical_text_of_any;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 5000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_plain_text_is_its_own_canonical_form(parts in prop::collection::vec(prop::sample::select(vec![
            "<a>", "</a>", "<b>", "</b>", "<a>x</a>", "<b></b>", "<a/>", "<a b='1'>", "<a >", "<x:a>", "<é>",
            "x", " ", "\t", "\n", "\r", ">", "]]>", "&amp;", "&lt;", "&gt;", "&quot;", "&#65;", "&x;", "&",
            "é", "\u{85}", "\u{7f}", "\u{7}", "\u{ffff}", "\u{1f600}", "<!-- -->", "<?x y?>", "<![CDATA[x]]>",
        ]), 0..8), is_wrapped: bool) {
            let inner = parts.concat();
            let text = if is_wrapped { format!("<r>{inner}</r>") } else { inner };
            let limits = Limits { nodes: 6, depth: 3, ..Limits::default() };
            if let Some(root) = root(&text, &limits) {
                let canonical = canonical_text_of_any(&text, &limits).unwrap();
                prop_assert_eq!(canonical.xml(), text.as_str());
                prop_assert_eq!((canonical.root(), canonical.namespace()), (root, ""));
            }
        }
    }

    #[test]
    fn the_commonest_texts_are_plain() {
        let limits = Limits::default();
        let text = "<Ask><number>1</number><text>What &amp; \"why\"? \u{fc}</text></Ask>";
        assert_eq!(root(text, &limits), Some("Ask"));
        assert_eq!(root("<Nothing></Nothing>", &limits), Some("Nothing"));
    }
}
