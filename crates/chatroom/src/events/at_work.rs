//! Who is at work in which room just now, on any node: what members say of themselves, and what the
//! server knows of the agents that it calls.
//!
//! Nothing of this is stored. What is not said again for a while is over, so nobody works for ever.

use super::{
    frame::ephemeral,
    hub::{Audience, Ephemeral, Hub},
};
use bytes::{Bytes, BytesMut};
use protocol::{
    AgentDelta, AgentStop, AgentTyping, EventKind, IdleReason, RoleClass, RoomId, TypingState,
    UserId,
};
use runtime::CancellationToken;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// How long a state lasts that is not said again.
const LASTS: Duration = Duration::from_secs(15);
/// How often is looked for those who are silent.
const SWEEP_EVERY: Duration = Duration::from_millis(500);
/// What a member says is counted for so long.
const RATE_WINDOW: Duration = Duration::from_secs(10);

/// Whose turn it is: a member's agent and its person may be at work at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct TurnKey {
    user: String,
    is_person: bool,
}

impl TurnKey {
    fn of(event: &AgentTyping) -> Self {
        Self {
            user: event.user_id.clone(),
            is_person: event.role_class == RoleClass::Human,
        }
    }
}

/// What somebody does, and when they last said so.
#[derive(Debug)]
struct Turn {
    event: AgentTyping,
    text: Option<String>,
    heard: Instant,
}

impl Turn {
    /// As those are told who read what has been written.
    fn delta(&self) -> Option<AgentDelta> {
        Some(AgentDelta {
            user_id: self.event.user_id.clone(),
            reply_to_seq: self.event.reply_to_seq,
            text: self.text.clone()?,
        })
    }
}

/// A call to an agent that this node makes.
struct RunningCall {
    seq: i64,
    stop: CancellationToken,
}

/// The members who are at work, as this node knows.
pub struct AtWork {
    hub: Arc<Hub>,
    turns: Mutex<HashMap<RoomId, HashMap<TurnKey, Turn>>>,
    /// How many turns there are: posting looks at this alone where there are none.
    count: AtomicUsize,
    rates: Mutex<HashMap<(RoomId, UserId), (Instant, i64)>>,
    calls: Mutex<HashMap<(RoomId, UserId), RunningCall>>,
}

impl AtWork {
    pub fn new(hub: Arc<Hub>) -> Self {
        Self {
            hub,
            turns: Mutex::default(),
            count: AtomicUsize::new(0),
            rates: Mutex::default(),
            calls: Mutex::default(),
        }
    }

    /// Notes what somebody does, and tells the readers on this node what is new of it.
    pub fn record_typing(&self, room: &RoomId, event: AgentTyping, text: Option<String>) {
        let mut rooms = lock(&self.turns);
        if !event.typing {
            self.remove_turn(&mut rooms, room, &TurnKey::of(&event), |ended| {
                // Readers know the turn by what it answers.
                AgentTyping {
                    reply_to_seq: ended.reply_to_seq,
                    since: ended.since,
                    ..event
                }
            });
            return;
        }
        let turns = rooms.entry(room.clone()).or_default();
        let before = turns.get(&TurnKey::of(&event));
        let is_new = before.is_none();
        let changed = before.is_none_or(|turn| turn.event != event);
        let grown = text.is_some() && before.is_none_or(|turn| turn.text != text);
        let same_answer = before.filter(|turn| turn.event.reply_to_seq == event.reply_to_seq);
        let turn = Turn {
            text: text.or_else(|| same_answer.and_then(|turn| turn.text.clone())),
            heard: Instant::now(),
            event,
        };
        if changed {
            self.publish_ephemeral(room, Audience::Readers, EventKind::AgentTyping, &turn.event);
        }
        if let Some(delta) = turn.delta().filter(|_| grown) {
            self.publish_ephemeral(room, Audience::DeltaReaders, EventKind::AgentDelta, &delta);
        }
        turns.insert(TurnKey::of(&turn.event), turn);
        self.count.fetch_add(usize::from(is_new), Ordering::Relaxed);
    }

