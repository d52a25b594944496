//! To-dos: what they wait for, and how long a conversation waits for them.

use crate::common::*;
use agentserver::system::{SystemError, TodoComplete, TodoNudge, TodoRegistered, TodoUntil};
use agentserver::{CoreLimits, HandlerMetadata, HandlerResponse, Listener, Pump, Settings};
use std::time::Duration;

fn until(from_listener: &str) -> HandlerResponse {
    let asked = TodoUntil {
        wait_for: "Told".into(),
        from_listener: from_listener.into(),
        description: "wait for help".into(),
    };
    HandlerResponse::to("todo-until", asked)
}

/// Waits for `from`, and at the first nudge says what came of it.
fn watcher(from: &'static str) -> Listener {
    Listener::named("watcher")
        .agent(true)
        .peers(["todo-until", "todo-complete", "helper"])
        .on(move |_: Ask, _| async move {
            Ok(vec![
                HandlerResponse::to("helper", ask("help")),
                until(from),
            ])
        })
        .on(|_: Told, _| async { Ok(()) })
        .on(|nudge: TodoNudge, _: HandlerMetadata| async move {
            let id = nudge.id;
            Ok(vec![
                HandlerResponse::respond(told(format!("raised: {}", nudge.is_raised))),
                HandlerResponse::to("todo-complete", TodoComplete { id }),
            ])
        })
}

fn helper() -> Listener {
    Listener::named("helper").on(|_: Ask, _| async { Ok(HandlerResponse::respond(told("help"))) })
}

fn start(listeners: impl IntoIterator<Item = Listener>) -> Pump {
    let settings = Settings {
        core: CoreLimits {
            nudge: Duration::from_millis(10),
            ..CoreLimits::default()
        },
        ..Settings::default()
    };
    Pump::start(organism(listeners), settings)
}

#[tokio::test]
async fn a_to_do_keeps_its_conversation_from_resting_until_it_is_closed() {
    let pump = start([watcher("helper"), helper()]);
    let conversation = pump.open("console").unwrap();
    conversation.send("watcher", ask("x")).await.unwrap();
    assert!(!conversation.is_at_rest());
    let answer = soon(conversation.next()).await.unwrap();
    assert_eq!(answer.payload.read::<Told>().unwrap(), told("raised: true"));
    assert!(soon(conversation.next()).await.is_none());
    assert!(conversation.is_at_rest());
}

#[tokio::test]
async fn a_to_do_of_no_listener_waits_for_anybody_and_one_of_another_for_that_one() {
    for (from, raised) in [
        ("", "raised: true"),
        ("HELPER", "raised: true"),
        ("other", "raised: false"),
    ] {
        let pump = start([watcher(from), helper()]);
        let answer = soon(pump.request("console", "watcher", ask("x")))
            .await
            .unwrap();
        assert_eq!(
            answer.unwrap().payload.read::<Told>().unwrap(),
            told(raised),
            "{from}"
        );
    }
}

#[tokio::test]
async fn a_to_do_sees_what_waits_already_to_be_handled() {
    let (reached, held) = (std::sync::Arc::new(tokio::sync::Notify::new()), helper());
    let arrived = reached.clone();
    // The first answer of the helper is held until the second waits behind it.
    let watcher = Listener::named("watcher")
        .agent(true)
        .peers(["todo-until", "todo-complete", "helper", "late"])
        .on(|_: Ask, _| async {
            Ok(vec![
                HandlerResponse::to("helper", ask("help")),
                HandlerResponse::to("late", ask("help")),
            ])
        })
        .on(move |_: Told, metadata: HandlerMetadata| {
            let arrived = arrived.clone();
            async move {
                let is_first = metadata.from_id == "helper";
                if is_first {
                    arrived.notified().await;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Ok(is_first.then(|| until("late")))
            }
        })
        .on(|nudge: TodoNudge, _: HandlerMetadata| async move {
            let id = nudge.id;
            Ok(vec![
                HandlerResponse::respond(told(nudge.is_raised.to_string())),
                HandlerResponse::to("todo-complete", TodoComplete { id }),
            ])
        });
    let late = Listener::named("late").on(move |_: Ask, _| {
        let reached = reached.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            reached.notify_one();
            Ok(HandlerResponse::respond(told("late")))
        }
    });
    let pump = start([watcher, held, late]);
    let answer = soon(pump.request("console", "watcher", ask("x")))
        .await
        .unwrap();
    assert_eq!(
        answer.unwrap().payload.read::<Told>().unwrap(),
        told("true")
    );
}

#[tokio::test]
async fn a_registration_says_what_is_awaited() {
    let asker = Listener::named("asker")
        .agent(true)
        .peers(["todo-until", "todo-complete"])
        .on(|_: Ask, _| async { Ok(until("helper")) })
        .on(|registered: TodoRegistered, _| async move {
            let TodoRegistered {
                id,
                wait_for,
                from_listener,
                description,
            } = registered;
            let text = format!("{wait_for} from {from_listener}: {description}");
            Ok(vec![
                HandlerResponse::respond(told(text)),
                HandlerResponse::to("todo-complete", TodoComplete { id }),
            ])
        });
    let pump = start([asker]);
    let answer = soon(pump.request("console", "asker", ask("x")))
        .await
        .unwrap();
    let text = answer.unwrap().payload.read::<Told>().unwrap().text;
    assert_eq!(text, "Told from helper: wait for help");
}

#[tokio::test]
async fn a_new_to_do_at_each_reminder_is_refused_after_as_many_as_one_may_have() {
    let again = || until("helper");
    let restless =
        Listener::named("restless")
            .agent(true)
            .peers(["todo-until", "todo-complete"])
            .on(move |_: Ask, _| async move { Ok(again()) })
            .on(move |nudge: TodoNudge, _: HandlerMetadata| async move {
                let done = TodoComplete { id: nudge.id };
                Ok(vec![HandlerResponse::to("todo-complete", done), again()])
            })
            .on(|error: SystemError, _| async move {
                Ok(HandlerResponse::respond(told(error.message)))
            });
    let settings = Settings {
        core: CoreLimits {
            nudge: Duration::from_millis(2),
            nudges: 5,
            ..CoreLimits::default()
        },
        ..Settings::default()
    };
    let pump = Pump::start(organism([restless]), settings);
    let answer = soon(pump.request("console", "restless", ask("x"))).await;
    let text = answer
        .unwrap()
        .unwrap()
        .payload
        .read::<Told>()
        .unwrap()
        .text;
    assert!(text.contains("\"nudges\" of 5"), "{text}");
    at_rest(&pump).await;
}
