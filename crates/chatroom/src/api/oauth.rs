//! OAuth 2.1 for MCP clients: what there is, registering, the page where a person says yes, and tokens.

use super::{extract::Json, extract::read_body, pages, write_limits};
use crate::{
    app::App,
    auth::MaybeCaller,
    error::{Error, Result},
    services::credentials::oauth::{
        self, Asked, Client, OAuthError, Registration, TokenRequest, TokenResponse,
    },
};
use axum::{
    Json as Reply, Router,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::openapi::HttpMethod;

/// The largest request.
const MAX_BODY: usize = 32 * 1024;

pub fn routes(app: &App) -> Router<App> {
    let limited =
        |path: &str, handlers| write_limits::limited(app, &HttpMethod::Post, path, handlers);
    Router::new()
        .route("/.well-known/oauth-protected-resource", get(resource))
        .route("/.well-known/oauth-protected-resource/mcp", get(resource))
        .route("/.well-known/oauth-authorization-server", get(server))
        .route("/oauth/authorize", get(pages::authorize))
        .route(
            "/oauth/register",
            limited("/oauth/register", post(register)),
        )
        .route("/oauth/client", limited("/oauth/client", post(client)))
        .route("/oauth/decision", limited("/oauth/decision", post(decide)))
        .route("/oauth/token", limited("/oauth/token", post(token)))
}

/// What `/mcp` is, and who gives tokens for it (RFC 9728).
async fn resource(State(app): State<App>) -> Reply<Value> {
    let url = &app.public_url;
    Reply(json!({
        "resource": format!("{url}/mcp"),
        "authorization_servers": [url],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["rooms"],
        "resource_name": "sc-chatroom",
        "resource_documentation": format!("{url}/docs/mcp"),
    }))
}

/// How tokens are given (RFC 8414).
async fn server(State(app): State<App>) -> Reply<Value> {
    let url = &app.public_url;
    Reply(json!({
        "issuer": url,
        "authorization_endpoint": format!("{url}/oauth/authorize"),
        "token_endpoint": format!("{url}/oauth/token"),
        "registration_endpoint": format!("{url}/oauth/register"),
        "scopes_supported": ["rooms"],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
        "service_documentation": format!("{url}/docs/mcp"),
    }))
}

async fn register(State(app): State<App>, request: Request) -> Response {
    let registered = async {
        let body = read_body(&app, request, MAX_BODY).await?;
        let wanted: Registration = serde_json::from_slice(&body).map_err(|error| {
            OAuthError::Refused(
                "invalid_client_metadata",
                format!("the body does not fit: {error}"),
            )
        })?;
        oauth::register(&app, wanted)
    };
    answer(StatusCode::CREATED, registered.await)
}

/// Who asks, for the page to show.
async fn client(State(app): State<App>, Json(asked): Json<Asked>) -> Result<Reply<Client>> {
    oauth::check(&app, &asked).map(Reply)
}

/// What the person said.
#[derive(Deserialize)]
struct Decision {
    #[serde(flatten)]
    asked: Asked,
    allow: bool,
}

/// Where the browser goes now.
#[derive(Serialize)]
struct Redirect {
    redirect_to: String,
}

async fn decide(
    State(app): State<App>,
    caller: MaybeCaller,
    Json(Decision { asked, allow }): Json<Decision>,
) -> Result<Reply<Redirect>> {
    let redirect_to = match allow {
        true => {
            let caller = caller.0.map_err(crate::auth::NoCaller::into_error)?;
            oauth::allow(&app, &caller, &asked).await?
        }
        false => oauth::deny(&app, &asked)?,
    };
    Ok(Reply(Redirect { redirect_to }))
}

async fn token(State(app): State<App>, request: Request) -> Response {
    let given: Result<TokenResponse, OAuthError> = async {
        let body = read_body(&app, request, MAX_BODY).await?;
        let request: TokenRequest = form(&body).ok_or_else(|| {
            OAuthError::Refused("invalid_request", "send a form with grant_type".to_owned())
        })?;
        oauth::token(&app, request).await
    }
    .await;
    answer(StatusCode::OK, given)
}

/// The fields of a form; each may be there once.
fn form<T: serde::de::DeserializeOwned>(body: &[u8]) -> Option<T> {
    let mut fields = serde_json::Map::new();
    for (name, value) in form_urlencoded::parse(body) {
        if fields
            .insert(name.into_owned(), value.into_owned().into())
            .is_some()
        {
            return None;
        }
    }
    serde_json::from_value(Value::Object(fields)).ok()
}

/// As OAuth's clients read it.
fn answer<T: Serialize>(status: StatusCode, given: Result<T, OAuthError>) -> Response {
    let no_store = [(header::CACHE_CONTROL, "no-store")];
    match given {
        Ok(given) => (status, no_store, Reply(given)).into_response(),
        Err(OAuthError::Refused(code, words)) => {
            let body = json!({"error": code, "error_description": words});
            (StatusCode::BAD_REQUEST, no_store, Reply(body)).into_response()
        }
        Err(OAuthError::Server(error)) => Error::into_response(error),
    }
}
