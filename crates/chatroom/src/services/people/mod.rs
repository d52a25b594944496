//! What people choose for themselves, and how the first of them signs in.

pub mod inbox;
pub mod operators;

use crate::{
    app::App,
    auth::{
        Caller,
        user::{TokenType, sign_user_token},
    },
    clock::Now,
    error::{Error, Result},
    services::{access, checks, members::names, visitors},
    store::accounts::PictureRow,
};
use protocol::{Account, ErrorCode, RoomId, UpdateAccount, UserId};
use std::net::IpAddr;

/// The most bytes of a picture.
pub const MOST_PICTURE_BYTES: usize = 64 * 1024;
/// Where the database keeps the hash of the link for the first person, and when it ends.
const FIRST_LINK: &str = "first_link";
const FIRST_LINK_SECONDS: i64 = 86_400;
/// How long the token behind the link lasts: it is traded at once.
const FIRST_TOKEN_SECONDS: i64 = 600;
const FIRST_NAME: &str = "First person";

pub async fn me(app: &App, caller: &Caller) -> Result<Account> {
    let user = access::user(caller)?;
    let row = app.db.read().await?.account(&user.id).await?;
    let has_picture = row.as_ref().is_some_and(|row| row.has_picture);
    let chosen = row.and_then(|row| row.name);
    Ok(account(
        app,
        &user.id,
        chosen.or(user.name.clone()),
        has_picture,
    ))
}

fn account(app: &App, user: &UserId, name: Option<String>, has_picture: bool) -> Account {
    let seed = app.secrets.pseudonym(user.as_str());
    Account {
        user_id: user.clone(),
        display_name: name,
        picture: has_picture.then(|| picture_path(&seed)),
        avatar_seed: seed,
    }
}

/// Where the picture of whoever has this seed is.
pub fn picture_path(seed: &str) -> String {
    format!("/avatars/{seed}")
}

/// Gives the caller another name, in all rooms at once.
pub async fn update(app: &App, caller: &Caller, request: UpdateAccount) -> Result<Account> {
    let user = access::user(caller)?;
    rename(app, &user.id, &request.display_name).await?;
    me(app, caller).await
}

/// Gives a user another name, in all rooms at once.
pub async fn rename(app: &App, user: &UserId, name: &str) -> Result<()> {
    let name = checks::member_name("display_name", name)?;
    let now = Now::get().seconds();
    let mut tx = app.db.begin().await?;
    let rooms: Vec<RoomId> = tx
        .rooms_of(user)
        .await?
        .into_iter()
        .map(|room| room.room_id)
        .collect();
    let all: Vec<&RoomId> = rooms.iter().collect();
    names::refuse_impersonation(&mut tx, &all, user, "display_name", &name).await?;
    tx.set_account_name(user, &app.secrets.pseudonym(user.as_str()), &name, now)
        .await?;
    for room in &rooms {
        tx.set_member_name(room, user, &name).await?;
        names::remember(&mut tx, room, user, Some(&name)).await?;
    }
    tx.commit().await?;
    Ok(())
}

/// Replaces the caller's picture, or takes it away where there are no bytes.
pub async fn set_picture(app: &App, caller: &Caller, bytes: Option<Vec<u8>>) -> Result<Account> {
    let user = access::user(caller)?;
    let picture = match bytes {
        None => None,
        Some(bytes) => {
            let kind = kind_of_picture(&bytes).ok_or_else(|| {
                Error::bad_request("A picture is a PNG, JPEG, GIF or WebP file; SVG is not taken")
            })?;
            Some((bytes, kind))
        }
    };
    let seed = app.secrets.pseudonym(user.id.as_str());
    let mut tx = app.db.begin().await?;
    tx.set_picture(&user.id, &seed, picture, Now::get().seconds())
        .await?;
    tx.commit().await?;
    me(app, caller).await
}

/// What the bytes are, by themselves: what a caller says of them does not count.
fn kind_of_picture(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

/// A picture, by the seed of whoever chose it.
pub async fn picture(app: &App, seed: &str) -> Result<PictureRow> {
    let found = app.db.read().await?.picture(seed).await?;
    found.ok_or_else(|| Error::not_found("No such picture; show initials instead"))
}

/// The name that a user chose, or else the one that the token brought.
pub async fn chosen_name(
    conn: &mut crate::store::Conn,
    user: &UserId,
    of_token: Option<&str>,
) -> Result<Option<String>> {
    let chosen = conn.account(user).await?.and_then(|row| row.name);
    Ok(chosen.or_else(|| of_token.map(str::to_owned)))
}

/// A link for the first person, as long as nobody has signed in; the one before it ends. None where
/// somebody else signs the tokens.
pub async fn first_link(app: &App) -> Result<Option<String>> {
    if !app.config.auth.is_own() || app.db.read().await?.has_people().await? {
        return Ok(None);
    }
    let code = app.secrets.random_code("", 24).map_err(Error::internal)?;
    let ends = Now::get().seconds() + FIRST_LINK_SECONDS;
    let mut tx = app.db.begin().await?;
    tx.set_meta(
        FIRST_LINK,
        &format!("{ends} {}", app.secrets.hash_code(&code)),
    )
    .await?;
    tx.commit().await?;
    Ok(Some(format!("{}/first/{code}", app.public_url)))
}

/// Where the first person goes on, signed in. The link works once.
pub async fn sign_in_first(app: &App, ip: IpAddr, code: &str) -> Result<String> {
    visitors::count_read(app, ip, "/first").await?;
    let gone = || {
        Error::new(
            ErrorCode::Gone,
            "This link was used, has expired or was replaced. Start the server again for a new one, or run \
             sc-chatroom user add NAME",
        )
    };
    let now = Now::get().seconds();
    let mut tx = app.db.begin().await?;
    let kept = tx.meta(FIRST_LINK).await?.ok_or_else(gone)?;
    let (ends, hash) = kept.split_once(' ').ok_or_else(gone)?;
    let in_time = ends.parse::<i64>().is_ok_and(|ends| now < ends);
    if !in_time || hash != app.secrets.hash_code(code) || tx.has_people().await? {
        return Err(gone());
    }
    if !tx.take_meta(FIRST_LINK, &kept).await? {
        return Err(gone());
    }
    let id = app.secrets.random_code("u_", 10).map_err(Error::internal)?;
    let id = UserId::try_from(id).map_err(Error::internal)?;
    let keys = app.config.keys_dir();
    let token = sign_user_token(
        &keys,
        &id,
        Some(FIRST_NAME),
        TokenType::Access,
        now,
        now + FIRST_TOKEN_SECONDS,
    )
    .map_err(Error::internal)?;
    tx.commit().await?;
    Ok(format!("/view#user_jwt={token}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_what_its_bytes_say() {
        assert_eq!(kind_of_picture(b"\x89PNG\r\n\x1a\n..."), Some("image/png"));
        assert_eq!(kind_of_picture(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(kind_of_picture(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        for other in [
            &b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>"[..],
            b"<html>",
            b"",
            b"\x89PNG",
            b"%PDF-1.7",
        ] {
            assert_eq!(kind_of_picture(other), None);
        }
    }
}
