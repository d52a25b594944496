//! What wakes the agent and what it may spend in a day: its owner's policy, and the room's where that is
//! tighter. What it spends is counted on the disk, over restarts; the server counts what it sees.

use crate::home::{AgentHome, RoomAddress, SpentFile};
use client::{Client, ClientError};
use protocol::{RoomId, Spent, UserId, Wake, WakePolicy, WakeView};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long what the server said is believed.
const FRESH_FOR: Duration = Duration::from_secs(10);
/// How long the server may take to say it.
const TOLD_WITHIN: Duration = Duration::from_secs(10);
const DAY_SECONDS: i64 = 24 * 3600;

/// The agent's limits in one room.
pub struct WakeLimits {
    home: AgentHome,
    address: RoomAddress,
    user: UserId,
    own: WakePolicy,
    /// What the server said last.
    told: Option<WakeView>,
    told_at: Option<Instant>,
    /// Whether the server knows of this at all.
    is_known_there: bool,
    /// What was spent, by our own count.
    spent: SpentFile,
    /// The day on which it was said that the budget is used up.
    said_on: Option<i64>,
}

/// How a message concerns the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// It was said in the room.
    Other,
    /// It answers a message of the agent's.
    Answer,
    /// It names the agent.
    Mention,
}

impl Relation {
    /// Whether such a message wakes an agent.
    pub fn wakes(self, wake: Wake) -> bool {
        match wake {
            Wake::Nothing => false,
            Wake::Mentions => self >= Self::Mention,
            Wake::Threads => self >= Self::Answer,
            Wake::Everything => true,
        }
    }
}

impl WakeLimits {
    /// The owner's policy, and what was spent before.
    pub fn new(home: &AgentHome, address: &RoomAddress, user: UserId, own: WakePolicy) -> Self {
        let spent = home.spent(address).unwrap_or_else(|error| {
            tracing::error!(%error, "what was spent today is lost; it is counted from now");
            None
        });
        Self {
            home: home.clone(),
            address: address.clone(),
            user,
            own,
            told: None,
            told_at: None,
            is_known_there: true,
            spent: spent.unwrap_or_default(),
            said_on: None,
        }
    }

    /// Tells the server the owner's policy, when the daemon takes the room up.
    pub async fn report(&mut self, client: &Client) {
        let room = self.address.room.clone();
        let told = client.set_wake(&room, &self.user, &self.own);
        let told = timeout(TOLD_WITHIN, told).await;
        self.learn(told.ok());
    }

    /// What wakes the agent: the tighter of what its owner and the room's say.
    pub async fn wake(&mut self, client: &Client) -> Wake {
        self.refresh(client).await;
        let told = self.told.as_ref().map(|told| told.effective.wake);
        told.map_or(self.own.wake, |told| told.min(self.own.wake))
    }

    /// Whether the budget of today is used up. The log says so once a day; the room is told by the
    /// server.
    pub async fn is_used_up(&mut self, client: &Client, now: i64) -> bool {
        self.refresh(client).await;
        let day = now.div_euclid(DAY_SECONDS);
        let spent = self.spent.on(day);
        let told = self.told.as_ref().filter(|told| now < told.day_ends_at);
        let is_used_up = self.own.budget.is_used_up(&spent)
            || told.is_some_and(|told| told.used_up || told.effective.budget.is_used_up(&spent));
        if is_used_up && self.said_on != Some(day) {
            tracing::warn!(
                "the budget of today is used up; the agent is silent until the day turns (UTC)"
            );
            self.said_on = Some(day);
        }
        is_used_up
    }

    /// Counts a call of the backend, whatever came of it.
    pub async fn count(&mut self, usage: Option<&protocol::Usage>, now: i64) {
        let tokens = usage.map_or(0, |usage| {
            usage.input_tokens.unwrap_or(0) + usage.output_tokens.unwrap_or(0)
        });
        let cost = usage.and_then(|usage| usage.cost_usd).unwrap_or(0.0);
        self.spent.add(now.div_euclid(DAY_SECONDS), tokens, cost);
        let (home, address, spent) = (self.home.clone(), self.address.clone(), self.spent.clone());
        let saved = tokio::task::spawn_blocking(move || home.save_spent(&address, &spent)).await;
        if let Ok(Err(error)) = saved {
            tracing::error!(%error, "what was spent today is not saved");
        }
        // The server has counted too.
        self.told_at = None;
    }

    async fn refresh(&mut self, client: &Client) {
        let is_fresh = self.told_at.is_some_and(|at| at.elapsed() < FRESH_FOR);
        if is_fresh || !self.is_known_there {
            return;
        }
        let room: RoomId = self.address.room.clone();
        let told = timeout(TOLD_WITHIN, client.wake(&room, &self.user)).await;
        self.learn(told.ok());
    }

    fn learn(&mut self, told: Option<Result<WakeView, ClientError>>) {
        match told {
            Some(Ok(told)) => {
                self.told = Some(told);
                self.told_at = Some(Instant::now());
            }
            Some(Err(error)) if matches!(error.status(), Some(404 | 405)) => {
                self.is_known_there = false;
            }
            // What was said before holds until something else is said.
            Some(Err(error)) => tracing::debug!(%error, "the room's limits are not known now"),
            None => tracing::debug!("the room's limits are not known now"),
        }
    }
}

/// What was spent on a day, as the rules count it.
impl SpentFile {
    fn on(&self, day: i64) -> Spent {
        match self.day == day {
            true => self.spent.clone(),
            false => Spent::default(),
        }
    }

    fn add(&mut self, day: i64, tokens: i64, cost_usd: f64) {
        let mut spent = self.on(day);
        spent.turns = spent.turns.saturating_add(1);
        spent.tokens = spent.tokens.saturating_add(tokens);
        spent.cost_usd += cost_usd;
        *self = Self { day, spent };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_says_what_wakes() {
        use Relation::{Answer, Mention, Other};
        for (wake, woken) in [
            (Wake::Nothing, vec![]),
            (Wake::Mentions, vec![Mention]),
            (Wake::Threads, vec![Answer, Mention]),
            (Wake::Everything, vec![Other, Answer, Mention]),
        ] {
            let all = [Other, Answer, Mention];
            let by_rule: Vec<_> = all.into_iter().filter(|it| it.wakes(wake)).collect();
            assert_eq!(by_rule, woken, "{wake:?}");
        }
    }

    #[test]
    fn a_new_day_begins_at_nothing() {
        let mut spent = SpentFile::default();
        spent.add(1, 10, 0.5);
        spent.add(1, 5, 0.25);
        assert_eq!((spent.on(1).turns, spent.on(1).tokens), (2, 15));
        assert_eq!(spent.on(1).cost_usd, 0.75);
        assert_eq!(spent.on(2), Spent::default());
        spent.add(2, 1, 0.0);
        assert_eq!(spent.on(2).turns, 1);
    }
}
