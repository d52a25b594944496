//! Short codes with which a command line reaches its owner's agent. The bearer behind a code never
//! leaves the server.

use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    services::{access, checks},
    store::cli_keys::CliKeyRow,
};
use protocol::{CliKeyCreated, CliKeyView, CliKeys, CreateCliKey, ErrorCode};

/// What every code begins with.
pub const PREFIX: &str = "sc_";
const CODE_LENGTH: usize = 20;
const DEFAULT_TTL: i64 = 30 * 24 * 3600;
pub const LONGEST_TTL: i64 = 366 * 24 * 3600;

pub async fn create(app: &App, caller: &Caller, request: CreateCliKey) -> Result<CliKeyCreated> {
    let user = access::user(caller)?;
    let key = checks::opaque("akm_key", &request.akm_key)?;
    let container = checks::opaque("container_id", &request.container_id)?;
    let label = request
        .label
        .as_deref()
        .map(|label| checks::member_name("label", label))
        .transpose()?;
    let ttl = request.ttl_seconds.unwrap_or(DEFAULT_TTL);
    let ttl = checks::in_range("ttl_seconds", ttl, 1..=LONGEST_TTL)?;
    let endpoint = request
        .agent_endpoint
        .as_deref()
        .map(|url| checks::endpoint("agent_endpoint", url))
        .transpose()?;
    let mut tx = app.db.begin_keeping_cache().await?;
    // Fixed here: the bearer goes where its owner sent it, wherever a membership points later.
    let endpoint = match endpoint {
        Some(named) => Some((named, access::may_name_private_endpoint(caller))),
        None => tx.endpoint_of_container(&user.id, &container).await?,
    };
    let (agent_endpoint, endpoint_trusted) = endpoint
        .map_or((None, false), |(endpoint, trusted)| {
            (Some(endpoint), trusted)
        });
    let now = Now::get().seconds();
    let code = app
        .secrets
        .random_code(PREFIX, CODE_LENGTH)
        .map_err(Error::internal)?;
    let row = CliKeyRow {
        sealed_code: app.secrets.seal(&code).map_err(Error::internal)?,
        sealed_key: app.secrets.seal(&key).map_err(Error::internal)?,
        user_id: user.id.clone(),
        container_id: container,
        agent_endpoint,
        endpoint_trusted,
        label,
        created_at: now,
        expires_at: now + ttl,
        revoked: false,
        use_count: 0,
        last_used_at: None,
    };
    tx.insert_cli_key(&app.secrets.hash_code(&code), &row)
        .await?;
    tx.commit().await?;
    Ok(CliKeyCreated {
        code,
        expires_at: row.expires_at,
        label: row.label,
    })
}

/// The code that a row keeps.
pub fn code_of(app: &App, row: &CliKeyRow) -> Result<String> {
    let code = app.secrets.unseal(&row.sealed_code);
    code.ok_or_else(|| Error::internal("a short code cannot be read"))
}

/// The caller's own codes, those that still work or all of them.
pub async fn list(app: &App, caller: &Caller, include_revoked: bool) -> Result<CliKeys> {
    let user = access::user(caller)?;
    let rows = app.db.read().await?.cli_keys_of(&user.id).await?;
    let keys = rows
        .into_iter()
        .filter(|row| include_revoked || !row.revoked)
        .map(|row| {
            Ok(CliKeyView {
                code: code_of(app, &row)?,
                label: row.label,
                created_at: row.created_at,
                expires_at: row.expires_at,
                revoked: row.revoked,
                use_count: row.use_count,
                last_used_at: row.last_used_at,
            })
        });
    Ok(CliKeys {
        keys: keys.collect::<Result<_>>()?,
    })
}

pub async fn revoke(app: &App, caller: &Caller, code: &str) -> Result<()> {
    let user = access::user(caller)?;
    let missing = || Error::not_found("You have no such short code, or it was revoked already");
    let hash = app.secrets.hash_code(code);
    let mut tx = app.db.begin_keeping_cache().await?;
    let row = tx.cli_key(&hash).await?.ok_or_else(missing)?;
    // Whoever does not own a code does not learn that it exists.
    if row.user_id != user.id {
        return Err(missing());
    }
    if row.expires_at <= Now::get().seconds() {
        return Err(Error::new(
            ErrorCode::Gone,
            "This short code has expired already",
        ));
    }
    if !tx.revoke_cli_key(&hash).await? {
        return Err(missing());
    }
    tx.commit().await?;
    Ok(())
}
