//! Handlers, answers, faults: what a caller sees.

use crate::common::*;
use agentserver::system::SystemError;
use agentserver::{HandlerMetadata, HandlerResponse, Listener, Pump, Result, Settings};
use futures_util::FutureExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

fn echo(name: &str) -> Listener {
    Listener::named(name).on(|ask: Ask, _: HandlerMetadata| async move {
        Ok(HandlerResponse::respond(told(ask.text)))
    })
}

/// Forwards what it is asked to `peer`, and gives the answer back.
fn relay(name: &str, peer: &'static str) -> Listener {
    Listener::named(name)
        .agent(true)
        .peers([peer])
        .on(move |ask: Ask, _| async move { Ok(HandlerResponse::to(peer, ask)) })
        .on(|answer: Told, _| async move { Ok(HandlerResponse::respond(answer)) })
}

async fn fault_of(pump: &Pump, to: &str) -> SystemError {
    let answer = soon(pump.request("console", to, ask("x")))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&*answer.from, "system");
    answer.payload.read().unwrap()
}

#[tokio::test]
async fn an_answer_comes_back_from_the_listener_that_gave_it() {
    let pump = pump([echo("echo")]);
    let answer = soon(pump.request("console", "ECHO", ask(" 007 & <so> ")))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&*answer.from, "echo");
    assert_eq!(answer.payload.read::<Told>().unwrap(), told(" 007 & <so> "));
    at_rest(&pump).await;
}

#[tokio::test]
async fn nothing_is_an_answer_too_and_ends_the_chain() {
    let pump = pump([Listener::named("sink").on(|_: Ask, _| async { Result::Ok(None) })]);
    assert!(
        soon(pump.request("console", "sink", ask("x")))
            .await
            .unwrap()
            .is_none()
    );
    at_rest(&pump).await;
}

#[tokio::test]
async fn a_panic_an_error_and_a_time_out_become_system_errors_for_the_caller() {
    let pump = pump([
        Listener::named("panics")
            .on(|_: Ask, _| async { if true { panic!("secret") } else { Ok(()) } }),
        Listener::named("early").on(|_: Ask, _| {
            if true {
                panic!("secret")
            } else {
                std::future::ready(Ok(()))
            }
        }),
        Listener::named("fails").on(|_: Ask, _| async { Result::<()>::Err("secret".into()) }),
        Listener::named("hangs")
            .timeout(Duration::from_millis(20))
            .on(|_: Ask, _| async { std::future::pending::<Result<()>>().await }),
    ]);
    for (name, code) in [
        ("panics", "handler"),
        ("early", "handler"),
        ("fails", "handler"),
        ("hangs", "timeout"),
    ] {
        let fault = fault_of(&pump, name).await;
        assert_eq!(fault.code, code, "{name}");
        assert!(!fault.message.contains("secret"));
    }
    at_rest(&pump).await;
}

#[tokio::test]
async fn a_handler_that_panics_while_it_is_dropped_is_answered_for() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("dropped");
            }
        }
    }
    let pump = pump([Listener::named("bomb")
        .timeout(Duration::from_millis(10))
        .on(|_: Ask, _| async {
            let _bomb = Bomb;
            std::future::pending::<Result<()>>().await
        })]);
    assert_eq!(fault_of(&pump, "bomb").await.code, "handler");
}

#[tokio::test]
async fn a_fault_climbs_past_those_who_have_no_ear_for_it() {
    let pump = pump([
        Listener::named("fails").on(|_: Ask, _| async { Result::<()>::Err("no".into()) }),
        relay("middle", "fails"),
        relay("top", "middle"),
    ]);
    assert_eq!(fault_of(&pump, "top").await.code, "handler");
    at_rest(&pump).await;
}

