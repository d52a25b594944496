//! Payloads and small organisms that the tests share.

use agentserver::{Gateway, Listener, Organism, Payload, Pump, Settings};
use std::time::Duration;

#[derive(Payload, Debug, Clone, PartialEq)]
pub struct Ask {
    pub text: String,
}

#[derive(Payload, Debug, Clone, PartialEq)]
pub struct Told {
    pub text: String,
}

pub fn ask(text: impl Into<String>) -> Ask {
    Ask { text: text.into() }
}

pub fn told(text: impl Into<String>) -> Told {
    Told { text: text.into() }
}

/// An organism whose one gateway, `console`, may reach every listener.
pub fn organism(listeners: impl IntoIterator<Item = Listener>) -> Organism {
    let listeners: Vec<_> = listeners.into_iter().collect();
    let names: Vec<_> = listeners
        .iter()
        .map(|listener| listener.name().to_owned())
        .collect();
    Organism::new("test", listeners, [Gateway::named("console", names)]).unwrap()
}

pub fn pump(listeners: impl IntoIterator<Item = Listener>) -> Pump {
    Pump::start(organism(listeners), Settings::default())
}

/// Fails the test when something takes too long.
pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future)
        .await
        .expect("took too long")
}

/// Waits until the pump keeps no thread.
pub async fn at_rest(pump: &Pump) {
    soon(async {
        while pump.counts() != (0, 0) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// How long this thread has been computing: unlike the clock on the wall, it does not run on while
/// other tests have the processor.
pub fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}
