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
    let bare = bare_agent_id(&name);
    let is_called = |rest| begins_with(rest, &name) || bare.is_some_and(|it| begins_with(rest, it));
    !name.is_empty() && mentions(&text).any(is_called)
}

/// A member, as mentions see it.
#[derive(Debug, Clone, Copy)]
pub struct Mentionable<'a> {
    /// The id.
    pub id: &'a str,
    /// The name, if there is one.
    pub name: Option<&'a str>,
}

impl Mentionable<'_> {
    /// Whether this is the whole name or id, as a mention would have it.
    pub fn is_called(&self, name: &str) -> bool {
        let name = fold(name);
        let id = fold(self.id);
        let own_name = self.name.map(fold);
        let known = [Some(id.as_str()), bare_agent_id(&id), own_name.as_deref()];
        !name.is_empty() && known.contains(&Some(name.as_str()))
    }
}

/// Whom the parts of names in a text mention.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The members that exactly one part fits, by their place among those asked about.
    pub mentioned: Vec<usize>,
    /// What fits several, as it stands in the text, folded.
    pub ambiguous: Vec<String>,
}

/// What stands behind an `@` and is nobody's whole name or id may be a part of one: some of its words, in
/// their order. It mentions whom it fits, if it fits nobody else.
pub fn parts(text: &str, members: &[Mentionable<'_>]) -> Parts {
    let text = fold(text);
    let named: Vec<_> = members.iter().map(Names::of).collect();
    let mut found = Parts::default();
    for rest in mentions(&text).take(MAX_MENTIONS) {
        let handle = handle(rest);
        let wanted: String = handle.chars().filter(|c| c.is_alphanumeric()).collect();
        let whole = |names: &Names| names.whole.iter().any(|name| begins_with(rest, name));
        if wanted.chars().count() < SHORTEST_PART || named.iter().any(whole) {
            continue;
        }
        let fits = named
            .iter()
            .enumerate()
            .filter(|(_, names)| names.have(&wanted));
        match fits.map(|(at, _)| at).collect::<Vec<_>>()[..] {
            [] => {}
            [one] if found.mentioned.contains(&one) => {}
            [one] => found.mentioned.push(one),
            _ if found.ambiguous.iter().any(|known| known == handle) => {}
            _ => found.ambiguous.push(handle.to_owned()),
        }
    }
    found
}

/// Whether a part of this member's name or id stands behind an `@` in the text. It mentions the member if
/// it fits nobody else in the room, which the server knows.
pub fn has_part_of(text: &str, member: Mentionable<'_>) -> bool {
    text.contains('@') && !parts(text, &[member]).mentioned.is_empty()
}

/// A shorter part of a name mentions nobody.
const SHORTEST_PART: usize = 2;

/// What stands behind an `@`, up to the end of its word.
fn handle(rest: &str) -> &str {
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let end = rest.find(|c: char| !goes_on(c)).unwrap_or(rest.len());
    rest[..end].trim_end_matches(['.', '-'])
}

/// What a member is called by, folded.
struct Names {
    whole: Vec<String>,
    words: Vec<Vec<String>>,
}

impl Names {
    fn of(member: &Mentionable<'_>) -> Self {
        let id = fold(member.id);
        let bare = id.strip_prefix(EXTERNAL_PREFIX).unwrap_or(&id).to_owned();
        let name = member.name.map(fold);
        let words = |text: &str| {
            let words = text.split(|c: char| !c.is_alphanumeric());
            words
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let texts = [Some(bare.as_str()), name.as_deref()];
        Self {
            words: texts.into_iter().flatten().map(words).collect(),
            whole: [Some(id), Some(bare), name].into_iter().flatten().collect(),
        }
    }

    /// Whether these letters are some of the words, beside each other.
    fn have(&self, wanted: &str) -> bool {
        self.words.iter().any(|words| {
            (0..words.len()).any(|first| {
                let mut rest = wanted;
                words[first..].iter().any(|word| {
                    match rest.strip_prefix(word.as_str()) {
                        Some(after) => rest = after,
                        None => rest = "\u{0}",
                    }
                    rest.is_empty()
                })
            })
        })
    }
}

/// The name that an agent with this id gets where nobody chose one: `tidy_falcon-227a4218` is Tidy Falcon.
pub fn birth_name(id: &str) -> Option<String> {
    let bare = id.strip_prefix(EXTERNAL_PREFIX).unwrap_or(id);
    let (prefix, _) = bare.rsplit_once('-')?;
    let words = prefix.split(['_', '.']).filter(|word| !word.is_empty());
    let capitalised = words.map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    let name = capitalised.collect::<Vec<_>>().join(" ");
    (!name.is_empty()).then_some(name)
}

/// An external agent's id as its owner knows it.
fn bare_agent_id(folded: &str) -> Option<&str> {
    let bare = folded.strip_prefix(EXTERNAL_PREFIX)?;
    is_bare_agent_id(bare).then_some(bare)
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

    fn parts_in(text: &str) -> (Vec<usize>, Vec<String>) {
        let members = [
            ("ext_tidy_falcon-227a4218", Some("Tidy Falcon")),
            ("ext_tidy_otter-3a9f1c20", None),
            ("u_ann", Some("Ann Lee")),
            ("u_anna", Some("Anna")),
        ];
        let members = members.map(|(id, name)| Mentionable { id, name });
        let found = parts(text, &members);
        (found.mentioned, found.ambiguous)
    }

    #[test]
    fn a_part_of_a_name_or_id_mentions_whom_it_fits_alone() {
        for text in [
            "@falcon",
            "hey @Falcon!",
            "@tidy_falcon",
            "@TidyFalcon.",
            "@227a4218",
            "@tidy-falcon",
        ] {
            assert_eq!(parts_in(text), (vec![0], vec![]), "{text}");
        }
        assert_eq!(parts_in("@otter and @lee"), (vec![1, 2], vec![]));
        assert_eq!(
            parts_in("@ann, hello"),
            (vec![2], vec![]),
            "a word is whole"
        );
        assert_eq!(parts_in("@tidy @TIDY"), (vec![], vec!["tidy".to_owned()]));
        // Whoever is called by a whole name is found otherwise.
        assert_eq!(
            parts_in("@anna @Ann Lee @tidy_falcon-227a4218"),
            (vec![], vec![])
        );
        assert_eq!(
            parts_in("@fal @f @ x@falcon @_ @falcontidy"),
            (vec![], vec![])
        );
    }

    #[test]
    fn a_member_is_called_by_its_whole_name_or_id_in_any_case() {
        let member = |id, name| Mentionable { id, name };
        let otter = member("ext_curious_otter-3a9f1c20", Some("Ärger"));
        for name in [
            "ÄRGER",
            "ext_curious_otter-3a9f1c20",
            "Curious_Otter-3a9f1c20",
        ] {
            assert!(otter.is_called(name), "{name}");
        }
        for name in ["", "Ärge", "curious_otter", "ext_"] {
            assert!(!otter.is_called(name), "{name}");
        }
        assert!(member("u_1", Some("ΣΊΣΥΦΟΣ")).is_called("σίσυφοσ"));
        assert!(!member("u_1", None).is_called(""));
        assert!(!member("u_1", Some("")).is_called(""));
    }

    #[test]
    fn an_agent_has_a_name_at_birth() {
        assert_eq!(
            birth_name("tidy_falcon-227a4218").as_deref(),
            Some("Tidy Falcon")
        );
        assert_eq!(
            birth_name("ext_my.bot_v2-b14b3d22").as_deref(),
            Some("My Bot V2")
        );
        assert_eq!(birth_name("____-227a4218"), None);
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
