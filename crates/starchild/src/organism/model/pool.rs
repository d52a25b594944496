//! Several backends as one model: which is asked first, which next, and when
//! to try again.

use super::bucket::Bucket;
use super::http::Backend;
use super::{Model, ModelError};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What the file says under `models`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelsFile {
    #[serde(default)]
    strategy: Strategy,
    backends: Vec<BackendFile>,
}

impl ModelsFile {
    /// The environment variables that hold keys.
    pub fn key_variables(&self) -> Vec<String> {
        self.backends
            .iter()
            .filter_map(|file| file.key_env.clone())
            .collect()
    }
}

/// Which backend is asked first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Strategy {
    /// The one of the lowest priority number.
    #[default]
    Failover,
    /// Each in its turn.
    RoundRobin,
    /// The one with the fewest questions open.
    LeastLoaded,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct BackendFile {
    base_url: String,
    model: String,
    /// The environment variable that holds the key.
    #[serde(default)]
    key_env: Option<String>,
    #[serde(default)]
    priority: i32,
    #[serde(default = "per_minute")]
    requests_per_minute: u32,
    #[serde(default = "timeout_seconds")]
    timeout_seconds: u64,
}

fn per_minute() -> u32 {
    60
}

fn timeout_seconds() -> u64 {
    120
}

/// How often and how long after it is tried again.
#[derive(Clone, Copy)]
struct Patience {
    retries: u32,
    first: Duration,
    most: Duration,
}

const PATIENCE: Patience = Patience {
    retries: 3,
    first: Duration::from_secs(1),
    most: Duration::from_secs(60),
};

impl Patience {
    /// Twice as long each time, and somewhere between half of that and all.
    fn wait(self, attempt: u32, jitter: f64) -> Duration {
        let whole = self
            .first
            .saturating_mul(1 << attempt.min(16))
            .min(self.most);
        whole.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0)
    }
}

struct Member {
    backend: Backend,
    priority: i32,
    open: AtomicUsize,
    bucket: Mutex<Bucket>,
}

/// The backends of a file.
pub struct Pool {
    members: Vec<Member>,
    strategy: Strategy,
    turn: AtomicUsize,
    patience: Patience,
}

impl Pool {
    /// Sets the backends up; none is asked yet.
    pub fn new(file: &ModelsFile) -> Result<Self, String> {
        if file.backends.is_empty() {
            return Err("there are no backends under `models`".to_owned());
        }
        let members = file.backends.iter().map(|file| {
            let timeout = Duration::from_secs(file.timeout_seconds.max(1));
            Ok(Member {
                backend: Backend::new(&file.base_url, file.key_env.clone(), &file.model, timeout)?,
                priority: file.priority,
                open: AtomicUsize::new(0),
                bucket: Mutex::new(Bucket::new(file.requests_per_minute, Instant::now())),
            })
        });
        let members = members.collect::<Result<_, String>>()?;
        Ok(Self {
            members,
            strategy: file.strategy,
            turn: AtomicUsize::new(0),
            patience: PATIENCE,
        })
    }

    /// The members in the order in which one question tries them.
    fn order(&self) -> Vec<&Member> {
        let mut order: Vec<_> = self.members.iter().collect();
        match self.strategy {
            Strategy::Failover => order.sort_by_key(|member| member.priority),
            Strategy::RoundRobin => {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed);
                order.rotate_left(turn % self.members.len());
            }
            Strategy::LeastLoaded => {
                order.sort_by_key(|member| member.open.load(Ordering::Relaxed))
            }
        }
        order
    }

    async fn ask(&self, system: &str, user: &str) -> Result<String, ModelError> {
        let mut order = self.order();
        let mut last = ModelError::None;
        for attempt in 0..=self.patience.retries {
            let mut asked_to_wait = Duration::ZERO;
            let mut index = 0;
            while let Some(member) = order.get(index) {
                match member.ask(system, user).await {
                    Ok(said) => return Ok(said),
                    Err(ModelError::Unavailable {
                        reason,
                        retry_after,
                    }) => {
                        tracing::warn!(attempt, %reason, "a model is not to be had");
                        asked_to_wait = asked_to_wait.max(retry_after.unwrap_or_default());
                        last = ModelError::Unavailable {
                            reason,
                            retry_after,
                        };
                        index += 1;
                    }
                    // Another try at this one would end the same way.
                    Err(error) => {
                        tracing::warn!(attempt, %error, "a model refused");
                        last = error;
                        order.remove(index);
                    }
                }
            }
            if order.is_empty() || attempt == self.patience.retries {
                break;
            }
            let wait = self
                .patience
                .wait(attempt, random())
                .max(asked_to_wait)
                .min(self.patience.most);
            tokio::time::sleep(wait).await;
        }
        Err(last)
    }
}

impl Model for Pool {
    fn complete<'a>(
        &'a self,
        system: &'a str,
        user: &'a str,
    ) -> BoxFuture<'a, Result<String, ModelError>> {
        self.ask(system, user).boxed()
    }
}

