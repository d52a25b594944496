//! What wakes agents and what they may spend.

use super::{
    Conn, DbResult,
    db::{Sql, exec, rows},
    posting::json,
};
use protocol::{Budget, PolicyOf, RoomId, UserId, Wake, WakePolicy};

row_struct! {
    /// The two policies for an agent in a room.
    #[derive(Debug, Clone)]
    pub struct WakeRow {
        pub room_id: RoomId,
        pub user_id: UserId,
        pub own_wake: Wake,
        pub own_turns: Option<i64>,
        pub own_tokens: Option<i64>,
        pub own_cost_usd: Option<f64>,
        pub room_wake: Wake,
        pub room_turns: Option<i64>,
        pub room_tokens: Option<i64>,
        pub room_cost_usd: Option<f64>,
    }
}

impl WakeRow {
    /// What the agent or its owner has set.
    pub fn own(&self) -> WakePolicy {
        WakePolicy {
            wake: self.own_wake,
            budget: Budget {
                turns: self.own_turns,
                tokens: self.own_tokens,
                cost_usd: self.own_cost_usd,
            },
        }
    }

    /// What the room's owner has set.
    pub fn of_room(&self) -> WakePolicy {
        WakePolicy {
            wake: self.room_wake,
            budget: Budget {
                turns: self.room_turns,
                tokens: self.room_tokens,
                cost_usd: self.room_cost_usd,
            },
        }
    }

    /// What holds.
    pub fn effective(&self) -> WakePolicy {
        self.own().tighter(&self.of_room())
    }
}

macro_rules! select_wake {
    ($from:literal) => {
        concat!(
            "SELECT w.room_id, w.user_id, w.own_wake, w.own_turns, w.own_tokens, w.own_cost_usd, w.room_wake, \
             w.room_turns, w.room_tokens, w.room_cost_usd FROM ",
            $from
        )
    };
}

macro_rules! save_wake {
    ($party:literal) => {
        concat!(
            "INSERT INTO wake_policies (room_id, user_id, ",
            $party,
            "_wake, ",
            $party,
            "_turns, ",
            $party,
            "_tokens, ",
            $party,
            "_cost_usd) VALUES ($1, $2, $3, $4, $5, $6) \
             ON CONFLICT (room_id, user_id) DO UPDATE SET ",
            $party,
            "_wake = excluded.",
            $party,
            "_wake, ",
            $party,
            "_turns = excluded.",
            $party,
            "_turns, ",
            $party,
            "_tokens = excluded.",
            $party,
            "_tokens, ",
            $party,
            "_cost_usd = excluded.",
            $party,
            "_cost_usd"
        )
    };
}

impl Conn {
    /// The policies of these agents (room and user), where they have any.
    pub async fn wake_policies(&mut self, agents: &[(&RoomId, &UserId)]) -> DbResult<Vec<WakeRow>> {
        const POLICIES: Sql = Sql {
            sqlite: select_wake!(
                "json_each($1) AS j JOIN wake_policies w \
                 ON w.room_id = j.value ->> 0 AND w.user_id = j.value ->> 1"
            ),
            postgres: select_wake!(
                "jsonb_array_elements($1::jsonb) AS j(v) JOIN wake_policies w \
                 ON w.room_id = j.v ->> 0 AND w.user_id = j.v ->> 1"
            ),
        };
        rows!(self, WakeRow, POLICIES, json(agents))
    }

    /// The policies in a room.
    pub async fn wake_policies_in(&mut self, room: &RoomId) -> DbResult<Vec<WakeRow>> {
        rows!(
            self,
            WakeRow,
            select_wake!("wake_policies w WHERE w.room_id = $1"),
            room
        )
    }

    pub async fn save_wake_policy(
        &mut self,
        room: &RoomId,
        user: &UserId,
        whose: &PolicyOf,
        policy: &WakePolicy,
    ) -> DbResult<()> {
        let sql = match whose {
            PolicyOf::Own => save_wake!("own"),
            PolicyOf::Room => save_wake!("room"),
        };
        exec!(
            self,
            sql,
            room,
            user,
            &policy.wake,
            policy.budget.turns,
            policy.budget.tokens,
            policy.budget.cost_usd
        )?;
        Ok(())
    }
}
