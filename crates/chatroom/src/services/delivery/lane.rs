//! One agent in one room: its messages in order, one call at a time.

use super::{
    Lane, Wakeup,
    answerable::{Answered, answerable},
    call::{self, AnswerAndUsage, CallFailure, CallTarget},
    reply::{AgentAnswer, Reply},
    settle::{CallOutcome, OutcomeQueue, Settled},
    typing::Typing,
};
use crate::{
    app::App,
    clock::Now,
    error::Result,
    metrics::Delivered,
    outbound::Trust,
    services::spending::{self, wake},
    store::{
        Conn,
        deliveries::{LaneRow, REPLIES_WINDOW_MS, SKEW_MS},
        messages::{MessageRow, Page},
        rooms::RoomRow,
    },
};
use protocol::{Budget, UserId, Via};
use runtime::Backoff;
use std::time::Duration;

/// Messages that are read at once to find the next one that concerns the agent.
const PAGE: i64 = 50;
/// A wait that an agent asks for counts up to here.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(300);
/// How often the room is told that an agent is still at work.
const STILL_AT_WORK_EVERY: Duration = Duration::from_secs(5);
/// What cannot be written is tried again at least this often.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(10));

/// What a lane's task needs.
pub struct LaneTask {
    pub app: App,
    pub lane: Lane,
    pub wakeup: std::sync::Arc<Wakeup>,
    pub outcomes: OutcomeQueue,
    /// The first message that is not dealt with yet, as far as this task knows.
    next: i64,
    /// Up to where that is written.
    written: i64,
    /// What a call came to and could not be written yet: the agent is not asked again for that.
    unsettled: Option<Unsettled>,
    /// How often in a row something went wrong here.
    failures: u32,
}

/// What a call came to.
struct Unsettled {
    generation: i64,
    outcome: CallOutcome,
    /// How it is counted.
    counted: Delivered,
}

/// Why a lane's task stops for now.
pub enum Wait {
    /// There is nothing to do, or not by this node.
    Idle,
    /// The next step is due after this.
    For(Duration),
}

impl LaneTask {
    pub fn new(
        app: App,
        lane: Lane,
        wakeup: std::sync::Arc<Wakeup>,
        outcomes: OutcomeQueue,
    ) -> Self {
        Self {
            app,
            lane,
            wakeup,
            outcomes,
            next: 0,
            written: 0,
            unsettled: None,
            failures: 0,
        }
    }

    /// Works until nothing is left to do.
    pub async fn run(mut self) {
        while !self.app.shutdown.has_begun() {
            let worked = self.work().await;
            let wait = next_wait(worked, &self.lane, &mut self.failures);
            // The position is known to this task alone until it is written.
            if matches!(wait, Wait::Idle) && self.written < self.next {
                let next = self.next;
                tokio::select! {
                    () = self.outcomes.synced() => self.written = next,
                    () = self.wakeup.woken() => {}
                    () = self.app.shutdown.begun() => {}
                }
            } else if wait_for_wakeup(&self.app, &self.lane, &self.wakeup, wait).await {
                return;
            }
        }
    }

