//! The board: who is where, what they do, what was said last. What it shows is kept here, without
//! I/O; [`follow`] fills it from the rooms' streams.

use super::supervisor::ProgramState;
use crate::terminal::one_line;
use client::{Client, Event};
use protocol::{Message, RoomId, Via};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// The most characters of a name, a state, rooms or costs.
const MAX_CELL: usize = 40;

/// What is known of a team.
#[derive(Default)]
pub struct Board {
    rooms: BTreeMap<String, RoomLine>,
    agents: BTreeMap<String, AgentLine>,
    /// Lines for those who have no terminal, since they were last taken.
    news: Vec<String>,
}

#[derive(Default)]
struct RoomLine {
    last: Option<String>,
}

/// An agent, by its id in rooms.
#[derive(Default)]
struct AgentLine {
    name: String,
    rooms: Vec<String>,
    /// Since when it works on an answer, and on what.
    works: Option<(Instant, String)>,
    last: Option<String>,
    /// What its answers cost since the team is up, in US dollars, where it says so.
    cost_usd: f64,
    tokens: i64,
}

/// The board, as several tasks fill it.
#[derive(Clone, Default)]
pub struct SharedBoard(Arc<Mutex<Board>>);

impl SharedBoard {
    fn lock(&self) -> MutexGuard<'_, Board> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who is where from now on: name in the file, id in rooms, rooms.
    pub fn set_agents(&self, agents: impl Iterator<Item = (String, String, Vec<String>)>) {
        let mut board = self.lock();
        let mut old = std::mem::take(&mut board.agents);
        for (name, user_id, rooms) in agents {
            let known = old.remove(&user_id).unwrap_or_default();
            let line = AgentLine {
                name,
                rooms,
                ..known
            };
            board.agents.insert(user_id, line);
        }
    }

    /// What happened that plain lines should tell, once.
    pub fn take_news(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().news)
    }

    /// The board as lines of at most so many characters.
    pub fn lines(&self, states: &BTreeMap<String, ProgramState>, width: usize) -> Vec<String> {
        self.lock().lines(states, width, Instant::now())
    }
}

impl Board {
    fn heard(&mut self, room: &str, event: Event) {
        match event {
            Event::Message(message) => self.said(room, &message),
            Event::AgentTyping(typing) => {
                if let Some(agent) = self.agents.get_mut(&typing.user_id) {
                    let since = agent
                        .works
                        .take()
                        .map_or_else(Instant::now, |(since, _)| since);
                    let doing = typing.activity.unwrap_or_else(|| typing.state.to_string());
                    agent.works = typing.typing.then(|| (since, one_line(&doing)));
                }
            }
            _ => {}
        }
    }

    fn said(&mut self, room: &str, message: &Message) {
        let text = one_line(&message.content);
        let who = message.sender_user_name.as_deref();
        let who = one_line(who.unwrap_or(&message.sender_user_id));
        if let Some(agent) = self.agents.get_mut(&message.sender_user_id) {
            agent.works = None;
            if let Some(usage) = &message.usage {
                agent.cost_usd += usage.cost_usd.unwrap_or(0.0);
                agent.tokens += usage.input_tokens.unwrap_or(0) + usage.output_tokens.unwrap_or(0);
            }
            agent.last = Some(text.clone());
        }
        let said = match message.via {
            Via::System => self.with_names(text),
            _ => format!("{who}: {text}"),
        };
        self.news.push(format!("[{room}] {said}"));
        self.rooms.entry(room.to_owned()).or_default().last = Some(said);
    }

    /// The room's own words, with the agents' names in place of their ids.
    fn with_names(&self, text: String) -> String {
        let agents = self.agents.iter();
        agents.fold(text, |text, (id, agent)| text.replace(id, &agent.name))
    }

