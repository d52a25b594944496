//! The server's own documents as HTML. They are embedded in the program, so nothing in them is refused.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, html};

/// The document as HTML. Links to other documents lead to where these are served.
pub fn html(markdown: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let events = Parser::new_ext(markdown, options).map(|event| match event {
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        }) => Event::Start(Tag::Link {
            link_type,
            dest_url: served(dest_url),
            title,
            id,
        }),
        other => other,
    });
    let mut out = String::with_capacity(markdown.len() * 2);
    html::push_html(&mut out, events);
    out
}

/// The heading that the document begins with.
pub fn title(markdown: &str) -> &str {
    let first = markdown.lines().find_map(|line| line.strip_prefix("# "));
    first.unwrap_or("Document").trim()
}

/// `viewer.md#keys` is served as `/docs/viewer#keys`.
fn served(link: CowStr<'_>) -> CowStr<'_> {
    let (path, fragment) = match link.split_once('#') {
        Some((path, fragment)) => (path, format!("#{fragment}")),
        None => (&*link, String::new()),
    };
    match path.strip_suffix(".md") {
        Some(name) if !name.contains([':', '/']) && name != "README" => {
            format!("/docs/{name}{fragment}").into()
        }
        _ => link,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_between_documents_lead_to_where_they_are_served() {
        let html = html(
            "# A *b*\n\n[one](viewer.md#keys) [two](https://example.org/x.md) [three](adr/0001.md)",
        );
        for link in [
            "/docs/viewer#keys",
            "https://example.org/x.md",
            "adr/0001.md",
        ] {
            assert!(html.contains(&format!("href=\"{link}\"")), "{html}");
        }
    }
}
