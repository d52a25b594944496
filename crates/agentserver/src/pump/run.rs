//! One run of one handler: the envelope in, the handler, the reply out.

use super::{Meter, Shared};
use crate::core::{Fit, Form, Job, Outcome, Outgoing, ThreadId};
use crate::envelope::{self, Envelope};
use crate::handler::{HandlerMetadata, HandlerResponse, Reply, Target};
use crate::organism::{Organism, RegisteredListener};
use crate::payload::{Canonical, PayloadError, Schema};
use crate::system::Fault;
use crate::trace::{Hop, HopKind};
use crate::xml::{self, ParsedOutput, XmlError};
use futures_util::FutureExt;
use runtime::CancellationToken;
use std::any::Any;
use std::future::poll_fn;
use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tracing::Instrument;

/// Runs a handler, and then the ones that follow from it, one after the other.
pub(super) async fn run(shared: Arc<Shared>, job: Arc<Job>) {
    let mut next = Some(job);
    while let Some(job) = next {
        next = run_one(&shared, job).await;
        if next.is_some() {
            // Handlers that never wait must not keep others from running.
            tokio::task::coop::consume_budget().await;
        }
    }
}

/// Does at once, in the caller's own task, what a run can do without waiting. What
/// has to wait goes on in a task of its own.
pub(super) fn run_here(shared: &Arc<Shared>, job: Option<Arc<Job>>) {
    let Some(job) = job else { return };
    let mut running = Box::pin(run(shared.clone(), job));
    let mut context = Context::from_waker(Waker::noop());
    if running.as_mut().poll(&mut context).is_pending() {
        shared.runtime.spawn(running);
    }
}

/// Gives the run that follows, where one does.
async fn run_one(shared: &Arc<Shared>, job: Arc<Job>) -> Option<Arc<Job>> {
    let span = tracing::debug_span!(
        "handle",
        listener = %job.entry.listener.name,
        from = %job.from,
        thread = %job.thread,
        payload = %job.payload.root(),
    );
    let meter = Meter::new(shared, job);
    let mut running = Running {
        shared,
        meter: Some(meter.clone()),
    };
    let outcome = handle(shared, &meter).instrument(span).await;
    running.finish(outcome)
}

/// Sees to it that every job is finished, even one whose handler panics while
/// it is dropped.
struct Running<'a> {
    shared: &'a Arc<Shared>,
    meter: Option<Meter>,
}

impl Running<'_> {
    fn finish(&mut self, outcome: Outcome) -> Option<Arc<Job>> {
        let meter = self.meter.take()?;
        let (job, now) = (meter.job(), self.shared.now());
        let ((), next) = self.shared.step_and_follow(|state| {
            let (used, notes) = meter.take();
            state.core.finish(job.id, outcome, used, &notes, now);
            if let Some(mailbox) = state.mailboxes.get(&job.root) {
                match state.core.in_flight(job.root) {
                    0 => mailbox.wake(&mut state.woken),
                    _ => mailbox.wake_senders(&mut state.woken),
                }
            }
        });
        next
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // A run that is dropped with the program is not over where runs are begun
        // again.
        if std::thread::panicking() || !self.shared.is_durable() {
            let next = self.finish(failed(Fault::Handler, "the handler was dropped"));
            self.shared.spawn(next);
        }
    }
}

fn failed(fault: Fault, reason: impl Into<String>) -> Outcome {
    Outcome::Failed {
        fault,
        reason: reason.into(),
        words: String::new(),
    }
}

/// What a handler is given.
fn metadata(meter: &Meter) -> Result<HandlerMetadata, XmlError> {
    let job = meter.job();
    let listener = &job.entry.listener;
    // A message has a valid envelope; mostly that is plain to see without writing it.
    if !envelope::is_plain([&*job.from, &*listener.name], &job.payload) {
        let envelope = Envelope {
            from: job.from.clone(),
            to: Some(listener.name.clone()),
            thread: job.thread.text(),
            payload: job.payload.clone(),
        };
        envelope.write()?;
    }
    let guide = job.entry.peer_guide(job.caller.as_deref());
    let instructions = match &job.reminder {
        None => guide.text.clone(),
        Some(reminder) => Arc::from(format!("{}{reminder}", guide.text)),
    };
    Ok(HandlerMetadata {
        thread_id: job.thread,
        from_id: job.from.to_string(),
        own_name: listener.is_agent.then(|| listener.name.to_string()),
        is_self_call: job.is_self_call,
        usage_instructions: instructions,
        offers: guide.offers.clone(),
        hop_id: job.id,
        cancellation: job.cancellation.clone(),
        meter: meter.clone(),
    })
}

async fn handle(shared: &Shared, meter: &Meter) -> Outcome {
    let job = meter.job();
    let listener = &job.entry.listener;
    // The handler's own code may panic before its future exists.
    let begun = catch_unwind(AssertUnwindSafe(|| {
        metadata(meter).map(|metadata| listener.call(job.payload.clone(), metadata))
    }));
    let future = match begun {
        Ok(Ok(future)) => AssertUnwindSafe(future).catch_unwind(),
        Ok(Err(error)) => return failed(Fault::Validation, error.to_string()),
        Err(panic) => return panicked(&*panic),
    };
    match within(future, listener.timeout, &job.cancellation).await {
        Ended::Itself(Ok(Ok(reply))) => outcome(shared, job, reply),
        Ended::Itself(Ok(Err(error))) => Outcome::Failed {
            fault: Fault::Handler,
            reason: error.to_string(),
            words: error.told().to_owned(),
        },
        Ended::Itself(Err(panic)) => panicked(&*panic),
        Ended::OutOfTime => failed(
            Fault::Timeout,
            format!("took longer than {:?}", listener.timeout),
        ),
        Ended::Cancelled => failed(Fault::Handler, "was cancelled"),
    }
}

