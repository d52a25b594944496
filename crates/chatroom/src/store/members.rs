//! Members of rooms.

use super::{
    Conn, DbResult,
    db::{Sql, exec, row, rows},
    skeletons::FORGET_SKELETONS,
};
use protocol::{AdapterType, MemberKind, Role, RoomId, UserId, mentions::fold};

row_struct! {
    /// A member as it is stored, without the push bearer.
    #[derive(Debug, Clone)]
    pub struct MemberRow {
        pub user_id: UserId,
        pub user_name: Option<String>,
        pub member_kind: MemberKind,
        pub role: Role,
        pub adapter_type: AdapterType,
        pub joined_at: i64,
        pub agent_endpoint: Option<String>,
        pub container_id: Option<String>,
        pub has_akm_key: bool,
        pub akm_prefix: Option<String>,
        pub key_stale: bool,
        pub agent_card_url: Option<String>,
        pub lineage: Option<String>,
    }
}

impl MemberRow {
    pub fn is_owner(&self) -> bool {
        self.role == Role::Owner
    }

    /// The name to show: the user's id where there is no name.
    pub fn shown_name(&self) -> &str {
        self.user_name.as_deref().unwrap_or(self.user_id.as_str())
    }
}

row_struct! {
    /// A member's name in a room.
    #[derive(Debug)]
    pub struct MemberNameRow {
        pub room_id: RoomId,
        pub user_id: UserId,
        pub user_name: Option<String>,
    }
}

row_struct! {
    /// How many members are of one kind and have an endpoint, or have none.
    #[derive(Debug)]
    pub struct KindRow {
        pub member_kind: MemberKind,
        pub has_endpoint: bool,
        pub members: i64,
    }
}

row_struct! {
    /// What kind a member is.
    #[derive(Debug)]
    pub struct MemberKindRow {
        pub member_kind: MemberKind,
    }
}

row_struct! {
    /// A user's id alone.
    #[derive(Debug)]
    pub struct UserIdRow {
        pub user_id: UserId,
    }
}

/// The ids of rows that hold nothing else.
pub(super) fn user_ids(rows: Vec<UserIdRow>) -> Vec<UserId> {
    rows.into_iter().map(|row| row.user_id).collect()
}

/// A member about to be stored.
pub struct NewMember<'a> {
    pub room_id: &'a RoomId,
    pub user_id: &'a UserId,
    pub user_name: Option<&'a str>,
    pub member_kind: &'a MemberKind,
    pub role: Role,
    pub adapter_type: AdapterType,
    pub joined_at: i64,
    pub agent_endpoint: Option<&'a str>,
    /// Whether a trusted caller named it.
    pub endpoint_trusted: bool,
    pub akm: Option<SealedKey>,
    pub container_id: Option<&'a str>,
    pub agent_card_url: Option<&'a str>,
    pub lineage: Option<&'a str>,
    /// The invite that they came with.
    pub invite_jti: Option<&'a str>,
}

/// A push bearer, encrypted, and the part of it that may be shown.
pub struct SealedKey {
    pub sealed: String,
    pub prefix: String,
}

/// Where and with what a member's agent is called.
pub struct Endpoint<'a> {
    pub agent_endpoint: Option<&'a str>,
    pub container_id: Option<&'a str>,
    pub akm: PushKey,
    /// Whether a trusted caller named the address; as it was where absent.
    pub trusted: Option<bool>,
}

/// What becomes of a member's push bearer.
pub enum PushKey {
    Keep,
    Forget,
    New(SealedKey),
}

/// What a [`MemberRow`] is read from.
macro_rules! select_member {
    ($rest:literal) => {
        concat!("SELECT user_id, user_name, member_kind, role, adapter_type, joined_at, agent_endpoint, container_id, \
             (akm_key IS NOT NULL) AS has_akm_key, akm_prefix, key_stale, agent_card_url, lineage \
             FROM room_members ", $rest)
    };
}

row_struct! {
    /// Who a member is, and what it is called.
    #[derive(Debug)]
    pub struct CalledRow {
        pub user_id: UserId,
        pub user_name: Option<String>,
    }
}

impl Conn {
    pub async fn member(&mut self, room: &RoomId, user: &UserId) -> DbResult<Option<MemberRow>> {
        row!(
            self,
            MemberRow,
            select_member!("WHERE room_id = $1 AND user_id = $2"),
            room,
            user
        )
    }

