//! Accounts: what work has used of its budget, however many listeners it passes.
//!
//! A message from outside opens an account, and so does a call of a listener
//! that has a budget of its own. Every message that follows carries the account
//! of the one that caused it, and what it uses is charged to that account and to
//! all above it. An account that is used up is over: nothing that carries it
//! moves any more, and its holder is told.

use super::account::{Account, AccountId, Cause, Exhausted, Work};
use super::budget::{Bound, Budget, Usage};
use super::message::HopId;
use super::overview::OpenBudget;
use super::threads::ThreadId;
use super::time::Time;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The open accounts. An id is used again once its account is closed, which is
/// when nothing knows it any more.
#[derive(Default, Serialize, Deserialize)]
pub struct Accounts {
    accounts: Vec<Option<Account>>,
    free: Vec<usize>,
    deadlines: BTreeSet<(Time, AccountId)>,
    /// Requests whose last message was dealt with since the last look.
    finished: Vec<HopId>,
    /// Threads whose call was dealt with since the last look.
    done: Vec<ThreadId>,
}

impl Accounts {
    /// Opens an account for as long as it is used. It has one user from the
    /// start: whoever opened it, until [`Accounts::leave`].
    pub fn open(
        &mut self,
        work: Work,
        holder: ThreadId,
        budget: Budget,
        parent: Option<Cause>,
        now: Time,
    ) -> AccountId {
        let above = parent.and_then(|parent| {
            self.enter(parent.account);
            self.get(parent.account)
        });
        let begun = parent.map_or(0, |parent| parent.hops);
        let own = budget
            .hops
            .map_or(u64::MAX, |hops| begun.saturating_add(hops));
        let last_hop = own.min(above.map_or(u64::MAX, |above| above.last_hop));
        let id = AccountId(self.free.pop().unwrap_or_else(|| {
            self.accounts.push(None);
            self.accounts.len() - 1
        }));
        let deadline = budget.time.map(|time| now.after(time));
        if let Some(deadline) = deadline {
            self.deadlines.insert((deadline, id));
        }
        self.accounts[id.0] = Some(Account {
            parent: parent.map(|parent| parent.account),
            holder,
            work,
            budget,
            spent: Usage::default(),
            begun,
            last_hop,
            deadline,
            users: 1,
            is_over: false,
        });
        id
    }

    fn get(&self, id: AccountId) -> Option<&Account> {
        self.accounts.get(id.0)?.as_ref()
    }

    fn get_mut(&mut self, id: AccountId) -> Option<&mut Account> {
        self.accounts.get_mut(id.0)?.as_mut()
    }

    pub fn enter(&mut self, id: AccountId) {
        if let Some(account) = self.get_mut(id) {
            account.users += 1;
        }
    }

    /// One user less; the last one closes the account.
    pub fn leave(&mut self, id: AccountId) {
        let mut next = Some(id);
        while let Some(id) = next.take() {
            let Some(account) = self.get_mut(id) else {
                return;
            };
            account.users = account.users.saturating_sub(1);
            if account.users > 0 {
                return;
            }
            let (deadline, work) = (account.deadline, account.work);
            next = account.parent;
            if let Some(deadline) = deadline {
                self.deadlines.remove(&(deadline, id));
            }
            match work {
                Work::Request(request) => self.finished.push(request),
                Work::Call(thread) => self.done.push(thread),
                Work::Conversation | Work::Internal | Work::Nudge(_) => {}
            }
            self.accounts[id.0] = None;
            self.free.push(id.0);
        }
    }

    /// A request whose last message was dealt with.
    pub fn pop_finished(&mut self) -> Option<HopId> {
        self.finished.pop()
    }

    /// A thread whose call, and all that followed from it, was dealt with.
    pub fn pop_done(&mut self) -> Option<ThreadId> {
        self.done.pop()
    }

