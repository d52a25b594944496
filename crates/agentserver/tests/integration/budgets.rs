//! Budgets are law: whatever listeners do, work ends, and whoever asked is told.

use crate::common::*;
use agentserver::system::SystemError;
use agentserver::{
    Budget, CoreLimits, HandlerMetadata, HandlerResponse, Listener, Pump, Result, Settings,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A model that always has something to say to its peer, and never answers.
fn stubborn(name: &str, peer: &'static str, calls: &Arc<AtomicUsize>) -> Listener {
    let talk = {
        let calls = calls.clone();
        move |metadata: HandlerMetadata| {
            let calls = calls.clone();
            async move {
                metadata.admit_model_call().await?;
                calls.fetch_add(1, Ordering::SeqCst);
                metadata.charge(100, 10);
                Ok(HandlerResponse::to(peer, ask("no, you are wrong")))
            }
        }
    };
    let again = talk.clone();
    Listener::named(name)
        .agent(true)
        .peers([peer])
        .on(move |_: Ask, metadata| talk(metadata))
        .on(move |_: SystemError, metadata| again(metadata))
}

fn with_request(budget: Budget) -> Settings {
    Settings {
        core: CoreLimits {
            request: budget,
            ..CoreLimits::default()
        },
        ..Settings::default()
    }
}

async fn told_of(pump: &Pump, to: &str) -> SystemError {
    let answer = soon(pump.request("console", to, ask("x"))).await.unwrap();
    let told: SystemError = answer.unwrap().payload.read().unwrap();
    assert_eq!(told.code, "limit", "{told:?}");
    told
}

#[tokio::test]
async fn two_agents_that_never_agree_end_after_tens_of_calls() {
    let calls = Arc::new(AtomicUsize::new(0));
    let agents = [
        stubborn("one", "two", &calls),
        stubborn("two", "one", &calls),
    ];
    let pump = Pump::start(organism(agents), Settings::default());
    let told = told_of(&pump, "one").await;
    assert!(
        told.message.contains("budget of 50 model calls"),
        "{told:?}"
    );
    assert_eq!(calls.load(Ordering::SeqCst), 50);
    assert_eq!(pump.failures(), 1);
    at_rest(&pump).await;
}

#[tokio::test]
async fn tokens_and_money_are_counted_over_the_whole_chain() {
    let tokens = Budget {
        tokens: Some(1000),
        ..Budget::default()
    };
    let money = Budget {
        money: Some(50),
        ..Budget::default()
    };
    for (budget, most, words) in [(tokens, 10, "1000 tokens"), (money, 5, "0.00005 of money")] {
        let calls = Arc::new(AtomicUsize::new(0));
        let agents = [
            stubborn("one", "two", &calls),
            stubborn("two", "one", &calls),
        ];
        let pump = Pump::start(organism(agents), with_request(budget));
        let told = told_of(&pump, "one").await;
        assert!(told.message.contains(words), "{told:?}");
        assert_eq!(calls.load(Ordering::SeqCst), most);
        at_rest(&pump).await;
    }
}

#[tokio::test]
async fn a_listeners_budget_ends_its_own_work_and_its_caller_goes_on() {
    let calls = Arc::new(AtomicUsize::new(0));
    let three = Budget {
        model_calls: Some(3),
        ..Budget::default()
    };
    let boss =
        Listener::named("boss")
            .agent(true)
            .peers(["one"])
            .on(|ask: Ask, _| async move { Ok(HandlerResponse::to("one", ask)) })
            .on(|fault: SystemError, _| async move {
                Ok(HandlerResponse::respond(told(fault.message)))
            });
    let agents = [
        boss,
        stubborn("one", "two", &calls).budget(three),
        stubborn("two", "one", &calls),
    ];
    let pump = Pump::start(organism(agents), Settings::default());
    for turn in 1..=2 {
        let answer = soon(pump.request("console", "boss", ask("x")))
            .await
            .unwrap();
        let told = answer.unwrap().payload.read::<Told>().unwrap().text;
        assert!(told.contains("budget of 3 model calls"), "{told}");
        assert_eq!(
            calls.load(Ordering::SeqCst),
            3 * turn,
            "each call has its own"
        );
    }
    at_rest(&pump).await;
}

#[tokio::test]
async fn hops_and_time_end_work_that_costs_nothing() {
    let ping = |name: &str, peer: &'static str| {
        Listener::named(name)
            .agent(true)
            .peers([peer])
            .on(move |ask: Ask, _| async move { Ok(HandlerResponse::to(peer, ask)) })
    };
    let hops = Budget {
        hops: Some(20),
        ..Budget::default()
    };
    let pump = Pump::start(
        organism([ping("one", "two"), ping("two", "one")]),
        with_request(hops),
    );
    let told = told_of(&pump, "one").await;
    assert!(
        told.message.contains("20 messages one after the other"),
        "{told:?}"
    );
    at_rest(&pump).await;

    let time = Budget {
        time: Some(Duration::from_millis(50)),
        ..Budget::default()
    };
    let slow =
        Listener::named("slow").on(|_: Ask, _| async { std::future::pending::<Result>().await });
    let pump = Pump::start(organism([slow]), with_request(time));
    let told = told_of(&pump, "slow").await;
    assert!(told.message.contains("0.05 seconds"), "{told:?}");
    at_rest(&pump).await;
}

#[tokio::test]
async fn a_conversation_that_used_up_its_budget_takes_nothing_more() {
    let echo = Listener::named("echo")
        .on(|ask: Ask, _| async move { Ok(HandlerResponse::respond(told(ask.text))) });
    let settings = Settings {
        core: CoreLimits {
            conversation: Budget {
                messages: Some(3),
                ..Budget::default()
            },
            ..CoreLimits::default()
        },
        ..Settings::default()
    };
    let pump = Pump::start(organism([echo]), settings);
    let conversation = pump.open("console").unwrap();
    for text in ["one", "two", "three"] {
        conversation.send("echo", ask(text)).await.unwrap();
        let answer = soon(conversation.next()).await.unwrap();
        assert_eq!(answer.payload.read::<Told>().unwrap(), told(text));
    }
    conversation.send("echo", ask("four")).await.unwrap();
    let told: SystemError = soon(conversation.next())
        .await
        .unwrap()
        .payload
        .read()
        .unwrap();
    assert!(
        told.message
            .contains("This conversation has used up its budget of 3 messages")
    );
    let refused = conversation.send("echo", ask("five")).await.unwrap_err();
    assert!(refused.to_string().contains("Begin a new one"), "{refused}");
}

#[tokio::test]
async fn calls_that_time_ends_again_and_again_use_up_the_hops_of_the_request() {
    let boss = Listener::named("boss")
        .agent(true)
        .peers(["slow"])
        .on(|ask: Ask, _| async move { Ok(HandlerResponse::to("slow", ask)) })
        .on(|_: SystemError, _| async { Ok(HandlerResponse::to("slow", ask("again"))) });
    let slow = Listener::named("slow")
        .budget(Budget {
            time: Some(Duration::from_millis(2)),
            ..Budget::default()
        })
        .on(|_: Ask, _| async { std::future::pending::<Result>().await });
    let hops = Budget {
        hops: Some(20),
        ..Budget::default()
    };
    let pump = Pump::start(organism([boss, slow]), with_request(hops));
    let told = told_of(&pump, "boss").await;
    let words = "20 messages one after the other";
    assert!(told.message.contains(words), "{told:?}");
    at_rest(&pump).await;
}
