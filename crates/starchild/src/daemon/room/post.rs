//! The post of an answer, or of a remark.

use super::{End, Room};
use crate::{backend::Remark, dedup_key::dedup_key, home::PreparedAnswer};
use client::{Client, PostMessage};

impl Room {
    /// Posts the answer to a message, at most once however often it is retried. A message that
    /// somebody has answered anew has another answer, with another `attempt`.
    pub(super) async fn post_answer(
        &mut self,
        answer: PreparedAnswer,
        depth: i64,
        attempt: &str,
    ) -> Result<(), End> {
        let message = PostMessage {
            content: answer.text,
            reply_to_seq: Some(answer.seq),
            reply_chain_depth: Some(depth + 1),
            usage: answer.usage,
            ..PostMessage::default()
        };
        self.post(answer.seq, attempt, message).await
    }

    /// Posts what the backend says by itself.
    pub(super) async fn post_remark(&mut self, remark: &Remark) -> Result<(), End> {
        let message = PostMessage {
            content: remark.text.clone(),
            reply_to_seq: remark.reply_to_seq,
            ..PostMessage::default()
        };
        let seq = remark.reply_to_seq.unwrap_or(0);
        self.post(seq, &remark.id, message).await
    }

    async fn post(&mut self, seq: i64, attempt: &str, message: PostMessage) -> Result<(), End> {
        let room = &self.room;
        let dedup_key = dedup_key(&self.context.me().user_id, room, seq, attempt);
        let post =
            async |client: &Client| client.post_message(room, &message, Some(&dedup_key)).await;
        if let Some(posted) = self.connection.retry(post).await? {
            tracing::info!(as_seq = posted.seq, "answered");
        }
        Ok(())
    }
}
