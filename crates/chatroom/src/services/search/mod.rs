//! Searching what was said, over what the caller may read and nothing else.
//!
//! The newest messages that fit are read in blocks, and each block is ranked: what a search costs does
//! not grow with how often a word was said.

pub mod index;
pub mod query;
mod rank;
mod terms;

use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    services::{
        access::{self, ReadAccess},
        visitors,
    },
    store::{
        Conn,
        rooms::MyRoomRow,
        search::{Expression, FoundRow, SearchPage, Where, first_sort_key},
    },
};
use protocol::{RoomId, SearchResult, SearchResults, UserId};
use query::SearchQuery;
use rank::{Ranked, ranked};
use std::{collections::HashSet, net::IpAddr};

const RESULTS: i64 = 20;
const MOST_RESULTS: i64 = 50;
/// So many of the newest messages are looked through one by one, and more where it promises a block.
const NEWEST: i64 = 5000;
/// A word that fewer of the newest messages hold is rare.
const RARE: i64 = 25;
/// How many of the newest matches are ranked together.
const BLOCK: i64 = 200;
/// In more rooms than this, each match is looked up whether its room is one of them.
const ROOMS_AS_MARKS: usize = 50;

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub text: &'a str,
    pub cursor: Option<&'a str>,
    pub limit: Option<i64>,
}

/// Searches the rooms that the caller is a member of.
pub async fn everywhere(app: &App, caller: &Caller, request: Request<'_>) -> Result<SearchResults> {
    refuse_off(app)?;
    let user = &access::user(caller)?.id;
    let query = SearchQuery::parse(request.text, Some(user))?;
    let mut conn = app.db.read().await?;
    let rooms = conn.rooms_of(user).await?;
    let chosen: Vec<_> = rooms
        .iter()
        .filter(|room| is_chosen(room, &query))
        .collect();
    if chosen.is_empty() {
        return Ok(nothing());
    }
    let narrowed = !query.rooms.is_empty() || chosen.len() <= ROOMS_AS_MARKS;
    let marks = chosen
        .iter()
        .filter(|_| narrowed)
        .map(|room| terms::mark("in", room.room_id.as_str()));
    let rooms = Rooms {
        marks: marks.collect(),
        ids: chosen.iter().map(|room| &room.room_id).collect(),
    };
    find(&mut conn, query, rooms, Where::RoomsOf(user), request).await
}

/// Searches a room that the caller may read.
pub async fn in_room(
    app: &App,
    caller: &Caller,
    ip: IpAddr,
    room: &RoomId,
    request: Request<'_>,
) -> Result<SearchResults> {
    refuse_off(app)?;
    let mut conn = app.db.read().await?;
    let (row, me): (_, Option<UserId>) = match access::reader(&mut conn, caller, room).await? {
        ReadAccess::Member(entry) => (entry.room, Some(entry.member.user_id)),
        ReadAccess::Visitor(row) => {
            drop(conn);
            visitors::count_read(app, ip, room).await?;
            conn = app.db.read().await?;
            (*row, None)
        }
    };
    let query = SearchQuery::parse(request.text, me.as_ref())?;
    if !query.rooms.is_empty() {
        return Err(Error::bad_request(
            "in: is for GET /search; this searches one room",
        ));
    }
    let rooms = Rooms {
        marks: vec![terms::mark("in", row.room_id.as_str())],
        ids: HashSet::from([room]),
    };
    find(&mut conn, query, rooms, Where::Room(room), request).await
}

/// The rooms that are searched.
struct Rooms<'a> {
    /// As marks of the index, where there are few.
    marks: Vec<String>,
    ids: HashSet<&'a RoomId>,
}

fn refuse_off(app: &App) -> Result<()> {
    match app.config.search.enabled {
        true => Ok(()),
        false => Err(Error::not_found(
            "Search is switched off on this server (search.enabled)",
        )),
    }
}

/// Whether the room is one of those that `in:` names, where it names any.
fn is_chosen(room: &MyRoomRow, query: &SearchQuery) -> bool {
    let name = room.name.to_lowercase();
    let fits = |wanted: &String| {
        room.room_id.as_str().eq_ignore_ascii_case(wanted) || name.contains(wanted.as_str())
    };
    query.rooms.is_empty() || query.rooms.iter().any(fits)
}

