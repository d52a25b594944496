//! How much anyone may write: one table of routes and limits, applied where routes are served.
//!
//! Posting is not in it: that has limits of its own, which it counts in its own transaction. A route
//! that is in no row is under the limit for each address alone.

use crate::{
    app::App,
    auth::{self, Caller, Credential, network::Origin},
    clock::Now,
    config::Limits,
    error::Result,
    services::limits::Limit,
};
use axum::{
    extract::{Request, State},
    http::HeaderMap,
    middleware::{self, Next},
    response::Response,
    routing::MethodRouter,
};
use protocol::ErrorCode;
use utoipa::openapi::HttpMethod;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

/// What may be done so often by one member or user.
struct Row {
    name: &'static str,
    most: fn(&Limits) -> i64,
    window_ms: i64,
    words: &'static str,
    /// The end of the routes' paths.
    routes: &'static [&'static str],
}

static TABLE: [Row; 10] = [
    Row {
        name: "edits",
        most: |limits| limits.edits_per_minute,
        window_ms: MINUTE_MS,
        words: "You edited or deleted too many messages in a minute",
        routes: &["/messages/{seq}"],
    },
    Row {
        name: "reactions",
        most: |limits| limits.reactions_per_minute,
        window_ms: MINUTE_MS,
        words: "You reacted too often in a minute",
        routes: &["/reactions", "/reactions/{emoji}"],
    },
    Row {
        name: "read-marks",
        most: |limits| limits.read_marks_per_minute,
        window_ms: MINUTE_MS,
        words: "You marked rooms and threads as read too often in a minute",
        routes: &["/read"],
    },
    Row {
        name: "rooms",
        most: |limits| limits.rooms_per_hour,
        window_ms: HOUR_MS,
        words: "You made too many rooms in an hour",
        routes: &["/rooms"],
    },
    Row {
        name: "invites",
        most: |limits| limits.invites_per_hour,
        window_ms: HOUR_MS,
        words: "You made or revoked too many invites in an hour",
        routes: &[
            "/invites",
            "/invites/{code_jti}",
            "/auto-invite",
            "/recovery",
        ],
    },
    Row {
        name: "room-changes",
        most: |limits| limits.room_changes_per_hour,
        window_ms: HOUR_MS,
        words: "You changed rooms, rules or data too often in an hour",
        routes: &[
            "/rooms/{id}",
            "/rules",
            "/data",
            "/pins/{seq}",
            "/checklist/refresh",
            "/webhooks",
            "/webhooks/{webhook_id}",
            "/webhooks/{webhook_id}/rotate",
        ],
    },
    Row {
        name: "key-changes",
        most: |limits| limits.key_changes_per_hour,
        window_ms: HOUR_MS,
        words: "You made or revoked too many keys in an hour",
        routes: &[
            "/room-keys",
            "/room-keys/{jti}",
            "/share-keys/{code}",
            "/cli-keys",
            "/cli-keys/{code}",
            "/agent-identity",
            "/agent-identity/refresh",
            "/agent-identity/{jti}",
            "/auth/exchange",
            "/auth/sessions",
            "/auth/sessions/{id}",
            "/reissue-token",
            "/oauth/register",
            "/oauth/decision",
            "/oauth/token",
        ],
    },
    Row {
        name: "joins",
        most: |limits| limits.joins_per_hour,
        window_ms: HOUR_MS,
        words: "Too many joins in an hour",
        routes: &["/join", "/auto-join"],
    },
    Row {
        name: "member-changes",
        most: |limits| limits.member_changes_per_hour,
        window_ms: HOUR_MS,
        words: "You changed members too often in an hour",
        routes: &[
            "/endpoint",
            "/name",
            "/agent-card",
            "/me",
            "/me/picture",
            "/members/{user_id}",
            "/bans",
            "/bans/{user_id}",
            "/wake",
        ],
    },
    Row {
        name: "turn-changes",
        most: |limits| limits.turn_changes_per_hour,
        window_ms: HOUR_MS,
        words: "You stopped, asked or decided too often in an hour",
        routes: &[
            "/stop",
            "/messages/{seq}/retry",
            "/consents",
            "/consents/{consent_id}",
        ],
    },
];

/// Routes that count what they do themselves.
const COUNTED_ELSEWHERE: [&str; 3] = [
    "/rooms/{id}/messages",
    "/rooms/{id}/typing",
    "/agent/chat/stream",
];
/// Routes that nobody comes to with a token of their own: they are under the limit for each address, and
/// count what they do themselves.
#[cfg(test)]
const BY_ADDRESS_ALONE: [&str; 1] = ["/hooks/{code}"];
/// What only the operator's own token opens: whoever ends an attack must not be held up.
const OPERATORS_OWN: &str = "/internal/admin/";

