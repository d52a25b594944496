//! Messages, mentions and reactions.

use super::{
    Conn, DbResult, Json,
    db::{Sql, exec, row, rows},
    posting::json,
};
use protocol::{Message, MessageType, Notice, RoomId, Usage, UserId, Via};
use std::collections::BTreeMap;

row_struct! {
    /// A message as it is stored.
    #[derive(Debug, Clone)]
    pub struct MessageRow {
        pub seq: i64,
        pub sender_user_id: UserId,
        pub sender_user_name: Option<String>,
        pub via: Via,
        pub r#type: MessageType,
        pub content: String,
        pub reply_to_seq: Option<i64>,
        pub reply_chain_depth: i64,
        pub created_at: i64,
        pub deleted: bool,
        pub edited_at: Option<i64>,
        /// Whether agents are called for it.
        pub calls_agents: bool,
        pub event: Option<Json<Notice>>,
        /// What it cost.
        pub usage: Option<Json<Usage>>,
    }
}

impl MessageRow {
    /// As readers get it, in a room whose rules have this version.
    pub fn into_message(self, rules_version: i64) -> Message {
        Message {
            seq: self.seq,
            sender_user_id: self.sender_user_id.into(),
            sender_user_name: self.sender_user_name,
            via: self.via,
            r#type: self.r#type,
            content: self.content,
            reply_to_seq: self.reply_to_seq,
            reply_chain_depth: self.reply_chain_depth,
            rules_version,
            created_at: self.created_at,
            deleted: self.deleted,
            edited_at: self.edited_at,
            reactions: BTreeMap::new(),
            mentions_me: None,
            content_html: None,
            event: self.event.map(|event| event.0),
            usage: self.usage.map(|usage| usage.0),
            answers: None,
        }
    }
}

row_struct! {
    /// How often an emoji was given to a message.
    #[derive(Debug)]
    pub struct ReactionRow {
        pub seq: i64,
        pub emoji: String,
        pub count: i64,
        pub by_me: bool,
    }
}

row_struct! {
    /// How often a message was answered.
    #[derive(Debug)]
    pub struct AnswersRow {
        pub seq: i64,
        pub count: i64,
        pub last_seq: i64,
        pub unread: i64,
    }
}

/// Answers are counted up to these: a message that is answered without end must not make reading slow.
const MOST_ANSWERS: i64 = 1000;
const MOST_UNREAD: i64 = 100;

/// Which messages to read.
#[derive(Debug, Default)]
pub struct Page<'a> {
    /// Above this seq, oldest first.
    pub since: i64,
    /// Below this seq: the newest of those, oldest first. Goes before `since`.
    pub before: Option<i64>,
    /// Only those of this sender.
    pub sender: Option<&'a UserId>,
    /// Only those that mention this user.
    pub mentions: Option<&'a UserId>,
    pub limit: i64,
}

macro_rules! columns {
    () => {
        "m.seq, m.sender_user_id, m.sender_user_name, m.via, m.type, m.content, m.reply_to_seq, \
         m.reply_chain_depth, m.created_at, m.deleted, m.edited_at, m.calls_agents, m.event, m.usage"
    };
}

macro_rules! answers {
    ($each:literal, $seq:literal, $read:literal) => {
        concat!(
            "SELECT a.seq, (SELECT COUNT(*) FROM (SELECT m.seq FROM messages m \
             WHERE m.room_id = $1 AND m.reply_to_seq = a.seq LIMIT $4) AS counted) AS count, a.last_seq, \
             (SELECT COUNT(*) FROM (SELECT m.sender_user_id, m.deleted FROM messages m \
             WHERE m.room_id = $1 AND m.reply_to_seq = a.seq AND m.seq > a.read_seq ORDER BY m.seq LIMIT $5) AS later \
             WHERE later.deleted = FALSE AND later.sender_user_id <> $3) AS unread \
             FROM (SELECT ",
            $seq,
            " AS seq, (SELECT MAX(m.seq) FROM messages m WHERE m.room_id = $1 AND m.reply_to_seq = ",
            $seq,
            ") AS last_seq, ",
            $read,
            " AS read_seq FROM ",
            $each,
            " AS j) AS a WHERE a.last_seq IS NOT NULL"
        )
    };
}