    fn lines(
        &self,
        states: &BTreeMap<String, ProgramState>,
        width: usize,
        now: Instant,
    ) -> Vec<String> {
        let state_of = |name: &str| match states.get(name) {
            Some(ProgramState {
                pid: Some(_),
                restarts: 0,
                ..
            }) => "running".to_owned(),
            Some(ProgramState {
                pid: Some(_),
                restarts,
                ..
            }) => format!("running, restarted {restarts}×"),
            Some(_) => "starting again".to_owned(),
            None => "starting".to_owned(),
        };
        let mut rows = Vec::new();
        if states.contains_key("server") {
            rows.push([
                "server".to_owned(),
                state_of("server"),
                String::new(),
                String::new(),
                String::new(),
            ]);
        }
        for agent in self.agents.values() {
            let state = match &agent.works {
                Some((since, doing)) => {
                    let seconds = now.duration_since(*since).as_secs();
                    format!("{doing} {}:{:02}", seconds / 60, seconds % 60)
                }
                None => state_of(&agent.name),
            };
            let cost = match (agent.cost_usd > 0.0, agent.tokens > 0) {
                (true, _) => format!("${:.4}", agent.cost_usd),
                (false, true) => format!("{} tokens", agent.tokens),
                (false, false) => String::new(),
            };
            let last = agent.last.clone().unwrap_or_default();
            rows.push([
                agent.name.clone(),
                state,
                agent.rooms.join(", "),
                cost,
                last,
            ]);
        }
        for row in &mut rows {
            for cell in &mut row[..4] {
                *cell = cut(cell, MAX_CELL);
            }
        }
        let wide = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let widths = [0, 1, 2, 3].map(|column| wide(column).unwrap_or(0));
        let mut lines: Vec<String> = rows
            .iter()
            .map(|[name, state, rooms, cost, last]| {
                let [a, b, c, d] = widths;
                format!("  {name:<a$}  {state:<b$}  {rooms:<c$}  {cost:>d$}  {last}")
            })
            .collect();
        for (room, line) in &self.rooms {
            if let Some(last) = &line.last {
                lines.push(format!("  #{room}  {last}"));
            }
        }
        lines.iter().map(|line| cut(line, width)).collect()
    }
}

/// A text of at most so many characters.
fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => {
            let kept = text.chars().take(most.saturating_sub(1));
            kept.chain(['…']).collect()
        }
        false => text.trim_end().to_owned(),
    }
}

/// Fills the board from a room's stream, for as long as the owner may read it.
pub async fn follow(board: SharedBoard, owner: Client, name: String, room: RoomId) {
    let mut events = owner.follow(&room, None);
    while let Ok((_, event)) = events.next().await {
        board.lock().heard(&name, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::testing::message;

    #[test]
    fn the_board_shows_who_is_where_and_what_was_said() {
        let shared = SharedBoard::default();
        let rooms = vec!["support".to_owned()];
        shared.set_agents([("billing".to_owned(), "ext_billing".to_owned(), rooms)].into_iter());
        let mut said = message(1, "Billing", "Two euros\x1b[2J");
        said.sender_user_id = "ext_billing".into();
        said.usage = Some(protocol::Usage {
            cost_usd: Some(0.25),
            ..Default::default()
        });
        shared
            .lock()
            .heard("support", Event::Message(Box::new(said)));
        let states = BTreeMap::from([
            (
                "server".to_owned(),
                ProgramState {
                    pid: Some(1),
                    ..Default::default()
                },
            ),
            (
                "billing".to_owned(),
                ProgramState {
                    pid: Some(2),
                    restarts: 2,
                    last_end: None,
                },
            ),
        ]);
        let lines = shared.lines(&states, 80);
        let all = lines.join("\n");
        assert!(
            all.contains("restarted 2×") && all.contains("Two euros[2J"),
            "{all}"
        );
        assert!(all.contains("#support  Billing: Two euros"), "{all}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80));
        assert_eq!(shared.take_news(), ["[support] Billing: Two euros[2J"]);
        assert!(shared.take_news().is_empty());
    }
}