async fn find(
    conn: &mut Conn,
    query: SearchQuery,
    rooms: Rooms<'_>,
    place: Where<'_>,
    request: Request<'_>,
) -> Result<SearchResults> {
    let limit = request.limit.unwrap_or(RESULTS);
    if limit < 1 {
        return Err(Error::bad_request("limit must be at least 1"));
    }
    let limit = usize::try_from(limit.min(MOST_RESULTS)).unwrap_or(1);
    let mut at = request
        .cursor
        .map_or(Ok(SearchCursor::FIRST), SearchCursor::parse)?;
    let newest = query.before.map_or(i64::MAX, first_sort_key);
    let wanted = Expression {
        phrases: query.phrases,
        marks: query.marks,
        any_of: rooms.marks,
    };
    let since = query.after.unwrap_or(0);
    let count = |rows: &Vec<FoundRow>| i64::try_from(rows.len()).unwrap_or(BLOCK);
    let is_block = |rows: &Vec<FoundRow>| count(rows) == BLOCK;
    let mut recent = conn
        .newest_messages(&wanted, place, since, NEWEST, BLOCK)
        .await?;
    let found = recent.as_ref().map(count);
    let is_rare = found.is_some_and(|found| found < RARE);
    let is_first_block = at.below.min(newest) == i64::MAX && !query.has_reaction;
    if let Some(found @ RARE..BLOCK) = found.filter(|_| is_first_block) {
        // As often as it was said lately, a block is within this, and a quarter more.
        let depth = NEWEST * BLOCK * 5 / 4 / found;
        recent = conn
            .newest_messages(&wanted, place, since, depth, BLOCK)
            .await?;
    }
    // They may be of any room that the caller is in: then the index has to choose.
    let is_chosen = |row: &FoundRow| rooms.ids.contains(&row.room_id);
    let mut results = Vec::new();
    let next = loop {
        let page = SearchPage {
            below: at.below.min(newest),
            since,
            has_reaction: query.has_reaction,
            is_rare,
            limit: BLOCK,
        };
        let from_newest = recent
            .take()
            .filter(|_| is_first_block)
            .filter(|block| is_block(block) && block.iter().all(is_chosen));
        let block = match from_newest {
            Some(block) => block,
            None => conn.found_messages(&wanted, place, page).await?,
        };
        let is_full = is_block(&block);
        let oldest = block.last().map_or(0, |row| row.place);
        let block = ranked(block, &wanted.phrases, Now::get().seconds());
        let found = block.len();
        let page = block.into_iter().skip(at.skip).take(limit - results.len());
        let before = results.len();
        results.extend(page.map(result));
        let shown = at.skip.min(found) + results.len() - before;
        at = match (shown < found, is_full) {
            (true, _) => SearchCursor { skip: shown, ..at },
            (false, true) => SearchCursor {
                below: oldest,
                skip: 0,
            },
            (false, false) => break None,
        };
        if results.len() == limit {
            break Some(at.to_string());
        }
    };
    Ok(SearchResults {
        results,
        next_cursor: next,
    })
}

fn result(found: Ranked) -> SearchResult {
    let Ranked { row, snippet, .. } = found;
    SearchResult {
        room_id: row.room_id,
        room_name: row.room_name,
        seq: row.seq,
        sender_user_id: row.sender_user_id.into(),
        sender_user_name: row.sender_user_name,
        via: row.via,
        created_at: row.created_at,
        snippet,
    }
}

fn nothing() -> SearchResults {
    SearchResults {
        results: Vec::new(),
        next_cursor: None,
    }
}

/// Where a page begins: so many results into the block that is below a sort key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SearchCursor {
    below: i64,
    skip: usize,
}

impl SearchCursor {
    const FIRST: Self = Self {
        below: i64::MAX,
        skip: 0,
    };

    fn parse(text: &str) -> Result<Self> {
        let bad = || Error::bad_request("cursor must be the next_cursor of an earlier answer");
        let (below, skip) = text.split_once('.').ok_or_else(bad)?;
        let below = below.parse().map_err(|_| bad())?;
        let skip: usize = skip.parse().map_err(|_| bad())?;
        match skip <= BLOCK as usize && below >= 0 {
            true => Ok(Self { below, skip }),
            false => Err(bad()),
        }
    }
}

impl std::fmt::Display for SearchCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.below, self.skip)
    }
}
