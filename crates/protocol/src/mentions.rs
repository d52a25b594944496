//! Who a text mentions: `@` and a name or an id, as a whole word, in any case.
//!
//! In the middle of a word, as in an e-mail address, `@` mentions nobody. A name may hold spaces, so
//! what follows an `@` may be several names, each longer than the one before. An external agent goes by
//! the id that its owner knows too, the one without `ext_`.

use crate::{AgentId, EXTERNAL_PREFIX, MAX_NAME_CHARS};
use std::collections::HashSet;

/// The most members that one message mentions.
pub const MAX_MENTIONS: usize = 50;
/// The most names that are looked up for one message.
const MAX_CANDIDATES: usize = 2000;
/// The most pieces of a text that are looked at; many may be the same.
const MAX_PIECES: usize = 10_000;
/// No name or id is longer than this, folded.
const MAX_CANDIDATE_CHARS: usize = MAX_NAME_CHARS * 2;

/// The form in which names are compared.
pub fn fold(name: &str) -> String {
    // Letter by letter: a letter's form must not depend on what stands beside it.
    name.chars().flat_map(char::to_lowercase).collect()
}

/// Every folded name or id that the text may mention, in order, each once.
pub fn candidates(text: &str) -> Vec<String> {
    let text = fold(text);
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for candidate in mentions(&text).flat_map(names).take(MAX_PIECES) {
        if seen.insert(candidate) {
            found.push(candidate.to_owned());
            if is_bare_agent_id(candidate) {
                found.push(format!("{EXTERNAL_PREFIX}{candidate}"));
            }
        }
        if found.len() >= MAX_CANDIDATES {
            break;
        }
    }
    found.truncate(MAX_CANDIDATES);
    found
}

/// Whether the text mentions whoever has this name or id.
pub fn is_mentioned(text: &str, name: &str) -> bool {
    let (text, name) = (fold(text), fold(name));
    let bare = name.strip_prefix(EXTERNAL_PREFIX);
    let bare = bare.filter(|bare| is_bare_agent_id(bare));
    let is_called = |rest| begins_with(rest, &name) || bare.is_some_and(|it| begins_with(rest, it));
    !name.is_empty() && mentions(&text).any(is_called)
}

/// Whether this is an external agent's id without its `ext_`, as the installer prints it.
fn is_bare_agent_id(folded: &str) -> bool {
    !folded.starts_with(EXTERNAL_PREFIX) && folded.parse::<AgentId>().is_ok()
}

/// What follows each `@` that may mention somebody.
fn mentions(folded: &str) -> impl Iterator<Item = &str> {
    folded
        .match_indices('@')
        .filter(|(at, _)| !folded[..*at].ends_with(char::is_alphanumeric))
        .map(|(at, _)| &folded[at + 1..])
}

/// What of this text may be a name: each piece from its beginning to the end of a word.
fn names(rest: &str) -> impl Iterator<Item = &str> {
    let line = rest.split(char::is_control).next().unwrap_or_default();
    line.char_indices()
        .take(MAX_CANDIDATE_CHARS)
        .map(|(at, letter)| line.split_at(at + letter.len_utf8()))
        .filter(|(name, after)| ends_word(after) && !name.ends_with(char::is_whitespace))
        .map(|(name, _)| name)
}

fn begins_with(rest: &str, name: &str) -> bool {
    rest.strip_prefix(name).is_some_and(ends_word)
}

/// Whether no word goes on here.
fn ends_word(after: &str) -> bool {
    !after.starts_with(|next: char| next.is_alphanumeric() || next == '_' || next == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways to ask must agree.
    fn mentions_whom(text: &str) -> Vec<&'static str> {
        let names = [
            "Alice",
            "Al",
            "ext_bot-3a9f1c20",
            "ext_curious_otter-3a9f1c20",
            "Codex (Bob's)",
            "ΣΊΣΥΦΟΣ",
        ];
        let looked_up = candidates(text);
        names
            .into_iter()
            .filter(|name| {
                let mentioned = is_mentioned(text, name);
                assert_eq!(mentioned, looked_up.contains(&fold(name)), "{text} {name}");
                mentioned
            })
            .collect()
    }

    #[test]
    fn a_name_is_mentioned_whatever_its_case() {
        assert_eq!(mentions_whom("hello @alice!"), ["Alice"]);
        assert_eq!(mentions_whom("@ALICE and @Al"), ["Alice", "Al"]);
        assert_eq!(mentions_whom("@Σίσυφος, @σίσυφοσ"), ["ΣΊΣΥΦΟΣ"]);
    }

    #[test]
    fn a_longer_word_is_no_mention_of_a_shorter_name() {
        assert_eq!(mentions_whom("@Alicent"), [""; 0]);
        assert_eq!(mentions_whom("@al-x @al_x @al1"), [""; 0]);
    }

    #[test]
    fn a_name_may_hold_spaces_and_an_id_does_too() {
        assert_eq!(
            mentions_whom("ask @Codex (Bob's) about it"),
            ["Codex (Bob's)"]
        );
        assert_eq!(
            mentions_whom("ask @ext_bot-3a9f1c20."),
            ["ext_bot-3a9f1c20"]
        );
        assert_eq!(mentions_whom("@codex\n(bob's)"), [""; 0]);
    }

    #[test]
    fn an_agent_is_mentioned_by_the_id_that_its_owner_knows() {
        for text in [
            "@curious_otter-3a9f1c20, hello",
            "@Curious_Otter-3A9F1C20",
            "@ext_curious_otter-3a9f1c20",
        ] {
            assert_eq!(mentions_whom(text), ["ext_curious_otter-3a9f1c20"]);
        }
        // What is no agent's id stands for itself alone.
        assert_eq!(mentions_whom("@bot-3a9f1c20"), [""; 0]);
        assert_eq!(mentions_whom("@curious_otter-3a9f1c20x"), [""; 0]);
        assert_eq!(mentions_whom("@ext_ext_curious_otter-3a9f1c20"), [""; 0]);
    }

    #[test]
    fn an_email_address_and_an_at_sign_alone_mention_nobody() {
        assert_eq!(mentions_whom("write to bob@alice.example"), [""; 0]);
        assert_eq!(mentions_whom("a@b @ @@"), [""; 0]);
        assert_eq!(mentions_whom("(@alice)"), ["Alice"]);
    }

    #[test]
    fn what_is_looked_up_is_bounded_whatever_is_written() {
        for text in [
            "@".repeat(4096),
            "@a!".repeat(1365),
            "@a ".repeat(1365),
            "@é.".repeat(1024),
        ] {
            let found = candidates(&text);
            assert!(found.len() <= MAX_CANDIDATES);
            assert!(
                found
                    .iter()
                    .all(|name| name.chars().count() <= MAX_CANDIDATE_CHARS)
            );
        }
    }
}
