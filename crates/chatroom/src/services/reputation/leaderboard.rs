//! Reading scores. Whatever is read is brought up to date first, so that what was just posted
//! counts at once.

use super::{
    score::{self, Sums, VERSION, Window},
    scorer,
};
use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    services::{
        access::{self, RoomLock},
        checks::in_range,
        members::petnames::petname,
        visitors,
    },
    store::leaderboard::{RankedRow, Ranking},
};
use protocol::{
    Leaderboard, MemberKind, MyScore, Ranked, RoomId, ScoreEvent, ScoreSummary, UserId,
};
use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
};

const DEFAULT_DAYS: i64 = 30;
pub const MOST_DAYS: i64 = 90;
const DEFAULT_USERS: i64 = 20;
pub const MOST_USERS: i64 = 100;
const RECENT_EVENTS: i64 = 50;

/// What of a leaderboard is asked for.
pub struct BoardQuery {
    days: i64,
    limit: i64,
}

impl BoardQuery {
    pub fn new(window: Option<i64>, limit: Option<i64>) -> Result<Self> {
        Ok(Self {
            days: in_range("window", window.unwrap_or(DEFAULT_DAYS), 1..=MOST_DAYS)?,
            limit: in_range("limit", limit.unwrap_or(DEFAULT_USERS), 1..=MOST_USERS)?,
        })
    }

    fn ranking(&self, window: Window) -> Ranking {
        Ranking {
            since: window.first_day,
            of_points: window.of_points,
            of_moment: window.of_moment,
            limit: self.limit,
        }
    }
}

/// The ranking over all rooms. Anybody may read it, so it names only those who are in a public
/// room, and by their name there; of the rest it shows the score and a made-up name. Whoever signed in
/// finds themselves and the agents that they invited under their own names.
pub async fn everywhere(app: &App, caller: &Caller, query: &BoardQuery) -> Result<Leaderboard> {
    let now = Now::get();
    scorer::score_all_rooms(&app.db).await?;
    let window = Window::new(query.days, now.seconds());
    let mut conn = app.db.read().await?;
    let rows = conn.ranked_everywhere(query.ranking(window)).await?;
    let users: Vec<&UserId> = rows.iter().map(|row| &row.user_id).collect();
    let mut known: HashMap<UserId, (Option<String>, MemberKind)> = HashMap::new();
    let mut rows_known = match caller {
        Caller::User(me) => conn.own_agents(&me.id, &users).await?,
        _ => Vec::new(),
    };
    rows_known.extend(conn.public_members(&users).await?);
    for row in rows_known {
        let unnamed = (None, row.member_kind);
        let (first_name, _) = known.entry(row.user_id).or_insert(unnamed);
        *first_name = first_name.take().or(row.user_name);
    }
    let ranked = rows.into_iter().zip(1..).map(|(mut row, rank)| {
        let shown = match known.remove(&row.user_id) {
            Some((name, kind)) => {
                row.member_kind = Some(kind);
                Shown::Known(name)
            }
            None => Shown::Hidden,
        };
        to_ranked(app, row, rank, window, shown)
    });
    Ok(Leaderboard {
        scope: "global".to_owned(),
        room_id: None,
        window_days: query.days,
        leaderboard: ranked.collect::<Result<_>>()?,
        scoring_version: VERSION,
    })
}

