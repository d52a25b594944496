//! Slack's way to write, as Markdown: what its webhooks take, and what its exports hold.

use serde_json::Value;

/// Attachments and blocks of a message that are shown.
const MOST_PARTS: usize = 20;

/// The text of a message as Slack's incoming webhooks take it; nothing where it is none of theirs. The
/// name and the picture that a sender chooses for itself are not taken.
pub fn message(payload: &Value) -> Option<String> {
    let text_at = |value: &Value, key: &str| {
        let text = value.get(key).and_then(Value::as_str)?;
        (!text.trim().is_empty()).then(|| to_markdown(text, |_| None))
    };
    let mut parts: Vec<String> = text_at(payload, "text").into_iter().collect();
    let many = |key: &str| payload.get(key).and_then(Value::as_array);
    if parts.is_empty() {
        for block in many("blocks").into_iter().flatten().take(MOST_PARTS) {
            parts.extend(block.get("text").and_then(|text| text_at(text, "text")));
        }
    }
    for attachment in many("attachments").into_iter().flatten().take(MOST_PARTS) {
        let mut said: Vec<String> = ["pretext", "title", "text"]
            .into_iter()
            .filter_map(|key| text_at(attachment, key))
            .collect();
        if said.is_empty() {
            said.extend(text_at(attachment, "fallback"));
        }
        parts.extend(said);
    }
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// Slack's markup as Markdown: links, mentions and channels in angle brackets, and `&lt;` for `<`.
/// `name_of` knows users by their ids.
pub fn to_markdown(text: &str, name_of: impl Fn(&str) -> Option<String>) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let (before, tail) = rest.split_at(start);
        shown.push_str(before);
        let inner = tail[1..].split_once('>');
        match inner.and_then(|(inner, after)| Some((reference(inner, &name_of)?, after))) {
            Some((words, after)) => {
                shown.push_str(&words);
                rest = after;
            }
            None => {
                shown.push('<');
                rest = &tail[1..];
            }
        }
    }
    shown.push_str(rest);
    shown
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// What stands in angle brackets.
fn reference(inner: &str, name_of: &impl Fn(&str) -> Option<String>) -> Option<String> {
    let (target, label) = match inner.split_once('|') {
        Some((target, label)) => (target, Some(label)),
        None => (inner, None),
    };
    if target.contains(char::is_whitespace) {
        return None;
    }
    if let Some(user) = target.strip_prefix('@') {
        let name = name_of(user).or_else(|| label.map(str::to_owned));
        return Some(format!("@{}", name.as_deref().unwrap_or(user)));
    }
    if let Some(channel) = target.strip_prefix('#') {
        return Some(format!("#{}", label.unwrap_or(channel)));
    }
    if let Some(command) = target.strip_prefix('!') {
        let word = label.unwrap_or(command);
        return Some(format!("@{}", word.trim_start_matches('@')));
    }
    let is_address = ["http://", "https://", "mailto:"]
        .iter()
        .any(|scheme| target.starts_with(scheme));
    match label {
        _ if !is_address => None,
        Some(label) if label != target => Some(format!("[{label}]({target})")),
        _ => Some(target.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn slacks_markup_becomes_markdown() {
        let name = |id: &str| (id == "U1").then(|| "Ann".to_owned());
        for (slack, markdown) in [
            ("plain", "plain"),
            ("<https://a.example|a b> x", "[a b](https://a.example) x"),
            ("<https://a.example>", "https://a.example"),
            ("<@U1> and <@U2>", "@Ann and @U2"),
            ("<#C1|general> <!here>", "#general @here"),
            ("1 &lt; 2 &amp;&amp; a<b", "1 < 2 && a<b"),
            ("<b>bold</b>", "<b>bold</b>"),
            ("<<<", "<<<"),
            ("", ""),
        ] {
            assert_eq!(to_markdown(slack, name), markdown);
        }
    }

    #[test]
    fn a_message_is_its_text_and_attachments() {
        let payload = json!({"text": "Build", "username": "root",
            "attachments": [{"title": "<https://a.example|#1>", "text": "failed", "fallback": "x"}, {"fallback": "y"}]});
        assert_eq!(
            message(&payload).unwrap(),
            "Build\n\n[#1](https://a.example)\n\nfailed\n\ny"
        );
        let blocks = json!({"blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "hi"}}, {"type": "divider"}]});
        assert_eq!(message(&blocks).unwrap(), "hi");
        assert_eq!(message(&json!({"message": "x"})), None);
        assert_eq!(message(&json!({"text": " "})), None);
    }
}