    async fn work(&mut self) -> Result<Wait> {
        while !self.app.shutdown.has_begun() {
            self.wakeup.clear();
            if let Some(unsettled) = self.unsettled.take() {
                self.settle(unsettled).await?;
            }
            if self.outcomes.is_in_trouble() {
                // Nobody is called whose answer cannot be kept.
                return Ok(Wait::For(Duration::from_secs(1)));
            }
            let mut conn = self.app.db.read().await?;
            let (room, user) = (self.lane.room_id.clone(), self.lane.user_id.clone());
            let Some(row) = conn.lane(&room, &user, &self.app.node).await? else {
                // Another's by now, or gone, or without a key that works.
                self.written = self.next;
                return Ok(Wait::Idle);
            };
            self.next = self.next.max(row.next_seq);
            self.written = self.written.max(row.next_seq);
            let now_ms = conn.schedule_ms().await?;
            if let Some(wait) = self.wait_before_call(&row, now_ms) {
                return Ok(Wait::For(wait));
            }
            // Before the room, the policy and the budget are read: whoever changes one of these and then
            // posts must not be passed over by what was true before.
            let messages = match row.answer_anew_seq {
                Some(_) => Vec::new(),
                None => self.messages(&mut conn).await?,
            };
            let Some(room_row) = conn.room(&room).await?.filter(|room| !room.archived) else {
                // The lane waits until messages can be posted again.
                self.written = self.next;
                return Ok(Wait::Idle);
            };
            let policy = spending::policy_of(&mut conn, &room, &user).await?;
            let has_budget = !policy.budget.is_unlimited();
            let may_spend = self.may_spend(&mut conn, policy.budget).await?;
            if let Some(seq) = row.answer_anew_seq {
                let message = conn.message(&room, seq).await?;
                let message =
                    message.filter(|m| may_spend && !m.deleted && self.can_answer(&room_row, m));
                let Some(message) = message else {
                    drop(conn);
                    self.end_answer_anew(row.generation, seq, Delivered::Silent)
                        .await?;
                    continue;
                };
                let body = call::body(&mut conn, &self.lane, &row, &room_row, &message).await?;
                drop(conn);
                self.deliver(&row, &message, &body, has_budget).await?;
                continue;
            }
            let Some(last) = messages.last().map(|message| message.seq) else {
                return Ok(Wait::Idle);
            };
            let mut next = None;
            for message in messages.into_iter().filter(|_| may_spend) {
                if concerns(&message, &user)
                    && self.can_answer(&room_row, &message)
                    && wake::wakes(&mut conn, policy.wake, &room, &user, &message).await?
                {
                    next = Some(message);
                    break;
                }
            }
            let Some(message) = next else {
                self.pass_messages(last).await;
                continue;
            };
            let body = call::body(&mut conn, &self.lane, &row, &room_row, &message).await?;
            drop(conn);
            self.deliver(&row, &message, &body, has_budget).await?;
        }
        Ok(Wait::Idle)
    }

    /// The messages that are not dealt with yet, the oldest of them.
    async fn messages(&self, conn: &mut Conn) -> Result<Vec<MessageRow>> {
        let page = Page {
            since: self.next - 1,
            limit: PAGE,
            ..Page::default()
        };
        Ok(conn.messages(&self.lane.room_id, &page).await?)
    }

    /// How long to wait before the next call: for the next try, or for the minute to end in which
    /// the agent has answered as often as it may.
    fn wait_before_call(&self, row: &LaneRow, now_ms: i64) -> Option<Duration> {
        let (config, limits) = (&self.app.config.fanout, &self.app.config.limits);
        let retry = (row.attempt > 0 && self.next == row.next_seq).then(|| {
            let longest = longest_retry_delay(&config.retry_seconds);
            time_until(row.due_ms, now_ms, longest)
        });
        let most = limits.agent_replies_per_minute;
        let paced = (most > 0 && row.replies >= most).then(|| {
            let ends = row.replies_since_ms + REPLIES_WINDOW_MS;
            time_until(ends, now_ms, REPLIES_WINDOW_MS + SKEW_MS)
        });
        retry.into_iter().chain(paced).flatten().max()
    }

    /// Whether an answer to this message could be posted. Where not, the agent is not called.
    fn can_answer(&self, room: &RoomRow, message: &MessageRow) -> bool {
        let (user, limits) = (&self.lane.user_id, &self.app.config.limits);
        let checked = answerable(room, user, &answered(message), limits, Now::get());
        if let Err(why) = checked {
            self.app.metrics.delivered(why.into());
            tracing::debug!(room = %self.lane.room_id, %user, seq = message.seq, ?why, "an agent is not called: its answer could not be posted");
        }
        checked.is_ok()
    }

    /// Whether the agent has anything left to spend today.
    async fn may_spend(&self, conn: &mut Conn, budget: Budget) -> Result<bool> {
        if budget.is_unlimited() {
            return Ok(true);
        }
        let (room, user) = (&self.lane.room_id, &self.lane.user_id);
        let day_budget = spending::day_budget(conn, room, user, budget, Now::get()).await?;
        Ok(!day_budget.is_used_up())
    }

    /// A message that the agent was to be called for once more is dealt with, without an answer.
    async fn end_answer_anew(
        &mut self,
        generation: i64,
        seq: i64,
        counted: Delivered,
    ) -> Result<()> {
        let outcome = CallOutcome::AnswerAnewOver { seq };
        self.settle(Unsettled {
            generation,
            outcome,
            counted,
        })
        .await
    }

