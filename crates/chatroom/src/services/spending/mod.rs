//! What agents spend and may spend in a day, without I/O but for [`spend`].

pub mod usage;
pub mod wake;

use crate::{
    clock::Now,
    error::{Error, Result},
    services::change::{RoomLog, RoomTx},
    store::{Conn, spending::SpendingRow},
};
use protocol::{Budget, ErrorCode, RoomId, Spent, Usage, UserId, WakePolicy};

const DAY_SECONDS: i64 = 86_400;

/// The day, in days since 1970, UTC.
pub fn day(now: Now) -> i64 {
    now.seconds().div_euclid(DAY_SECONDS)
}

/// When the day ends, in unix seconds.
pub fn day_ends_at(now: Now) -> i64 {
    (day(now) + 1) * DAY_SECONDS
}

/// What counts against a budget.
pub fn spent(row: &SpendingRow) -> Spent {
    Spent {
        turns: row.turns,
        tokens: row.input_tokens + row.output_tokens,
        cost_usd: row.cost_usd,
    }
}

/// An agent's budget for a day, and what it has spent of it.
#[derive(Debug)]
pub struct DayBudget {
    budget: Budget,
    spent: SpendingRow,
}

impl DayBudget {
    pub fn new(
        room: &RoomId,
        user: &UserId,
        budget: Budget,
        spent: Option<SpendingRow>,
        now: Now,
    ) -> Self {
        Self {
            budget,
            spent: spent.unwrap_or_else(|| nothing(room, user, day(now))),
        }
    }

    pub fn is_used_up(&self) -> bool {
        self.budget.is_used_up(&spent(&self.spent))
    }

    /// Refuses whoever has spent all.
    pub fn refuse_used_up(&self, now: Now) -> Result<()> {
        match self.is_used_up() {
            false => Ok(()),
            true => Err(Error::limited(
                ErrorCode::BudgetUsedUp,
                "You have used up your budget in this room for today, UTC. Your owner and the room's \
                 owner can raise it",
                day_ends_at(now) * 1000 - now.millis(),
            )),
        }
    }

    /// Counts a turn and what it cost: what is to be added in the store, and what the room is to be
    /// told where this was the last one today.
    pub fn spend(&mut self, usage: Option<&Usage>) -> (SpendingRow, Option<String>) {
        let none = Usage::default();
        let usage = usage.unwrap_or(&none);
        let mut added = SpendingRow {
            turns: 1,
            input_tokens: usage.input_tokens.unwrap_or(0),
            output_tokens: usage.output_tokens.unwrap_or(0),
            cost_usd: usage.cost_usd.unwrap_or(0.0),
            seconds: usage.seconds.unwrap_or(0.0),
            ..nothing(&self.spent.room_id, &self.spent.user_id, self.spent.day)
        };
        let spent = &mut self.spent;
        spent.turns = spent.turns.saturating_add(added.turns);
        spent.input_tokens = spent.input_tokens.saturating_add(added.input_tokens);
        spent.output_tokens = spent.output_tokens.saturating_add(added.output_tokens);
        spent.cost_usd += added.cost_usd;
        spent.seconds += added.seconds;
        let told = self.tell_once();
        added.told = told.is_some();
        (added, told)
    }

    /// What the room is to be told where the budget is used up and it does not know.
    fn tell_once(&mut self) -> Option<String> {
        if self.spent.told || !self.is_used_up() {
            return None;
        }
        self.spent.told = true;
        Some(format!(
            "{} has used up its budget for today and answers again tomorrow, UTC",
            self.spent.user_id
        ))
    }

    pub fn into_spent(self) -> SpendingRow {
        self.spent
    }
}

fn nothing(room: &RoomId, user: &UserId, day: i64) -> SpendingRow {
    SpendingRow {
        room_id: room.clone(),
        user_id: user.clone(),
        day,
        turns: 0,
        input_tokens: 0,
        output_tokens: 0,
        cost_usd: 0.0,
        seconds: 0.0,
        told: false,
    }
}

/// What wakes an agent and what it may spend.
pub async fn policy_of(conn: &mut Conn, room: &RoomId, user: &UserId) -> Result<WakePolicy> {
    let found = conn.wake_policies(&[(room, user)]).await?;
    let policy = found.first().map(|row| row.effective());
    Ok(policy.unwrap_or_default())
}

/// What an agent has left of a budget today.
pub async fn day_budget(
    conn: &mut Conn,
    room: &RoomId,
    user: &UserId,
    budget: Budget,
    now: Now,
) -> Result<DayBudget> {
    let found = conn.spending(&[(room, user)], day(now)).await?;
    Ok(DayBudget::new(
        room,
        user,
        budget,
        found.into_iter().next(),
        now,
    ))
}

/// Counts a turn of an agent in the room that the log is of, which must be locked, where anybody
/// wants it counted.
pub async fn spend(
    tx: &mut RoomTx,
    log: &mut RoomLog,
    user: &UserId,
    usage: Option<&Usage>,
    now: Now,
) -> Result<()> {
    let room = log.room().room_id.clone();
    let budget = policy_of(tx, &room, user).await?.budget;
    if usage.is_none() && budget.is_unlimited() {
        return Ok(());
    }
    let mut day_budget = day_budget(tx, &room, user, budget, now).await?;
    let (added, used_up) = day_budget.spend(usage);
    tx.add_spending(&added).await?;
    match used_up {
        Some(words) => log.system_message(tx, words, now).await,
        None => Ok(()),
    }
}

/// Tells the room where a new budget is used up already.
pub async fn tell_if_used_up(
    tx: &mut RoomTx,
    log: &mut RoomLog,
    user: &UserId,
    now: Now,
) -> Result<()> {
    let room = log.room().room_id.clone();
    let budget = policy_of(tx, &room, user).await?.budget;
    if budget.is_unlimited() {
        return Ok(());
    }
    let mut day_budget = day_budget(tx, &room, user, budget, now).await?;
    let Some(words) = day_budget.tell_once() else {
        return Ok(());
    };
    let told = SpendingRow {
        told: true,
        ..nothing(&room, user, day(now))
    };
    tx.add_spending(&told).await?;
    log.system_message(tx, words, now).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_told_once_a_day_and_no_more_is_spent() {
        let (room, user) = ("rm_a".parse().unwrap(), "u_a".parse().unwrap());
        let budget = Budget {
            tokens: Some(100),
            ..Budget::default()
        };
        let usage = Usage {
            input_tokens: Some(40),
            output_tokens: Some(20),
            ..Usage::default()
        };
        let noon = Now(12 * 3_600_000);
        let mut day_budget = DayBudget::new(&room, &user, budget.clone(), None, noon);
        let (added, told) = day_budget.spend(Some(&usage));
        assert_eq!((added.turns, added.input_tokens, told), (1, 40, None));
        day_budget.refuse_used_up(noon).unwrap();
        let (added, told) = day_budget.spend(Some(&usage));
        assert!(added.told && told.unwrap().contains("u_a"));
        let error = day_budget.refuse_used_up(noon).unwrap_err();
        assert!(error.message().ends_with("Try again in 43200 s"), "{error}");
        assert_eq!(day_budget.spend(None).1, None);

        let tomorrow = Now(36 * 3_600_000);
        let day_budget = DayBudget::new(&room, &user, budget, None, tomorrow);
        day_budget.refuse_used_up(tomorrow).unwrap();
        assert_eq!((day(noon), day(tomorrow)), (0, 1));
    }
}
