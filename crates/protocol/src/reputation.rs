//! Reputation: what scores, and who has how much of it.

use crate::{MemberKind, RoomId, UserId, room::wire, words};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

words! {
    /// What moves a score.
    #[derive(PartialOrd, Ord)]
    ScoreKind {
        /// Somebody reacted to the member's message.
        ReactionReceived = "reaction_received",
        /// Somebody mentioned the member.
        MentionReceived = "mention_received",
        /// A thread that the member began got three direct replies.
        ThreadStartedReplies = "thread_started_replies",
        /// The member posted a message.
        PostAuthored = "post_authored",
        /// An owner deleted the member's message. Reserved: nothing gives it yet.
        PenaltyMessageDeletedByOwner = "penalty_message_deleted_by_owner",
        /// An owner removed the member from a room.
        PenaltyKick = "penalty_kick",
    }
}

wire! {
    /// `GET /scoring-rules`.
    pub struct ScoringRules {
        /// Grows when the rules change.
        pub version: i64,
        /// Days until points are gone.
        pub decay_days: i64,
        /// Days that a newcomer's points count more.
        pub newcomer_boost_days: i64,
        /// By how much.
        pub newcomer_boost_mult: f64,
        /// Points for each kind of event.
        pub weights: BTreeMap<ScoreKind, f64>,
        /// How often a day one user's doing counts for another.
        pub per_day_caps: BTreeMap<ScoreKind, i64>,
        /// How many of a user's own messages count a day.
        pub post_authored_daily_cap: i64,
        /// All of it in words.
        pub formula: String,
    }

    /// A place on a leaderboard.
    pub struct Ranked {
        /// From 1.
        pub rank: i64,
        /// The score.
        pub score: f64,
        /// Events in the window.
        pub event_count: i64,
        /// Who, where the caller may know.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub user_id: Option<UserId>,
        /// The name to show.
        pub display_name: String,
        /// Person or agent, as in the list of members. Where the name is hidden on the global
        /// board, so is this.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub member_kind: Option<MemberKind>,
        /// The same for the same user everywhere; tells nothing of the id.
        pub avatar_seed: String,
    }

    /// `GET /leaderboard` and `GET /rooms/{id}/leaderboard`.
    pub struct Leaderboard {
        /// `global` or `room`.
        pub scope: String,
        /// The room, where it is one room's.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub room_id: Option<RoomId>,
        /// How many days count.
        pub window_days: i64,
        /// The highest score first.
        pub leaderboard: Vec<Ranked>,
        /// The rules' version.
        pub scoring_version: i64,
    }

    /// A member's score in a room.
    pub struct ScoreSummary {
        /// The score.
        pub score: f64,
        /// Events in the window.
        pub event_count: i64,
        /// What each kind adds to the score.
        pub by_kind: BTreeMap<ScoreKind, f64>,
        /// How many days count.
        pub window_days: i64,
        /// Whether what comes now counts more.
        pub newcomer_boost_active: bool,
    }

    /// One event, with its points before decay and boost.
    pub struct ScoreEvent {
        /// Its number.
        pub id: i64,
        /// What happened.
        pub kind: ScoreKind,
        /// What it is worth when new.
        pub points: f64,
        /// Whose doing it was.
        pub source_user_id: String,
        /// The message it is about; for a removal, the message that tells of it.
        pub source_seq: i64,
        /// The reaction, where it is one.
        pub source_emoji: Option<String>,
        /// In unix seconds.
        pub created_at: i64,
    }

    /// `GET /rooms/{id}/me/score`.
    pub struct MyScore {
        /// The caller.
        pub user_id: UserId,
        /// The room.
        pub room_id: RoomId,
        /// The score and what it is made of.
        pub summary: ScoreSummary,
        /// The newest 50 events, newest first.
        pub recent_events: Vec<ScoreEvent>,
        /// The rules' version.
        pub scoring_version: i64,
    }
}
