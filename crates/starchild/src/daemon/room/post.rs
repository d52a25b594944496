//! The post of an answer.

use super::{End, Room};
use client::{Client, PostMessage};

impl Room {
    /// Posts the answer to a message, at most once however often it is retried.
    pub(super) async fn post_answer(
        &mut self,
        seq: i64,
        depth: i64,
        content: String,
    ) -> Result<(), End> {
        let room = &self.room;
        // The same for every try at this message, so that there is one answer to it at most.
        let key = format!("starchild-{}-{room}-{seq}", self.context.me().user_id);
        let message = PostMessage {
            content,
            reply_to_seq: Some(seq),
            reply_chain_depth: Some(depth + 1),
            client_msg_id: None,
        };
        let post = async |client: &Client| client.post_message(room, &message, Some(&key)).await;
        if let Some(posted) = self.connection.retry(post).await? {
            tracing::info!(as_seq = posted.seq, "answered");
        }
        Ok(())
    }
}
