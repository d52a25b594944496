//! Nothing vanishes: back-pressure, turns, rest, order, cancelled work.

use crate::common::*;
use agentserver::system::SystemError;
use agentserver::{
    CoreLimits, Gateway, HandlerMetadata, HandlerResponse, Listener, Organism, Pump, Result,
    Settings,
};
use futures_util::FutureExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;

fn echo(name: &str) -> Listener {
    Listener::named(name)
        .on(|ask: Ask, _| async move { Ok(HandlerResponse::respond(told(ask.text))) })
}

fn relay(name: &str, peer: &'static str) -> Listener {
    Listener::named(name)
        .agent(true)
        .peers([peer])
        .on(move |ask: Ask, _| async move { Ok(HandlerResponse::to(peer, ask)) })
        .on(|answer: Told, _| async move { Ok(HandlerResponse::respond(answer)) })
}

/// Sends so many messages while it reads, and gives the answers in their order.
async fn converse(pump: &Pump, to: &str, count: usize) -> Vec<String> {
    let conversation = pump.open("console").unwrap();
    let mut answers = Vec::new();
    for n in 0..count {
        let mut sent = false;
        while !sent {
            // Whoever sends much must read meanwhile.
            match conversation.send(to, ask(n.to_string())).now_or_never() {
                Some(result) => {
                    result.unwrap();
                    sent = true;
                }
                None => {
                    let answer = soon(conversation.next()).await.unwrap();
                    answers.push(answer.payload.read::<Told>().unwrap().text);
                }
            }
        }
    }
    while let Some(answer) = soon(conversation.next()).await {
        answers.push(answer.payload.read::<Told>().unwrap().text);
    }
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_messages_in_one_conversation_are_answered_in_order() {
    let pump = pump([echo("echo"), relay("agent", "echo")]);
    for (to, count) in [("echo", 3000), ("agent", 1000)] {
        let expected: Vec<_> = (0..count).map(|n| n.to_string()).collect();
        assert_eq!(converse(&pump, to, count).await, expected, "{to}");
    }
    at_rest(&pump).await;
}

#[tokio::test]
async fn sending_waits_while_a_conversation_has_no_room() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let slow = Listener::named("slow").on(move |ask: Ask, _| {
        let gate = held.clone();
        async move {
            gate.acquire().await?.forget();
            Ok(HandlerResponse::respond(told(ask.text)))
        }
    });
    let settings = Settings {
        core: CoreLimits {
            in_flight: 2,
            ..CoreLimits::default()
        },
        ..Settings::default()
    };
    let pump = Pump::start(organism([slow]), settings);
    let conversation = pump.open("console").unwrap();
    for text in ["one", "two"] {
        conversation.send("slow", ask(text)).await.unwrap();
    }
    gate.add_permits(1);
    {
        let third = conversation.send("slow", ask("three"));
        assert!(third.now_or_never().is_none());
    }
    // An answer that is not read takes room as well.
    assert_eq!(
        soon(conversation.next())
            .await
            .unwrap()
            .payload
            .read::<Told>()
            .unwrap(),
        told("one")
    );
    soon(conversation.send("slow", ask("three"))).await.unwrap();
    gate.add_permits(2);
    for text in ["two", "three"] {
        let answer = soon(conversation.next()).await.unwrap();
        assert_eq!(answer.payload.read::<Told>().unwrap(), told(text));
    }
    assert!(soon(conversation.next()).await.is_none());
}

#[tokio::test]
async fn a_listener_that_sends_more_than_there_is_room_for_is_told() {
    let fan =
        Listener::named("fan")
            .agent(true)
            .peers(["echo"])
            .on(|_: Ask, _| async {
                let many = (0..40).map(|n| HandlerResponse::to("echo", ask(n.to_string())));
                Ok(many.collect::<Vec<_>>())
            })
            .on(|_: Told, _| async { Result::Ok(None) })
            .on(|fault: SystemError, _| async move {
                Ok(HandlerResponse::respond(told(fault.message)))
            });
    let settings = Settings {
        core: CoreLimits {
            backlog: 10,
            ..CoreLimits::default()
        },
        ..Settings::default()
    };
    let pump = Pump::start(organism([fan, echo("echo")]), settings);
    let answer = soon(pump.request("console", "fan", ask("x")))
        .await
        .unwrap();
    let answer = answer.unwrap().payload.read::<Told>().unwrap().text;
    assert!(answer.contains("The limit \"backlog\" of 10"), "{answer}");
    at_rest(&pump).await;
}

