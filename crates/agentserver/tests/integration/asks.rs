//! Questions from inside a handler, and code that blocks.

use crate::common::*;
use agentserver::system::SystemError;
use agentserver::{AskError, HandlerMetadata, HandlerResponse, Listener, Pump, Result, Settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn echo(name: &str) -> Listener {
    Listener::named(name)
        .on(|ask: Ask, _| async move { Ok(HandlerResponse::respond(told(ask.text))) })
}

async fn text_of(pump: &Pump, to: &str, text: &str) -> String {
    let answer = soon(pump.request("console", to, ask(text))).await.unwrap();
    answer.unwrap().payload.read::<Told>().unwrap().text
}

#[tokio::test]
async fn a_handler_asks_a_peer_and_goes_on_with_the_answer() {
    let asker = Listener::named("asker").agent(true).peers(["echo"]).on(
        |_: Ask, metadata: HandlerMetadata| async move {
            let one = metadata.ask("echo", ask("one")).await?.read::<Told>()?;
            let two = metadata.ask("echo", ask("two")).await?.read::<Told>()?;
            Ok(HandlerResponse::respond(told(one.text + &two.text)))
        },
    );
    let pump = pump([asker, echo("echo")]);
    assert_eq!(text_of(&pump, "asker", "x").await, "onetwo");
    at_rest(&pump).await;
}

#[tokio::test]
async fn a_question_that_has_no_answer_says_why() {
    let asker = Listener::named("asker")
        .agent(true)
        .peers(["fails", "sink", "slow"])
        .on(|question: Ask, metadata: HandlerMetadata| async move {
            let asked = metadata.ask(&question.text, ask("x"));
            let asked = tokio::time::timeout(Duration::from_millis(50), asked).await;
            let text = match asked {
                Ok(Err(AskError::Fault(fault))) => fault.code,
                Ok(Err(error)) => error.to_string(),
                Ok(Ok(answer)) => answer.xml().to_owned(),
                Err(_) => "late".to_owned(),
            };
            Ok(HandlerResponse::respond(told(text)))
        });
    let pump = pump([
        asker,
        Listener::named("fails").on(|_: Ask, _| async { Result::<()>::Err("no".into()) }),
        Listener::named("sink").on(|_: Ask, _| async { Ok(()) }),
        Listener::named("slow").on(|_: Ask, _| async { std::future::pending::<Result>().await }),
    ]);
    for (peer, text) in [
        ("fails", "handler"),
        ("sink", "no answer was given"),
        ("slow", "late"),
        ("nobody", "routing"),
    ] {
        assert_eq!(text_of(&pump, "asker", peer).await, text, "{peer}");
    }
    at_rest(&pump).await;
}

#[tokio::test]
async fn a_handler_that_waits_for_an_answer_keeps_no_place_of_its_listeners() {
    // Each asks the next through a listener that runs one at a time.
    let deep = Listener::named("deep")
        .concurrency(1)
        .agent(true)
        .peers(["hop"])
        .on(|question: Ask, metadata: HandlerMetadata| async move {
            let left: u32 = question.text.parse()?;
            let text = match left {
                0 => "bottom".to_owned(),
                _ => {
                    let asked = metadata.ask("hop", ask((left - 1).to_string())).await?;
                    asked.read::<Told>()?.text
                }
            };
            Ok(HandlerResponse::respond(told(text)))
        });
    let hop = Listener::named("hop")
        .concurrency(1)
        .agent(true)
        .peers(["deep"])
        .on(|question: Ask, metadata: HandlerMetadata| async move {
            let answer = metadata.ask("deep", question).await?.read::<Told>()?;
            Ok(HandlerResponse::respond(answer))
        });
    let pump = pump([deep, hop]);
    for _ in 0..3 {
        assert_eq!(text_of(&pump, "deep", "5").await, "bottom");
    }
    at_rest(&pump).await;
}

#[tokio::test]
async fn a_gathering_waits_for_all_or_for_enough_or_for_its_deadline() {
    let running = Arc::new(AtomicUsize::new(0));
    let count = running.clone();
    let worker = Listener::named("worker").on(move |question: Ask, metadata: HandlerMetadata| {
        let running = count.clone();
        async move {
            running.fetch_add(1, Ordering::SeqCst);
            if question.text == "never" {
                metadata.cancellation.cancelled().await;
            }
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(HandlerResponse::respond(told(question.text)))
        }
    });
    let boss = Listener::named("boss").agent(true).peers(["worker"]).on(
        |question: Ask, metadata: HandlerMetadata| async move {
            let (texts, enough): (&[&str], _) = match question.text.as_str() {
                "all" => (&["a", "b", "c"], 3),
                "first" => (&["never", "b", "never"], 1),
                _ => (&["a", "never"], 2),
            };
            let asked = texts.iter().map(|text| ("worker".to_owned(), ask(*text)));
            let wait = match question.text.as_str() {
                "late" => Duration::from_millis(50),
                _ => Duration::from_secs(20),
            };
            let answers = metadata.gather(asked, enough, wait).await;
            let heard = answers.into_iter().map(|answer| match answer {
                Ok(answer) => answer.read::<Told>().unwrap().text,
                Err(error) => error.to_string(),
            });
            Ok(HandlerResponse::respond(told(
                heard.collect::<Vec<_>>().join("|"),
            )))
        },
    );
    let pump = pump([boss, worker]);
    let late = "no answer came in time";
    assert_eq!(text_of(&pump, "boss", "all").await, "a|b|c");
    assert_eq!(
        text_of(&pump, "boss", "first").await,
        format!("{late}|b|{late}")
    );
    assert_eq!(text_of(&pump, "boss", "late").await, format!("a|{late}"));
    at_rest(&pump).await;
    assert_eq!(
        running.load(Ordering::SeqCst),
        0,
        "what was not waited for was cancelled"
    );
}

#[tokio::test]
async fn code_that_blocks_freezes_nobody_and_its_time_out_works() {
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let blocking = Listener::named("blocking")
        .timeout(Duration::from_millis(50))
        .on_blocking(move |_: Ask, _| {
            let _ = held.lock().map(|held| held.recv());
            Ok(())
        });
    let pump = Pump::start(organism([blocking, echo("echo")]), Settings::default());
    let blocked = pump.request("console", "blocking", ask("x"));
    let (blocked, echoed) = tokio::join!(soon(blocked), text_of(&pump, "echo", "still here"));
    assert_eq!(echoed, "still here");
    let fault: SystemError = blocked.unwrap().unwrap().payload.read().unwrap();
    assert_eq!(fault.code, "timeout");
    release.send(()).unwrap();
}