    /// So many members in the order they joined, after so many.
    pub async fn members(
        &mut self,
        room: &RoomId,
        limit: i64,
        offset: i64,
    ) -> DbResult<Vec<MemberRow>> {
        rows!(
            self,
            MemberRow,
            select_member!(
                "WHERE room_id = $1 ORDER BY joined_at, role DESC, user_id LIMIT $2 OFFSET $3"
            ),
            room,
            limit,
            offset
        )
    }

    /// How many members there are of each kind, those with an endpoint apart.
    pub async fn kinds_of_members(&mut self, room: &RoomId) -> DbResult<Vec<KindRow>> {
        rows!(
            self,
            KindRow,
            "SELECT member_kind, (agent_endpoint IS NOT NULL) AS has_endpoint, COUNT(*) AS members \
             FROM room_members WHERE room_id = $1 GROUP BY member_kind, (agent_endpoint IS NOT NULL)",
            room
        )
    }

    /// The kinds of those of these users who are members.
    pub async fn kinds_among(
        &mut self,
        room: &RoomId,
        users: &[&UserId],
    ) -> DbResult<Vec<MemberKind>> {
        const KINDS: Sql = Sql {
            sqlite: "SELECT member_kind FROM room_members \
                 WHERE room_id = $1 AND user_id IN (SELECT value FROM json_each($2))",
            postgres: "SELECT member_kind FROM room_members \
                 WHERE room_id = $1 AND user_id IN (SELECT jsonb_array_elements_text($2::jsonb))",
        };
        if users.is_empty() {
            return Ok(Vec::new());
        }
        let found = rows!(
            self,
            MemberKindRow,
            KINDS,
            room,
            super::posting::json(users)
        )?;
        Ok(found.into_iter().map(|row| row.member_kind).collect())
    }

    pub async fn member_count(&mut self, room: &RoomId) -> DbResult<i64> {
        let found = row!(
            self,
            (i64,),
            "SELECT COUNT(*) FROM room_members WHERE room_id = $1",
            room
        )?;
        Ok(found.map_or(0, |(count,)| count))
    }

    pub async fn insert_member(&mut self, member: NewMember<'_>) -> DbResult<()> {
        let (akm_key, akm_prefix) = member.akm.map(|key| (key.sealed, key.prefix)).unzip();
        exec!(
            self,
            "INSERT INTO room_members (room_id, user_id, user_name, member_kind, role, adapter_type, joined_at, \
             agent_endpoint, akm_key, akm_prefix, container_id, agent_card_url, lineage, endpoint_trusted, \
             invite_jti, name_folded, read_seq) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, \
             $15, $16, COALESCE((SELECT last_seq FROM rooms WHERE room_id = $1), 0))",
            member.room_id,
            member.user_id,
            member.user_name,
            member.member_kind,
            &member.role,
            &member.adapter_type,
            member.joined_at,
            member.agent_endpoint,
            akm_key,
            akm_prefix,
            member.container_id,
            member.agent_card_url,
            member.lineage,
            member.endpoint_trusted,
            member.invite_jti,
            member.user_name.map(fold)
        )?;
        Ok(())
    }

    /// Ids and names of the room's members, in no order, at most `limit`.
    pub async fn member_names(&mut self, room: &RoomId, limit: i64) -> DbResult<Vec<CalledRow>> {
        rows!(
            self,
            CalledRow,
            "SELECT user_id, user_name FROM room_members WHERE room_id = $1 LIMIT $2",
            room,
            limit
        )
    }

    /// Whether there was such a member. It is no longer called either.
    pub async fn delete_member(&mut self, room: &RoomId, user: &UserId) -> DbResult<bool> {
        self.disable_delivery(room, user).await?;
        exec!(self, FORGET_SKELETONS, room, user)?;
        self.forget_threads(room, user).await?;
        let deleted = exec!(
            self,
            "DELETE FROM room_members WHERE room_id = $1 AND user_id = $2",
            room,
            user
        )?;
        Ok(deleted == 1)
    }

    /// The invite that a member came with.
    pub async fn invite_of_member(
        &mut self,
        room: &RoomId,
        user: &UserId,
    ) -> DbResult<Option<String>> {
        let found = row!(
            self,
            (Option<String>,),
            "SELECT invite_jti FROM room_members WHERE room_id = $1 AND user_id = $2",
            room,
            user
        )?;
        Ok(found.and_then(|(invite,)| invite))
    }