/// How a handler came to its end.
enum Ended<T> {
    Itself(T),
    OutOfTime,
    Cancelled,
}

/// Waits for a handler, for as long as it may take.
async fn within<F: Future + Unpin>(
    mut future: F,
    timeout: Duration,
    cancellation: &CancellationToken,
) -> Ended<F::Output> {
    // Many are done at once, and need no clock.
    if let Poll::Ready(result) = poll_fn(|context| Poll::Ready(future.poll_unpin(context))).await {
        return Ended::Itself(result);
    }
    let mut clock = pin!(tokio::time::sleep(timeout));
    let mut overstays = pin!(overstays(cancellation));
    // One that only lets others go first is not asked again at once.
    let mut was_polled = true;
    poll_fn(|context| {
        if !take(&mut was_polled)
            && let Poll::Ready(result) = future.poll_unpin(context)
        {
            return Poll::Ready(Ended::Itself(result));
        }
        if clock.as_mut().poll(context).is_ready() {
            return Poll::Ready(Ended::OutOfTime);
        }
        overstays.as_mut().poll(context).map(|()| Ended::Cancelled)
    })
    .await
}

fn panicked(panic: &(dyn Any + Send)) -> Outcome {
    failed(
        Fault::Handler,
        format!("panicked: {}", panic_message(panic)),
    )
}

/// Waits until a handler that was cancelled has had time to come to an end.
async fn overstays(cancellation: &CancellationToken) {
    const GRACE: Duration = Duration::from_secs(2);
    cancellation.cancelled().await;
    tokio::time::sleep(GRACE).await;
}

/// Tells a listener that its thread ended. The effects that follow are carried
/// out even if it panics.
pub(super) fn thread_ended(entry: &RegisteredListener, thread: ThreadId) {
    let told = catch_unwind(AssertUnwindSafe(|| entry.listener.thread_ended(thread)));
    if let Err(panic) = told {
        let reason = panic_message(&*panic);
        tracing::warn!(listener = %entry.listener.name, %thread, reason, "panicked at a thread's end");
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

fn outcome(shared: &Shared, job: &Job, reply: Reply) -> Outcome {
    match reply {
        Reply::Messages(responses) => Outcome::Sent(
            responses
                .into_iter()
                .map(|response| typed(shared, &job.organism, response))
                .collect(),
        ),
        Reply::Text(bytes) => text(shared, job, bytes),
        Reply::NotUnderstood { attempt, reason } => Outcome::Garbled { attempt, reason },
    }
}

impl Shared {
    /// A struct's payload, and whether it is a valid one.
    pub(super) fn written(
        &self,
        organism: &Organism,
        xml: Result<String, PayloadError>,
        schema: fn() -> Schema,
    ) -> (Canonical, Fit) {
        let parsed = xml.map_err(|error| error.to_string()).and_then(|xml| {
            Canonical::parse(&xml, &self.settings.xml).map_err(|error| error.to_string())
        });
        match parsed {
            Ok(payload) => {
                let fit = organism.fit_typed(&payload, schema);
                (payload, fit)
            }
            Err(reason) => (Canonical::unwritable(), Fit::Not(reason)),
        }
    }
}

fn typed(shared: &Shared, organism: &Organism, response: HandlerResponse) -> Outgoing {
    let (payload, fit) = shared.written(organism, response.xml, response.schema);
    Outgoing {
        target: response.target,
        payload,
        form: Form::Typed,
        fit,
    }
}

fn text(shared: &Shared, job: &Job, bytes: Vec<u8>) -> Outcome {
    if bytes.trim_ascii().is_empty() {
        return Outcome::Sent(Vec::new());
    }
    let answer = xml::text(&bytes).and_then(|text| ParsedOutput::read(text, &shared.settings.xml));
    let ParsedOutput { said, repairs } = match answer {
        Ok(answer) => answer,
        Err(error) => {
            return Outcome::Garbled {
                reason: error.to_string(),
                attempt: bytes,
            };
        }
    };
    if !repairs.is_empty() {
        let repairs: Vec<_> = repairs.iter().map(ToString::to_string).collect();
        let first = said.first().map(|said| said.payload.clone());
        let kind = HopKind::Repaired {
            repairs: repairs.join(", "),
        };
        shared.lock().core.count_hop(&kind);
        shared.trace(Hop {
            id: None,
            parent: Some(job.id),
            conversation: job.root,
            from: job.entry.listener.name.clone(),
            to: "*".into(),
            payload: first.unwrap_or_else(Canonical::unwritable),
            kind,
        });
    }
    let messages = said.into_iter().map(|said| Outgoing {
        target: said.to.map_or(Target::ByType, Target::Named),
        fit: job.organism.fit(&said.payload),
        payload: said.payload,
        form: Form::Text,
    });
    Outcome::Sent(messages.collect())
}
