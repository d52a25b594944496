//! Reading scores: rankings from the sums, one member's from its events.

use super::{
    Conn, DbResult,
    db::{Sql, rows},
    posting::json,
    reputation::ScoreScope,
};
use protocol::{MemberKind, RoomId, ScoreKind, UserId};

row_struct! {
    /// A user's sums over the days of a window, and who that is in the room that was asked about.
    #[derive(Debug)]
    pub struct RankedRow {
        pub user_id: UserId,
        pub user_name: Option<String>,
        pub member_kind: Option<MemberKind>,
        pub events: i64,
        pub points: f64,
        pub moment: f64,
    }
}

row_struct! {
    /// One kind's sums of a member in a room.
    #[derive(Debug)]
    pub struct KindRow {
        pub kind: ScoreKind,
        pub events: i64,
        pub points: f64,
        pub moment: f64,
    }
}

row_struct! {
    /// An event that was counted.
    #[derive(Debug)]
    pub struct ScoreEventRow {
        pub id: i64,
        pub kind: ScoreKind,
        pub points: f64,
        pub source_user_id: UserId,
        pub source_seq: i64,
        pub source_emoji: Option<String>,
        pub created_at: i64,
    }
}

row_struct! {
    /// Who a user is in a room that the reader may know of.
    #[derive(Debug)]
    pub struct NamedMemberRow {
        pub user_id: UserId,
        pub user_name: Option<String>,
        pub member_kind: MemberKind,
    }
}

/// Which days count, how, and for how many users.
#[derive(Debug, Clone, Copy)]
pub struct Ranking {
    /// The first day that counts.
    pub since: i64,
    pub of_points: f64,
    pub of_moment: f64,
    pub limit: i64,
}

/// The users of scope `$4` with the highest scores since day `$5`: the totals less what they were
/// when that day began. Whoever has no such row began later.
macro_rules! ranked {
    ($named:literal, $joined:literal) => {
        concat!(
            "SELECT t.user_id, ",
            $named,
            ", t.events - COALESCE(s.events, 0) AS events, t.points - COALESCE(s.points, 0) AS points, \
             t.moment - COALESCE(s.moment, 0) AS moment FROM reputation_totals t ",
            $joined,
            "LEFT JOIN reputation_starts s ON s.scope = t.scope AND s.day = $5 AND s.user_id = t.user_id \
             WHERE t.scope = $4 AND t.last_day >= $5 \
             ORDER BY (t.points - COALESCE(s.points, 0)) * $1 + (t.moment - COALESCE(s.moment, 0)) * $2 DESC, \
             t.events - COALESCE(s.events, 0) DESC, t.user_id LIMIT $3"
        )
    };
}

macro_rules! own_agents {
    ($users:literal) => {
        concat!(
            "SELECT m.user_id, m.user_name, m.member_kind FROM room_members m \
             LEFT JOIN invites i ON i.jti = m.invite_jti WHERE m.user_id IN (",
            $users,
            ") AND (m.user_id = $1 OR (i.created_by = $1 AND m.member_kind = 'external_agent')) \
             ORDER BY m.joined_at, m.room_id"
        )
    };
}

impl Conn {
    /// The users with the highest scores over all rooms.
    pub async fn ranked_everywhere(&mut self, ranking: Ranking) -> DbResult<Vec<RankedRow>> {
        const RANKED: &str = ranked!(
            "CAST(NULL AS TEXT) AS user_name, CAST(NULL AS TEXT) AS member_kind",
            ""
        );
        self.ranked(RANKED, &ScoreScope::Everywhere, ranking).await
    }

    /// The members of a room with the highest scores in it.
    pub async fn ranked_in(&mut self, room: &RoomId, ranking: Ranking) -> DbResult<Vec<RankedRow>> {
        const RANKED: &str = ranked!(
            "m.user_name, m.member_kind",
            "JOIN room_members m ON m.room_id = t.scope AND m.user_id = t.user_id "
        );
        let scope = ScoreScope::Room(room.clone());
        self.ranked(RANKED, &scope, ranking).await
    }

    async fn ranked(
        &mut self,
        sql: &'static str,
        scope: &ScoreScope,
        ranking: Ranking,
    ) -> DbResult<Vec<RankedRow>> {
        let Ranking {
            since,
            of_points,
            of_moment,
            limit,
        } = ranking;
        rows!(
            self, RankedRow, sql, of_points, of_moment, limit, scope, since
        )
    }

    /// Who these users are in public rooms. Who is in none is not among them.
    pub async fn public_members(&mut self, users: &[&UserId]) -> DbResult<Vec<NamedMemberRow>> {
        const MEMBERS: Sql = Sql {
            sqlite: "SELECT m.user_id, m.user_name, m.member_kind FROM room_members m JOIN rooms r ON r.room_id = m.room_id \
                 WHERE m.user_id IN (SELECT value FROM json_each($1)) AND r.visibility = 'public' \
                 ORDER BY m.joined_at, m.room_id",
            postgres: "SELECT m.user_id, m.user_name, m.member_kind FROM room_members m JOIN rooms r ON r.room_id = m.room_id \
                 WHERE m.user_id IN (SELECT jsonb_array_elements_text($1::jsonb)) AND r.visibility = 'public' \
                 ORDER BY m.joined_at, m.room_id",
        };
        if users.is_empty() {
            return Ok(Vec::new());
        }
        rows!(self, NamedMemberRow, MEMBERS, json(users))
    }

    /// Which of these users are this one or agents that came with an invite of theirs, and who those are.
    pub async fn own_agents(
        &mut self,
        user: &UserId,
        users: &[&UserId],
    ) -> DbResult<Vec<NamedMemberRow>> {
        const OWN: Sql = Sql {
            sqlite: own_agents!("SELECT value FROM json_each($2)"),
            postgres: own_agents!("SELECT jsonb_array_elements_text($2::jsonb)"),
        };
        if users.is_empty() {
            return Ok(Vec::new());
        }
        rows!(self, NamedMemberRow, OWN, user, json(users))
    }

    /// What each kind of event has added to a member's score, from a moment on.
    pub async fn score_by_kind(
        &mut self,
        room: &RoomId,
        user: &UserId,
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
        room: &RoomId,
        user: &UserId,
        limit: i64,
    ) -> DbResult<Vec<ScoreEventRow>> {
        rows!(
            self,
            ScoreEventRow,
            "SELECT id, kind, points, source_user_id, source_seq, source_emoji, created_at \
             FROM reputation_events WHERE room_id = $1 AND user_id = $2 ORDER BY created_at DESC, id DESC LIMIT $3",
            room,
            user,
            limit
        )
    }
}
