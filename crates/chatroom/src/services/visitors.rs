//! The limit on anonymous reads.

use crate::{app::App, clock::Now, error::Result, services::limits::Limit};
use protocol::{ErrorCode, RoomId};
use std::{fmt, net::IpAddr};

/// What anonymous reads are counted of, each by itself.
pub enum Resource<'a> {
    Room(&'a RoomId),
    /// What is read besides rooms.
    Path(&'static str),
}

impl<'a> From<&'a RoomId> for Resource<'a> {
    fn from(room: &'a RoomId) -> Self {
        Self::Room(room)
    }
}

impl From<&'static str> for Resource<'_> {
    fn from(path: &'static str) -> Self {
        Self::Path(path)
    }
}

impl fmt::Display for Resource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Room(room) => room.fmt(f),
            Self::Path(path) => path.fmt(f),
        }
    }
}

/// Counts an anonymous read, for its address and resource, or refuses it. Whoever calls this holds no
/// connection: it may need one, and may wait for it.
pub async fn count_read(app: &App, ip: IpAddr, resource: impl Into<Resource<'_>>) -> Result<()> {
    let resource = resource.into();
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
