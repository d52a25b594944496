//! Counts that operators look at.

use super::{
    Conn, DbResult,
    db::{exec, row},
};

impl Conn {
    pub async fn add_traffic(&mut self, minute: i64, node: &str, messages: i64) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO traffic (minute, node, messages) VALUES ($1, $2, $3) \
             ON CONFLICT (minute, node) DO UPDATE SET messages = traffic.messages + excluded.messages",
            minute,
            node,
            messages
        )?;
        Ok(())
    }

    /// Messages since the given minute.
    pub async fn traffic_since(&mut self, minute: i64) -> DbResult<i64> {
        let found = row!(
            self,
            (i64,),
            "SELECT CAST(COALESCE(SUM(messages), 0) AS BIGINT) FROM traffic WHERE minute > $1",
            minute
        )?;
        Ok(found.map_or(0, |(count,)| count))
    }

    pub async fn forget_traffic(&mut self, before_minute: i64) -> DbResult<()> {
        exec!(self, "DELETE FROM traffic WHERE minute < $1", before_minute)?;
        Ok(())
    }

    pub async fn active_rooms(&mut self) -> DbResult<i64> {
        let found = row!(
            self,
            (i64,),
            "SELECT COUNT(*) FROM rooms WHERE archived = FALSE"
        )?;
        Ok(found.map_or(0, |(count,)| count))
    }

    pub async fn room_count(&mut self) -> DbResult<i64> {
        let found = row!(self, (i64,), "SELECT COUNT(*) FROM rooms")?;
        Ok(found.map_or(0, |(count,)| count))
    }
}