#[tokio::test]
async fn each_turn_gets_its_own_answer() {
    let sink = Listener::named("sink").on(|_: Ask, _| async { Result::Ok(None) });
    let pump = pump([echo("echo"), sink]);
    let conversation = pump.open("console").unwrap();
    assert!(
        soon(conversation.next()).await.is_none(),
        "nothing was sent"
    );
    for n in 0..100 {
        conversation.send("echo", ask(n.to_string())).await.unwrap();
        let answer = soon(conversation.next()).await.unwrap();
        assert_eq!(answer.payload.read::<Told>().unwrap(), told(n.to_string()));
        if n % 3 == 0 {
            assert!(soon(conversation.next()).await.is_none());
            conversation.send("sink", ask("x")).await.unwrap();
            assert!(soon(conversation.next()).await.is_none());
        }
    }
    assert!(conversation.is_at_rest());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_is_given_one_message_at_a_time_unless_it_wants_more() {
    for is_concurrent in [false, true] {
        let most = Arc::new(AtomicUsize::new(0));
        let (peak, running) = (most.clone(), Arc::new(AtomicUsize::new(0)));
        let tool = Listener::named("tool")
            .concurrent(is_concurrent)
            .on(move |ask: Ask, _| {
                let (peak, running) = (peak.clone(), running.clone());
                async move {
                    peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    Ok(HandlerResponse::respond(told(ask.text)))
                }
            });
        let pump = pump([tool]);
        let mut answers = converse(&pump, "tool", 50).await;
        answers.sort_by_key(|text| text.parse::<u32>().unwrap());
        let expected: Vec<_> = (0..50).map(|n| n.to_string()).collect();
        assert_eq!(answers, expected);
        assert_eq!(most.load(Ordering::SeqCst) > 1, is_concurrent);
        at_rest(&pump).await;
    }
}

#[tokio::test]
async fn work_that_nobody_waits_for_is_cancelled() {
    struct Dropped(Arc<AtomicBool>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let (learnt, dropped) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (polite, stubborn) = (learnt.clone(), dropped.clone());
    let begun = Arc::new(Semaphore::new(0));
    let (one, two) = (begun.clone(), begun.clone());
    let caller = Listener::named("asker")
        .agent(true)
        .peers(["polite", "stubborn", "echo"])
        .on(|ask: Ask, _| async move {
            Ok(vec![
                HandlerResponse::to("polite", ask.clone()),
                HandlerResponse::to("stubborn", ask.clone()),
                HandlerResponse::to("echo", ask),
            ])
        })
        .on(move |answer: Told, _| {
            let begun = begun.clone();
            async move {
                begun.acquire_many(2).await?.forget();
                Ok(HandlerResponse::respond(answer))
            }
        });
    let pump = pump([
        caller,
        echo("echo"),
        Listener::named("polite").on(move |_: Ask, metadata: HandlerMetadata| {
            let (learnt, begun) = (polite.clone(), one.clone());
            async move {
                begun.add_permits(1);
                metadata.cancellation.cancelled().await;
                learnt.store(true, Ordering::SeqCst);
                Result::Ok(None)
            }
        }),
        Listener::named("stubborn").on(move |_: Ask, _| {
            let (dropped, begun) = (Dropped(stubborn.clone()), two.clone());
            async move {
                begun.add_permits(1);
                let _dropped = dropped;
                std::future::pending::<Result>().await
            }
        }),
    ]);
    let answer = soon(pump.request("console", "asker", ask("x")))
        .await
        .unwrap();
    assert_eq!(answer.unwrap().payload.read::<Told>().unwrap(), told("x"));
    at_rest(&pump).await;
    assert!(learnt.load(Ordering::SeqCst) && dropped.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_quiet_gateway_is_let_in_before_a_busy_one_again() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let (seen, gate) = (order.clone(), Arc::new(Semaphore::new(0)));
    let held = gate.clone();
    let tool = Listener::named("tool").on(move |_: Ask, metadata: HandlerMetadata| {
        seen.lock().unwrap().push(metadata.from_id);
        let gate = held.clone();
        async move {
            gate.acquire().await?.forget();
            Result::Ok(None)
        }
    });
    let gateways = ["busy", "quiet"].map(|name| Gateway::named(name, ["tool"]));
    let settings = Settings {
        admission: 1,
        ..Settings::default()
    };
    let pump = Pump::start(Organism::new("test", [tool], gateways).unwrap(), settings);
    let mut sends = Vec::new();
    for gateway in ["busy", "busy", "busy", "busy", "quiet"] {
        let conversation = pump.open(gateway).unwrap();
        let mut send = Box::pin(async move {
            conversation.send("tool", ask("x")).await.unwrap();
            conversation
        });
        sends.push(match (&mut send).now_or_never() {
            Some(conversation) => futures_util::future::ready(conversation).boxed(),
            None => send.boxed(),
        });
    }
    gate.add_permits(5);
    soon(futures_util::future::join_all(sends)).await;
    soon(pump.drain()).await.unwrap();
    let order = order.lock().unwrap();
    assert_eq!(
        order.iter().position(|from| from == "quiet"),
        Some(2),
        "{order:?}"
    );
}

#[tokio::test]
async fn conversations_are_bounded() {
    let settings = Settings {
        conversations: 2,
        ..Settings::default()
    };
    let pump = Pump::start(organism([echo("echo")]), settings);
    let (one, _two) = (pump.open("console").unwrap(), pump.open("console").unwrap());
    assert!(matches!(
        pump.open("console"),
        Err(agentserver::SendError::Full(2))
    ));
    drop(one);
    assert!(pump.open("console").is_ok());
}
