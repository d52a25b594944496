//! Markdown to HTML.

use super::{budget::Budget, highlight};
use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd,
    TextMergeStream, html,
};
use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

/// Deeper than this, quotes and lists are flattened.
const MAX_NESTING: usize = 12;
/// A text that becomes more than this is shown as it is.
const MAX_EVENTS: usize = 10_000;
const MAX_HTML: usize = 128 * 1024;

const TAGS: [&str; 23] = [
    "a",
    "blockquote",
    "br",
    "code",
    "del",
    "em",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "span",
    "strong",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
];

/// The last word on what reaches a page.
static SANITISER: LazyLock<ammonia::Builder<'static>> = LazyLock::new(|| {
    let mut builder = ammonia::Builder::empty();
    builder
        .tags(HashSet::from(TAGS))
        .tag_attributes(HashMap::from([
            ("a", HashSet::from(["href", "title"])),
            ("ol", HashSet::from(["start"])),
        ]))
        .allowed_classes(HashMap::from([("span", highlight::classes())]))
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .url_relative(ammonia::UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer nofollow"))
        .set_tag_attribute_value("a", "target", "_blank");
    builder
});

/// The text as HTML that is safe in a page.
pub fn html(markdown: &str, budget: &mut Budget) -> String {
    let rendered = push(markdown, budget).unwrap_or_else(|| plain(markdown));
    SANITISER.clean(&rendered).to_string()
}

fn push(markdown: &str, budget: &mut Budget) -> Option<String> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let parser = TextMergeStream::new(Parser::new_ext(markdown, options));
    let mut writer = HtmlWriter {
        events: Vec::new(),
        open: Vec::new(),
        links: 0,
        code: None,
        budget,
    };
    for (n, event) in parser.enumerate() {
        if n > MAX_EVENTS {
            return None;
        }
        writer.write_event(event);
    }
    let mut out = String::with_capacity(markdown.len() * 2);
    html::push_html(&mut out, writer.events.into_iter());
    (out.len() <= MAX_HTML).then_some(out)
}

/// The text as it was written, line by line.
fn plain(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(ammonia::clean_text).collect();
    format!("<p>{}</p>", lines.join("<br>"))
}

/// Turns markdown's events into those that a page may show.
struct HtmlWriter<'a, 'b> {
    events: Vec<Event<'a>>,
    /// The open elements, and whether each is shown.
    open: Vec<bool>,
    links: usize,
    code: Option<Code>,
    budget: &'b mut Budget,
}

/// A block of code until its end is reached.
struct Code {
    language: String,
    text: String,
}

impl<'a> HtmlWriter<'a, '_> {
    fn write_event(&mut self, event: Event<'a>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(text),
            Event::SoftBreak => self.events.push(Event::HardBreak),
            Event::TaskListMarker(done) => {
                let mark = if done { "☑ " } else { "☐ " };
                self.events.push(Event::Text(mark.into()));
            }
            other => self.events.push(other),
        }
    }

    fn start(&mut self, tag: Tag<'a>) {
        let shown = self.open.len() < MAX_NESTING;
        self.open.push(shown);
        match tag {
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(info) => first_word(&info),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some(Code {
                    language,
                    text: String::new(),
                });
            }
            _ if !shown => {}
            Tag::Link { .. } => {
                self.links += 1;
                self.events.push(Event::Start(tag));
            }
            // A picture would be fetched from elsewhere.
            Tag::Image {
                dest_url, title, ..
            } => {
                self.links += 1;
                self.events.push(Event::Start(link(dest_url, title)));
                self.events.push(Event::Text("image: ".into()));
            }
            Tag::Heading { level, .. } => self.events.push(Event::Start(Tag::Heading {
                level: lower(level),
                id: None,
                classes: Vec::new(),
                attrs: Vec::new(),
            })),
            Tag::HtmlBlock => self.events.push(Event::Start(Tag::Paragraph)),
            other => self.events.push(Event::Start(other)),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        let shown = self.open.pop().unwrap_or(false);
        if let (TagEnd::CodeBlock, Some(code)) = (tag, self.code.take()) {
            let html = highlight::block(&code.language, &code.text, self.budget);
            self.events.push(Event::Html(html.into()));
            return;
        }
        if !shown {
            return;
        }
        self.events.push(Event::End(match tag {
            TagEnd::Link | TagEnd::Image => {
                self.links -= 1;
                TagEnd::Link
            }
            TagEnd::Heading(level) => TagEnd::Heading(lower(level)),
            TagEnd::HtmlBlock => TagEnd::Paragraph,
            other => other,
        }));
    }

    fn text(&mut self, text: CowStr<'a>) {
        match &mut self.code {
            Some(code) => code.text.push_str(&text),
            None if self.links > 0 => self.events.push(Event::Text(text)),
            None => self.linked(&text),
        }
    }

    /// Text whose web addresses become links.
    fn linked(&mut self, text: &str) {
        let mut rest = text;
        while let Some((before, address, after)) = next_address(rest) {
            self.events.push(Event::Text(before.to_owned().into()));
            let target = link(address.to_owned().into(), "".into());
            self.events.push(Event::Start(target));
            self.events.push(Event::Text(address.to_owned().into()));
            self.events.push(Event::End(TagEnd::Link));
            rest = after;
        }
        self.events.push(Event::Text(rest.to_owned().into()));
    }
}

fn link<'a>(dest_url: CowStr<'a>, title: CowStr<'a>) -> Tag<'a> {
    Tag::Link {
        link_type: LinkType::Inline,
        dest_url,
        title,
        id: "".into(),
    }
}

