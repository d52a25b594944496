//! Names that cannot pretend: nobody picks a name that looks like the server's or like that of a
//! member who is there already. Names that a room's owner gives stand.

use crate::{
    app::App,
    error::{Error, Result},
    shown_text::skeleton::{is_reserved, skeletons},
    store::{Conn, DbError, Tx},
};
use protocol::{MAX_NAME_CHARS, RoomId, UserId, mentions};

/// Where the database keeps by which rules its skeletons were made.
const SKELETONS_VERSION: (&str, &str) = ("looks_version", "1");
/// Members whose skeletons are made in one transaction.
const PAGE: i64 = 500;

/// Whose name it looks like, where somebody picks this one for themselves.
pub async fn impersonated(
    conn: &mut Conn,
    rooms: &[&RoomId],
    user: &UserId,
    name: &str,
) -> Result<Option<&'static str>> {
    if is_reserved(name) {
        return Ok(Some("a name of the server itself"));
    }
    let taken = conn
        .skeleton_is_taken(rooms, &skeletons(name), user)
        .await?;
    Ok(taken.then_some("the name of a member who is here already"))
}

/// Refuses a name that somebody picked for themselves and that looks like another's.
pub async fn refuse_impersonation(
    conn: &mut Conn,
    rooms: &[&RoomId],
    user: &UserId,
    field: &str,
    name: &str,
) -> Result<()> {
    match impersonated(conn, rooms, user, name).await? {
        None => Ok(()),
        Some(whose) => Err(Error::bad_request(format!(
            "{field} looks like {whose}; choose another"
        ))),
    }
}

/// The name of a user in these rooms: the token's, with the id where it looks like another's, and
/// none where it looks like the server's.
pub async fn for_user(
    conn: &mut Conn,
    rooms: &[&RoomId],
    user: &UserId,
    name: Option<&str>,
) -> Result<Option<String>, DbError> {
    let Some(name) = name.filter(|name| !is_reserved(name)) else {
        return Ok(None);
    };
    let taken = conn
        .skeleton_is_taken(rooms, &skeletons(name), user)
        .await?;
    Ok(match taken {
        false => Some(name.to_owned()),
        true => with_id(name, user),
    })
}

/// A name that cannot be mistaken for another's, because the id stands beside it.
pub fn with_id(name: &str, user: &UserId) -> Option<String> {
    let room = MAX_NAME_CHARS.checked_sub(user.as_str().len() + 3)?;
    let name: String = name.chars().take(room).collect();
    let name = name.trim_end();
    (!name.is_empty()).then(|| format!("{name} ({user})"))
}

/// The name of an agent that chose none: that of its id, unless it looks like another's.
pub async fn at_birth(conn: &mut Conn, rooms: &[&RoomId], user: &UserId) -> Result<Option<String>> {
    let Some(name) = mentions::birth_name(user.as_str()) else {
        return Ok(None);
    };
    let impersonated = impersonated(conn, rooms, user, &name).await?;
    Ok(Some(name).filter(|_| impersonated.is_none()))
}

/// What a member looks like: by name and by id, which is shown where there is no name.
pub fn skeletons_of_member(user: &UserId, name: Option<&str>) -> Vec<String> {
    let mut all = skeletons(user.as_str());
    all.extend(name.map(skeletons).unwrap_or_default());
    all.sort_unstable();
    all.dedup();
    all
}

/// Remembers what a member looks like from now on.
pub async fn remember(tx: &mut Tx, room: &RoomId, user: &UserId, name: Option<&str>) -> Result<()> {
    tx.set_skeletons(room, user, &skeletons_of_member(user, name))
        .await?;
    Ok(())
}

/// Makes the skeletons of members from before there were any. Any number of nodes may do so at once.
pub async fn prepare(app: &App) -> Result<(), DbError> {
    let (name, version) = SKELETONS_VERSION;
    if app.db.read().await?.meta(name).await?.as_deref() == Some(version) {
        return Ok(());
    }
    loop {
        let mut tx = app.db.begin().await?;
        let members = tx.members_without_skeletons(PAGE).await?;
        if members.is_empty() {
            tx.set_meta(name, version).await?;
            return tx.commit().await;
        }
        for member in members {
            let (room, user) = (&member.room_id, &member.user_id);
            let skeletons = skeletons_of_member(user, member.user_name.as_deref());
            tx.set_skeletons(room, user, &skeletons).await?;
        }
        tx.commit().await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_beside_an_id_is_not_too_long() {
        let user: UserId = "u_ann2".parse().unwrap();
        assert_eq!(with_id("Ann", &user).as_deref(), Some("Ann (u_ann2)"));
        let long = with_id(&"x".repeat(64), &user).unwrap();
        assert_eq!(long.chars().count(), MAX_NAME_CHARS);
        assert_eq!(with_id("Ann", &"u".repeat(100).parse().unwrap()), None);
    }
}
