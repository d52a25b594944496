//! What people chose for themselves.

use super::{
    Conn, DbResult,
    db::{exec, row, rows},
    members::{UserIdRow, user_ids},
};
use protocol::{RoomId, UserId};

row_struct! {
    /// An account, without its picture.
    #[derive(Debug)]
    pub struct AccountRow {
        pub name: Option<String>,
        pub has_picture: bool,
    }
}

row_struct! {
    /// A picture and what it is.
    #[derive(Debug)]
    pub struct PictureRow {
        pub picture: Vec<u8>,
        pub picture_type: String,
        pub changed_at: i64,
    }
}

impl Conn {
    pub async fn account(&mut self, user: &UserId) -> DbResult<Option<AccountRow>> {
        row!(
            self,
            AccountRow,
            "SELECT name, (picture IS NOT NULL) AS has_picture FROM accounts WHERE user_id = $1",
            user
        )
    }

    pub async fn set_account_name(
        &mut self,
        user: &UserId,
        seed: &str,
        name: &str,
        now: i64,
    ) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO accounts (user_id, seed, name, changed_at) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (user_id) DO UPDATE SET name = excluded.name",
            user,
            seed,
            name,
            now
        )?;
        Ok(())
    }

    /// Replaces the picture, or takes it away.
    pub async fn set_picture(
        &mut self,
        user: &UserId,
        seed: &str,
        picture: Option<(Vec<u8>, &str)>,
        now: i64,
    ) -> DbResult<()> {
        let (picture, kind) = picture.unzip();
        exec!(
            self,
            "INSERT INTO accounts (user_id, seed, picture, picture_type, changed_at) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (user_id) DO UPDATE SET picture = excluded.picture, \
             picture_type = excluded.picture_type, changed_at = excluded.changed_at",
            user,
            seed,
            picture,
            kind,
            now
        )?;
        Ok(())
    }

    pub async fn picture(&mut self, seed: &str) -> DbResult<Option<PictureRow>> {
        row!(
            self,
            PictureRow,
            "SELECT picture, picture_type, changed_at FROM accounts WHERE seed = $1 AND picture IS NOT NULL",
            seed
        )
    }

    /// The members of the room who have a picture.
    pub async fn members_with_pictures(&mut self, room: &RoomId) -> DbResult<Vec<UserId>> {
        let found = rows!(
            self,
            UserIdRow,
            "SELECT m.user_id FROM room_members m JOIN accounts a ON a.user_id = m.user_id \
             WHERE m.room_id = $1 AND a.picture IS NOT NULL",
            room
        )?;
        Ok(user_ids(found))
    }

    pub async fn forget_account(&mut self, user: &UserId) -> DbResult<()> {
        exec!(self, "DELETE FROM accounts WHERE user_id = $1", user)?;
        Ok(())
    }

    /// Whether anybody has ever signed in or made a room. Asked at start.
    pub async fn has_people(&mut self) -> DbResult<bool> {
        let found = row!(
            self,
            (i64,),
            "SELECT CAST((EXISTS (SELECT 1 FROM identities WHERE user_id NOT LIKE 'ext\\_%' ESCAPE '\\') \
             OR EXISTS (SELECT 1 FROM rooms WHERE owner_user_id <> 'u_system')) AS INTEGER) * CAST(1 AS BIGINT)"
        )?;
        Ok(found.is_some_and(|(people,)| people != 0))
    }

    /// Takes the link for the first person, which works once. Whether it was this one.
    pub async fn take_meta(&mut self, name: &str, value: &str) -> DbResult<bool> {
        let taken = exec!(
            self,
            "DELETE FROM meta WHERE name = $1 AND value = $2",
            name,
            value
        )?;
        Ok(taken == 1)
    }
}
