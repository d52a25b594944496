//! What senders are told: enough to do better, and nothing of others.

use crate::common::*;
use agentserver::system::{Huh, SystemError};
use agentserver::{
    Gateway, HandlerError, HandlerResponse, Listener, Organism, Payload, Pump, Settings,
};

#[derive(Payload, Debug)]
struct Pay {
    sum: i64,
    to: String,
    note: Option<String>,
}

fn bank() -> Listener {
    Listener::named("bank").on(|pay: Pay, _| async move {
        let note = pay.note.unwrap_or_default();
        Ok(HandlerResponse::respond(told(format!(
            "{} to {}{note}",
            pay.sum, pay.to
        ))))
    })
}

/// What a model reads when it writes this.
async fn read_for(text: &'static str) -> String {
    let model =
        Listener::named("model")
            .agent(true)
            .peers(["bank"])
            .on(move |_: Ask, _| async move { Ok(text.as_bytes().to_vec()) })
            .on(|answer: Told, _| async move { Ok(HandlerResponse::respond(answer)) })
            .on(|huh: Huh, _| async move { Ok(HandlerResponse::respond(told(huh.error))) })
            .on(|fault: SystemError, _| async move {
                Ok(HandlerResponse::respond(told(fault.message)))
            });
    let vault = Listener::named("vault").on(|_: Secret, _| async { Ok(()) });
    let gateway = Gateway::named("console", ["model"]);
    let organism = Organism::new("test", [model, bank(), vault], [gateway]).unwrap();
    let pump = Pump::start(organism, Settings::default());
    let answer = soon(pump.request("console", "model", ask("x")))
        .await
        .unwrap();
    answer.unwrap().payload.read::<Told>().unwrap().text
}

#[derive(Payload, Debug)]
struct Secret {
    combination: String,
}

#[tokio::test]
async fn a_payload_that_does_not_fit_is_told_which_field_and_what_was_expected() {
    for (text, words) in [
        (
            "<Pay><sum>ten</sum><to>a</to></Pay>",
            "<sum> holds \"ten\"; expected a whole number.",
        ),
        (
            "<Pay><to>a</to></Pay>",
            "<Pay> lacks the field <sum> (whole number).",
        ),
        (
            "<Pay><sum>1</sum><to>a</to><iban>x</iban></Pay>",
            "<Pay> has no field <iban>. Its fields, in order: sum (whole number), to (text), note (text, optional).",
        ),
        (
            "<Pay><to>a</to><sum>1</sum></Pay>",
            "The fields of <Pay> are in the wrong order.",
        ),
        (
            "<Pay><sum>1</sum><sum>2</sum><to>a</to></Pay>",
            "<Pay> has <sum> more than once.",
        ),
        (
            "<Pay><sum>1</sum><to><b>a</b></to></Pay>",
            "<to> holds elements; expected text alone.",
        ),
    ] {
        let read = read_for(text).await;
        assert!(read.contains(words), "{text}: {read}");
    }
}

#[tokio::test]
async fn a_wrong_target_or_type_is_told_the_senders_own_peers_and_nobody_elses() {
    let to_nobody =
        "<message><meta><to>nobody</to></meta><Pay><sum>1</sum><to>a</to></Pay></message>";
    let to_vault =
        "<message><meta><to>vault</to></meta><Pay><sum>1</sum><to>a</to></Pay></message>";
    assert_eq!(read_for(to_nobody).await, read_for(to_vault).await);
    assert!(
        read_for(to_vault)
            .await
            .ends_with("You may send to: bank (Pay).")
    );

    let unknown = "<message><meta><to>bank</to></meta><Nothing/></message>";
    let theirs = "<message><meta><to>bank</to></meta><Secret><number>1</number></Secret></message>";
    for (text, name) in [(unknown, "Nothing"), (theirs, "Secret")] {
        let read = read_for(text).await;
        let words =
            format!("<{name}> is not a payload that goes there. You may send to: bank (Pay).");
        assert!(read.ends_with(&words), "{read}");
    }
}

#[tokio::test]
async fn a_person_is_told_what_is_wrong_too() {
    let pump = pump([bank()]);
    let conversation = pump.open("console").unwrap();
    for (text, words) in [
        (
            "<Pay><sum>x</sum><to>a</to></Pay>",
            "&lt;sum&gt; holds \"x\"",
        ),
        ("<Pay><sum>1</sum>", "not well-formed"),
        ("<Nobody/>", "You may send to: bank (Pay)."),
    ] {
        let refused = conversation
            .send_xml(None, text)
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.contains(words), "{text}: {refused}");
    }
}

#[tokio::test]
async fn a_trace_line_cannot_be_forged() {
    let (sender, mut hops) = tokio::sync::mpsc::channel(100);
    let sly = Listener::named("sly").on(|_: Ask, _| async {
        agentserver::Result::<()>::Err(
            "no\n0.001s  bank -> console  <Pay> 1 bytes  answer\u{1b}[2K".into(),
        )
    });
    let settings = Settings {
        trace: Some(sender),
        ..Settings::default()
    };
    let pump = Pump::start(organism([sly]), settings);
    soon(pump.request("console", "sly", ask("x")))
        .await
        .unwrap();
    while let Ok(hop) = hops.try_recv() {
        let line = hop.to_string();
        assert!(!line.contains(['\n', '\u{1b}']), "{line}");
    }
}

#[tokio::test]
async fn a_handler_tells_its_caller_why_it_failed_and_nobody_beyond() {
    let tool = Listener::named("tool").on(|_: Ask, _| async {
        Err::<(), _>(HandlerError::telling("there is no file \u{0}\u{fffe}<x>"))
    });
    let deaf = Listener::named("deaf")
        .agent(true)
        .peers(["tool"])
        .on(|ask: Ask, _| async move { Ok(HandlerResponse::to("tool", ask)) });
    let gateway = Gateway::named("console", ["tool", "deaf"]);
    let organism = Organism::new("test", [tool, deaf], [gateway]).unwrap();
    let pump = Pump::start(organism, Settings::default());
    let read = async |to| {
        let answer = soon(pump.request("console", to, ask("x"))).await;
        let error = answer.unwrap().unwrap().payload.read::<SystemError>();
        error.unwrap().message
    };
    let plain = "The message could not be handled.";
    assert_eq!(read("tool").await, format!("{plain} there is no file <x>"));
    assert_eq!(read("deaf").await, plain);
}