/// The ranking of a room's members. Visitors of a public room see names and no ids.
pub async fn of_room(
    app: &App,
    caller: &Caller,
    ip: IpAddr,
    room: &RoomId,
    query: &BoardQuery,
) -> Result<Leaderboard> {
    let mut conn = app.db.read().await?;
    let visitor = matches!(caller, Caller::Anonymous);
    if visitor {
        // Whether a private room is there is nothing that a stranger learns.
        let row = conn.room(room).await?;
        access::public_room(row).map_err(|_| Error::missing_bearer())?;
        drop(conn);
        visitors::count_read(app, ip, room).await?;
    } else {
        access::member(&mut conn, caller, room, RoomLock::Unlocked).await?;
        drop(conn);
    }
    let now = Now::get();
    scorer::score_room(&app.db, room).await?;
    let window = Window::new(query.days, now.seconds());
    let mut conn = app.db.read().await?;
    let rows = conn.ranked_in(room, query.ranking(window)).await?;
    let ranked = rows.into_iter().zip(1..).map(|(mut row, rank)| {
        let shown = match (visitor, row.user_name.take()) {
            (false, name) => Shown::Known(name),
            (true, Some(name)) => Shown::ByName(name),
            (true, None) => Shown::Hidden,
        };
        to_ranked(app, row, rank, window, shown)
    });
    Ok(Leaderboard {
        scope: "room".to_owned(),
        room_id: Some(room.clone()),
        window_days: query.days,
        leaderboard: ranked.collect::<Result<_>>()?,
        scoring_version: VERSION,
    })
}

/// How much of a user the reader may see.
enum Shown {
    /// Id and name.
    Known(Option<String>),
    ByName(String),
    /// A made-up name, always the same for the same user.
    Hidden,
}

fn to_ranked(app: &App, row: RankedRow, rank: i64, window: Window, shown: Shown) -> Result<Ranked> {
    let avatar_seed = app.secrets.pseudonym(row.user_id.as_str());
    let score = window.score(Sums {
        events: row.events,
        points: row.points,
        moment: row.moment,
    });
    let (user_id, display_name) = match shown {
        Shown::Known(name) => {
            let name = name.unwrap_or_else(|| row.user_id.to_string());
            (Some(row.user_id), name)
        }
        Shown::ByName(name) => (None, name),
        Shown::Hidden => {
            let number = u32::from_str_radix(&avatar_seed[..8], 16).map_err(Error::internal)?;
            (None, petname(number))
        }
    };
    Ok(Ranked {
        rank,
        score,
        event_count: row.events,
        user_id,
        display_name,
        member_kind: row.member_kind,
        avatar_seed,
    })
}

/// The caller's own score in a room, and where it comes from.
pub async fn of_caller(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    window_days: Option<i64>,
) -> Result<MyScore> {
    let BoardQuery { days, .. } = BoardQuery::new(window_days, None)?;
    let mut conn = app.db.read().await?;
    let entry = access::member(&mut conn, caller, room, RoomLock::Unlocked).await?;
    drop(conn);
    scorer::score_room(&app.db, room).await?;
    let user = entry.member.user_id;
    let now = Now::get().seconds();
    let window = Window::new(days, now);
    let mut conn = app.db.read().await?;
    let kinds = conn.score_by_kind(room, &user, window.begin()).await?;
    let recent = conn.recent_score_events(room, &user, RECENT_EVENTS).await?;
    let first = conn.first_event_at(&user).await?;

    let mut total = Sums::default();
    let mut by_kind = BTreeMap::new();
    for row in kinds {
        let sums = Sums {
            events: row.events,
            points: row.points,
            moment: row.moment,
        };
        total += sums;
        by_kind.insert(row.kind, window.score(sums));
    }
    let recent_events = recent.into_iter().map(|row| ScoreEvent {
        id: row.id,
        kind: row.kind,
        points: row.points,
        source_user_id: row.source_user_id.into(),
        source_seq: row.source_seq,
        source_emoji: row.source_emoji,
        created_at: row.created_at,
    });
    Ok(MyScore {
        user_id: user,
        room_id: room.clone(),
        summary: ScoreSummary {
            score: window.score(total),
            event_count: total.events,
            by_kind,
            window_days: days,
            newcomer_boost_active: first
                .is_none_or(|first| now < first + score::NEWCOMER_DAYS * score::DAY),
        },
        recent_events: recent_events.collect(),
        scoring_version: VERSION,
    })
}