    pub async fn set_member_name(
        &mut self,
        room: &RoomId,
        user: &UserId,
        name: &str,
    ) -> DbResult<()> {
        exec!(
            self,
            "UPDATE room_members SET user_name = $3, name_folded = $4 WHERE room_id = $1 AND user_id = $2",
            room,
            user,
            name,
            fold(name)
        )?;
        Ok(())
    }

    /// Folds names that an older server wrote, at most so many; tells how many there were.
    pub async fn fold_names(&mut self, most: i64) -> DbResult<usize> {
        let found = rows!(
            self,
            MemberNameRow,
            "SELECT room_id, user_id, user_name FROM room_members \
             WHERE name_folded IS NULL AND user_name IS NOT NULL LIMIT $1",
            most
        )?;
        for MemberNameRow {
            room_id,
            user_id,
            user_name,
        } in &found
        {
            let name = user_name.as_deref().unwrap_or_default();
            self.set_member_name(room_id, user_id, name).await?;
        }
        Ok(found.len())
    }

    pub async fn set_agent_card(
        &mut self,
        room: &RoomId,
        user: &UserId,
        url: Option<&str>,
    ) -> DbResult<()> {
        exec!(
            self,
            "UPDATE room_members SET agent_card_url = $3 WHERE room_id = $1 AND user_id = $2",
            room,
            user,
            url
        )?;
        Ok(())
    }

    /// Sets where and with what a member's agent is called. A new key is not stale, nor is none.
    pub async fn set_endpoint(
        &mut self,
        room: &RoomId,
        user: &UserId,
        endpoint: Endpoint<'_>,
    ) -> DbResult<()> {
        let (replaced, key) = match endpoint.akm {
            PushKey::Keep => (false, None),
            PushKey::Forget => (true, None),
            PushKey::New(key) => (true, Some(key)),
        };
        let (akm_key, akm_prefix) = key.map(|key| (key.sealed, key.prefix)).unzip();
        exec!(
            self,
            "UPDATE room_members SET agent_endpoint = $3, container_id = $4, \
             akm_key = CASE WHEN $5 THEN $6 ELSE akm_key END, \
             akm_prefix = CASE WHEN $5 THEN $7 ELSE akm_prefix END, \
             key_stale = CASE WHEN $5 THEN FALSE ELSE key_stale END, \
             endpoint_trusted = COALESCE($8, endpoint_trusted) \
             WHERE room_id = $1 AND user_id = $2",
            room,
            user,
            endpoint.agent_endpoint,
            endpoint.container_id,
            replaced,
            akm_key,
            akm_prefix,
            endpoint.trusted
        )?;
        Ok(())
    }

    /// Whether a member of any of these rooms has this name.
    pub async fn name_is_taken(&mut self, rooms: &[&RoomId], name: &str) -> DbResult<bool> {
        const TAKEN: Sql = Sql {
            sqlite: "SELECT EXISTS (SELECT 1 FROM room_members \
                 WHERE room_id IN (SELECT value FROM json_each($1)) AND user_name = $2)",
            postgres: "SELECT EXISTS (SELECT 1 FROM room_members \
                 WHERE room_id IN (SELECT jsonb_array_elements_text($1::jsonb)) AND user_name = $2)",
        };
        let taken = row!(self, (bool,), TAKEN, super::posting::json(rooms), name)?;
        Ok(taken.is_some_and(|(taken,)| taken))
    }

    /// Gives a member's place to a lineage.
    pub async fn set_lineage(
        &mut self,
        room: &RoomId,
        user: &UserId,
        lineage: &str,
    ) -> DbResult<()> {
        exec!(
            self,
            "UPDATE room_members SET lineage = $3 WHERE room_id = $1 AND user_id = $2",
            room,
            user,
            lineage
        )?;
        Ok(())
    }

    /// Whether anybody has used this id before: as a member, or with an identity token.
    pub async fn user_is_known(&mut self, user: &UserId) -> DbResult<bool> {
        let known = row!(
            self,
            (bool,),
            "SELECT EXISTS (SELECT 1 FROM room_members WHERE user_id = $1) \
             OR EXISTS (SELECT 1 FROM identities WHERE user_id = $1)",
            user
        )?;
        Ok(known.is_some_and(|(known,)| known))
    }
}
