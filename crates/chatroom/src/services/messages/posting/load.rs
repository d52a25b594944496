//! Asking the store what a group of posts depends on.

use super::rules::{CachedRoom, CountedAs, Post, PostingCache};
use crate::{
    auth::Credential,
    clock::Now,
    config::Limits,
    services::{members::names, spending},
    store::{DbError, db::GroupTx},
};
use protocol::{RoomId, Via};
use std::collections::{HashMap, HashSet};

/// What to do about a room that somebody else holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locking {
    /// Wait for it, for as long as the session does.
    Wait,
    /// Leave it out.
    Skip,
}

/// Locks the rooms of the group that are not known yet, and gives those that somebody else holds.
pub async fn lock_rooms(
    cache: &mut PostingCache,
    tx: &mut GroupTx,
    posts: &[Post],
    locking: Locking,
) -> Result<HashSet<RoomId>, DbError> {
    let rooms = unique(
        posts
            .iter()
            .map(|p| &p.room)
            .filter(|room| !cache.rooms.contains_key(*room)),
    );
    if rooms.is_empty() {
        return Ok(HashSet::new());
    }
    let conn = tx.conn().await?;
    let locked = match locking {
        Locking::Wait => conn.lock_rooms(&rooms).await?,
        Locking::Skip => conn.lock_free_rooms(&rooms).await?,
    };
    for row in locked {
        let room = CachedRoom {
            row,
            authors: HashMap::new(),
        };
        cache.rooms.insert(room.row.room_id.clone(), room);
    }
    let missing: Vec<&RoomId> = rooms
        .into_iter()
        .filter(|room| !cache.rooms.contains_key(*room))
        .collect();
    if locking == Locking::Wait || missing.is_empty() {
        return Ok(HashSet::new());
    }
    // A room that was left out is there; one that is not there was never held.
    let held = conn.heads(&missing).await?;
    Ok(held.into_iter().map(|held| held.room_id).collect())
}

/// Asks the store for what the group depends on and is not known yet.
pub async fn load(
    cache: &mut PostingCache,
    tx: &mut GroupTx,
    posts: &[Post],
    limits: &Limits,
    single_writer: bool,
) -> Result<(), DbError> {
    let pairs = unique(posts.iter().filter_map(|post| {
        let (room, user) = (cache.rooms.get(&post.room)?, post.user()?);
        (!room.authors.contains_key(user)).then_some((&post.room, user))
    }));
    if !pairs.is_empty() {
        for row in tx.conn().await?.posters(&pairs).await? {
            if let Some(room) = cache.rooms.get_mut(&row.room_id) {
                room.authors.insert(row.user_id.clone(), row);
            }
        }
    }
    let jtis = unique(
        posts
            .iter()
            .filter_map(Post::jti)
            .filter(|jti| !cache.keys.contains_key(*jti)),
    );
    if !jtis.is_empty() {
        for row in tx.conn().await?.posting_keys(&jtis).await? {
            cache.keys.insert(row.jti.clone(), row);
        }
    }
    let parents = unique(
        posts
            .iter()
            .filter_map(|post| Some((&post.room, post.reply_to_seq?))),
    );
    if !parents.is_empty() {
        for row in tx.conn().await?.parents(&parents).await? {
            cache.parents.insert((row.room_id.clone(), row.seq), row);
        }
    }
    let keyed = unique(
        posts
            .iter()
            .filter_map(|p| Some((&p.room, p.user()?, p.client_key.as_deref()?))),
    );
    if !keyed.is_empty() {
        for row in tx.conn().await?.prior_posts(&keyed).await? {
            let at = (
                row.room_id.clone(),
                row.sender_user_id.clone(),
                row.client_key.clone(),
            );
            cache.prior.insert(at, row);
        }
    }
    load_new_names(cache, tx, posts).await?;
    load_windows(cache, tx, posts, limits, single_writer).await
}

/// What members with a budget have spent today.
pub async fn load_spending(
    cache: &mut PostingCache,
    tx: &mut GroupTx,
    posts: &[Post],
    now: Now,
) -> Result<(), DbError> {
    let day = spending::day(now);
    let pairs = unique(posts.iter().filter_map(|post| {
        let (room, user) = (cache.rooms.get(&post.room)?, post.user()?);
        let author = room.authors.get(user)?;
        let counts = post.usage.is_some() || !author.budget().is_unlimited();
        let at = (post.room.clone(), user.clone(), day);
        (counts && !cache.spent.contains_key(&at)).then_some((&post.room, user))
    }));
    if !pairs.is_empty() {
        for row in tx.conn().await?.spending(&pairs, day).await? {
            let at = (row.room_id.clone(), row.user_id.clone(), row.day);
            cache.spent.insert(at, row);
        }
    }
    Ok(())
}

/// What members are called from now on whose token brings another name than they have.
async fn load_new_names(
    cache: &mut PostingCache,
    tx: &mut GroupTx,
    posts: &[Post],
) -> Result<(), DbError> {
    for post in posts {
        let Credential::User(user) = &post.credential else {
            continue;
        };
        let room = cache.rooms.get(&post.room);
        let author = room.and_then(|room| room.authors.get(&user.id));
        let (Some(author), Some(name)) = (author, &user.name) else {
            continue;
        };
        if author.user_name.as_ref() == Some(name)
            || author.user_name == names::with_id(name, &user.id)
        {
            continue;
        }
        let rooms = [&post.room];
        let conn = tx.conn().await?;
        if let Some(name) = names::for_user(conn, &rooms, &user.id, Some(name)).await? {
            let at = (post.room.clone(), user.id.clone());
            cache.new_names.insert(at, name);
        }
    }
    Ok(())
}

async fn load_windows(
    cache: &mut PostingCache,
    tx: &mut GroupTx,
    posts: &[Post],
    limits: &Limits,
    single_writer: bool,
) -> Result<(), DbError> {
    let stored: Vec<_> = posts
        .iter()
        .filter_map(|post| {
            let key = post.jti().and_then(|jti| cache.keys.get(jti));
            let web = key.is_some_and(|key| key.posts_as == Via::Web);
            let via = if web { Via::Web } else { Via::Agent };
            let room = cache.rooms.get(&post.room);
            let author = room
                .zip(post.user())
                .and_then(|(room, user)| room.authors.get(user));
            // Whoever is no member is refused before anything is counted.
            let counted_as = CountedAs::of(&via, key, &author?.member_kind);
            // What agents are counted by is in memory where nobody else counts.
            (web || !single_writer).then(|| post.limits(counted_as, limits, single_writer))
        })
        .flatten()
        .filter(|limit| limit.most > 0 && !cache.windows.has(&limit.bucket))
        .collect();
    let buckets = unique(stored.iter().map(|limit| limit.bucket.as_str()));
    if !buckets.is_empty() {
        let rows = tx.conn().await?.windows(&buckets).await?;
        cache.windows.add(rows);
    }
    Ok(())
}

fn unique<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}