/// The ways to page: each its own text, so that each has its index.
macro_rules! page_query {
    ($from:literal, $filter:literal) => {
        Paging {
            ascending: Sql::same(concat!(
                "SELECT ",
                columns!(),
                " FROM ",
                $from,
                " WHERE ",
                $filter,
                " AND m.seq > $2 ORDER BY m.seq LIMIT $3"
            )),
            descending: Sql::same(concat!(
                "SELECT ",
                columns!(),
                " FROM ",
                $from,
                " WHERE ",
                $filter,
                " AND m.seq < $2 ORDER BY m.seq DESC LIMIT $3"
            )),
        }
    };
}

struct Paging {
    ascending: Sql,
    descending: Sql,
}

const ALL: Paging = page_query!("messages m", "m.room_id = $1");
const MENTIONING: Paging = page_query!(
    "mentions n JOIN messages m ON m.room_id = n.room_id AND m.seq = n.seq",
    "n.room_id = $1 AND n.user_id = $4"
);
const MENTIONING_BY_SENDER: Paging = page_query!(
    "mentions n JOIN messages m ON m.room_id = n.room_id AND m.seq = n.seq",
    "n.room_id = $1 AND n.user_id = $4 AND m.sender_user_id = $5"
);
const POSTGRES_BY_SENDER: Paging =
    page_query!("messages m", "m.room_id = $1 AND m.sender_user_id = $4");

/// The sender's newest message in block `b` before place `at`.
macro_rules! next_of_sender {
    () => {
        "(SELECT MAX(n.seq) FROM messages n WHERE n.room_id = $1 AND n.seq / 512 = b \
         AND n.sender_user_id = $4 AND n.seq < COALESCE(at, $2))"
    };
}

/// On SQLite the index by sender is in blocks of messages. Upwards, CROSS JOIN keeps the blocks in
/// order; downwards, the walk goes from message to message, or to the block below.
const BY_SENDER: Paging = Paging {
    ascending: Sql {
        sqlite: concat!(
            "WITH RECURSIVE block (b) AS (SELECT MAX($2, 0) / 512 UNION ALL SELECT b + 1 FROM block \
             WHERE b < (SELECT last_seq / 512 FROM rooms WHERE room_id = $1)) \
             SELECT ",
            columns!(),
            " FROM block CROSS JOIN messages m \
             ON m.room_id = $1 AND m.seq / 512 = block.b AND m.sender_user_id = $4 AND m.seq > $2 LIMIT $3"
        ),
        postgres: POSTGRES_BY_SENDER.ascending.postgres,
    },
    descending: Sql {
        sqlite: concat!(
            "WITH RECURSIVE walk (b, at) AS (SELECT MIN($2, last_seq + 1) / 512, NULL FROM rooms WHERE room_id = $1 \
             UNION ALL SELECT b - (",
            next_of_sender!(),
            " IS NULL), ",
            next_of_sender!(),
            " FROM walk WHERE b >= 0) \
             SELECT ",
            columns!(),
            " FROM walk CROSS JOIN messages m ON m.room_id = $1 AND m.seq = walk.at LIMIT $3"
        ),
        postgres: POSTGRES_BY_SENDER.descending.postgres,
    },
};

impl Conn {
    pub async fn messages(&mut self, room: &RoomId, page: &Page<'_>) -> DbResult<Vec<MessageRow>> {
        let paging = match (page.mentions, page.sender) {
            (None, None) => ALL,
            (None, Some(_)) => BY_SENDER,
            (Some(_), None) => MENTIONING,
            (Some(_), Some(_)) => MENTIONING_BY_SENDER,
        };
        let (sql, bound) = match page.before {
            Some(before) => (paging.descending, before),
            None => (paging.ascending, page.since),
        };
        let mut found = match (page.mentions, page.sender) {
            (None, None) => rows!(self, MessageRow, sql, room, bound, page.limit)?,
            (None, Some(sender)) => rows!(self, MessageRow, sql, room, bound, page.limit, sender)?,
            (Some(user), None) => rows!(self, MessageRow, sql, room, bound, page.limit, user)?,
            (Some(user), Some(sender)) => {
                rows!(self, MessageRow, sql, room, bound, page.limit, user, sender)?
            }
        };
        if page.before.is_some() {
            found.reverse();
        }
        Ok(found)
    }

