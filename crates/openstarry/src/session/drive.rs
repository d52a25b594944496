//! Drives a session: does what the rules say, and tells them what came of it.

use super::budget::request_tokens;
use super::call::Caller;
use super::end::EndReason;
use super::extract::{self, Wanted};
use super::plan::Planned;
use super::slash;
use super::state::{PendingReply, SessionState, Step};
use super::store::OpenSession;
use super::{Inner, Input, Job, Outcome, SessionEvent, compact, span};
use crate::pain::AgentPain;
use crate::provider::{Context, Event, Fold, Provider};
use crate::segment::{ContentSegment, Message, Role, joined_text};
use crate::tool::{Principal, Progress, ToolContext, ToolSet};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::mpsc;
use tracing::{Instrument, field};

/// Calls that run side by side.
const SIDE_BY_SIDE: usize = 8;
/// How often a request that is too long is made shorter.
const OVERFLOWS: u32 = 3;

/// Works through a session's queue until nobody can fill it any more.
pub(super) async fn serve(
    inner: Arc<Inner>,
    mut state: SessionState,
    file: Option<Arc<OpenSession>>,
    mut queue: mpsc::Receiver<Job>,
) {
    while let Some(job) = queue.recv().await {
        let Job {
            input,
            wanted,
            shutdown,
            events,
            asked,
            running: _running,
        } = job;
        let span = span::turn(&asked, &state.id);
        let provider = inner.provider_for(state.model.as_deref());
        let driver = Driver {
            inner: &inner,
            provider: &*provider,
            wanted: wanted.as_ref(),
            events: &events,
            file: file.as_ref(),
        };
        // What was taken up again belongs to the turn that was left.
        let taken_up = usize::from(matches!(input, Input::GoOn));
        let turns = state.history.turns.len().saturating_sub(taken_up);
        let work = driver.turn(&mut state, input).instrument(span);
        let work = AssertUnwindSafe(work).catch_unwind();
        let ended = tokio::select! {
            biased;
            () = events.closed() => None,
            done = work => Some(done),
        };
        let (end, shown) = match ended {
            Some(Ok(done)) => done,
            Some(Err(_)) => {
                tracing::error!(session = state.id, "a turn panicked");
                state.break_off("an error inside the agent", &inner.settings.limits);
                (EndReason::Failed("an error inside the agent".into()), None)
            }
            // What is on the disk is what the next program goes on from.
            None if shutdown.is_cancelled() => return,
            None => {
                state.break_off("it was cancelled", &inner.settings.limits);
                inner.settings.approval.consents.withdraw_all(&state.id);
                (EndReason::Cancelled, None)
            }
        };
        state.count_expenses();
        driver.save(&state).await;
        let turn = state.history.turns.get(turns..).and_then(<[_]>::last);
        let trace = turn.map(|turn| turn.rounds.clone()).unwrap_or_default();
        let last = trace.last().map(|round| round.reply().to_vec());
        let model = state.stood_in.take();
        let model = model.or_else(|| provider.model().map(str::to_owned));
        let outcome = Outcome {
            model: model.filter(|_| !trace.is_empty()),
            end,
            stop: trace.last().and_then(|round| round.stop().cloned()),
            segments: shown.or(last).unwrap_or_default(),
            trace,
            usage: state.spent.usage,
        };
        // Nobody may be waiting any more.
        let _ = events.send(SessionEvent::End(outcome)).await;
    }
}

pub(super) struct Driver<'a> {
    pub(super) inner: &'a Inner,
    /// The model that this session asks.
    pub(super) provider: &'a dyn Provider,
    /// The shape of this turn's answer, where it has one.
    wanted: Option<&'a Arc<Wanted>>,
    pub(super) events: &'a mpsc::Sender<SessionEvent>,
    file: Option<&'a Arc<OpenSession>>,
}

/// Why a turn ended, and what to show where that is no reply.
type Ended = (EndReason, Option<Vec<ContentSegment>>);

