//! The windows that rate limits count in. A window opens with the first thing it counts.

use super::{
    Conn, DbResult,
    db::{Sql, exec, rows},
};

row_struct! {
    /// An open window.
    #[derive(Debug, Clone)]
    pub struct WindowRow {
        pub bucket: String,
        pub started_ms: i64,
        pub count: i64,
        pub ends_ms: i64,
    }
}

macro_rules! on_window_conflict {
    () => {
        "ON CONFLICT (bucket) DO UPDATE SET started_ms = excluded.started_ms, \
         count = excluded.count, ends_ms = excluded.ends_ms"
    };
}
pub(super) use on_window_conflict;

/// Opens a window anew or counts on in it.
pub const SAVE_WINDOW: &str = concat!(
    "INSERT INTO rate_windows (bucket, started_ms, count, ends_ms) VALUES ($1, $2, $3, $4) ",
    on_window_conflict!()
);

impl Conn {
    /// The windows of these buckets, held until the transaction ends.
    pub async fn windows(&mut self, buckets: &[&str]) -> DbResult<Vec<WindowRow>> {
        const WINDOWS: Sql = Sql {
            sqlite: "SELECT bucket, started_ms, count, ends_ms FROM rate_windows \
                 WHERE bucket IN (SELECT value FROM json_each($1))",
            postgres: "SELECT bucket, started_ms, count, ends_ms FROM rate_windows \
                 WHERE bucket IN (SELECT jsonb_array_elements_text($1::jsonb)) ORDER BY bucket FOR UPDATE",
        };
        if buckets.is_empty() {
            return Ok(Vec::new());
        }
        rows!(self, WindowRow, WINDOWS, super::posting::json(buckets))
    }

    /// Makes sure that these buckets have a row, so that two nodes cannot both find none.
    pub async fn open_windows(&mut self, buckets: &[&str]) -> DbResult<()> {
        const OPEN: Sql = Sql {
            sqlite: "INSERT INTO rate_windows (bucket, started_ms, count, ends_ms) \
                 SELECT value, 0, 0, 0 FROM json_each($1) WHERE TRUE ON CONFLICT DO NOTHING",
            postgres: "INSERT INTO rate_windows (bucket, started_ms, count, ends_ms) \
                 SELECT bucket, 0, 0, 0 FROM jsonb_array_elements_text($1::jsonb) AS bucket \
                 ORDER BY bucket ON CONFLICT DO NOTHING",
        };
        if !buckets.is_empty() {
            exec!(self, OPEN, super::posting::json(buckets))?;
        }
        Ok(())
    }

    pub async fn save_windows(&mut self, windows: &[&WindowRow]) -> DbResult<()> {
        for w in windows {
            exec!(
                self,
                SAVE_WINDOW,
                &w.bucket,
                w.started_ms,
                w.count,
                w.ends_ms
            )?;
        }
        Ok(())
    }

    /// Forgets windows that have ended.
    pub async fn forget_windows(&mut self, now_ms: i64) -> DbResult<()> {
        exec!(self, "DELETE FROM rate_windows WHERE ends_ms <= $1", now_ms)?;
        Ok(())
    }
}
