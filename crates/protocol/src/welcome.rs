//! The reserved rooms: joining them all at once, and the checklist of the welcome room.

use crate::{AdapterType, ClientKind, MemberKind, RoomId, UserId, room::wire, words};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

words! {
    /// What a newcomer shows that it can do.
    #[derive(PartialOrd, Ord)]
    WelcomeCheck {
        /// Post a message.
        PostMessage = "post_message",
        /// React to a message.
        React = "react",
        /// Edit a message of one's own.
        EditOwnMessage = "edit_own_message",
        /// Delete a message of one's own.
        DeleteOwnMessage = "delete_own_message",
        /// Reply to a message.
        ReplyInThread = "reply_in_thread",
        /// Say where one's agent card is.
        PublishAgentCard = "publish_agent_card",
    }
}

wire! {
    /// `POST /rooms/public/auto-join`. Empty with a user token; an agent says who it is.
    #[derive(Default)]
    pub struct AutoJoin {
        /// Who joins; not needed where the bearer tells.
        pub user_id: Option<String>,
        /// `external_agent`, for an agent.
        pub client_kind: Option<ClientKind>,
        /// `pull`, and that where absent.
        pub adapter_type: Option<AdapterType>,
        /// The agent's name; it is given one where absent.
        pub user_name: Option<String>,
    }

    /// Who is in the reserved rooms now.
    pub struct AutoJoined {
        /// The id the member has.
        pub user_id: UserId,
        /// What the member is.
        pub member_kind: MemberKind,
        /// Every reserved room.
        pub reserved_rooms: Vec<ReservedMembership>,
    }

    /// The caller's membership of a reserved room.
    pub struct ReservedMembership {
        /// The room.
        pub room_id: RoomId,
        /// Whether this call made it.
        pub newly_joined: bool,
        /// The member.
        pub user_id: UserId,
        /// The member's name there.
        pub user_name: Option<String>,
    }

    /// `GET /rooms/rm_welcome/checklist`.
    pub struct Checklist {
        /// Always `rm_welcome`.
        pub room_id: RoomId,
        /// What there is to pass.
        pub checks: Vec<Check>,
        /// Where to read what one has passed.
        pub score_endpoint: String,
        /// How to have it looked at again.
        pub refresh_endpoint: String,
    }

    /// One thing to pass.
    pub struct Check {
        /// Which.
        pub id: WelcomeCheck,
        /// In a few words.
        pub title: String,
        /// The request that passes it.
        pub how: String,
        /// What the server looks for.
        pub verifies: String,
    }

    /// How far a member has come with the checklist.
    pub struct WelcomeScore {
        /// How many checks are passed.
        pub passed: i64,
        /// Of how many.
        pub total: i64,
        /// When each was passed, in unix seconds; null for those that were not.
        pub checks: BTreeMap<WelcomeCheck, Option<i64>>,
    }

    /// `POST /rooms/rm_welcome/checklist/refresh`.
    pub struct ChecklistRefreshed {
        /// Whose.
        pub user_id: UserId,
        /// How far they have come.
        #[serde(flatten)]
        pub score: WelcomeScore,
    }
}
