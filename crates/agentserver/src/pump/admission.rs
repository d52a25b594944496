//! Who is let in next. Gateways take turns, and within a gateway its
//! conversations do, so that a busy one does not keep the others outside.

use crate::core::ThreadId;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The door for messages from outside.
pub(super) struct Admission {
    state: Mutex<State>,
}

struct State {
    /// Fewer than none where more is under way than may be.
    free: isize,
    is_closed: bool,
    waiting: Turns<Arc<str>, Turns<ThreadId, VecDeque<oneshot::Sender<Permit>>>>,
}

/// Queues that take turns.
type Turns<K, Q> = VecDeque<(K, Q)>;

/// The right to send one message. Dropped, it goes to the next who waits.
pub(super) struct Permit(Option<Arc<Admission>>);

/// Nothing more is let in.
#[derive(Debug)]
pub(super) struct Closed;

impl Admission {
    /// A door for so many, of whom some are in already.
    pub(super) fn new(permits: usize, taken: usize) -> Arc<Self> {
        let count = |number| isize::try_from(number).unwrap_or(isize::MAX);
        Arc::new(Self {
            state: Mutex::new(State {
                free: count(permits.max(1)).saturating_sub(count(taken)),
                is_closed: false,
                waiting: VecDeque::new(),
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A permit, where one is free at once.
    pub(super) fn try_acquire(self: &Arc<Self>) -> Option<Permit> {
        let mut state = self.lock();
        let is_free = !state.is_closed && state.free > 0;
        state.free -= isize::from(is_free);
        is_free.then(|| Permit(Some(self.clone())))
    }

    /// Waits for a permit.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        gateway: Arc<str>,
        root: ThreadId,
    ) -> Result<Permit, Closed> {
        let turn = {
            let mut state = self.lock();
            if state.is_closed {
                return Err(Closed);
            }
            if state.free > 0 {
                state.free -= 1;
                return Ok(Permit(Some(self.clone())));
            }
            let (sender, turn) = oneshot::channel();
            let of_gateway = entry(&mut state.waiting, gateway);
            entry(of_gateway, root).push_back(sender);
            turn
        };
        turn.await.map_err(|_| Closed)
    }

    /// Gives permits back.
    pub(super) fn release(self: &Arc<Self>, permits: usize) {
        let mut next = Vec::new();
        {
            let mut state = self.lock();
            state.free = state.free.saturating_add_unsigned(permits);
            while state.free > 0
                && let Some(waiter) = state.next()
            {
                state.free -= 1;
                next.push(waiter);
            }
        }
        for waiter in next {
            // One that has stopped waiting drops it, and so gives it back.
            let _ = waiter.send(Permit(Some(self.clone())));
        }
    }

    /// Lets nobody in any more.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        drop(waiting);
    }
}

impl State {
    /// The next who waits; those who have stopped waiting have no turn.
    fn next(&mut self) -> Option<oneshot::Sender<Permit>> {
        loop {
            let (gateway, mut conversations) = self.waiting.pop_front()?;
            let (root, mut senders) = conversations.pop_front()?;
            while senders.front().is_some_and(oneshot::Sender::is_closed) {
                senders.pop_front();
            }
            let sender = senders.pop_front();
            if !senders.is_empty() {
                conversations.push_back((root, senders));
            }
            if !conversations.is_empty() {
                self.waiting.push_back((gateway, conversations));
            }
            if sender.is_some() {
                return sender;
            }
        }
    }
}

/// The queue of this key, at the end if it is new.
fn entry<K: PartialEq, Q: Default>(turns: &mut Turns<K, Q>, key: K) -> &mut Q {
    let place = turns.iter().position(|(known, _)| *known == key);
    let place = place.unwrap_or_else(|| {
        turns.push_back((key, Q::default()));
        turns.len() - 1
    });
    &mut turns[place].1
}

impl Permit {
    /// Keeps it: the rules say when it is free again.
    pub(super) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(admission) = self.0.take() {
            admission.release(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn thread(n: u8) -> ThreadId {
        let text = format!("00000000-0000-0000-0000-0000000000{n:02}");
        ThreadId::parse(&text).unwrap()
    }

    #[tokio::test]
    async fn gateways_and_their_conversations_take_turns() {
        let admission = Admission::new(1, 0);
        let held = admission.acquire("busy".into(), thread(1)).await.unwrap();
        let mut waiting = Vec::new();
        for (gateway, conversation) in [
            ("busy", 1),
            ("busy", 1),
            ("busy", 2),
            ("quiet", 3),
            ("busy", 2),
        ] {
            let mut turn = Box::pin(admission.acquire(gateway.into(), thread(conversation)));
            assert!((&mut turn).now_or_never().is_none());
            waiting.push(Some(turn));
        }
        drop(held);
        let mut order = Vec::new();
        while order.len() < waiting.len() {
            for (index, turn) in waiting.iter_mut().enumerate() {
                if let Some(permit) = turn.as_mut().and_then(|turn| turn.now_or_never()) {
                    *turn = None;
                    order.push(index);
                    drop(permit.unwrap());
                }
            }
        }
        assert_eq!(order, [0, 3, 2, 1, 4]);
    }

    #[tokio::test]
    async fn any_number_may_stop_waiting() {
        let admission = Admission::new(1, 0);
        let held = admission.acquire("a".into(), thread(1)).await.unwrap();
        for n in 0..200_000u32 {
            let conversation = thread(u8::try_from(n % 3).unwrap());
            let turn = Box::pin(admission.acquire("a".into(), conversation));
            assert!(turn.now_or_never().is_none());
        }
        let mut last = Box::pin(admission.acquire("a".into(), thread(1)));
        assert!((&mut last).now_or_never().is_none());
        drop(held);
        assert!(last.await.is_ok());
    }

    #[tokio::test]
    async fn a_turn_that_nobody_takes_goes_to_the_next() {
        let admission = Admission::new(1, 0);
        let held = admission.acquire("a".into(), thread(1)).await.unwrap();
        let mut left = Box::pin(admission.acquire("a".into(), thread(1)));
        assert!((&mut left).now_or_never().is_none());
        let mut next = Box::pin(admission.acquire("b".into(), thread(2)));
        assert!((&mut next).now_or_never().is_none());
        drop(left);
        drop(held);
        assert!(next.await.is_ok());
        admission.close();
        assert!(admission.acquire("a".into(), thread(1)).await.is_err());
    }
}