#[tokio::test]
async fn a_listener_that_hears_faults_can_go_on() {
    let pump = pump([
        Listener::named("fails").on(|_: Ask, _| async { Result::<()>::Err("no".into()) }),
        relay("top", "fails").on(|fault: SystemError, _| async move {
            Ok(HandlerResponse::respond(told(fault.code)))
        }),
    ]);
    let answer = soon(pump.request("console", "top", ask("x")))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(answer.payload.read::<Told>().unwrap(), told("handler"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_interleaved_conversations_on_one_path_get_their_own_answers() {
    let settings = Settings {
        admission: 10_000,
        ..Settings::default()
    };
    let pump = Pump::start(
        organism([relay("a.b", "c"), relay("c", "d"), echo("d")]),
        settings,
    );
    let mut asked = Vec::new();
    for n in 0..10_000 {
        let conversation = pump.open("console").unwrap();
        conversation.send("a.b", ask(n.to_string())).await.unwrap();
        asked.push((n, conversation));
    }
    for (n, conversation) in asked {
        let answer = soon(conversation.next()).await.unwrap();
        assert_eq!(answer.payload.read::<Told>().unwrap(), told(n.to_string()));
    }
    at_rest(&pump).await;
}

#[tokio::test]
async fn several_payloads_in_one_answer_are_several_messages() {
    let heard = Arc::new(AtomicUsize::new(0));
    let count = heard.clone();
    let pump = pump([
        Listener::named("log").on(move |_: Told, _| {
            count.fetch_add(1, Ordering::SeqCst);
            async { Result::Ok(None) }
        }),
        Listener::named("both")
            .peers(["log"])
            .on(|ask: Ask, _| async move {
                Ok(vec![
                    HandlerResponse::to("log", told("a note")),
                    HandlerResponse::respond(told(ask.text)),
                ])
            }),
    ]);
    let answer = soon(pump.request("console", "both", ask("x")))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(answer.payload.read::<Told>().unwrap(), told("x"));
    at_rest(&pump).await;
    assert_eq!(heard.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_broadcast_reaches_its_listeners_side_by_side() {
    let together = Arc::new(tokio::sync::Barrier::new(3));
    let member = |name: &str| {
        let together = together.clone();
        Listener::named(name).broadcast(true).on(move |_: Told, _| {
            let together = together.clone();
            async move {
                // Passes only when all three run at one time.
                together.wait().await;
                Ok(HandlerResponse::respond(ask("heard")))
            }
        })
    };
    let answers = Arc::new(AtomicUsize::new(0));
    let count = answers.clone();
    let pump = pump([
        member("one"),
        member("two"),
        member("three"),
        Listener::named("asker")
            .agent(true)
            .peers(["one", "two", "three"])
            .on(move |_: Ask, metadata: HandlerMetadata| {
                let is_answer = metadata.from_id != "console";
                let all = is_answer && count.fetch_add(1, Ordering::SeqCst) == 2;
                async move {
                    Ok(match (is_answer, all) {
                        (false, _) => Some(HandlerResponse::broadcast(told("hello"))),
                        (true, true) => Some(HandlerResponse::respond(told("three"))),
                        (true, false) => None,
                    })
                }
            }),
    ]);
    let answer = soon(pump.request("console", "asker", ask("x")))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(answer.payload.read::<Told>().unwrap(), told("three"));
}

#[tokio::test]
async fn a_self_call_does_not_trap_the_answer() {
    let pump = pump([Listener::named("looper").agent(true).peers(["looper"]).on(
        |ask: Ask, metadata: HandlerMetadata| async move {
            assert_eq!(metadata.own_name.as_deref(), Some("looper"));
            assert_eq!(metadata.is_self_call, metadata.from_id == "looper");
            let left: u32 = ask.text.parse()?;
            Ok(match left {
                0 => HandlerResponse::respond(told("done")),
                _ => HandlerResponse::to("looper", crate::common::ask((left - 1).to_string())),
            })
        },
    )]);
    let answer = soon(pump.request("console", "looper", ask("100")))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&*answer.from, "looper");
    assert_eq!(answer.payload.read::<Told>().unwrap(), told("done"));
    at_rest(&pump).await;
}

#[tokio::test]
async fn a_peer_keeps_its_thread_until_its_caller_answers_and_is_told_of_the_end() {
    let ended = Arc::new(AtomicUsize::new(0));
    let count = ended.clone();
    let pump = pump([
        Listener::named("calculator")
            .on(|_: Ask, metadata: HandlerMetadata| async move {
                Ok(HandlerResponse::respond(told(
                    metadata.thread_id.to_string(),
                )))
            })
            .on_thread_end(move |_| {
                count.fetch_add(1, Ordering::SeqCst);
            }),
        {
            let first = Arc::new(std::sync::Mutex::new(None));
            Listener::named("agent")
                .agent(true)
                .peers(["calculator"])
                .on(|ask: Ask, _| async move { Ok(HandlerResponse::to("calculator", ask)) })
                .on(move |answer: Told, _| {
                    let known = first.lock().unwrap().replace(answer.text.clone());
                    async move {
                        Ok(match known {
                            None => HandlerResponse::to("calculator", ask("again")),
                            Some(known) => {
                                HandlerResponse::respond(told((known == answer.text).to_string()))
                            }
                        })
                    }
                })
        },
    ]);
    let conversation = pump.open("console").unwrap();
    conversation.send("agent", ask("x")).await.unwrap();
    let answer = soon(conversation.next()).await.unwrap();
    assert_eq!(answer.payload.read::<Told>().unwrap(), told("true"));
    soon(async {
        while ended.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(
        pump.counts().0,
        2,
        "console and agent stay while the conversation is open"
    );
}

#[tokio::test]
async fn a_full_pump_makes_those_outside_wait() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let slow = Listener::named("slow").on(move |ask: Ask, _| {
        let gate = opened.clone();
        async move {
            gate.acquire().await?.forget();
            Ok(HandlerResponse::respond(told(ask.text)))
        }
    });
    let pump = Pump::start(
        organism([slow]),
        Settings {
            admission: 2,
            ..Settings::default()
        },
    );
    let mut held = Vec::new();
    for _ in 0..2 {
        let conversation = pump.open("console").unwrap();
        conversation.send("slow", ask("x")).await.unwrap();
        held.push(conversation);
    }
    let third = pump.open("console").unwrap();
    {
        let waiting = third.send("slow", ask("third"));
        tokio::pin!(waiting);
        assert!((&mut waiting).now_or_never().is_none());
        gate.add_permits(3);
        soon(waiting).await.unwrap();
    }
    assert!(soon(third.next()).await.is_some());
}

#[tokio::test]
async fn a_listener_runs_no_more_at_once_than_it_may() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak) = (running.clone(), most.clone());
    let pump = pump([Listener::named("two")
        .concurrency(2)
        .on(move |ask: Ask, _| {
            let (now, peak) = (now.clone(), peak.clone());
            async move {
                peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(HandlerResponse::respond(told(ask.text)))
            }
        })]);
    let requests = (0..50).map(|n| pump.request("console", "two", ask(n.to_string())));
    for answer in soon(futures_util::future::join_all(requests)).await {
        assert!(answer.unwrap().is_some());
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn whoever_is_sent_more_than_there_is_room_for_is_cut_off_and_told() {
    let chatty = Listener::named("chatty").on(|ask: Ask, _| async move {
        let answers = (0..10).map(|_| HandlerResponse::respond(told(ask.text.as_str())));
        Ok(answers.collect::<Vec<_>>())
    });
    let settings = Settings {
        mailbox: 4,
        ..Settings::default()
    };
    let pump = Pump::start(organism([chatty]), settings);
    let conversation = pump.open("console").unwrap();
    conversation.send("chatty", ask("x")).await.unwrap();
    let mut heard = Vec::new();
    while let Some(message) = soon(conversation.next()).await {
        heard.push(message);
    }
    assert_eq!(heard.len(), 5);
    let last = heard.pop().unwrap().payload.read::<SystemError>().unwrap();
    assert_eq!(last.code, "limit");
    assert!(last.message.contains("Read while you send"), "{last:?}");
    assert!(conversation.send("chatty", ask("y")).await.is_err());
    drop(conversation);
    at_rest(&pump).await;
}

#[tokio::test]
async fn draining_finishes_what_is_under_way_and_takes_nothing_more() {
    let pump = pump([relay("a", "b"), echo("b")]);
    let conversation = pump.open("console").unwrap();
    conversation.send("a", ask("x")).await.unwrap();
    soon(pump.drain()).await.unwrap();
    assert!(soon(conversation.next()).await.is_some());
    assert!(matches!(
        conversation.send("a", ask("y")).await,
        Err(agentserver::SendError::Closed)
    ));
}

#[tokio::test]
async fn a_busy_sender_does_not_keep_the_others_waiting() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = order.clone();
    let tool =
        Listener::named("tool")
            .concurrency(1)
            .on(move |_: Ask, metadata: HandlerMetadata| {
                seen.lock().unwrap().push(metadata.from_id);
                let gate = opened.clone();
                async move {
                    gate.acquire().await?.forget();
                    Result::Ok(None)
                }
            });
    let gateways = ["busy", "quiet"].map(|name| agentserver::Gateway::named(name, ["tool"]));
    let pump = Pump::start(
        agentserver::Organism::new("test", [tool], gateways).unwrap(),
        Settings::default(),
    );
    let busy = pump.open("busy").unwrap();
    for _ in 0..50 {
        busy.send("tool", ask("x")).await.unwrap();
    }
    let quiet = pump.open("quiet").unwrap();
    quiet.send("tool", ask("x")).await.unwrap();
    gate.add_permits(51);
    soon(pump.drain()).await.unwrap();
    let place = order
        .lock()
        .unwrap()
        .iter()
        .position(|from| from == "quiet")
        .unwrap();
    assert!(place <= 2, "was handled as number {place}");
}