    /// Everything up to this message is dealt with.
    async fn pass_messages(&mut self, seq: i64) {
        self.next = seq + 1;
        self.outcomes.save_position(&self.lane, self.next).await;
    }

    async fn deliver(
        &mut self,
        row: &LaneRow,
        message: &MessageRow,
        body: &serde_json::Value,
        has_budget: bool,
    ) -> Result<()> {
        let app = self.app.clone();
        let permit = app
            .lanes
            .acquire_permit(&self.lane.user_id, &row.agent_endpoint)
            .await;
        app.metrics
            .call_begins(self.wakeup.waited(message.created_at));
        let called = self.call(row, message, body).await;
        drop(permit);
        let tries = i64::try_from(app.config.fanout.retry_seconds.len()).unwrap_or(i64::MAX);
        let seq = message.seq;
        let attempt = 1 + if seq == row.next_seq { row.attempt } else { 0 };
        let answer_anew = row.answer_anew_seq == Some(seq);
        let (outcome, counted) = match called {
            Ok(AnswerAndUsage {
                answer: AgentAnswer::Silent,
                usage: None,
            }) if !answer_anew && !has_budget => {
                app.metrics.delivered(Delivered::Silent);
                self.pass_messages(seq).await;
                return Ok(());
            }
            Ok(AnswerAndUsage {
                answer: AgentAnswer::Silent,
                usage,
            }) => (
                CallOutcome::Silent {
                    seq,
                    usage,
                    answer_anew,
                },
                Delivered::Silent,
            ),
            Ok(AnswerAndUsage {
                answer: AgentAnswer::Text(content),
                usage,
            }) => {
                let outcome = CallOutcome::Reply {
                    answered: answered(message),
                    content,
                    usage,
                    answer_anew,
                };
                (outcome, Delivered::Answered)
            }
            Err(CallFailure::Stopped) => {
                // Whoever stopped it has moved the lane past the message.
                app.metrics.delivered(Delivered::Stopped);
                self.next = self.next.max(seq + 1);
                return Ok(());
            }
            Err(_) if answer_anew => {
                // Whoever asked for it sees that it failed, and may ask again.
                return self
                    .end_answer_anew(row.generation, seq, Delivered::Failed)
                    .await;
            }
            Err(CallFailure::Gone) if self.is_owner().await? => {
                let why = "the agent is gone (410), and an owner cannot leave".to_owned();
                (CallOutcome::Stale { seq, attempt, why }, Delivered::Stale)
            }
            Err(CallFailure::Gone) => (CallOutcome::Gone { seq }, Delivered::Left),
            Err(CallFailure::Refused(why)) => {
                (CallOutcome::Stale { seq, attempt, why }, Delivered::Stale)
            }
            Err(CallFailure::Transient { why, .. }) if attempt >= tries => {
                let why = format!("{why}, {attempt} times");
                (CallOutcome::Stale { seq, attempt, why }, Delivered::Stale)
            }
            Err(CallFailure::Transient { why, after }) => {
                let outcome = CallOutcome::Failed {
                    seq,
                    attempt,
                    wait_ms: retry_delay_ms(&app.config.fanout.retry_seconds, attempt, after),
                    why,
                };
                (outcome, Delivered::Failed)
            }
        };
        if let CallOutcome::Failed { why, .. } | CallOutcome::Stale { why, .. } = &outcome {
            let stale = matches!(outcome, CallOutcome::Stale { .. });
            tracing::info!(room = %self.lane.room_id, user = %self.lane.user_id, seq, attempt, stale, why, "a call to an agent failed");
        }
        if let CallOutcome::Gone { .. } = &outcome {
            tracing::info!(room = %self.lane.room_id, user = %self.lane.user_id, seq, "an agent says it is gone (410) and leaves the room");
        }
        let generation = row.generation;
        self.settle(Unsettled {
            generation,
            outcome,
            counted,
        })
        .await
    }

