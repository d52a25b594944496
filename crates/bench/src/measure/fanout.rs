//! From post to the calls of agents: first all are healthy, then some hang, flood, send rubbish and
//! reset, on the same server in the same run.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::Plan;
use crate::Result;
use crate::agents::{Agents, Manner};
use crate::content::Content;
use crate::http::{Connection, request};
use crate::report::{Cell, Table};
use crate::stats::quantile;
use crate::target::http::{Http, text};

const ROOMS: usize = 20;
const AGENTS: usize = 200;
const POSTS_A_SECOND: u32 = 50;
/// One of each, in different rooms.
const BAD: [(usize, Manner); 4] = [
    (0, Manner::Hangs),
    (1, Manner::Floods),
    (2, Manner::Broken),
    (3, Manner::Resets),
];
/// How long the last calls may take to arrive.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Takes the measurement. Only the room server calls agents, so it is measured alone.
pub async fn measure(plan: &Plan) -> Result<Table> {
    let clock = Instant::now();
    let agents = Agents::start(AGENTS, clock).await?;
    // So many tries that the bad ones stay bad to the end.
    let tries = format!("[{}]", vec!["1"; 600].join(","));
    let settings = [
        ("SC_CHATROOM__FANOUT__PRIVATE_ENDPOINTS", "all"),
        ("SC_CHATROOM__FANOUT__RETRY_SECONDS", tries.as_str()),
    ];
    let (server, owner) = Http::bare(&settings).await?;
    let mut connection = server.connect().await?;
    let rooms = furnish(&mut connection, &owner, &agents).await?;
    // The notices of joining go to agents too, and are no part of this.
    sleep(Duration::from_secs(2)).await;

    let length = plan.length * plan.rounds as u32;
    let mut rows = Vec::new();
    for (name, bad) in [("all are healthy", &[][..]), ("four are bad", &BAD[..])] {
        agents.behave(bad.iter().copied());
        agents.take_delays();
        let posts = post(&mut connection, &owner, &rooms, clock, length).await?;
        // A bad agent is no healthy one; each stands in a room of its own.
        let expected = posts * AGENTS / ROOMS - bad.len() * posts / ROOMS;
        let deadline = Instant::now() + TIMEOUT;
        while agents.heard() < expected && Instant::now() < deadline {
            sleep(Duration::from_millis(50)).await;
        }
        let delays = agents.take_delays();
        rows.push(vec![
            Cell::text(name),
            Cell::Number(expected as f64, 0),
            Cell::Number(delays.len() as f64, 0),
            Cell::Number(quantile(&delays, 0.5), 2),
            Cell::Number(quantile(&delays, 0.99), 2),
            Cell::Number(quantile(&delays, 1.0), 2),
        ]);
    }
    Ok(Table {
        name: "fanout",
        title: format!(
            "From post to the calls of healthy agents: {AGENTS} agents in {ROOMS} rooms, {POSTS_A_SECOND} posts a second"
        ),
        columns: vec!["agents", "expected", "calls", "p50 ms", "p99 ms", "most ms"],
        rows,
    })
}

/// Makes the rooms and lets the agents join them by turns; gives the rooms' paths.
async fn furnish(connection: &mut Connection, owner: &str, agents: &Agents) -> Result<Vec<String>> {
    let mut rooms = Vec::new();
    for room in 0..ROOMS {
        let name = json!({ "name": format!("fanout {room}") });
        let made = connection
            .call("POST", "/rooms", Some(owner), Some(&name))
            .await?;
        let path = format!("/rooms/{}", text(&made, "room_id")?);
        let uses = json!({ "max_uses": AGENTS / ROOMS });
        let invites = format!("{path}/invites");
        let invite = connection
            .call("POST", &invites, Some(owner), Some(&uses))
            .await?;
        let invite = text(&invite, "invite_code")?;
        for agent in (room..AGENTS).step_by(ROOMS) {
            let join = json!({
                "invite_code": invite,
                "adapter_type": "clawd",
                "client_kind": "external_agent",
                "user_id": format!("bench_agent-{agent:08x}"),
                "agent_endpoint": agents.endpoint(agent),
                "akm_key": "sk_bench",
            });
            let path = format!("{path}/join");
            connection.call("POST", &path, None, Some(&join)).await?;
        }
        rooms.push(path);
    }
    Ok(rooms)
}

/// Posts at an even pace to the rooms by turns; gives how many posts there were, the same number
/// in each room.
async fn post(
    connection: &mut Connection,
    owner: &str,
    rooms: &[String],
    clock: Instant,
    length: Duration,
) -> Result<usize> {
    let mut ticks = interval(Duration::from_secs(1) / POSTS_A_SECOND);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let begun = Instant::now();
    let mut posts = 0;
    while begun.elapsed() < length || posts % rooms.len() != 0 {
        ticks.tick().await;
        let content = Content::now(clock);
        let body = json!({ "content": std::str::from_utf8(content.bytes())? }).to_string();
        let path = format!("{}/messages", rooms[posts % rooms.len()]);
        let answer = connection
            .send(&request("POST", &path, Some(owner), Some(&body)))
            .await?;
        if answer.status != 201 {
            let body = String::from_utf8_lossy(answer.body);
            return Err(format!("a post was answered {}: {body}", answer.status).into());
        }
        posts += 1;
    }
    Ok(posts)
}
