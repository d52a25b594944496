//! The handler contract's own examples, run as they stand in `examples/contract`.

#[path = "../../examples/contract/handlers.rs"]
mod handlers;

use crate::common::soon;
use agentserver::system::SystemError;
use agentserver::{Pump, Settings};
use handlers::*;

fn start() -> (Pump, Screen) {
    let screen = Screen::default();
    (
        Pump::start(organism(&screen).unwrap(), Settings::default()),
        screen,
    )
}

#[tokio::test]
async fn the_pure_tool_returns_to_whoever_called() {
    let (pump, _) = start();
    let answer = soon(pump.request("console", "adder", AddPayload { a: 40, b: 2 }))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        answer.payload.read::<ResultPayload>().unwrap(),
        ResultPayload { value: 42 }
    );
    let answer = soon(pump.request("console", "adder", AddPayload { a: i64::MAX, b: 1 }))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        answer.payload.read::<SystemError>().unwrap().code,
        "handler"
    );
}

#[tokio::test]
async fn the_agent_forwards_and_the_display_ends_the_chain() {
    let (pump, screen) = start();
    let query = ResearchPayload {
        query: "rooms".into(),
    };
    assert!(
        soon(pump.request("console", "researcher", query))
            .await
            .unwrap()
            .is_none()
    );
    let lines = screen.lock().unwrap().clone();
    assert_eq!(
        lines,
        ["[researcher] researcher looked up \"rooms\" and may tell 1 peer"]
    );
    soon(pump.request(
        "console",
        "display",
        ConsoleOutput {
            source: "me".into(),
            text: "hi".into(),
        },
    ))
    .await
    .unwrap();
    assert_eq!(screen.lock().unwrap().last().unwrap(), "[me] hi");
}

#[tokio::test]
async fn the_greeter_reaches_its_peer_and_gets_the_answer() {
    let (pump, _) = start();
    let answer = soon(pump.request("console", "greeter", Greeting { name: "Ada".into() }))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        answer.payload.read::<GreetingResponse>().unwrap().message,
        "HELLO, ADA!"
    );
}