    pub async fn message(&mut self, room: &RoomId, seq: i64) -> DbResult<Option<MessageRow>> {
        row!(
            self,
            MessageRow,
            concat!(
                "SELECT ",
                columns!(),
                " FROM messages m WHERE m.room_id = $1 AND m.seq = $2"
            ),
            room,
            seq
        )
    }

    /// The messages that are pinned, in their order.
    pub async fn pinned_messages(&mut self, room: &RoomId) -> DbResult<Vec<MessageRow>> {
        rows!(
            self,
            MessageRow,
            concat!(
                "SELECT ",
                columns!(),
                " FROM pins p JOIN messages m ON m.room_id = p.room_id AND m.seq = p.seq \
                 WHERE p.room_id = $1 ORDER BY p.seq"
            ),
            room
        )
    }

    /// The chain of replies from its root to this message, at most `limit` long.
    pub async fn thread(
        &mut self,
        room: &RoomId,
        seq: i64,
        limit: i64,
    ) -> DbResult<Vec<MessageRow>> {
        rows!(
            self,
            MessageRow,
            concat!(
                "WITH RECURSIVE chain (seq, reply_to_seq, hops) AS ( \
                 SELECT seq, reply_to_seq, 1 FROM messages WHERE room_id = $1 AND seq = $2 \
                 UNION ALL \
                 SELECT p.seq, p.reply_to_seq, c.hops + 1 FROM chain c \
                 JOIN messages p ON p.room_id = $1 AND p.seq = c.reply_to_seq WHERE c.hops < $3) \
                 SELECT ",
                columns!(),
                " FROM chain c JOIN messages m ON m.room_id = $1 AND m.seq = c.seq ORDER BY m.seq"
            ),
            room,
            seq,
            limit
        )
    }

    /// The reactions of these messages, each emoji counted.
    pub async fn reactions(
        &mut self,
        room: &RoomId,
        seqs: &[i64],
        me: Option<&UserId>,
    ) -> DbResult<Vec<ReactionRow>> {
        const REACTIONS: Sql = Sql {
            sqlite: "SELECT seq, emoji, COUNT(*) AS count, MAX(user_id = $3) AS by_me FROM reactions \
                 WHERE room_id = $1 AND seq IN (SELECT value FROM json_each($2)) GROUP BY seq, emoji",
            postgres: "SELECT seq, emoji, COUNT(*) AS count, BOOL_OR(user_id = $3) AS by_me FROM reactions \
                 WHERE room_id = $1 AND seq IN (SELECT jsonb_array_elements_text($2::jsonb)::bigint) GROUP BY seq, emoji",
        };
        if seqs.is_empty() {
            return Ok(Vec::new());
        }
        let me = me.map_or("", UserId::as_str);
        rows!(self, ReactionRow, REACTIONS, room, json(seqs), me)
    }

    /// How often each of these messages was answered, and how often by others than `me` after the seq that
    /// stands beside it.
    pub async fn answers_to(
        &mut self,
        room: &RoomId,
        read: &[(i64, i64)],
        me: Option<&UserId>,
    ) -> DbResult<Vec<AnswersRow>> {
        const ANSWERS: Sql = Sql {
            sqlite: answers!("json_each($2)", "j.value ->> 0", "j.value ->> 1"),
            postgres: answers!(
                "jsonb_array_elements($2::jsonb)",
                "(j.value ->> 0)::bigint",
                "(j.value ->> 1)::bigint"
            ),
        };
        if read.is_empty() {
            return Ok(Vec::new());
        }
        let me = me.map_or("", UserId::as_str);
        rows!(
            self,
            AnswersRow,
            ANSWERS,
            room,
            json(read),
            me,
            MOST_ANSWERS,
            MOST_UNREAD
        )
    }

    /// Which messages from `first` to `last` mention the user.
    pub async fn mentions_between(
        &mut self,
        room: &RoomId,
        user: &UserId,
        first: i64,
        last: i64,
    ) -> DbResult<Vec<(i64,)>> {
        rows!(
            self,
            (i64,),
            "SELECT seq FROM mentions WHERE room_id = $1 AND user_id = $2 AND seq BETWEEN $3 AND $4",
            room,
            user,
            first,
            last
        )
    }