impl Driver<'_> {
    async fn turn(&self, state: &mut SessionState, input: Input) -> Ended {
        let mut step = match input {
            Input::Words(words) => state.begin(words),
            Input::GoOn => match state.go_on(&self.inner.registry.snapshot()) {
                Some(step) => step,
                None => return (EndReason::Failed("no call waits".into()), None),
            },
            Input::Command {
                line,
                needs_approval: is_ruled,
            } => {
                let slash = slash::parse(&line, &self.inner.registry.snapshot());
                let shown = self.command(state, slash, is_ruled).await;
                return (EndReason::Command, Some(shown));
            }
        };
        loop {
            step = match step {
                Step::End(reason) => return (reason, None),
                Step::Ask => self.ask(state).await,
                Step::Run(plan) => self.run(state, plan).await,
            }
        }
    }

    /// Asks the model, and passes on what it says as it says it.
    async fn ask(&self, state: &mut SessionState) -> Step {
        let Inner {
            registry, settings, ..
        } = self.inner;
        let tools = self.tools(registry.snapshot());
        let said = state
            .history
            .turns
            .last()
            .map(|turn| joined_text(&turn.input));
        let said = said.unwrap_or_default();
        let offered = settings
            .selector
            .select(&tools, &said, state.recent_tools())
            .await;
        let mut context = Context {
            system: settings.system.clone(),
            tools: offered,
            output: self.native_output(),
            ..Context::default()
        };
        if self.wanted.is_some() && context.output.is_none() {
            // The tool that takes the answer is always on offer.
            let names: Vec<&str> = context.tools.names().chain([extract::TOOL]).collect();
            context.tools = tools.view(names);
        }
        let fixed = request_tokens(&context, "");
        let mut tries = 0;
        let (started, request, span) = loop {
            let (messages, tokens) = compact::make_room(self, state, fixed).await;
            context.messages = messages;
            for hook in &settings.hooks {
                hook.before_model(&state.id, &mut context).await;
            }
            let prompt = take_prompt(&mut context.messages);
            let request = match settings.hooks.is_empty() {
                true => fixed + tokens,
                false => request_tokens(&context, &prompt),
            };
            // A tool that was ended may have told late what it spent.
            state.count_expenses();
            if let Err(why) = state.spent.admit(request, &settings.limits) {
                return Step::End(EndReason::Budget(why));
            }
            let started = Instant::now();
            let span = span::chat(self.provider, &state.id);
            let heard = self.hear(state, &prompt, &context, request);
            let Some(cause) = heard.instrument(span.clone()).await else {
                break (started, request, span);
            };
            span.record("error.type", field::display(&cause));
            if cause.is_overflow() && tries < OVERFLOWS {
                tries += 1;
                state.note_overflow(request);
                let text = format!("The conversation is too long for the model: {cause}");
                self.tell(SessionEvent::Notice { text }).await;
                continue;
            }
            // That ends the turn, and nothing else.
            tracing::warn!(session = state.id, error = %cause, "the model did not answer");
            let why = cause.to_string();
            state.break_off(&why, &settings.limits);
            return Step::End(EndReason::Failed(why));
        };
        let heard = state.pending_reply.take().map(|reply| reply.fold);
        let reply = heard.unwrap_or_default().finish(started.elapsed());
        span::answered(&span, &reply);
        drop(span);
        for hook in &settings.hooks {
            hook.after_model(&state.id, &reply).await;
        }
        state.reply(reply, request, &tools, &settings.limits)
    }

    /// Listens to the model. What it says is in the state, also when it fails.
    async fn hear(
        &self,
        state: &mut SessionState,
        prompt: &str,
        context: &Context,
        request: u64,
    ) -> Option<AgentPain> {
        state.pending_reply = Some(PendingReply {
            fold: Fold::new(self.provider.name()),
            request,
        });
        let mut heard = self.provider.stream(prompt, context);
        while let Some(event) = heard.next().await {
            let event = match event {
                Ok(event) => event,
                Err(cause) => return Some(cause),
            };
            if let Some(told) = passed_on(&event) {
                self.tell(told).await;
            }
            if let Some(reply) = &mut state.pending_reply {
                reply.fold.push(event);
            }
        }
        None
    }

    /// Runs a round's calls: those that are independent side by side, the others
    /// one after another in their order.
    async fn run(&self, state: &mut SessionState, plan: Vec<Planned>) -> Step {
        let plan = self.decide(state, plan).await;
        let caller = self.caller(state, Principal::Agent);
        let mut results = Vec::with_capacity(plan.len());
        for group in plan.chunk_by(|a, b| a.independent() && b.independent()) {
            let mut calls: Vec<BoxFuture<'_, _>> = Vec::with_capacity(group.len());
            for planned in group {
                calls.push(caller.run_planned(planned).boxed());
            }
            let mut done = futures_util::stream::iter(calls).buffer_unordered(SIDE_BY_SIDE);
            while let Some(result) = done.next().await {
                results.push(result);
            }
        }
        results.sort_by_key(|call| call.at);
        let found = std::mem::take(&mut *lock(&caller.context.found));
        drop(caller);
        state.count_expenses();
        let (notices, step) = state.results(results);
        found.iter().for_each(|name| state.remember_tool(name));
        for text in notices.user {
            self.tell(SessionEvent::Notice { text }).await;
        }
        self.save(state).await;
        match self.wanted.is_some_and(|wanted| wanted.is_given()) {
            true => Step::End(EndReason::Answered),
            false => step,
        }
    }

    /// The schema of the answer, for a provider that can keep to one.
    fn native_output(&self) -> Option<Arc<Value>> {
        let wanted = self.wanted.filter(|_| self.provider.structured_output())?;
        Some(Arc::new(wanted.schema().clone()))
    }

    /// The tools, and the one that takes the answer where the API has no form for
    /// it.
    fn tools(&self, tools: Arc<ToolSet>) -> Arc<ToolSet> {
        match self.wanted.filter(|_| !self.provider.structured_output()) {
            None => tools,
            Some(wanted) => match tools.with(Arc::new(Arc::clone(wanted))) {
                Ok(tools) => Arc::new(tools),
                Err(_) => tools,
            },
        }
    }

    /// Has a round's calls approved. While any of them waits, nothing of the
    /// round runs and the state is on the disk, so that a restart loses nothing
    /// and repeats nothing.
    async fn decide(&self, state: &mut SessionState, plan: Vec<Planned>) -> Vec<Planned> {
        let caller = self.caller(state, Principal::Agent);
        if !plan.iter().any(|planned| caller.needs_consent(planned)) {
            return caller.decide(plan).await;
        }
        state.set_deciding(true);
        self.save(state).await;
        let plan = caller.decide(plan).await;
        state.set_deciding(false);
        self.save(state).await;
        plan
    }

    pub(super) fn caller(&self, state: &SessionState, principal: Principal) -> Caller<'_> {
        Caller {
            settings: &self.inner.settings,
            events: self.events,
            grants: Arc::clone(&state.grants),
            context: ToolContext {
                session: state.id.clone(),
                principal,
                todos: Arc::clone(&state.todos),
                found: Arc::default(),
                expenses: state.expenses.clone(),
                progress: Progress::default(),
            },
        }
    }

    pub(super) async fn tell(&self, event: SessionEvent) {
        // When nobody listens the turn is about to be cancelled.
        let _ = self.events.send(event).await;
    }

    pub(super) async fn save(&self, state: &SessionState) {
        let Some(file) = self.file.cloned() else {
            return;
        };
        let saved = match serde_json::to_vec(state) {
            Err(error) => Err(error.to_string()),
            Ok(json) => match tokio::task::spawn_blocking(move || file.save(&json)).await {
                Ok(saved) => saved.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            },
        };
        if let Err(error) = saved {
            tracing::error!(session = state.id, error, "the session was not saved");
            let text = format!("The session could not be saved: {error}");
            self.tell(SessionEvent::Notice { text }).await;
        }
    }
}

/// What the user said last goes to the provider as the prompt, when it is text.
fn take_prompt(messages: &mut Vec<Message>) -> String {
    match messages
        .last()
        .map(|last| (last.role, last.segments.as_slice()))
    {
        Some((Role::User, [ContentSegment::Text { text }])) => {
            let prompt = text.clone();
            messages.pop();
            prompt
        }
        _ => String::new(),
    }
}

fn passed_on(event: &Event) -> Option<SessionEvent> {
    Some(match event {
        Event::Text(text) => SessionEvent::Text { text: text.clone() },
        Event::Reasoning(text) if !text.is_empty() => {
            SessionEvent::Reasoning { text: text.clone() }
        }
        Event::Segment(ContentSegment::Provider { .. }) => return None,
        Event::Segment(segment) => SessionEvent::Segment {
            segment: segment.clone(),
        },
        Event::Warning(text) => SessionEvent::Notice { text: text.clone() },
        Event::Activity => SessionEvent::Activity,
        Event::Waiting { why, wait } => SessionEvent::Waiting {
            why: why.clone(),
            seconds: wait.as_secs_f64(),
        },
        _ => return None,
    })
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
