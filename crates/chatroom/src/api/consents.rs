//! Consents.

use crate::{
    api::{
        extract::{Json, Path, Query, room},
        idempotency::IdempotencyKey,
    },
    app::App,
    auth::Caller,
    error::Result,
    services::turns::consents,
};
use axum::{Json as Reply, extract::State, http::StatusCode};
use protocol::{AskConsent, Consent, Consents, DecideConsent, ErrorBody};
use serde::Deserialize;
use utoipa::IntoParams;

section!(ask, list, get, decide, withdraw);

/// Ask for a yes, as an agent with its own credential.
#[utoipa::path(post, path = "/rooms/{id}/consents", tag = "Consents",
    params(("id" = String, Path), ("Idempotency-Key" = Option<String>, Header)), request_body = AskConsent,
    responses((status = 201, body = Consent), (status = "4XX", body = ErrorBody)))]
async fn ask(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    key: IdempotencyKey,
    Json(request): Json<AskConsent>,
) -> Result<(StatusCode, Reply<Consent>)> {
    let idempotent = key.request(&app, &caller, &request)?;
    let asked = consents::ask(&app, &caller, &room(&id)?, request, &idempotent).await?;
    Ok((StatusCode::CREATED, Reply(asked)))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Filter {
    /// `open`: only those that wait for an answer.
    state: Option<String>,
}

/// List the room's requests for consent, newest first.
#[utoipa::path(get, path = "/rooms/{id}/consents", tag = "Consents", params(("id" = String, Path), Filter),
    responses((status = 200, body = Consents), (status = "4XX", body = ErrorBody)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(filter): Query<Filter>,
) -> Result<Reply<Consents>> {
    consents::list(&app, &caller, &room(&id)?, filter.state.as_deref())
        .await
        .map(Reply)
}

/// Read a request for consent. Its particulars are for the agent and its owner alone.
#[utoipa::path(get, path = "/rooms/{id}/consents/{consent_id}", tag = "Consents", params(("id" = String, Path), ("consent_id" = String, Path)),
    responses((status = 200, body = Consent), (status = "4XX", body = ErrorBody)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    Path((id, consent_id)): Path<(String, String)>,
) -> Result<Reply<Consent>> {
    consents::get(&app, &caller, &room(&id)?, &consent_id)
        .await
        .map(Reply)
}

/// Say yes or no, as the agent's owner who signed in.
#[utoipa::path(post, path = "/rooms/{id}/consents/{consent_id}", tag = "Consents", params(("id" = String, Path), ("consent_id" = String, Path)), request_body = DecideConsent,
    responses((status = 200, body = Consent), (status = "4XX", body = ErrorBody)))]
async fn decide(
    State(app): State<App>,
    caller: Caller,
    Path((id, consent_id)): Path<(String, String)>,
    Json(request): Json<DecideConsent>,
) -> Result<Reply<Consent>> {
    consents::decide(&app, &caller, &room(&id)?, &consent_id, request)
        .await
        .map(Reply)
}

/// Take a request back, as the agent that made it.
#[utoipa::path(delete, path = "/rooms/{id}/consents/{consent_id}", tag = "Consents", params(("id" = String, Path), ("consent_id" = String, Path)),
    responses((status = 200, body = Consent), (status = "4XX", body = ErrorBody)))]
async fn withdraw(
    State(app): State<App>,
    caller: Caller,
    Path((id, consent_id)): Path<(String, String)>,
) -> Result<Reply<Consent>> {
    consents::withdraw(&app, &caller, &room(&id)?, &consent_id)
        .await
        .map(Reply)
}
