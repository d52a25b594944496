//! The limit on anonymous reads.

use crate::{app::App, clock::Now, error::Result, services::limits::Limit};
use protocol::ErrorCode;
use std::net::IpAddr;

/// Counts an anonymous read, for its address and resource, or refuses it. Whoever calls this holds no
/// connection: it may need one, and may wait for it.
pub async fn count_read(app: &App, ip: IpAddr, resource: &str) -> Result<()> {
    let limit = Limit {
        bucket: format!("visitor {ip} {resource}"),
        most: app.config.limits.visitor_reads_per_minute,
        window_ms: 60_000,
        code: ErrorCode::RateLimited,
        words: "Too many anonymous reads from your address",
        stored: true,
    };
    app.visitor_reads
        .count_against(&app.db, &[limit], Now::get())
        .await
}
