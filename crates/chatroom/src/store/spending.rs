//! What agents spent, by room and day, and what their messages cost.

use super::{
    Conn, DbResult,
    db::{Sql, exec, rows},
    posting::json,
};
use protocol::{RoomId, Usage, UserId};

row_struct! {
    /// What an agent spent in a room on a day; or what is to be added to that.
    #[derive(Debug, Clone, PartialEq)]
    pub struct SpendingRow {
        pub room_id: RoomId,
        pub user_id: UserId,
        /// Days since 1970, UTC.
        pub day: i64,
        pub turns: i64,
        pub input_tokens: i64,
        pub output_tokens: i64,
        pub cost_usd: f64,
        pub seconds: f64,
        /// Whether the room was told that the budget is used up.
        pub told: bool,
    }
}

macro_rules! select_spending {
    ($from:literal) => {
        concat!(
            "SELECT u.room_id, u.user_id, u.day, u.turns, u.input_tokens, u.output_tokens, u.cost_usd, \
             u.seconds, u.told FROM ",
            $from
        )
    };
}

/// Adds to what was spent on a day.
pub const ADD_SPENDING: &str = "INSERT INTO usage_days (room_id, user_id, day, turns, input_tokens, output_tokens, \
     cost_usd, seconds, told) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
     ON CONFLICT (room_id, user_id, day) DO UPDATE SET turns = usage_days.turns + excluded.turns, \
     input_tokens = usage_days.input_tokens + excluded.input_tokens, \
     output_tokens = usage_days.output_tokens + excluded.output_tokens, \
     cost_usd = usage_days.cost_usd + excluded.cost_usd, seconds = usage_days.seconds + excluded.seconds, \
     told = usage_days.told OR excluded.told";
/// Says what a message cost, as JSON.
pub const SET_USAGE: &str = "UPDATE messages SET usage = $1 WHERE room_id = $2 AND seq = $3";

impl Conn {
    /// What these agents (room and user) spent on a day.
    pub async fn spending(
        &mut self,
        agents: &[(&RoomId, &UserId)],
        day: i64,
    ) -> DbResult<Vec<SpendingRow>> {
        const SPENDING: Sql = Sql {
            sqlite: select_spending!(
                "json_each($1) AS j JOIN usage_days u \
                 ON u.room_id = j.value ->> 0 AND u.user_id = j.value ->> 1 AND u.day = $2"
            ),
            postgres: select_spending!(
                "jsonb_array_elements($1::jsonb) AS j(v) JOIN usage_days u \
                 ON u.room_id = j.v ->> 0 AND u.user_id = j.v ->> 1 AND u.day = $2"
            ),
        };
        rows!(self, SpendingRow, SPENDING, json(agents), day)
    }

    /// Adds to what an agent spent.
    pub async fn add_spending(&mut self, added: &SpendingRow) -> DbResult<()> {
        exec!(
            self,
            ADD_SPENDING,
            &added.room_id,
            &added.user_id,
            added.day,
            added.turns,
            added.input_tokens,
            added.output_tokens,
            added.cost_usd,
            added.seconds,
            added.told
        )?;
        Ok(())
    }

    /// Says what a message cost.
    pub async fn set_usage(&mut self, room: &RoomId, seq: i64, usage: &Usage) -> DbResult<()> {
        exec!(self, SET_USAGE, json(usage), room, seq)?;
        Ok(())
    }

    /// What agents spent in a room since a day.
    pub async fn spending_in(
        &mut self,
        room: &RoomId,
        since: i64,
        limit: i64,
    ) -> DbResult<Vec<SpendingRow>> {
        rows!(
            self,
            SpendingRow,
            select_spending!(
                "usage_days u WHERE u.room_id = $1 AND u.day >= $2 ORDER BY u.day DESC LIMIT $3"
            ),
            room,
            since,
            limit
        )
    }

    /// What agents spent in a user's rooms since a day.
    pub async fn spending_in_rooms_of(
        &mut self,
        owner: &UserId,
        since: i64,
        limit: i64,
    ) -> DbResult<Vec<SpendingRow>> {
        rows!(
            self,
            SpendingRow,
            select_spending!(
                "rooms r JOIN usage_days u ON u.room_id = r.room_id \
                 WHERE r.owner_user_id = $1 AND u.day >= $2 LIMIT $3"
            ),
            owner,
            since,
            limit
        )
    }

    /// What a user's own agent spent since a day, in any room.
    pub async fn spending_of(
        &mut self,
        user: &UserId,
        since: i64,
        limit: i64,
    ) -> DbResult<Vec<SpendingRow>> {
        rows!(
            self,
            SpendingRow,
            select_spending!("usage_days u WHERE u.user_id = $1 AND u.day >= $2 LIMIT $3"),
            user,
            since,
            limit
        )
    }
}