/// A message's headings stand below those of the page.
fn lower(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H4,
        HeadingLevel::H2 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

fn first_word(info: &str) -> String {
    let word = info.split([' ', ',', '{']).next().unwrap_or_default();
    word.chars().take(32).collect()
}

/// The first web address in the text, with what stands before and after it.
fn next_address(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find("http")?;
        from = at + "http".len();
        let scheme = ["https://", "http://"]
            .into_iter()
            .find(|scheme| text[at..].starts_with(scheme));
        let begins = !text[..at].ends_with(char::is_alphanumeric);
        let Some(scheme) = scheme.filter(|_| begins) else {
            continue;
        };
        let end = text[at..]
            .find(|c: char| c.is_whitespace() || c.is_control() || "<>\"`|\\^{}".contains(c))
            .map_or(text.len(), |length| at + length);
        let address = trim(&text[at..end]);
        if address.len() > scheme.len() {
            return Some((&text[..at], address, &text[at + address.len()..]));
        }
    }
}

/// An address without the punctuation of the sentence it stands in.
fn trim(address: &str) -> &str {
    let closing = if address.contains('(') { "" } else { ")" };
    address.trim_end_matches(|c: char| ".,:;!?'*_~]".contains(c) || closing.contains(c))
}

#[cfg(test)]
mod tests {
    use crate::render::budget::{Abandoned, RequestBudget};
    use std::time::{Duration, Instant};

    fn html(text: &str) -> String {
        crate::render::highlight::load();
        super::html(text, &mut RequestBudget::new(Abandoned::default()).next())
    }

    #[test]
    fn markdown_is_rendered() {
        assert_eq!(
            html("**bold** _it_ ~~no~~ `x<y`"),
            "<p><strong>bold</strong> <em>it</em> <del>no</del> <code>x&lt;y</code></p>\n"
        );
        assert_eq!(html("one\ntwo"), "<p>one<br>\ntwo</p>\n");
        assert!(html("- [x] done").contains("☑ done"));
        assert!(html("# Title").contains("<h4>Title</h4>"));
        assert!(html("|a|\n|-|\n|b|").contains("<td>b</td>"));
    }

    #[test]
    fn code_is_highlighted_with_classes_alone() {
        let rendered = html("```rust\nfn main() { \"hi\"; } // end\n```");
        assert!(
            rendered.contains(r#"<span class="hl-keyword">fn</span>"#),
            "{rendered}"
        );
        assert!(
            rendered.contains("hl-string") && rendered.contains("hl-comment"),
            "{rendered}"
        );
        assert!(!rendered.contains("style="));
        let unknown = html("```nothing-like-it\n<b>&\n```");
        assert!(unknown.contains("<pre><code>&lt;b&gt;&amp;"), "{unknown}");
    }

    #[test]
    fn web_addresses_become_links_that_tell_nobody() {
        let rendered = html("see https://example.org/a_b?c=d&e=(f), and foohttp://x");
        assert!(
            rendered.contains(r#"href="https://example.org/a_b?c=d&amp;e=(f)""#),
            "{rendered}"
        );
        assert!(rendered.contains("noopener noreferrer nofollow"));
        assert_eq!(rendered.matches("<a ").count(), 1);
    }

    #[test]
    fn hostile_text_does_nothing() {
        for text in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt&#58;alert(1))",
            "[x](data:text/html,<script>alert(1)</script>)",
            "![x](https://evil.example/track.png)",
            "<a href=\"javascript:alert(1)\" onclick=alert(1)>x</a>",
            "<svg onload=alert(1)>\n\n<style>*{display:none}</style>",
            "```html\"><script>alert(1)</script>\n<script>alert(1)</script>\n```",
            "[x](https://a \"\" onmouseover=\"alert(1)\")",
            "<span class=\"sidebar\">x</span>",
        ] {
            let rendered = html(text).to_lowercase();
            let tags = rendered
                .split('<')
                .skip(1)
                .filter_map(|tag| tag.split('>').next());
            for tag in tags {
                let name = tag.trim_start_matches('/').split(' ').next().unwrap();
                assert!(super::TAGS.contains(&name), "{text} gave {rendered}");
                for bad in [" on", "style=", "\"javascript", "\"data", "sidebar"] {
                    assert!(!tag.contains(bad), "{text} gave {rendered}");
                }
            }
        }
    }

    #[test]
    fn nothing_that_fits_a_message_takes_long_or_grows_large() {
        let cells = format!(
            "{}\n{}\n{}",
            "a|".repeat(400),
            "-|".repeat(400),
            "b|\n".repeat(900)
        );
        let code = |language: &str, text: &str| format!("```{language}\n{text}\n```");
        for text in [
            ">".repeat(4096),
            "> ".repeat(2048),
            "- ".repeat(2048),
            "*a_".repeat(1365),
            "[".repeat(4096),
            "[a](".repeat(1024),
            "`".repeat(4096),
            "<".repeat(4096),
            "&".repeat(4096),
            "![".repeat(2048),
            "http://".repeat(585),
            "https://a)".repeat(400),
            "x".repeat(4096),
            cells,
            code("js", &"/*(".repeat(1300)),
            code("rust", &"r#\"{[(<".repeat(580)),
            code("php", &"<?php $a[\"${".repeat(340)),
            code("markdown", &"*[_`".repeat(1000)),
            code("cpp", &"template<a<".repeat(360)),
        ] {
            let began = Instant::now();
            let rendered = html(&text);
            assert!(rendered.len() < 512 * 1024, "{} bytes", rendered.len());
            assert!(began.elapsed() < Duration::from_secs(5), "{:.40}", text);
        }
    }
}