    /// The call of `thread` that this account pays for, directly or from below.
    pub fn call_of(&self, thread: ThreadId, id: AccountId) -> Option<AccountId> {
        let mut next = Some(id);
        while let Some((id, account)) = next.and_then(|id| Some((id, self.get(id)?))) {
            if account.work == Work::Call(thread) {
                return Some(id);
            }
            next = account.parent;
        }
        None
    }

    /// Notes what was used. It is allowed to have been more than there was.
    pub fn charge(&mut self, id: AccountId, used: Usage) {
        let mut next = Some(id);
        while let Some(account) = next.and_then(|id| self.get_mut(id)) {
            account.spent.add(used);
            next = account.parent;
        }
    }

    /// Charges one message, where there is budget left for it.
    pub fn admit_message(&mut self, cause: Cause) -> Result<(), Exhausted> {
        let one = Usage {
            messages: 1,
            ..Usage::default()
        };
        self.spend(cause, one)
    }

    /// Charges one model call, where there is budget left for it. Of tokens and
    /// money, whatever is left is enough for one more.
    pub fn admit_model_call(&mut self, cause: Cause) -> Result<(), Exhausted> {
        let one = Usage {
            model_calls: 1,
            ..Usage::default()
        };
        self.spend(cause, one)
    }

    fn spend(&mut self, cause: Cause, used: Usage) -> Result<(), Exhausted> {
        // The outermost account that is used up is the one that ends the work.
        let mut exhausted = None;
        let mut next = Some(cause.account);
        while let Some((id, account)) = next.and_then(|id| Some((id, self.get(id)?))) {
            if let Some(bound) = account.reached(cause.hops, used) {
                exhausted = Some(account.exhausted(id, bound, cause.hops));
            }
            next = account.parent;
        }
        match exhausted {
            Some(exhausted) => Err(exhausted),
            None => {
                self.charge(cause.account, used);
                Ok(())
            }
        }
    }

    /// Ends an account: nothing that rests on it moves any more.
    pub fn end(&mut self, id: AccountId) {
        let deadline = self.get_mut(id).and_then(|account| {
            account.is_over = true;
            account.deadline.take()
        });
        if let Some(deadline) = deadline {
            self.deadlines.remove(&(deadline, id));
        }
    }

    /// Whether the account, or one above it, is over.
    pub fn is_over(&self, id: AccountId) -> bool {
        let mut next = Some(id);
        while let Some(account) = next.and_then(|id| self.get(id)) {
            if account.is_over {
                return true;
            }
            next = account.parent;
        }
        false
    }

    /// The cause that an answer of `thread` to its caller carries: it leaves the
    /// accounts that were opened for the call.
    pub fn beyond(&self, thread: ThreadId, mut cause: Cause) -> Cause {
        while let Some(account) = self.get(cause.account)
            && account.work == Work::Call(thread)
            && let Some(parent) = account.parent
        {
            cause.account = parent;
        }
        cause
    }

    /// The message from outside that work on this account follows from.
    pub fn request_of(&self, id: AccountId) -> Option<HopId> {
        let mut next = Some(id);
        while let Some(account) = next.and_then(|id| self.get(id)) {
            if let Work::Request(request) = account.work {
                return Some(request);
            }
            next = account.parent;
        }
        None
    }

    /// How many reminders in a row led to the work on this account.
    pub fn nudges_before(&self, id: AccountId) -> u32 {
        let mut next = Some(id);
        while let Some(account) = next.and_then(|id| self.get(id)) {
            if let Work::Nudge(count) = account.work {
                return count;
            }
            next = account.parent;
        }
        0
    }

    /// What open work has used.
    pub fn overview(&self) -> Vec<OpenBudget> {
        let open = self.accounts.iter().flatten();
        open.map(|account| OpenBudget {
            of: account.work.to_string(),
            budget: account.budget,
            messages: account.spent.messages,
            model_calls: account.spent.model_calls,
            tokens: account.spent.tokens,
            money: account.spent.money,
            is_over: account.is_over,
        })
        .collect()
    }

