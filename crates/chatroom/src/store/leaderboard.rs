//! Reading scores: rankings from the sums by day, one member's from its events.

use super::{
    Conn, DbResult,
    db::{Sql, rows},
    posting::json,
};

/// A user's sums over the days of a window, the moment from its beginning on.
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
    pub first_day: i64,
    pub of_points: f64,
    pub of_moment: f64,
    pub limit: i64,
}

macro_rules! sums_of {
    ($scope:literal) => {
        concat!(
            "(SELECT user_id, CAST(SUM(events) AS BIGINT) AS events, SUM(points) AS points, \
             SUM(moment + points * ((day - $1) * 86400)) AS moment \
             FROM reputation_days WHERE scope = ",
            $scope,
            " AND day >= $1 GROUP BY user_id) sums"
        )
    };
}

macro_rules! highest_first {
    () => {
        " ORDER BY sums.points * $2 + sums.moment * $3 DESC, sums.events DESC, sums.user_id LIMIT $4"
    };
}

impl Conn {
    /// The users with the highest scores over all rooms.
    pub async fn ranked_everywhere(&mut self, ranking: Ranking) -> DbResult<Vec<RankedRow>> {
        rows!(
            self,
            RankedRow,
            concat!(
                "SELECT sums.user_id, CAST(NULL AS TEXT) AS user_name, sums.events, sums.points, sums.moment FROM ",
                sums_of!("'*'"),
                highest_first!()
            ),
            ranking.first_day,
            ranking.of_points,
            ranking.of_moment,
            ranking.limit
        )
    }

    /// The members of a room with the highest scores in it.
    pub async fn ranked_in(&mut self, room: &str, ranking: Ranking) -> DbResult<Vec<RankedRow>> {
        rows!(
            self,
            RankedRow,
            concat!(
                "SELECT sums.user_id, m.user_name, sums.events, sums.points, sums.moment FROM ",
                sums_of!("$5"),
                " JOIN room_members m ON m.room_id = $5 AND m.user_id = sums.user_id",
                highest_first!()
            ),
            ranking.first_day,
            ranking.of_points,
            ranking.of_moment,
            ranking.limit,
            room
        )
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
             SUM(points * boost * (created_at - $3)) AS moment FROM reputation_events \
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
