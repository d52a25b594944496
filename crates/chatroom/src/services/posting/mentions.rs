//! Who a message mentions: `@` and a member's name or id, as a whole word.

use crate::store::posting::AuthorRow;

/// The users among these that the text mentions.
pub fn mentioned<'a>(content: &str, names: &'a [AuthorRow]) -> impl Iterator<Item = &'a str> {
    let text = content.to_lowercase();
    names
        .iter()
        .filter(move |member| {
            let name = member
                .user_name
                .as_deref()
                .is_some_and(|name| has_mention(&text, name));
            name || has_mention(&text, &member.user_id)
        })
        .map(|member| member.user_id.as_str())
}

/// Whether the lowercase text holds `@` and this word, and the word ends there. In the middle of a
/// word, as in an e-mail address, `@` mentions nobody.
fn has_mention(text: &str, word: &str) -> bool {
    let word = word.to_lowercase();
    let begins = |at: usize| !text[..at].ends_with(|before: char| before.is_alphanumeric());
    text.match_indices('@')
        .filter(|(at, _)| begins(*at))
        .any(|(at, _)| {
            text[at + 1..]
                .strip_prefix(word.as_str())
                .is_some_and(|rest| {
                    !rest.starts_with(|next: char| {
                        next.is_alphanumeric() || next == '_' || next == '-'
                    })
                })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(user: &str, name: Option<&str>) -> AuthorRow {
        AuthorRow {
            room_id: "rm_a".into(),
            user_id: user.into(),
            user_name: name.map(Into::into),
        }
    }

    fn found(text: &str) -> Vec<String> {
        let members = [
            member("u_alice", Some("Alice")),
            member("u_al", Some("Al")),
            member("ext_bot-3a9f1c20", Some("Codex (Bob's)")),
            member("u_none", None),
        ];
        mentioned(text, &members).map(str::to_owned).collect()
    }

    #[test]
    fn a_name_is_mentioned_whatever_its_case() {
        assert_eq!(found("hello @alice!"), ["u_alice"]);
        assert_eq!(found("@ALICE and @Al"), ["u_alice", "u_al"]);
    }

    #[test]
    fn a_longer_word_is_no_mention_of_a_shorter_name() {
        assert_eq!(found("@Alicent"), [""; 0]);
        assert_eq!(found("@al-x @al_x @al1"), [""; 0]);
    }

    #[test]
    fn a_name_may_hold_spaces_and_an_id_does_too() {
        assert_eq!(found("ask @Codex (Bob's) about it"), ["ext_bot-3a9f1c20"]);
        assert_eq!(found("ask @ext_bot-3a9f1c20."), ["ext_bot-3a9f1c20"]);
        assert_eq!(found("@u_none"), ["u_none"]);
    }

    #[test]
    fn an_email_address_mentions_nobody() {
        assert_eq!(found("write to bob@alice.example"), [""; 0]);
        assert_eq!(found("(@alice)"), ["u_alice"]);
    }

    #[test]
    fn an_at_sign_alone_mentions_nobody() {
        assert_eq!(found("a@b @ @@"), [""; 0]);
    }
}
