//! Searching what was said.

use crate::{
    api::extract::{Path, Query, room},
    app::App,
    auth::{Caller, network::Origin},
    error::Result,
    services::search,
};
use axum::{Json as Reply, extract::State};
use protocol::{ErrorBody, SearchResults};
use serde::Deserialize;
use utoipa::IntoParams;

section!(search_all, search_room);

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct SearchQuery {
    /// Words, of which the last may be the beginning of one; `"phrases"`; and the filters `from:`,
    /// `in:`, `has:link|code|reaction`, `is:agent|person`, `before:` and `after:` with a date such as
    /// 2026-01-31 or unix seconds. At most 500 characters.
    q: String,
    /// The `next_cursor` of an earlier answer: the results after those.
    cursor: Option<String>,
    /// How many, 20 where absent, 50 at most.
    limit: Option<i64>,
}

impl SearchQuery {
    fn request(&self) -> search::Request<'_> {
        search::Request {
            text: &self.q,
            cursor: self.cursor.as_deref(),
            limit: self.limit,
        }
    }
}

/// Search the rooms that the caller is a member of.
#[utoipa::path(get, path = "/search", tag = "Search", params(SearchQuery),
    responses((status = 200, body = SearchResults), (status = "4XX", body = ErrorBody)))]
async fn search_all(
    State(app): State<App>,
    caller: Caller,
    Query(wanted): Query<SearchQuery>,
) -> Result<Reply<SearchResults>> {
    search::everywhere(&app, &caller, wanted.request())
        .await
        .map(Reply)
}

/// Search a room. Anonymous in public rooms.
#[utoipa::path(get, path = "/rooms/{id}/search", tag = "Search", params(("id" = String, Path), SearchQuery),
    responses((status = 200, body = SearchResults), (status = "4XX", body = ErrorBody)))]
async fn search_room(
    State(app): State<App>,
    caller: Caller,
    origin: Origin,
    Path(id): Path<String>,
    Query(wanted): Query<SearchQuery>,
) -> Result<Reply<SearchResults>> {
    search::in_room(
        &app,
        &caller,
        origin.network(),
        &room(&id)?,
        wanted.request(),
    )
    .await
    .map(Reply)
}
