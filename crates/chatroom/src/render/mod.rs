//! Messages as HTML: markdown with highlighted code, safe to put into a page.
//!
//! Raw HTML is shown as the text it is, pictures become links, and what comes out passes a
//! sanitiser all the same. A message is at most 4 KB; nesting and output are bounded, and so is the
//! time for its code: what is over the budget stays plain.

mod budget;
pub mod document;
mod highlight;
mod markdown;
pub mod slack;
pub mod untrusted;

use crate::events::Frames;
use budget::{Abandoned, DEBUG_BUILD_FACTOR, RequestBudget};
use bytes::Bytes;
use protocol::{Message, MessageType, Notice};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::Semaphore;

/// What one generation of the cache holds, in bytes of text and HTML.
const GENERATION_BYTES: usize = 1024 * 1024;
/// How long a request waits for its permit; then its code stays plain.
const PERMIT_TIMEOUT: Duration = Duration::from_millis(300 * DEBUG_BUILD_FACTOR);

/// Renders messages, each text once for all who read it at about the same time.
pub struct Renderer {
    cache: Mutex<Cache>,
    /// Rendering takes turns, so that it never takes the machine from those who post.
    permits: Arc<Semaphore>,
}

/// Texts with their HTML.
type Rendered = HashMap<Arc<str>, Arc<str>>;

/// Rendered texts in two generations: the older is dropped when the younger is full.
#[derive(Default)]
struct Cache {
    young: Rendered,
    old: Rendered,
    young_bytes: usize,
}

impl Default for Renderer {
    fn default() -> Self {
        Self {
            cache: Mutex::default(),
            permits: Arc::new(Semaphore::new(1)),
        }
    }
}

impl Renderer {
    /// Gives the messages that somebody wrote their `content_html`.
    pub async fn messages(&self, messages: impl IntoIterator<Item = &mut Message>) {
        let mut written: Vec<_> = messages.into_iter().filter(|m| is_written(m)).collect();
        let texts = written.iter().map(|message| message.content.as_str());
        let rendered = self.rendered(texts).await;
        for message in &mut written {
            let html = rendered.get(message.content.as_str());
            message.content_html = html.map(|html| html.to_string());
        }
    }

    /// A stream's frames with `content_html` in the messages that somebody wrote.
    pub async fn frames(&self, frames: Frames) -> Bytes {
        let mut messages: Vec<Message> = frames.messages().cloned().collect();
        if messages.is_empty() {
            return frames.into_bytes();
        }
        self.messages(&mut messages).await;
        frames.with_messages(&messages)
    }

    /// The HTML of these texts: from the cache, or rendered away from the threads that serve.
    async fn rendered(&self, texts: impl Iterator<Item = &str>) -> Rendered {
        let mut rendered = Rendered::new();
        let mut missing: Vec<Arc<str>> = Vec::new();
        for text in texts.map(Arc::<str>::from) {
            match self.cached(&text) {
                Some(html) => drop(rendered.insert(text, html)),
                None => missing.push(text),
            }
        }
        if missing.is_empty() {
            return rendered;
        }
        let permit =
            tokio::time::timeout(PERMIT_TIMEOUT, self.permits.clone().acquire_owned()).await;
        let permit = permit.ok().and_then(Result::ok);
        // Somebody else may have rendered them meanwhile.
        missing.retain(|text| match self.cached(text) {
            Some(html) => rendered.insert(text.clone(), html).is_some(),
            None => true,
        });
        let abandoned = Abandoned::default();
        let _waiting = abandoned.on_drop();
        let rendering = tokio::task::spawn_blocking(move || {
            highlight::load();
            let budget = match permit {
                Some(_) => RequestBudget::new(abandoned.clone()),
                None => RequestBudget::none(abandoned.clone()),
            };
            let fresh = render(missing, &budget, &abandoned);
            // The permit is given back with the work, not with whoever waits for it.
            drop(permit);
            fresh
        });
        match rendering.await {
            Ok(fresh) => {
                self.lock().extend(&fresh);
                rendered.extend(fresh.into_iter().map(|one| (one.text, one.html)));
            }
            // The page shows the text as it is where there is no HTML.
            Err(error) => tracing::error!(%error, "a message could not be rendered"),
        }
        rendered
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
    /// Adds what another request would render the same.
    fn extend(&mut self, fresh: &[Fresh]) {
        if self.young_bytes > GENERATION_BYTES {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        for one in fresh.iter().filter(|one| one.is_repeatable) {
            self.young_bytes += one.text.len() + one.html.len();
            self.young.insert(one.text.clone(), one.html.clone());
        }
    }
}

/// A text that was just rendered.
struct Fresh {
    text: Arc<str>,
    html: Arc<str>,
    is_repeatable: bool,
}

/// Renders the texts in order, until nobody waits for them any more.
fn render(texts: Vec<Arc<str>>, budget: &RequestBudget, abandoned: &Abandoned) -> Vec<Fresh> {
    let render = |text: Arc<str>| {
        let mut budget = budget.next();
        let html = markdown::html(&text, &mut budget).into();
        Fresh {
            text,
            html,
            is_repeatable: budget.is_repeatable(),
        }
    };
    let wanted = texts.into_iter().take_while(|_| !abandoned.is_set());
    wanted.map(render).collect()
}

/// Whether somebody wrote it and did not take it back, or the server wrote it as Markdown.
fn is_written(message: &Message) -> bool {
    let is_tour = matches!(message.event, Some(Notice::Tour));
    (message.r#type == MessageType::Chat || is_tour) && !message.deleted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Form, FrameBuffer};
    use protocol::Cursor;

    const HEARTBEAT: &[u8] = b": still here\n";

    fn message(seq: i64, kind: &str, content: &str) -> Message {
        let message = serde_json::json!({
            "seq": seq, "sender_user_id": "u_a", "sender_user_name": null, "via": "web",
            "type": kind, "content": content, "reply_to_seq": null, "reply_chain_depth": 0,
            "rules_version": 0, "created_at": 1, "deleted": false, "edited_at": null, "reactions": {}
        });
        serde_json::from_value(message).unwrap()
    }

    #[tokio::test]
    async fn frames_keep_their_order_and_gain_html() {
        let mut first = FrameBuffer::default();
        first.message(message(1, "chat", "*hi*"));
        let reaction = Cursor { seq: 1, sub: 1 };
        first.raw_event(reaction, "reaction_added", r#"{"seq":1}"#);
        let mut frames = FrameBuffer::default();
        frames.append(&Bytes::from_static(HEARTBEAT).into(), Form::WithMessages);
        frames.append(&first.finish(), Form::WithMessages);
        frames.message(message(2, "system", "<b> joined"));
        let frames = frames.finish();
        let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        let plain = text(frames.in_form(Form::Plain).into_bytes());
        let rendered = text(Renderer::default().frames(frames).await);
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
            let mut frames = FrameBuffer::default();
            (0..50).for_each(|n| frames.message(message(n, "chat", &format!("{page}.{n} {long}"))));
            let rendered = renderer.frames(frames.finish()).await;
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