fn is_counted(path: &str) -> bool {
    !COUNTED_ELSEWHERE.contains(&path) && !path.starts_with(OPERATORS_OWN)
}

/// The handlers of a route, behind its limits.
pub fn limited(
    app: &App,
    method: &HttpMethod,
    path: &str,
    handlers: MethodRouter<App>,
) -> MethodRouter<App> {
    if matches!(method, HttpMethod::Get | HttpMethod::Head) || !is_counted(path) {
        return handlers;
    }
    handlers.layer(middleware::from_fn_with_state(
        (app.clone(), row(path)),
        count_request,
    ))
}

fn row(path: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| {
        let mut routes = row.routes.iter();
        routes.any(|route| match *route {
            "/rooms" | "/rooms/{id}" => path == *route,
            route => path.ends_with(route),
        })
    })
}

async fn count_request(
    State((app, row)): State<(App, Option<&'static Row>)>,
    request: Request,
    next: Next,
) -> Result<Response> {
    let origin = Origin::of_request(&request, &app.config.network);
    count_against_row(&app, row, request.headers(), origin).await?;
    Ok(next.run(request).await)
}

/// Counts a change that comes by another way as one of the route that ends like this.
pub async fn count_write(app: &App, path: &str, headers: &HeaderMap, origin: Origin) -> Result<()> {
    count_against_row(app, row(path), headers, origin).await
}

async fn count_against_row(
    app: &App,
    row: Option<&'static Row>,
    headers: &HeaderMap,
    origin: Origin,
) -> Result<()> {
    let now = Now::get();
    let mut limits = vec![by_address(app, origin)];
    if let Some(row) = row {
        let bearer = auth::bearer(headers).ok().flatten();
        let who = counted_as(app, bearer, origin, now).await?;
        limits.push(row.limit(app, &who));
    }
    app.write_counter.count_against(&app.db, &limits, now).await
}

fn by_address(app: &App, origin: Origin) -> Limit {
    Limit {
        bucket: format!("writes {}", origin.network()),
        most: app.config.limits.writes_per_minute_per_address,
        window_ms: MINUTE_MS,
        code: ErrorCode::RateLimited,
        words: "Too many writes a minute from your address",
        stored: true,
    }
}

impl Row {
    fn limit(&self, app: &App, who: &str) -> Limit {
        Limit {
            bucket: format!("{} {who}", self.name),
            most: (self.most)(&app.config.limits),
            window_ms: self.window_ms,
            code: ErrorCode::RateLimited,
            words: self.words,
            stored: true,
        }
    }
}

/// Whose writes these are: what somebody does with a key that was shared, or that has ended, must
/// not use up the limits of the member it was made for.
async fn counted_as(app: &App, bearer: Option<&str>, origin: Origin, now: Now) -> Result<String> {
    let caller = match Credential::check(app, bearer, origin, now) {
        Ok(credential) => auth::resolve(app, credential).await?,
        Err(refused) => Err(refused),
    };
    Ok(match caller {
        Ok(Caller::User(user)) => user.id.to_string(),
        Ok(Caller::RoomKey(key)) if key.is_own() => key.user_id.into(),
        Ok(Caller::RoomKey(key)) => format!("key {}", key.jti),
        Ok(Caller::Identity(identity)) => identity.row.user_id.into(),
        // A bearer that is no good is refused by the handler.
        Ok(Caller::Anonymous) | Err(_) => origin.network().to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_that_writes_is_in_the_table() {
        let sections = crate::api::SECTIONS.iter();
        let documents = sections.map(|section| (section.describe)());
        for (path, item) in documents.flat_map(|document| document.paths.paths) {
            let writes = [&item.post, &item.put, &item.patch, &item.delete];
            let writes = writes.iter().any(|operation| operation.is_some());
            let known = row(&path).is_some()
                || !is_counted(&path)
                || BY_ADDRESS_ALONE.contains(&path.as_str());
            assert!(!writes || known, "{path} is in no row of the table");
        }
    }

    #[test]
    fn routes_of_one_ending_are_told_apart() {
        let name = |path| row(path).map(|row| row.name);
        assert_eq!(name("/rooms"), Some("rooms"));
        assert_eq!(name("/rooms/{id}"), Some("room-changes"));
        assert_eq!(name("/rooms/public/auto-join"), Some("joins"));
        assert_eq!(
            name("/rooms/{id}/members/{user_id}/reissue-token"),
            Some("key-changes")
        );
        assert_eq!(name("/rooms/{id}/unheard-of"), None);
    }
}
