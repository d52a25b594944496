//! Messages as HTML: markdown with highlighted code, safe to put into a page.
//!
//! Raw HTML is shown as the text it is, pictures become links, and what comes out passes a
//! sanitiser all the same. A message is at most 4 KB; nesting, output and time are bounded.

mod frames;
mod highlight;
mod markdown;

use bytes::Bytes;
use frames::Frame;
use protocol::{Message, MessageType};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};
use tokio::sync::Semaphore;

/// What one generation of the cache holds, in bytes of text and HTML.
const GENERATION_BYTES: usize = 1024 * 1024;

/// Renders messages, each text once for all who read it at about the same time.
pub struct Renderer {
    cache: Mutex<Cache>,
    /// Rendering takes turns, so that it never takes the machine from those who post.
    turn: Semaphore,
}

/// Rendered texts in two generations: the older is dropped when the younger is full.
#[derive(Default)]
struct Cache {
    young: HashMap<Arc<str>, Arc<str>>,
    old: HashMap<Arc<str>, Arc<str>>,
    young_bytes: usize,
}

impl Default for Renderer {
    fn default() -> Self {
        Self {
            cache: Mutex::default(),
            turn: Semaphore::new(1),
        }
    }
}

impl Renderer {
    /// Gives the messages that somebody wrote their `content_html`.
    pub async fn messages(&self, messages: impl IntoIterator<Item = &mut Message>) {
        let mut written: Vec<_> = messages.into_iter().filter(|m| is_written(m)).collect();
        self.prepare(written.iter().map(|message| message.content.as_str()))
            .await;
        for message in &mut written {
            message.content_html = self.cached(&message.content).map(|html| html.to_string());
        }
    }

    /// A stream's frames with `content_html` in the messages that somebody wrote.
    pub async fn frames(&self, frames: Bytes) -> Bytes {
        if !frames::hold_messages(&frames) {
            return frames;
        }
        let mut split = frames::split(&frames);
        let messages = split.iter_mut().filter_map(|frame| match frame {
            Frame::Message(_, message) => Some(message.as_mut()),
            Frame::Other(_) => None,
        });
        self.messages(messages).await;
        frames::join(&split)
    }

    /// Renders what the cache lacks, away from the threads that serve.
    async fn prepare(&self, texts: impl Iterator<Item = &str>) {
        let missing: Vec<Arc<str>> = texts
            .filter(|text| self.cached(text).is_none())
            .map(Arc::from)
            .collect();
        if missing.is_empty() {
            return;
        }
        let Ok(_turn) = self.turn.acquire().await else {
            return;
        };
        let missing: Vec<Arc<str>> = missing
            .into_iter()
            .filter(|text| self.cached(text).is_none())
            .collect();
        let rendering = tokio::task::spawn_blocking(move || {
            let render = |text: Arc<str>| {
                let html: Arc<str> = markdown::html(&text).into();
                (text, html)
            };
            missing.into_iter().map(render).collect::<Vec<_>>()
        });
        match rendering.await {
            Ok(rendered) => self.lock().extend(rendered),
            // The page shows the text as it is where there is no HTML.
            Err(error) => tracing::error!(%error, "a message could not be rendered"),
        }
    }

    fn cached(&self, text: &str) -> Option<Arc<str>> {
        let cache = self.lock();
        cache.young.get(text).or(cache.old.get(text)).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Cache> {
        self.cache
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Cache {
    /// A page of messages is added whole, so that whoever asked for it finds it.
    fn extend(&mut self, rendered: Vec<(Arc<str>, Arc<str>)>) {
        if self.young_bytes > GENERATION_BYTES {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        for (text, html) in rendered {
            self.young_bytes += text.len() + html.len();
            self.young.insert(text, html);
        }
    }
}

/// Whether somebody wrote it and did not take it back.
fn is_written(message: &Message) -> bool {
    message.r#type == MessageType::Chat && !message.deleted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(seq: i64, kind: &str, content: &str) -> String {
        let data = serde_json::json!({
            "seq": seq, "sender_user_id": "u_a", "sender_user_name": null, "via": "web",
            "type": kind, "content": content, "reply_to_seq": null, "reply_chain_depth": 0,
            "rules_version": 0, "created_at": 1, "deleted": false, "edited_at": null, "reactions": {}
        });
        format!("id: {seq}\nevent: message\ndata: {data}\n\n")
    }

    #[tokio::test]
    async fn frames_keep_their_order_and_gain_html() {
        let plain = format!(
            "{}id: 1.1\nevent: reaction_added\ndata: {{\"seq\":1}}\n\n: still here\n\n{}",
            frame(1, "chat", "*hi*"),
            frame(2, "system", "<b> joined")
        );
        let renderer = Renderer::default();
        let rendered = renderer.frames(Bytes::from(plain.clone())).await;
        let rendered = String::from_utf8(rendered.to_vec()).unwrap();
        let ids = |text: &str| {
            text.lines()
                .filter(|line| line.starts_with("id: ") || line.starts_with(':'))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(&rendered), ids(&plain));
        assert!(rendered.contains(r#""content_html":"<p><em>hi</em></p>"#));
        assert_eq!(rendered.matches("content_html").count(), 1);
        assert!(rendered.ends_with("\n\n"));
    }

    #[tokio::test]
    async fn the_cache_stays_bounded_and_every_page_is_served() {
        let renderer = Renderer::default();
        let long = "word ".repeat(800);
        for page in 0..40 {
            let mut texts = String::new();
            (0..50).for_each(|n| texts.push_str(&frame(n, "chat", &format!("{page}.{n} {long}"))));
            let rendered = renderer.frames(Bytes::from(texts)).await;
            let rendered = String::from_utf8(rendered.to_vec()).unwrap();
            assert_eq!(rendered.matches("content_html").count(), 50);
        }
        let cache = renderer.lock();
        let held: usize = [&cache.young, &cache.old]
            .iter()
            .flat_map(|generation| generation.iter())
            .map(|(text, html)| text.len() + html.len())
            .sum();
        assert!(held < 4 * GENERATION_BYTES, "{held}");
    }
}