    /// How many messages from outside are not dealt with yet.
    pub fn open_requests(&self) -> usize {
        let open = self.accounts.iter().flatten();
        open.filter(|account| matches!(account.work, Work::Request(_)))
            .count()
    }

    pub fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// An account whose time is over.
    pub fn past_deadline(&self, now: Time) -> Option<Exhausted> {
        let (deadline, id) = self.deadlines.first()?;
        let account = self.get(*id).filter(|_| *deadline <= now)?;
        let bound = Bound::Time(account.budget.time.unwrap_or_default());
        Some(account.exhausted(*id, bound, account.begun))
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.accounts.iter().all(Option::is_none) && self.deadlines.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::threads::Threads;

    fn thread() -> ThreadId {
        Threads::default().open("x".into())
    }

    const REQUEST: Work = Work::Request(HopId(1));

    fn messages(most: u64) -> Budget {
        Budget {
            messages: Some(most),
            ..Budget::default()
        }
    }

    #[test]
    fn what_is_used_below_is_used_above() {
        let (mut accounts, now) = (Accounts::default(), Time::default());
        let (root, callee) = (thread(), thread());
        let account = accounts.open(REQUEST, root, messages(3), None, now);
        let request = Cause { account, hops: 0 };
        let account = accounts.open(Work::Call(callee), root, messages(9), Some(request), now);
        let call = Cause { account, hops: 1 };
        for _ in 0..3 {
            assert!(accounts.admit_message(call).is_ok());
        }
        let exhausted = accounts.admit_message(call).unwrap_err();
        assert_eq!(exhausted.account, request.account);
        accounts.end(request.account);
        assert!(accounts.is_over(call.account));
        assert_eq!(accounts.beyond(callee, call).account, request.account);
        accounts.leave(call.account);
        accounts.leave(request.account);
        assert!(accounts.is_empty());
        assert_eq!(accounts.pop_finished(), Some(HopId(1)));
    }

    #[test]
    fn a_call_inherits_the_hops_that_are_left() {
        let (mut accounts, now) = (Accounts::default(), Time::default());
        let hops = |most| Budget {
            hops: Some(most),
            ..Budget::default()
        };
        let account = accounts.open(REQUEST, thread(), hops(3), None, now);
        let parent = Cause { account, hops: 2 };
        let account = accounts.open(Work::Call(thread()), thread(), hops(9), Some(parent), now);
        assert!(accounts.admit_message(Cause { account, hops: 3 }).is_ok());
        assert!(accounts.admit_message(Cause { account, hops: 4 }).is_err());
    }

    #[test]
    fn work_that_time_ends_goes_on_from_the_hop_that_it_began_with() {
        let (mut accounts, now) = (Accounts::default(), Time::default());
        let account = accounts.open(REQUEST, thread(), Budget::default(), None, now);
        let parent = Cause { account, hops: 7 };
        let budget = Budget {
            time: Some(std::time::Duration::from_secs(1)),
            ..Budget::default()
        };
        accounts.open(Work::Call(thread()), thread(), budget, Some(parent), now);
        let later = now.after(std::time::Duration::from_secs(2));
        assert_eq!(accounts.past_deadline(later).unwrap().hops, 7);
    }

    #[test]
    fn the_last_model_call_may_take_more_tokens_than_are_left_and_no_other_follows() {
        let (mut accounts, now) = (Accounts::default(), Time::default());
        let budget = Budget {
            tokens: Some(10),
            ..Budget::default()
        };
        let account = accounts.open(REQUEST, thread(), budget, None, now);
        let cause = Cause { account, hops: 0 };
        assert!(accounts.admit_model_call(cause).is_ok());
        let used = Usage {
            tokens: 15,
            ..Usage::default()
        };
        accounts.charge(account, used);
        assert!(
            accounts.admit_message(cause).is_ok(),
            "words cost no tokens"
        );
        let exhausted = accounts.admit_model_call(cause).unwrap_err();
        assert_eq!(exhausted.bound, Bound::Tokens(10));
    }
}
