//! Drives a session: does what the rules say, and tells them what came of it.

use super::budget::request_tokens;
use super::call::Caller;
use super::slash::{self, Slash};
use super::state::{EndReason, Hearing, Planned, SessionState, Step};
use super::store::OpenSession;
use super::window::window;
use super::{Inner, Job, Outcome, SessionEvent, summary};
use crate::provider::{Context, Event, Fold};
use crate::segment::{ContentSegment, Message, Role, Usage, joined_text};
use crate::tool::{Principal, ToolContext};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::mpsc;

/// Calls that run side by side.
const SIDE_BY_SIDE: usize = 8;

/// Works through a session's queue until nobody can fill it any more.
pub(super) async fn serve(
    inner: Arc<Inner>,
    mut state: SessionState,
    file: Option<Arc<OpenSession>>,
    mut queue: mpsc::Receiver<Job>,
) {
    while let Some(Job { input, events }) = queue.recv().await {
        let driver = Driver {
            inner: &inner,
            events: &events,
            file: file.as_ref(),
        };
        let turns = state.history.turns.len();
        let work = AssertUnwindSafe(driver.turn(&mut state, input)).catch_unwind();
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
            None => {
                state.break_off("it was cancelled", &inner.settings.limits);
                (EndReason::Cancelled, None)
            }
        };
        driver.save(&state).await;
        let turn = state.history.turns.get(turns..).and_then(<[_]>::last);
        let trace = turn.map(|turn| turn.rounds.clone()).unwrap_or_default();
        let last = trace.last().map(|round| round.reply().to_vec());
        let outcome = Outcome {
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
    pub(super) events: &'a mpsc::Sender<SessionEvent>,
    file: Option<&'a Arc<OpenSession>>,
}

/// Why a turn ended, and what to show where that is no reply.
type Ended = (EndReason, Option<Vec<ContentSegment>>);

impl Driver<'_> {
    async fn turn(&self, state: &mut SessionState, mut input: Vec<ContentSegment>) -> Ended {
        if let [ContentSegment::Text { text }] = input.as_mut_slice() {
            if let Some(slash) = slash::parse(text, &self.inner.registry.snapshot()) {
                let shown = self.command(state, slash).await;
                return (EndReason::Command, Some(shown));
            }
            if text.starts_with("//") {
                text.remove(0);
            }
        }
        let mut step = state.begin(input);
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
            provider,
            registry,
            settings,
        } = self.inner;
        if settings.summarize {
            summary::keep_up(self, state).await;
        }
        let tools = registry.snapshot();
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
        let mut messages = window(&state.history, settings.window);
        let prompt = take_prompt(&mut messages);
        let context = Context {
            system: settings.system.clone(),
            messages,
            tools: offered,
        };
        let request = request_tokens(&context, &prompt);
        if let Err(why) = state.spent.admit(request, &settings.limits) {
            return Step::End(EndReason::Budget(why));
        }

        let started = Instant::now();
        state.hearing = Some(Hearing {
            fold: Fold::new(provider.name()),
            request,
        });
        let mut heard = provider.stream(&prompt, &context);
        let mut failure = None;
        while let Some(event) = heard.next().await {
            match event {
                Err(cause) => {
                    failure = Some(cause);
                    break;
                }
                Ok(event) => {
                    if let Some(told) = passed_on(&event) {
                        self.tell(told).await;
                    }
                    if let Some(hearing) = &mut state.hearing {
                        hearing.fold.push(event);
                    }
                }
            }
        }
        drop(heard);
        if let Some(cause) = failure {
            // That ends the turn, and nothing else.
            tracing::warn!(session = state.id, error = %cause, "the model did not answer");
            let why = cause.to_string();
            state.break_off(&why, &settings.limits);
            return Step::End(EndReason::Failed(why));
        }
        let heard = state.hearing.take().map(|hearing| hearing.fold);
        let reply = heard.unwrap_or_default().finish(started.elapsed());
        state.reply(reply, request, &tools, &settings.limits)
    }

    /// Runs a round's calls: those that are independent side by side, the others
    /// one after another in their order.
    async fn run(&self, state: &mut SessionState, plan: Vec<Planned>) -> Step {
        let caller = self.caller(state, Principal::Agent);
        let mut results = Vec::with_capacity(plan.len());
        for group in plan.chunk_by(|a, b| a.independent() && b.independent()) {
            let mut calls: Vec<BoxFuture<'_, _>> = Vec::with_capacity(group.len());
            for planned in group {
                calls.push(caller.planned(planned).boxed());
            }
            let mut done = futures_util::stream::iter(calls).buffer_unordered(SIDE_BY_SIDE);
            while let Some(result) = done.next().await {
                results.push(result);
            }
        }
        results.sort_by_key(|(at, _)| *at);
        let found = std::mem::take(&mut *lock(&caller.context.found));
        drop(caller);
        let (told, step) = state.results(results);
        found.iter().for_each(|name| state.remember_tool(name));
        for text in told.user {
            self.tell(SessionEvent::Notice { text }).await;
        }
        self.save(state).await;
        step
    }

    async fn command(&self, state: &mut SessionState, slash: Slash) -> Vec<ContentSegment> {
        let tools = self.inner.registry.snapshot();
        let text = match slash {
            Slash::Tool { name, args } => {
                let caller = self.caller(state, Principal::User);
                return caller.command(&name, args, &tools).await;
            }
            Slash::Help => {
                let own = slash::OWN
                    .iter()
                    .map(|(word, about)| format!("/{word}  {about}"));
                let tools = "Any tool can be run: /read a.txt, /fs.read {\"path\":\"a.txt\"}.";
                own.chain([
                    tools.into(),
                    "Begin with // to send a slash to the model.".into(),
                ])
                .collect::<Vec<_>>()
                .join("\n")
            }
            Slash::Tools => {
                let row = |spec: &crate::tool::ToolSpec| {
                    let risk = serde_json::to_value(spec.risk).unwrap_or_default();
                    let about = spec.description.lines().next().unwrap_or_default();
                    format!(
                        "{} ({})  {about}",
                        spec.name,
                        risk.as_str().unwrap_or_default()
                    )
                };
                tools
                    .iter()
                    .map(|tool| row(tool.spec()))
                    .collect::<Vec<_>>()
                    .join("\n")
            }
            Slash::Reset => {
                state.reset();
                "The session starts anew; what was spent stays spent.".into()
            }
            Slash::Usage => usage(state),
            Slash::Unknown(text) => text,
        };
        self.tell(SessionEvent::Text { text: text.clone() }).await;
        vec![ContentSegment::text(text)]
    }

    fn caller(&self, state: &SessionState, principal: Principal) -> Caller<'_> {
        Caller {
            settings: &self.inner.settings,
            events: self.events,
            context: ToolContext {
                session: state.id.clone(),
                principal,
                todos: Arc::clone(&state.todos),
                found: Arc::default(),
            },
        }
    }

    pub(super) async fn tell(&self, event: SessionEvent) {
        // When nobody listens the turn is about to be cancelled.
        let _ = self.events.send(event).await;
    }

    async fn save(&self, state: &SessionState) {
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

fn usage(state: &SessionState) -> String {
    let spent = &state.spent;
    let about = if spent.usage.estimated { "about " } else { "" };
    let money = match spent.money > 0.0 {
        true => format!(", {:.4} spent", spent.money),
        false => String::new(),
    };
    let Usage {
        input_tokens,
        output_tokens,
        ..
    } = spent.usage;
    format!("{about}{input_tokens} tokens read, {output_tokens} written{money}")
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
