//! Several providers as one model: which is asked first, which next, and when
//! to try again.

use super::ModelError;
use super::file::{ModelsFile, Strategy};
use super::pooled_provider::{ModelReply, PooledProvider};
use openstarry::provider::Context;
use runtime::Backoff;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How often all providers are tried again.
const RETRIES: u32 = 3;
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The providers of a file.
pub struct Pool {
    providers: Vec<PooledProvider>,
    strategy: Strategy,
    turn: AtomicUsize,
}

impl Pool {
    /// Sets the providers up; none is asked yet.
    pub fn new(file: &ModelsFile, folder: &Path) -> Result<Self, String> {
        if file.backends.is_empty() {
            return Err("there are no backends under `models`".to_owned());
        }
        let providers = file.backends.iter();
        let providers = providers.map(|file| PooledProvider::new(file, folder));
        let providers = providers.collect::<Result<_, _>>();
        Ok(Self::of(
            file.strategy,
            providers.map_err(|error| error.to_string())?,
        ))
    }

    fn of(strategy: Strategy, providers: Vec<PooledProvider>) -> Self {
        Self {
            providers,
            strategy,
            turn: AtomicUsize::new(0),
        }
    }

    /// The providers in the order in which one question tries them.
    fn order(&self) -> Vec<&PooledProvider> {
        let mut order: Vec<_> = self.providers.iter().collect();
        match self.strategy {
            Strategy::Failover => order.sort_by_key(|provider| provider.priority),
            Strategy::RoundRobin => {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed);
                order.rotate_left(turn % self.providers.len());
            }
            Strategy::LeastLoaded => order.sort_by_key(|provider| provider.load()),
        }
        order
    }

    /// What a model says to `prompt`, in a conversation that spans name.
    pub async fn complete(
        &self,
        conversation: &str,
        context: &Context,
        prompt: &str,
    ) -> Result<ModelReply, ModelError> {
        let mut last = ModelError::None;
        let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
        // Each with the time before which it does not want to be asked.
        let begin = Instant::now();
        let mut order: Vec<_> = self.order().into_iter().map(|b| (b, begin)).collect();
        for attempt in 0..=RETRIES {
            let mut index = 0;
            while let Some((provider, not_before)) = order.get_mut(index) {
                if *not_before > Instant::now() {
                    index += 1;
                    continue;
                }
                let error = match provider.ask(conversation, context, prompt).await {
                    Ok(said) => return Ok(said),
                    Err(error) => error,
                };
                tracing::warn!(attempt, %error, "a model gave no answer");
                match error.passes_after() {
                    Some(wait) => {
                        *not_before = Instant::now() + wait;
                        index += 1;
                    }
                    None => {
                        order.remove(index);
                    }
                }
                last = error;
            }
            let Some(soonest) = order.iter().map(|(_, not_before)| *not_before).min() else {
                break;
            };
            if attempt < RETRIES {
                let again = Instant::now() + backoff.next_delay();
                tokio::time::sleep_until(again.max(soonest)).await;
            }
        }
        Err(last)
    }
}

#[cfg(test)]
impl Pool {
    /// A pool of one provider.
    pub fn only(provider: std::sync::Arc<dyn openstarry::provider::Provider>) -> Self {
        Self::of(
            Strategy::Failover,
            vec![PooledProvider::of(Ok(provider), 0, 1000)],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::Script;
    use super::*;
    use openstarry::pain::AgentPain;
    use std::sync::Arc;

    fn system() -> Context {
        Context {
            system: "s".to_owned(),
            ..Context::default()
        }
    }

    fn pool(strategy: Strategy, scripts: &[&Arc<Script>]) -> Pool {
        let providers = scripts.iter().zip(0..).map(|(script, priority)| {
            let script: Arc<Script> = Arc::clone(script);
            PooledProvider::of(Ok(script), priority, 60)
        });
        Pool::of(strategy, providers.collect())
    }

    fn down() -> Result<&'static str, AgentPain> {
        Err(AgentPain::unavailable("down"))
    }

    fn busy(seconds: u64) -> Result<&'static str, AgentPain> {
        Err(AgentPain::RateLimited {
            message: "busy".into(),
            retry_after: Some(Duration::from_secs(seconds)),
        })
    }

