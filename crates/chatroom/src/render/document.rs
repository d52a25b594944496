//! The server's own documents as HTML. They are embedded in the program, so nothing in them is refused.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// The document as HTML. Links to other documents lead to where these are served; to files that are not, there
/// is no link. Code that is wider than the page can be scrolled with the keyboard.
pub fn html(markdown: &str, is_served: impl Fn(&str) -> bool) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut is_linked = true;
    let events = Parser::new_ext(markdown, options).filter_map(|event| match event {
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        }) => {
            let found = served(dest_url, &is_served);
            is_linked = found.is_some();
            let dest_url = found?;
            Some(Event::Start(Tag::Link {
                link_type,
                dest_url,
                title,
                id,
            }))
        }
        Event::End(TagEnd::Link) if !is_linked => None,
        other => Some(other),
    });
    let mut out = String::with_capacity(markdown.len() * 2);
    html::push_html(&mut out, events);
    out.replace("<pre>", "<pre tabindex=\"0\">")
}

/// The heading that the document begins with.
pub fn title(markdown: &str) -> &str {
    let first = markdown.lines().find_map(|line| line.strip_prefix("# "));
    first.unwrap_or("Document").trim()
}

/// `viewer.md#keys` is served as `/docs/viewer#keys`; what stands elsewhere in the repository is not.
fn served<'a>(link: CowStr<'a>, is_served: &impl Fn(&str) -> bool) -> Option<CowStr<'a>> {
    if link.contains(':') || link.starts_with(['#', '/']) {
        return Some(link);
    }
    let (path, fragment) = match link.split_once('#') {
        Some((path, fragment)) => (path, format!("#{fragment}")),
        None => (&*link, String::new()),
    };
    let name = path
        .strip_prefix("./")
        .unwrap_or(path)
        .strip_suffix(".md")?;
    let found = !name.contains('/') && is_served(name);
    found.then(|| format!("/docs/{name}{fragment}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_where_documents_are_served_and_nowhere_else() {
        let html = html(
            "# A *b*\n\n[one](viewer.md#keys) [two](https://example.org/x.md) [three](adr/0001.md) \
             [four](./api.md) [five](../README.md) [six](#here)\n\n```sh\nls\n```",
            |name| ["viewer", "api"].contains(&name),
        );
        for link in [
            "/docs/viewer#keys",
            "https://example.org/x.md",
            "/docs/api",
            "#here",
        ] {
            assert!(html.contains(&format!("href=\"{link}\"")), "{html}");
        }
        assert!(html.contains("</a> three <a"), "{html}");
        assert!(html.contains("</a> five <a"), "{html}");
        assert!(html.contains("<pre tabindex=\"0\">"), "{html}");
    }
}
