//! Webhooks: managed by a room's owner, and posted to by other systems.

use crate::{
    api::{
        extract::{Json, Path, read_body, room},
        idempotency,
    },
    app::App,
    auth::Caller,
    error::{Error, Result},
    metrics::WebhookTaken,
    services::webhooks::{self, incoming},
};
use axum::{
    Json as Reply,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    response::IntoResponse,
};
use protocol::{
    CreateWebhook, ErrorBody, ErrorCode, Ok as Yes, UpdateWebhook, WebhookCreated,
    WebhookDeliveries, WebhookPosted, WebhookView, Webhooks,
};
use serde_json::Value;

section!(
    create_webhook,
    list_webhooks,
    update_webhook,
    remove_webhook,
    rotate_webhook,
    webhook_deliveries,
    post_to_webhook,
);

/// The largest payload that is read.
const MAX_PAYLOAD: usize = 1024 * 1024;
/// What is secret is told once, and kept by nobody on the way.
const NOT_KEPT: [(header::HeaderName, &str); 1] = [(header::CACHE_CONTROL, "no-store")];

/// Make a webhook. Owner only. Its address and secret are told once.
#[utoipa::path(post, path = "/rooms/{id}/webhooks", tag = "Webhooks", params(("id" = String, Path)), request_body = CreateWebhook,
    responses((status = 201, body = WebhookCreated), (status = "4XX", body = ErrorBody)))]
async fn create_webhook(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Json(request): Json<CreateWebhook>,
) -> Result<impl IntoResponse> {
    let created = webhooks::create(&app, &caller, &room(&id)?, request).await?;
    Ok((StatusCode::CREATED, NOT_KEPT, Reply(created)))
}

/// List the room's webhooks. Owner only.
#[utoipa::path(get, path = "/rooms/{id}/webhooks", tag = "Webhooks", params(("id" = String, Path)),
    responses((status = 200, body = Webhooks), (status = "4XX", body = ErrorBody)))]
async fn list_webhooks(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Reply<Webhooks>> {
    webhooks::list(&app, &caller, &room(&id)?).await.map(Reply)
}

/// Switch a webhook on or off. Owner only. One that is switched on goes on where it was, at most 200
/// messages back.
#[utoipa::path(patch, path = "/rooms/{id}/webhooks/{webhook_id}", tag = "Webhooks",
    params(("id" = String, Path), ("webhook_id" = String, Path)), request_body = UpdateWebhook,
    responses((status = 200, body = WebhookView), (status = "4XX", body = ErrorBody)))]
async fn update_webhook(
    State(app): State<App>,
    caller: Caller,
    Path((id, hook)): Path<(String, String)>,
    Json(request): Json<UpdateWebhook>,
) -> Result<Reply<WebhookView>> {
    webhooks::update(&app, &caller, &room(&id)?, &hook, request)
        .await
        .map(Reply)
}

/// Remove a webhook. Owner only. What it posted stays.
#[utoipa::path(delete, path = "/rooms/{id}/webhooks/{webhook_id}", tag = "Webhooks",
    params(("id" = String, Path), ("webhook_id" = String, Path)),
    responses((status = 200, body = Yes), (status = "4XX", body = ErrorBody)))]
async fn remove_webhook(
    State(app): State<App>,
    caller: Caller,
    Path((id, hook)): Path<(String, String)>,
) -> Result<Reply<Yes>> {
    webhooks::remove(&app, &caller, &room(&id)?, &hook).await?;
    Ok(Reply(Yes::YES))
}

/// Give a webhook a new address or a new secret. Owner only. The old one is of no more use.
#[utoipa::path(post, path = "/rooms/{id}/webhooks/{webhook_id}/rotate", tag = "Webhooks",
    params(("id" = String, Path), ("webhook_id" = String, Path)),
    responses((status = 200, body = WebhookCreated), (status = "4XX", body = ErrorBody)))]
async fn rotate_webhook(
    State(app): State<App>,
    caller: Caller,
    Path((id, hook)): Path<(String, String)>,
) -> Result<impl IntoResponse> {
    let rotated = webhooks::rotate(&app, &caller, &room(&id)?, &hook).await?;
    Ok((NOT_KEPT, Reply(rotated)))
}

/// What was sent to a webhook's address lately. Owner only.
#[utoipa::path(get, path = "/rooms/{id}/webhooks/{webhook_id}/deliveries", tag = "Webhooks",
    params(("id" = String, Path), ("webhook_id" = String, Path)),
    responses((status = 200, body = WebhookDeliveries), (status = "4XX", body = ErrorBody)))]
async fn webhook_deliveries(
    State(app): State<App>,
    caller: Caller,
    Path((id, hook)): Path<(String, String)>,
) -> Result<Reply<WebhookDeliveries>> {
    webhooks::deliveries(&app, &caller, &room(&id)?, &hook)
        .await
        .map(Reply)
}

/// Post through a webhook. Anonymous: the address is the secret. Takes `{"text": …}`, what GitHub and
/// Alertmanager send, and any other JSON.
#[utoipa::path(post, path = "/hooks/{code}", tag = "Webhooks",
    params(("code" = String, Path), ("Idempotency-Key" = Option<String>, Header), ("X-GitHub-Event" = Option<String>, Header),
        ("X-GitHub-Delivery" = Option<String>, Header), ("X-Hub-Signature-256" = Option<String>, Header)),
    request_body = Object,
    responses((status = 200, body = WebhookPosted), (status = "4XX", body = ErrorBody)))]
async fn post_to_webhook(
    State(app): State<App>,
    Path(code): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Result<Reply<WebhookPosted>> {
    let taken = take_payload(&app, &code, &headers, request).await;
    app.metrics.taken_from_webhook(match &taken {
        Ok((outcome, _)) => *outcome,
        Err(refused) if refused.code() == ErrorCode::RateLimited => WebhookTaken::Limited,
        Err(_) => WebhookTaken::Refused,
    });
    taken.map(|(_, posted)| Reply(posted))
}

async fn take_payload(
    app: &App,
    code: &str,
    headers: &HeaderMap,
    request: Request,
) -> Result<(WebhookTaken, WebhookPosted)> {
    let hook = incoming::find(app, code).await?;
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let key = header("idempotency-key").or(header("x-github-delivery"));
    let said = incoming::Headers {
        event: header("x-github-event"),
        signature: header("x-hub-signature-256"),
        key: key.map(idempotency::parse).transpose()?,
    };
    let body = read_body(app, request, MAX_PAYLOAD).await?;
    let is_form = header(header::CONTENT_TYPE.as_str())
        .is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
    let payload = payload(&body, is_form)?;
    incoming::post(app, hook, said, &body, &payload).await
}

/// The JSON in a body, or in the `payload` of a form.
fn payload(body: &[u8], is_form: bool) -> Result<Value> {
    let wrong = |error: serde_json::Error| {
        Error::bad_request(format!(
            "The body is no JSON: {error}. Send for example {{\"text\": \"Hello\"}} with Content-Type: application/json"
        ))
    };
    if is_form
        && let Some((_, payload)) = form_urlencoded::parse(body).find(|(name, _)| name == "payload")
    {
        return serde_json::from_str(&payload).map_err(wrong);
    }
    serde_json::from_slice(body).map_err(wrong)
}
