//! Answers that are kept for whoever asks again with the same idempotency key.

use super::{
    Conn, DbResult,
    db::{exec, row},
};

row_struct! {
    /// An answer that was given before.
    #[derive(Debug)]
    pub struct KeptReplyRow {
        /// What was asked, hashed.
        pub request: String,
        /// The answer, encrypted.
        pub reply: String,
    }
}

impl Conn {
    /// Takes the place of an answer; whether it was free. Whoever asks the same at the same time
    /// waits here until the first one has its answer.
    pub async fn reserve_reply(
        &mut self,
        id: &str,
        caller: &str,
        request: &str,
        now: i64,
    ) -> DbResult<bool> {
        let reserved = exec!(
            self,
            "INSERT INTO kept_replies (id, caller, request, reply, kept_at) VALUES ($1, $2, $3, '', $4) \
             ON CONFLICT (id) DO NOTHING",
            id,
            caller,
            request,
            now
        )?;
        Ok(reserved == 1)
    }

    pub async fn keep_reply(&mut self, id: &str, reply: &str) -> DbResult<()> {
        exec!(
            self,
            "UPDATE kept_replies SET reply = $2 WHERE id = $1",
            id,
            reply
        )?;
        Ok(())
    }

    pub async fn kept_reply(&mut self, id: &str) -> DbResult<Option<KeptReplyRow>> {
        row!(
            self,
            KeptReplyRow,
            "SELECT request, reply FROM kept_replies WHERE id = $1",
            id
        )
    }

    /// Forgets a caller's answers but for the newest so many.
    pub async fn forget_replies_beyond(&mut self, caller: &str, most: i64) -> DbResult<()> {
        exec!(
            self,
            "DELETE FROM kept_replies WHERE caller = $1 AND kept_at < (SELECT kept_at FROM kept_replies \
             WHERE caller = $1 ORDER BY kept_at DESC LIMIT 1 OFFSET $2)",
            caller,
            most - 1
        )?;
        Ok(())
    }

    /// Forgets the answers that were given before this second.
    pub async fn forget_replies(&mut self, before: i64) -> DbResult<()> {
        exec!(self, "DELETE FROM kept_replies WHERE kept_at < $1", before)?;
        Ok(())
    }
}
