//! Rooms as files: out for whoever may read them, in by an operator.

use crate::{
    api::extract::{Body, Json, Path, Query, room},
    app::App,
    auth::{Caller, network::Origin},
    error::Result,
    services::transfer::{export::Export, import},
};
use axum::{
    Json as Reply,
    body::Body as Streamed,
    extract::{Request, State},
    http::{StatusCode, header},
    response::IntoResponse,
};
use futures_util::stream;
use protocol::{BeginImport, ErrorBody, ExportFormat, ImportBegun, ImportMessages, Imported};
use serde::Deserialize;
use utoipa::IntoParams;

section!(export_room, begin_import, import_messages);

/// The largest batch of messages that is read.
const MAX_BATCH: usize = 4 * 1024 * 1024;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ExportRoomQuery {
    /// `jsonl`, for programs, or `markdown`, to read; `jsonl` where absent.
    #[param(inline)]
    format: Option<ExportFormat>,
}

/// Export the room. Anonymous in public rooms. Deleted texts are not in it.
#[utoipa::path(get, path = "/rooms/{id}/export", tag = "Rooms", params(("id" = String, Path), ExportRoomQuery),
    responses((status = 200, content((String = "application/jsonl"), (String = "text/markdown"))), (status = "4XX", body = ErrorBody)))]
async fn export_room(
    State(app): State<App>,
    caller: Caller,
    origin: Origin,
    Path(id): Path<String>,
    Query(query): Query<ExportRoomQuery>,
) -> Result<impl IntoResponse> {
    let room = room(&id)?;
    let format = query.format.unwrap_or(ExportFormat::Jsonl);
    let (kind, ending) = match format {
        ExportFormat::Jsonl => ("application/jsonl", "jsonl"),
        ExportFormat::Markdown => ("text/markdown; charset=utf-8", "md"),
    };
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{room}.{ending}\""),
        ),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    let export = Export::begin(&app, caller, origin.network(), room, format).await?;
    let pieces = stream::try_unfold(export, |mut export| async move {
        let piece = export.next().await?;
        Ok::<_, crate::error::Error>(piece.map(|piece| (piece, export)))
    });
    Ok((headers, Streamed::from_stream(pieces)))
}

/// Make a room to be filled with messages from elsewhere. Admin tokens only.
#[utoipa::path(post, path = "/internal/admin/imports", tag = "System", request_body = BeginImport,
    responses((status = 201, body = ImportBegun), (status = "4XX", body = ErrorBody)))]
async fn begin_import(
    State(app): State<App>,
    caller: Caller,
    Json(request): Json<BeginImport>,
) -> Result<(StatusCode, Reply<ImportBegun>)> {
    let begun = import::begin(&app, &caller, request).await?;
    Ok((StatusCode::CREATED, Reply(begun)))
}

/// Add the next messages to a room that is being imported. Admin tokens only.
#[utoipa::path(post, path = "/internal/admin/imports/{id}", tag = "System", params(("id" = String, Path)), request_body = ImportMessages,
    responses((status = 200, body = Imported), (status = "4XX", body = ErrorBody)))]
async fn import_messages(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Reply<Imported>> {
    // Whoever is no operator sends nothing of this size.
    crate::services::access::operator(&caller)?;
    let request: ImportMessages = Body::read(&app, request, MAX_BATCH).await?.parse()?;
    import::add(&app, &caller, &room(&id)?, request)
        .await
        .map(Reply)
}