    /// Writes down what a call came to. Where that fails it is kept, and tried again first.
    async fn settle(&mut self, unsettled: Unsettled) -> Result<()> {
        let passed = match &unsettled.outcome {
            CallOutcome::Reply { answered, .. } => Some(answered.seq),
            CallOutcome::Gone { seq } | CallOutcome::Silent { seq, .. } => Some(*seq),
            CallOutcome::AnswerAnewOver { .. }
            | CallOutcome::Failed { .. }
            | CallOutcome::Stale { .. } => None,
        };
        let outcome = unsettled.outcome.clone();
        let settling = self
            .outcomes
            .settle(&self.lane, unsettled.generation, outcome);
        let settled = match settling.await {
            Ok(settled) => settled,
            Err(error) => {
                self.unsettled = Some(unsettled);
                return Err(error);
            }
        };
        self.app.metrics.delivered(match settled {
            Settled::Done => unsettled.counted,
            Settled::TooDeep => Delivered::TooDeep,
            Settled::UsedUp => Delivered::UsedUp,
            Settled::Lost => Delivered::Lost,
        });
        // After a loss the store knows better where the lane is, if it is still ours. After a failure
        // the message is still to be dealt with: a new key may come before this task has ended.
        if let Some(seq) = passed.filter(|_| settled != Settled::Lost) {
            self.next = self.next.max(seq + 1);
        }
        Ok(())
    }

    async fn call(
        &self,
        row: &LaneRow,
        message: &MessageRow,
        body: &serde_json::Value,
    ) -> Result<AnswerAndUsage, CallFailure> {
        let Some(bearer) = self.app.secrets.unseal(&row.akm_key) else {
            return Err(CallFailure::Refused(
                "the stored key cannot be read".to_owned(),
            ));
        };
        let Lane { room_id, user_id } = &self.lane;
        let target = CallTarget {
            endpoint: &row.agent_endpoint,
            bearer: &bearer,
            container: row.container_id.as_deref(),
            trust: Trust::of(row.endpoint_trusted),
            delivery_id: format!("{room_id}.{}.{user_id}", message.seq),
        };
        let live = &self.app.live;
        let stoppable = live.at_work().begin_call(room_id, user_id, message.seq);
        let mut typing = Typing::begin(&self.app, &self.lane, message.seq);
        let heard = |reply: &Reply| typing.heard(reply);
        let (outbound, settings) = (&self.app.outbound, &self.app.config.fanout);
        let called = {
            let calling = call::call(outbound, settings, &target, body, heard);
            tokio::pin!(calling);
            loop {
                tokio::select! {
                    called = &mut calling => break called,
                    // Dropping the call ends its connection.
                    () = stoppable.stopped() => break Err(CallFailure::Stopped),
                    () = tokio::time::sleep(STILL_AT_WORK_EVERY) => live.refresh_turn(room_id, user_id),
                }
            }
        };
        if called.is_err() {
            typing.failed();
        }
        called
    }

    async fn is_owner(&self) -> Result<bool> {
        let mut conn = self.app.db.read().await?;
        let member = conn.member(&self.lane.room_id, &self.lane.user_id).await?;
        Ok(member.is_some_and(|member| member.is_owner()))
    }
}

/// What a round of work leads to. One that failed is tried again, later each time.
pub fn next_wait(worked: Result<Wait>, lane: &Lane, failures: &mut u32) -> Wait {
    match worked {
        Ok(wait) => {
            *failures = 0;
            wait
        }
        Err(error) => {
            // Logged where it arose. What was to be done is still there.
            tracing::warn!(%error, room = %lane.room_id, user = %lane.user_id, "cannot go on with an agent or a webhook; tried again soon");
            *failures += 1;
            Wait::For(BACKOFF.after(*failures))
        }
    }
}

/// Waits until there is something to do or the server shuts down; whether the lane's task ends
/// instead.
pub async fn wait_for_wakeup(app: &App, lane: &Lane, wakeup: &Wakeup, wait: Wait) -> bool {
    match wait {
        Wait::For(time) => {
            tokio::select! {
                () = tokio::time::sleep(time) => {}
                () = wakeup.woken() => {}
                () = app.shutdown.begun() => {}
            }
            false
        }
        Wait::Idle => app.lanes.end_if_idle(lane, wakeup),
    }
}

impl Drop for LaneTask {
    /// However the task ends, another can take the lane up.
    fn drop(&mut self) {
        self.app.lanes.forget_lane(&self.lane, &self.wakeup);
    }
}