impl Member {
    async fn ask(&self, system: &str, user: &str) -> Result<String, ModelError> {
        let _open = Open::new(&self.open);
        loop {
            let taken = self
                .bucket
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(Instant::now());
            match taken {
                Ok(()) => return self.backend.ask(system, user).await,
                Err(wait) => tokio::time::sleep(wait).await,
            }
        }
    }
}

/// Counts a question for as long as it is open, however it ends.
struct Open<'a>(&'a AtomicUsize);

impl<'a> Open<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Between 0 and 1; good enough to keep clients from trying all at once.
fn random() -> f64 {
    (RandomState::new().hash_one(0) % 1000) as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// A backend that gives each answer in turn, the last for ever, and counts.
    async fn backend(answers: &'static [(u16, &'static str)]) -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                let mut chunk = [0; 4096];
                // The body is JSON that ends with the array of messages.
                while !request.ends_with(b"}") {
                    let read = stream.read(&mut chunk).await.unwrap();
                    request.extend_from_slice(&chunk[..read]);
                    if read == 0 {
                        break;
                    }
                }
                let number = count.fetch_add(1, Ordering::SeqCst);
                let (status, extra) = answers[number.min(answers.len() - 1)];
                let body = r#"{"choices":[{"message":{"content":"said"}}]}"#;
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status} X\r\n{extra}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        (url, asked)
    }

    fn pool(strategy: Strategy, urls: &[&str]) -> Pool {
        let backends = urls.iter().enumerate().map(|(index, url)| BackendFile {
            base_url: (*url).to_owned(),
            model: "m".to_owned(),
            key_env: None,
            priority: index as i32,
            requests_per_minute: 1000,
            timeout_seconds: 5,
        });
        let mut pool = Pool::new(&ModelsFile {
            strategy,
            backends: backends.collect(),
        })
        .unwrap();
        pool.patience = Patience {
            first: Duration::from_millis(1),
            most: Duration::from_secs(2),
            ..PATIENCE
        };
        pool
    }

    fn count(asked: &AtomicUsize) -> usize {
        asked.load(Ordering::SeqCst)
    }

    #[tokio::test]
    async fn a_passing_failure_is_tried_again_three_times() {
        let (url, asked) = backend(&[(500, ""), (429, ""), (503, ""), (200, "")]).await;
        assert_eq!(
            pool(Strategy::Failover, &[&url])
                .complete("s", "u")
                .await
                .unwrap(),
            "said"
        );
        assert_eq!(count(&asked), 4);
        let (url, asked) = backend(&[(500, "")]).await;
        assert!(
            pool(Strategy::Failover, &[&url])
                .complete("s", "u")
                .await
                .is_err()
        );
        assert_eq!(count(&asked), 4);
    }

    #[tokio::test]
    async fn a_refused_key_is_never_tried_again() {
        let (url, asked) = backend(&[(401, ""), (200, "")]).await;
        let pool = pool(Strategy::Failover, &[&url]);
        assert_eq!(pool.complete("s", "u").await, Err(ModelError::Unauthorized));
        assert_eq!(count(&asked), 1);
    }

    #[tokio::test]
    async fn retry_after_is_waited_for() {
        let (url, asked) = backend(&[(429, "retry-after: 1\r\n"), (200, "")]).await;
        let begin = Instant::now();
        pool(Strategy::Failover, &[&url])
            .complete("s", "u")
            .await
            .unwrap();
        assert!(begin.elapsed() >= Duration::from_secs(1));
        assert_eq!(count(&asked), 2);
    }

    #[tokio::test]
    async fn the_next_backend_takes_over_at_once() {
        let (broken, tried) = backend(&[(500, "")]).await;
        let (locked, refused) = backend(&[(401, "")]).await;
        let (well, asked) = backend(&[(200, "")]).await;
        let pool = pool(Strategy::Failover, &[&broken, &locked, &well]);
        for _ in 0..2 {
            pool.complete("s", "u").await.unwrap();
        }
        assert_eq!((count(&tried), count(&refused), count(&asked)), (2, 2, 2));
    }

    #[tokio::test]
    async fn backends_take_turns() {
        let (one, first) = backend(&[(200, "")]).await;
        let (two, second) = backend(&[(200, "")]).await;
        let pool = pool(Strategy::RoundRobin, &[&one, &two]);
        for _ in 0..4 {
            pool.complete("s", "u").await.unwrap();
        }
        assert_eq!((count(&first), count(&second)), (2, 2));
    }

    #[tokio::test]
    async fn the_least_loaded_backend_is_asked_first() {
        let pool = pool(
            Strategy::LeastLoaded,
            &["http://127.0.0.1:9/a", "http://127.0.0.1:9/b"],
        );
        let _open = Open::new(&pool.members[0].open);
        assert!(std::ptr::eq(pool.order()[0], &pool.members[1]));
    }

    #[test]
    fn waits_grow_to_a_minute_with_jitter() {
        let waits: Vec<_> = (0..8)
            .map(|attempt| PATIENCE.wait(attempt, 1.0).as_secs())
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(PATIENCE.wait(0, 0.0), Duration::from_millis(500));
    }
}
