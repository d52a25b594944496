//! Runs the handler contract's examples.
//!
//! `cargo run -p agentserver --example contract`

mod handlers;

use agentserver::{Pump, Settings};
use handlers::{
    AddPayload, Greeting, GreetingResponse, ResearchPayload, ResultPayload, Screen, organism,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let screen = Screen::default();
    let pump = Pump::start(organism(&screen)?, Settings::default());

    let answer = pump
        .request("console", "adder", AddPayload { a: 40, b: 2 })
        .await?
        .ok_or("no sum")?;
    println!("adder: {}", answer.payload.read::<ResultPayload>()?.value);

    let answer = pump
        .request("console", "greeter", Greeting { name: "Ada".into() })
        .await?
        .ok_or("no greeting")?;
    println!(
        "greeter: {}",
        answer.payload.read::<GreetingResponse>()?.message
    );

    // The display ends the chain, so nobody answers.
    let nothing = pump
        .request(
            "console",
            "researcher",
            ResearchPayload {
                query: "rooms".into(),
            },
        )
        .await?;
    assert!(nothing.is_none());
    for line in screen.lock().map_err(|_| "the screen is broken")?.iter() {
        println!("{line}");
    }
    Ok(())
}