fn answered(message: &MessageRow) -> Answered {
    Answered {
        seq: message.seq,
        depth: message.reply_chain_depth,
        sender: message.sender_user_id.clone(),
        via: message.via.clone(),
    }
}

/// Whether an agent is told of a message: of everything that stands but its own words and notices.
/// What its person says it is told, though both have one id.
fn concerns(message: &MessageRow, user: &UserId) -> bool {
    let own = message.sender_user_id == *user && message.via != Via::Web;
    message.calls_agents && !message.deleted && !own
}

/// How long until then, if it is still to come. A time further away than the longest wait there is
/// was told by a clock that has been set back since: it has come.
pub fn time_until(due_ms: i64, now_ms: i64, longest_ms: i64) -> Option<Duration> {
    let wait = due_ms - now_ms;
    let wait = u64::try_from(wait).ok().filter(|_| wait <= longest_ms)?;
    (wait > 0).then(|| Duration::from_millis(wait))
}

/// The longest wait that the schedule, or an agent that asks for one, can lead to.
pub fn longest_retry_delay(schedule: &[u64]) -> i64 {
    let planned = schedule.iter().copied().max().unwrap_or(0);
    let longest = Duration::from_secs(planned).max(LONGEST_RETRY_AFTER);
    i64::try_from(longest.as_millis()).unwrap_or(i64::MAX)
}

/// How long to wait after this failure, in milliseconds.
pub fn retry_delay_ms(schedule: &[u64], attempt: i64, asked: Option<Duration>) -> i64 {
    let nth = usize::try_from(attempt - 1).unwrap_or(0);
    let planned = schedule.get(nth).or(schedule.last()).copied().unwrap_or(0);
    let asked = asked.unwrap_or_default().min(LONGEST_RETRY_AFTER);
    let wait = Duration::from_secs(planned).max(asked);
    i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::MessageType;

    fn message(sender: &str, via: &str, deleted: bool) -> MessageRow {
        MessageRow {
            seq: 1,
            sender_user_id: sender.parse().unwrap(),
            sender_user_name: None,
            via: via.parse().unwrap(),
            r#type: MessageType::Chat,
            content: "x".into(),
            reply_to_seq: None,
            reply_chain_depth: 0,
            created_at: 1,
            deleted,
            edited_at: None,
            calls_agents: true,
            event: None,
            usage: None,
        }
    }

    #[test]
    fn an_agent_is_told_of_all_but_its_own_words() {
        let alice = "u_alice".parse().unwrap();
        assert!(concerns(&message("u_bob", "agent", false), &alice));
        assert!(!concerns(&message("u_alice", "agent", false), &alice));
        assert!(concerns(&message("u_alice", "web", false), &alice));
        assert!(concerns(&message("u_system", "system", false), &alice));
        assert!(!concerns(&message("u_bob", "web", true), &alice));
        let notice = MessageRow {
            calls_agents: false,
            ..message("u_system", "system", false)
        };
        assert!(!concerns(&notice, &alice));
    }

    #[test]
    fn a_due_time_of_a_clock_that_was_set_back_has_come() {
        let hour = 3_600_000;
        assert_eq!(
            time_until(5_000, 4_000, 300_000),
            Some(Duration::from_secs(1))
        );
        assert_eq!(time_until(4_000, 4_000, 300_000), None);
        assert_eq!(time_until(hour + 5_000, 4_000, 300_000), None);
        assert_eq!(longest_retry_delay(&[1, 4000]), 4_000_000);
    }

    #[test]
    fn a_wait_follows_the_schedule_and_what_the_agent_asks_for() {
        let schedule = [1, 4, 16, 64, 256];
        let waits: Vec<i64> = (1..=5)
            .map(|n| retry_delay_ms(&schedule, n, None))
            .collect();
        assert_eq!(waits, [1000, 4000, 16_000, 64_000, 256_000]);
        assert_eq!(
            retry_delay_ms(&schedule, 1, Some(Duration::from_secs(30))),
            30_000
        );
        assert_eq!(
            retry_delay_ms(&schedule, 3, Some(Duration::from_secs(2))),
            16_000
        );
        assert_eq!(
            retry_delay_ms(&schedule, 1, Some(Duration::from_secs(1 << 40))),
            300_000
        );
        assert_eq!(retry_delay_ms(&[], 1, None), 0);
    }
}
