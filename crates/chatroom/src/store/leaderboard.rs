//! Reading scores: rankings from the sums by day, one member's from its events.

use super::{
    Conn, DbResult,
    db::{Sql, rows},
    posting::json,
};

/// A user's sums over the days of a window.
#[derive(Debug, sqlx::FromRow)]
pub struct RankedRow {
    pub user_id: String,
    pub user_name: Option<String>,
    pub events: i64,
    pub points: f64,
    pub moment: f64,
}

/// One kind's sums of a member in a room.
#[derive(Debug, sqlx::FromRow)]
pub struct KindRow {
    pub kind: String,
    pub events: i64,
    pub points: f64,
    pub moment: f64,
}

/// An event that was counted.
#[derive(Debug, sqlx::FromRow)]
pub struct EventRow {
    pub id: i64,
    pub kind: String,
    pub points: f64,
    pub source_user_id: String,
    pub source_seq: i64,
    pub source_emoji: Option<String>,
    pub created_at: i64,
}

/// Which days count, how, and for how many users.
#[derive(Debug, Clone, Copy)]
pub struct Ranking {
    /// The first day that counts; all that are kept where there is none.
    pub since: Option<i64>,
    pub of_points: f64,
    pub of_moment: f64,
    pub limit: i64,
}

/// The sums of each user in a scope.
macro_rules! totals {
    ($scope:literal) => {
        concat!(
            "(SELECT user_id, events, points, moment FROM reputation_totals WHERE scope = ",
            $scope,
            " AND events > 0) sums"
        )
    };
}

/// The same, from a day on.
macro_rules! totals_since {
    ($scope:literal, $day:literal) => {
        concat!(
            "(SELECT user_id, CAST(SUM(events) AS BIGINT) AS events, SUM(points) AS points, \
             SUM(moment) AS moment FROM reputation_days WHERE scope = ",
            $scope,
            " AND day >= ",
            $day,
            " GROUP BY user_id) sums"
        )
    };
}

macro_rules! ranked {
    ($name:literal, $sums:expr, $join:literal) => {
        concat!(
            "SELECT sums.user_id, ",
            $name,
            " AS user_name, sums.events, sums.points, sums.moment FROM ",
            $sums,
            $join,
            " ORDER BY sums.points * $1 + sums.moment * $2 DESC, sums.events DESC, sums.user_id LIMIT $3"
        )
    };
}

macro_rules! ranked_everywhere {
    ($sums:expr) => {
        ranked!("CAST(NULL AS TEXT)", $sums, "")
    };
}

macro_rules! ranked_in_room {
    ($sums:expr) => {
        ranked!(
            "m.user_name",
            $sums,
            " JOIN room_members m ON m.room_id = $4 AND m.user_id = sums.user_id"
        )
    };
}

impl Conn {
    /// The users with the highest scores over all rooms.
    pub async fn ranked_everywhere(&mut self, ranking: Ranking) -> DbResult<Vec<RankedRow>> {
        const ALL: &str = ranked_everywhere!(totals!("'*'"));
        const SINCE: &str = ranked_everywhere!(totals_since!("'*'", "$4"));
        let (points, moment, limit) = (ranking.of_points, ranking.of_moment, ranking.limit);
        match ranking.since {
            None => rows!(self, RankedRow, ALL, points, moment, limit),
            Some(day) => rows!(self, RankedRow, SINCE, points, moment, limit, day),
        }
    }

    /// The members of a room with the highest scores in it.
    pub async fn ranked_in(&mut self, room: &str, ranking: Ranking) -> DbResult<Vec<RankedRow>> {
        const ALL: &str = ranked_in_room!(totals!("$4"));
        const SINCE: &str = ranked_in_room!(totals_since!("$4", "$5"));
        let (points, moment, limit) = (ranking.of_points, ranking.of_moment, ranking.limit);
        match ranking.since {
            None => rows!(self, RankedRow, ALL, points, moment, limit, room),
            Some(day) => rows!(self, RankedRow, SINCE, points, moment, limit, room, day),
        }
    }

    /// The names that these users have in public rooms. Who is in none is not among them.
    pub async fn public_names(
        &mut self,
        users: &[&str],
    ) -> DbResult<Vec<(String, Option<String>)>> {
        const NAMES: Sql = Sql {
            sqlite: "SELECT m.user_id, m.user_name FROM room_members m JOIN rooms r ON r.room_id = m.room_id \
                 WHERE m.user_id IN (SELECT value FROM json_each($1)) AND r.visibility = 'public' \
                 ORDER BY m.joined_at, m.room_id",
            postgres: "SELECT m.user_id, m.user_name FROM room_members m JOIN rooms r ON r.room_id = m.room_id \
                 WHERE m.user_id IN (SELECT jsonb_array_elements_text($1::jsonb)) AND r.visibility = 'public' \
                 ORDER BY m.joined_at, m.room_id",
        };
        if users.is_empty() {
            return Ok(Vec::new());
        }
        rows!(self, (String, Option<String>), NAMES, json(users))
    }

    /// What each kind of event has added to a member's score, from a moment on.
    pub async fn score_by_kind(
        &mut self,
        room: &str,
        user: &str,
        begin: i64,
    ) -> DbResult<Vec<KindRow>> {
        rows!(
            self,
            KindRow,
            "SELECT kind, COUNT(*) AS events, SUM(points * boost) AS points, \
             SUM(points * boost * created_at) AS moment FROM reputation_events \
             WHERE room_id = $1 AND user_id = $2 AND created_at >= $3 GROUP BY kind",
            room,
            user,
            begin
        )
    }

    /// A member's newest events in a room, newest first.
    pub async fn recent_score_events(
        &mut self,
        room: &str,
        user: &str,
        limit: i64,
    ) -> DbResult<Vec<EventRow>> {
        rows!(
            self,
            EventRow,
            "SELECT id, kind, points, source_user_id, source_seq, source_emoji, created_at \
             FROM reputation_events WHERE room_id = $1 AND user_id = $2 ORDER BY created_at DESC, id DESC LIMIT $3",
            room,
            user,
            limit
        )
    }
}
