//! Whether a message is addressed to the agent. A rule without I/O, for every backend but `handler`.

use crate::backend::Me;
use protocol::{
    Message, MessageType, Via,
    mentions::{has_part_of, is_mentioned},
};

/// Whether a message is for the agent, as far as the message itself tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressed {
    /// It is.
    Yes,
    /// It is not: others talk.
    No,
    /// It never is: the agent's own, the system's, or taken back.
    Never,
    /// It is, if the agent wrote the message with this `seq`.
    IfMine(i64),
}

/// Reads a message: it must mention the agent or answer it, and never come from the agent itself, from
/// the system or from another time and place.
pub fn addressed_to(message: &Message, me: &Me) -> Addressed {
    let from_elsewhere = message.sender_user_id != me.user_id
        && !matches!(message.via, Via::System | Via::Import)
        && message.r#type != MessageType::System;
    if !from_elsewhere || message.deleted {
        return Addressed::Never;
    }
    if message.mentions_me == Some(true) || mentions(&message.content, me) {
        return Addressed::Yes;
    }
    message
        .reply_to_seq
        .map_or(Addressed::No, Addressed::IfMine)
}

/// Whether a text names the agent.
pub fn mentions(content: &str, me: &Me) -> bool {
    let names = [me.mention_key.trim_start_matches('@'), &me.user_id];
    names.iter().any(|name| is_mentioned(content, name))
}

/// Whether a text may name the agent by a part of its name. Whether that fits somebody else too, the
/// server knows.
pub fn may_mention(content: &str, me: &Me) -> bool {
    has_part_of(content, me.mentionable())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn me() -> Me {
        Me {
            user_id: "ext_my_bot_v2-b14b3d22".into(),
            user_name: Some("MyBot".into()),
            mention_key: "@MyBot".into(),
            owner_user_id: None,
        }
    }

    fn message(content: &str) -> Message {
        let json = serde_json::json!({
            "seq": 7, "sender_user_id": "u_alice", "sender_user_name": null, "via": "web",
            "type": "chat", "content": content, "reply_to_seq": null, "reply_chain_depth": 0,
            "rules_version": 0, "created_at": 0, "deleted": false, "edited_at": null,
            "reactions": {},
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_mention_by_name_or_id_addresses_the_agent() {
        for content in [
            "hi @mybot!",
            "@MyBot",
            "(@ext_my_bot_v2-b14b3d22)",
            "@my_bot_v2-b14b3d22?",
        ] {
            assert_eq!(
                addressed_to(&message(content), &me()),
                Addressed::Yes,
                "{content}"
            );
        }
        for content in ["hi", "mybot", "@mybot2", "a@mybot", "@mybot-x"] {
            assert_eq!(
                addressed_to(&message(content), &me()),
                Addressed::No,
                "{content}"
            );
        }
    }

    #[test]
    fn a_part_of_its_name_or_id_may_mean_the_agent() {
        for (content, may) in [
            ("@bot, hello", true),
            ("hello @my_bot", true),
            ("@MyBot by its whole name", false),
            ("bot without a sign", false),
            ("mail me at x@bot.example", false),
            ("@bottle", false),
        ] {
            assert_eq!(may_mention(content, &me()), may, "{content}");
        }
    }

    #[test]
    fn an_answer_addresses_the_agent_it_answers() {
        let mut answer = message("thanks");
        answer.reply_to_seq = Some(3);
        assert_eq!(addressed_to(&answer, &me()), Addressed::IfMine(3));
    }

    #[test]
    fn neither_itself_nor_the_system_nor_what_was_taken_back_is_answered() {
        let mut own = message("@MyBot");
        own.sender_user_id = me().user_id;
        let mut system = message("@MyBot");
        system.via = Via::System;
        let mut deleted = message("@MyBot");
        deleted.deleted = true;
        for message in [own, system, deleted] {
            assert_eq!(addressed_to(&message, &me()), Addressed::Never);
        }
    }
}