    /// Ends somebody's turn; what readers are told, if there was one.
    pub fn end_turn(
        &self,
        room: &RoomId,
        user: &str,
        role: RoleClass,
        reason: &IdleReason,
    ) -> Option<AgentTyping> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let who = TurnKey {
            user: user.to_owned(),
            is_person: role == RoleClass::Human,
        };
        let mut rooms = lock(&self.turns);
        self.remove_turn(&mut rooms, room, &who, |turn| {
            idle(turn, reason.clone(), None)
        })
    }

    /// What an agent does just now.
    pub fn turn_of(&self, room: &RoomId, user: &UserId, role: RoleClass) -> Option<AgentTyping> {
        let who = TurnKey {
            user: user.to_string(),
            is_person: role == RoleClass::Human,
        };
        let rooms = lock(&self.turns);
        Some(rooms.get(room)?.get(&who)?.event.clone())
    }

    /// An agent that the server calls is still at work.
    pub fn refresh_turn(&self, room: &RoomId, user: &UserId) -> Option<AgentTyping> {
        let who = TurnKey {
            user: user.to_string(),
            is_person: false,
        };
        let mut rooms = lock(&self.turns);
        let turn = rooms.get_mut(room)?.get_mut(&who)?;
        turn.heard = Instant::now();
        Some(turn.event.clone())
    }

    /// What a reader who has just come is told: who is at work, and what they have written.
    pub fn snapshot(&self, room: &RoomId, deltas: bool) -> Bytes {
        let rooms = lock(&self.turns);
        let mut frames = BytesMut::new();
        for turn in rooms.get(room).into_iter().flat_map(HashMap::values) {
            frames.extend_from_slice(&ephemeral(EventKind::AgentTyping, &turn.event));
            if let Some(delta) = turn.delta().filter(|_| deltas) {
                frames.extend_from_slice(&ephemeral(EventKind::AgentDelta, &delta));
            }
        }
        frames.freeze()
    }

    /// Counts what a member says; gives how long to wait where that was too often. What it says on
    /// other nodes is counted when they tell of it.
    pub fn count_typing(&self, room: &RoomId, user: &UserId, most: i64) -> Result<(), Duration> {
        let mut rates = lock(&self.rates);
        let (since, count) = rates
            .entry((room.clone(), user.clone()))
            .or_insert_with(|| (Instant::now(), 0));
        if since.elapsed() >= RATE_WINDOW {
            (*since, *count) = (Instant::now(), 0);
        }
        if most > 0 && *count >= most {
            return Err(RATE_WINDOW.saturating_sub(since.elapsed()));
        }
        *count += 1;
        Ok(())
    }

    /// Somebody has stopped an agent: its call is dropped if this node makes it, the agent is told
    /// if it reads here, and readers see who it was.
    pub fn stop_agent(&self, room: &RoomId, stop: &AgentStop) {
        let meant = |seq: Option<i64>| stop.reply_to_seq.is_none() || stop.reply_to_seq == seq;
        let who = TurnKey {
            user: stop.user_id.clone(),
            is_person: false,
        };
        let mut rooms = lock(&self.turns);
        let turn = rooms.get(room).and_then(|turns| turns.get(&who));
        if turn.is_some_and(|turn| meant(turn.event.reply_to_seq)) {
            self.remove_turn(&mut rooms, room, &who, |turn| {
                idle(turn, IdleReason::Stopped, Some(stop.by_user_id.clone()))
            });
        }
        drop(rooms);
        // After that: the call that ends now has no more to tell.
        let Ok(user) = stop.user_id.parse::<UserId>() else {
            return;
        };
        let calls = lock(&self.calls);
        let call = calls.get(&(room.clone(), user.clone()));
        if let Some(call) = call.filter(|call| meant(Some(call.seq))) {
            call.stop.cancel();
        }
        drop(calls);
        self.publish_ephemeral(room, Audience::Member(user), EventKind::AgentStop, stop);
    }

    /// Says that this node calls an agent for a message, until the guard is dropped.
    pub fn begin_call(self: &Arc<Self>, room: &RoomId, user: &UserId, seq: i64) -> CallGuard {
        let stop = CancellationToken::new();
        let lane = (room.clone(), user.clone());
        let call = RunningCall {
            seq,
            stop: stop.clone(),
        };
        lock(&self.calls).insert(lane.clone(), call);
        CallGuard {
            at_work: self.clone(),
            lane,
            stop,
        }
    }

    /// Ends the turns of those who fell silent, for as long as the server runs.
    pub async fn end_silent_turns(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(SWEEP_EVERY);
        loop {
            ticks.tick().await;
            self.end_silent_now();
        }
    }

    fn end_silent_now(&self) {
        lock(&self.rates).retain(|_, (since, _)| since.elapsed() < RATE_WINDOW);
        let mut rooms = lock(&self.turns);
        let silent: Vec<(RoomId, TurnKey)> = rooms
            .iter()
            .flat_map(|(room, turns)| {
                let silent = turns
                    .iter()
                    .filter(|(_, turn)| turn.heard.elapsed() >= LASTS);
                silent.map(|(who, _)| (room.clone(), who.clone()))
            })
            .collect();
        for (room, who) in silent {
            self.remove_turn(&mut rooms, &room, &who, |turn| {
                idle(turn, IdleReason::Silent, None)
            });
        }
    }

    /// Forgets a turn, and tells readers what it came to.
    fn remove_turn(
        &self,
        rooms: &mut HashMap<RoomId, HashMap<TurnKey, Turn>>,
        room: &RoomId,
        who: &TurnKey,
        ended: impl FnOnce(AgentTyping) -> AgentTyping,
    ) -> Option<AgentTyping> {
        let turns = rooms.get_mut(room)?;
        let turn = turns.remove(who)?;
        if turns.is_empty() {
            rooms.remove(room);
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
        let event = ended(turn.event);
        self.publish_ephemeral(room, Audience::Readers, EventKind::AgentTyping, &event);
        Some(event)
    }

    fn publish_ephemeral(
        &self,
        room: &RoomId,
        to: Audience,
        kind: EventKind,
        data: &impl serde::Serialize,
    ) {
        let frame = ephemeral(kind, data);
        self.hub.publish_ephemeral(room, Ephemeral { to, frame });
    }
}

/// A call to an agent, as those see it who may stop it.
pub struct CallGuard {
    at_work: Arc<AtWork>,
    lane: (RoomId, UserId),
    stop: CancellationToken,
}

impl CallGuard {
    /// Returns once somebody has stopped the agent.
    pub async fn stopped(&self) {
        self.stop.cancelled().await;
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        lock(&self.at_work.calls).remove(&self.lane);
    }
}

/// A turn that is over.
fn idle(turn: AgentTyping, reason: IdleReason, by_user_id: Option<String>) -> AgentTyping {
    AgentTyping {
        typing: false,
        state: TypingState::Idle,
        activity: None,
        reason: Some(reason),
        by_user_id,
        ..turn
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