    /// The user's last message in the room.
    pub async fn last_message_of(&mut self, room: &RoomId, user: &UserId) -> DbResult<Option<i64>> {
        let newest = Page {
            before: Some(i64::MAX),
            sender: Some(user),
            limit: 1,
            ..Page::default()
        };
        Ok(self
            .messages(room, &newest)
            .await?
            .first()
            .map(|message| message.seq))
    }

    /// How many messages after `seq` mention the user.
    pub async fn mentions_after(
        &mut self,
        room: &RoomId,
        user: &UserId,
        seq: i64,
    ) -> DbResult<i64> {
        let found = row!(
            self,
            (i64,),
            "SELECT COUNT(*) FROM mentions WHERE room_id = $1 AND user_id = $2 AND seq > $3",
            room,
            user,
            seq
        )?;
        Ok(found.map_or(0, |(count,)| count))
    }

    /// Replaces the text and forgets whom the old one mentioned; the first edit keeps what stood
    /// there.
    pub async fn edit_message(
        &mut self,
        room: &RoomId,
        seq: i64,
        content: &str,
        now: i64,
    ) -> DbResult<()> {
        self.keep_first_mentions(room, seq).await?;
        exec!(
            self,
            "UPDATE messages SET original_content = COALESCE(original_content, content), content = $3, \
             edited_at = $4 WHERE room_id = $1 AND seq = $2",
            room,
            seq,
            content,
            now
        )?;
        self.forget_mentions(room, seq).await
    }

    /// What a message of the server's own tells of, as JSON.
    pub async fn set_message_event(
        &mut self,
        room: &RoomId,
        seq: i64,
        event: &str,
    ) -> DbResult<()> {
        exec!(
            self,
            "UPDATE messages SET event = $3 WHERE room_id = $1 AND seq = $2",
            room,
            seq,
            event
        )?;
        Ok(())
    }

    /// Takes the text away and leaves the place.
    pub async fn redact_message(&mut self, room: &RoomId, seq: i64) -> DbResult<()> {
        self.keep_first_mentions(room, seq).await?;
        exec!(
            self,
            "UPDATE messages SET content = '', original_content = NULL, usage = NULL, deleted = TRUE \
             WHERE room_id = $1 AND seq = $2",
            room,
            seq
        )?;
        self.unpin(room, seq).await?;
        self.forget_mentions(room, seq).await
    }

    async fn forget_mentions(&mut self, room: &RoomId, seq: i64) -> DbResult<()> {
        exec!(
            self,
            "DELETE FROM mentions WHERE room_id = $1 AND seq = $2",
            room,
            seq
        )?;
        Ok(())
    }

    /// Whether the reaction is new.
    pub async fn add_reaction(
        &mut self,
        room: &RoomId,
        seq: i64,
        emoji: &str,
        user: &UserId,
        now: i64,
    ) -> DbResult<bool> {
        let added = exec!(
            self,
            "INSERT INTO reactions (room_id, seq, emoji, user_id, created_at) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT DO NOTHING",
            room,
            seq,
            emoji,
            user,
            now
        )?;
        Ok(added == 1)
    }

    /// Whether the reaction was there.
    pub async fn remove_reaction(
        &mut self,
        room: &RoomId,
        seq: i64,
        emoji: &str,
        user: &UserId,
    ) -> DbResult<bool> {
        let removed = exec!(
            self,
            "DELETE FROM reactions WHERE room_id = $1 AND seq = $2 AND emoji = $3 AND user_id = $4",
            room,
            seq,
            emoji,
            user
        )?;
        Ok(removed == 1)
    }

    /// How many different emoji the message has from this user.
    pub async fn reaction_count(
        &mut self,
        room: &RoomId,
        seq: i64,
        user: &UserId,
    ) -> DbResult<i64> {
        let found = row!(
            self,
            (i64,),
            "SELECT COUNT(*) FROM reactions WHERE room_id = $1 AND seq = $2 AND user_id = $3",
            room,
            seq,
            user
        )?;
        Ok(found.map_or(0, |(count,)| count))
    }
}