    fn locked() -> Result<&'static str, AgentPain> {
        Err(AgentPain::Key("who are you".into()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_passing_failure_is_tried_again_three_times() {
        let stalled = Err(AgentPain::Stalled(Duration::from_secs(1)));
        let script = Script::new([
            down(),
            Err(AgentPain::Network("x".into())),
            stalled,
            Ok("hi"),
        ]);
        let said = pool(Strategy::Failover, &[&script])
            .complete("c", &system(), "u")
            .await;
        assert_eq!(said.unwrap().reply.text(), "hi");
        assert_eq!(script.asked(), vec![("s".to_owned(), "u".to_owned()); 4]);

        let script = Script::new([down(), down(), down(), down(), Ok("too late")]);
        let begin = Instant::now();
        let said = pool(Strategy::Failover, &[&script])
            .complete("c", &system(), "u")
            .await;
        assert!(said.is_err());
        assert_eq!(script.asked().len(), 4);
        let waited = begin.elapsed().as_secs_f64();
        assert!((6.0..8.0).contains(&waited), "{waited}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_key_is_never_tried_again() {
        let script = Script::new([locked(), Ok("no")]);
        let said = pool(Strategy::Failover, &[&script])
            .complete("c", &system(), "u")
            .await;
        assert!(matches!(said, Err(ModelError::Provider(AgentPain::Key(_)))));
        assert_eq!(script.asked().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn as_long_as_a_provider_asks_for_is_waited() {
        let script = Script::new([busy(100), Ok("hi")]);
        let begin = Instant::now();
        let pool = pool(Strategy::Failover, &[&script]);
        pool.complete("c", &system(), "u").await.unwrap();
        assert!(begin.elapsed() >= Duration::from_secs(100));
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_that_asks_to_wait_does_not_hold_up_another() {
        let patient = Script::new([busy(100)]);
        let other = Script::new([down(), down(), Ok("hi")]);
        let begin = Instant::now();
        let pool = pool(Strategy::Failover, &[&patient, &other]);
        assert_eq!(
            pool.complete("c", &system(), "u")
                .await
                .unwrap()
                .reply
                .text(),
            "hi"
        );
        assert!(begin.elapsed() < Duration::from_secs(4));
        assert_eq!(patient.asked().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_provider_takes_over_at_once() {
        let broken = Script::new([down(), busy(9)]);
        let refusing = Script::new([locked(), locked()]);
        let well = Script::new([Ok("one"), Ok("two")]);
        let pool = pool(Strategy::Failover, &[&broken, &refusing, &well]);
        let begin = Instant::now();
        for said in ["one", "two"] {
            assert_eq!(
                pool.complete("c", &system(), "u")
                    .await
                    .unwrap()
                    .reply
                    .text(),
                said
            );
        }
        assert_eq!(begin.elapsed(), Duration::ZERO);
        for script in [broken, refusing, well] {
            assert_eq!(script.asked().len(), 2);
        }
    }

    #[tokio::test]
    async fn a_provider_without_its_key_is_passed_over() {
        let well = Script::new([Ok("hi")]);
        let providers = vec![
            PooledProvider::of(Err("no key".into()), 0, 60),
            PooledProvider::of(Ok(well), 1, 60),
        ];
        let pool = Pool::of(Strategy::Failover, providers);
        assert_eq!(
            pool.complete("c", &system(), "u")
                .await
                .unwrap()
                .reply
                .text(),
            "hi"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_is_asked_no_more_often_than_its_bucket_allows() {
        let script = Script::new((0..61).map(|_| Ok("hi")));
        let pool = pool(Strategy::Failover, &[&script]);
        let begin = Instant::now();
        for _ in 0..60 {
            pool.complete("c", &system(), "u").await.unwrap();
        }
        assert_eq!(begin.elapsed(), Duration::ZERO);
        pool.complete("c", &system(), "u").await.unwrap();
        assert!(begin.elapsed() >= Duration::from_secs(1));
    }

    #[tokio::test]
    async fn providers_take_turns() {
        let scripts = [
            Script::new([Ok("1"), Ok("3")]),
            Script::new([Ok("2"), Ok("4")]),
        ];
        let pool = pool(Strategy::RoundRobin, &[&scripts[0], &scripts[1]]);
        for said in ["1", "2", "3", "4"] {
            assert_eq!(
                pool.complete("c", &system(), "u")
                    .await
                    .unwrap()
                    .reply
                    .text(),
                said
            );
        }
    }

    #[tokio::test]
    async fn the_least_loaded_provider_is_asked_first() {
        let scripts = [Script::new([]), Script::new([Ok("hi")])];
        let pool = pool(Strategy::LeastLoaded, &[&scripts[0], &scripts[1]]);
        let _open = pool.providers[0].occupy();
        assert_eq!(
            pool.complete("c", &system(), "u")
                .await
                .unwrap()
                .reply
                .text(),
            "hi"
        );
        assert!(scripts[0].asked().is_empty());
    }
}
