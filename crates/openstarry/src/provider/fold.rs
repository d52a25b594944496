//! Folds a stream of events into a reply. Pure: no I/O, no clock.

use super::Event;
use crate::pain::{AgentPain, excerpt};
use crate::segment::{
    BrokenArgs, ContentSegment, Metadata, ProviderResponse, StopReason, ToolCall, Usage,
};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// Arguments longer than this are broken, whatever they hold.
const MAX_ARGUMENTS: usize = 1024 * 1024;
/// Calls in one reply.
const MAX_CALLS: usize = 128;

/// A reply in the making.
#[derive(Debug, Default)]
pub struct Fold {
    segments: Vec<ContentSegment>,
    metadata: Metadata,
    calls: HashMap<usize, OpenCall>,
    ids: HashSet<String>,
}

#[derive(Debug)]
struct OpenCall {
    segment: usize,
    json: String,
    closed: bool,
}

impl Fold {
    /// An empty reply of the provider with this name.
    pub fn new(provider: &str) -> Self {
        Self {
            metadata: Metadata {
                provider: provider.into(),
                ..Metadata::default()
            },
            ..Self::default()
        }
    }

    /// Takes one event.
    pub fn push(&mut self, event: Event) {
        match event {
            Event::Text(more) => match self.segments.last_mut() {
                Some(ContentSegment::Text { text }) => text.push_str(&more),
                _ if more.is_empty() => {}
                _ => self.segments.push(ContentSegment::text(more)),
            },
            Event::Reasoning(more) => match self.segments.last_mut() {
                Some(ContentSegment::Reasoning { text }) => text.push_str(&more),
                _ => self.segments.push(ContentSegment::Reasoning { text: more }),
            },
            Event::CallStart { index, id, name } => self.start(index, id, name),
            Event::CallArguments { index, json } => self.arguments(index, &json),
            Event::CallEnd { index } => self.close(index),
            Event::Segment(segment) => self.segments.push(segment),
            Event::Usage(usage) => self.usage(usage),
            Event::Model(model) => self.metadata.model = Some(model),
            Event::Warning(warning) => self.metadata.warnings.push(warning),
            Event::Extra(key, value) => {
                self.metadata.extra.insert(key, value);
            }
            Event::Waiting { .. } | Event::Activity => {}
            Event::Finish(reason) => self.metadata.stop_reason = Some(reason),
        }
    }

    /// The whole reply.
    pub fn finish(mut self, latency: Duration) -> ProviderResponse {
        let open: Vec<usize> = self.calls.keys().copied().collect();
        for index in open {
            self.close(index);
        }
        // Some APIs say "stop" although they called a tool.
        let called = self
            .segments
            .iter()
            .any(|segment| segment.as_call().is_some());
        match self.metadata.stop_reason {
            Some(StopReason::EndTurn) if called => {
                self.metadata.stop_reason = Some(StopReason::ToolUse);
            }
            Some(ref stop) if stop.cuts() => self.mark_cut_call(),
            _ => {}
        }
        self.metadata.latency_ms = Some(latency.as_millis() as u64);
        ProviderResponse {
            segments: self.segments,
            metadata: self.metadata,
        }
    }

    /// A call that a limit cut off before its arguments began looks like one
    /// without arguments.
    fn mark_cut_call(&mut self) {
        if let Some(ContentSegment::ToolCall { tool_call }) = self
            .segments
            .iter_mut()
            .rfind(|segment| !matches!(segment, ContentSegment::Provider { .. }))
            && tool_call.args == Value::Object(Default::default())
        {
            tool_call.args = Value::Null;
            tool_call.broken = Some(BrokenArgs {
                raw: String::new(),
                error: "they were cut off".into(),
            });
        }
    }

    /// The failure to report when the stream broke: the cause alone when nothing
    /// had been said, else with what had.
    pub fn interrupt(self, cause: AgentPain) -> AgentPain {
        let partial = self.heard();
        match partial.segments.is_empty() {
            true => cause,
            false => AgentPain::Interrupted {
                partial: Box::new(partial),
                cause: Box::new(cause),
            },
        }
    }

    /// What had been said when the stream broke. Calls that were not complete
    /// are left out, since nobody knows what they would have said.
    pub fn heard(mut self) -> ProviderResponse {
        let open: HashSet<usize> = self
            .calls
            .values()
            .filter(|call| !call.closed)
            .map(|call| call.segment)
            .collect();
        let mut at = 0;
        self.segments.retain(|_| {
            at += 1;
            !open.contains(&(at - 1))
        });
        ProviderResponse {
            segments: self.segments,
            metadata: self.metadata,
        }
    }

    fn start(&mut self, index: usize, id: Option<String>, name: String) {
        if self.calls.contains_key(&index) {
            return;
        }
        if self.calls.len() >= MAX_CALLS {
            let warning = format!("a call of {name} was left out: over {MAX_CALLS} in one reply");
            return self.push(Event::Warning(warning));
        }
        let id = id
            .filter(|id| !id.is_empty() && !self.ids.contains(id))
            .unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        self.ids.insert(id.clone());
        self.calls.insert(
            index,
            OpenCall {
                segment: self.segments.len(),
                json: String::new(),
                closed: false,
            },
        );
        self.segments.push(ContentSegment::ToolCall {
            tool_call: ToolCall::new(id, name, Value::Null),
        });
    }

    fn arguments(&mut self, index: usize, json: &str) {
        if let Some(call) = self.calls.get_mut(&index).filter(|call| !call.closed) {
            // One byte over is enough to know that it is too long.
            let room = (MAX_ARGUMENTS + 1).saturating_sub(call.json.len());
            call.json.push_str(excerpt(json, room));
        }
    }

    fn close(&mut self, index: usize) {
        let Some(call) = self.calls.get_mut(&index).filter(|call| !call.closed) else {
            return;
        };
        call.closed = true;
        let json = std::mem::take(&mut call.json);
        let Some(ContentSegment::ToolCall { tool_call }) = self.segments.get_mut(call.segment)
        else {
            return;
        };
        match read_arguments(&json) {
            Ok(args) => tool_call.args = args,
            Err(error) => tool_call.broken = Some(BrokenArgs { raw: json, error }),
        }
    }

    fn usage(&mut self, new: Usage) {
        let usage = self.metadata.usage.get_or_insert_default();
        for (field, value) in [
            (&mut usage.input_tokens, new.input_tokens),
            (&mut usage.output_tokens, new.output_tokens),
            (&mut usage.cached_tokens, new.cached_tokens),
        ] {
            if value > 0 {
                *field = value;
            }
        }
    }
}

/// A tool without parameters is called with no text at all by some APIs; any
/// other text that is no JSON is an error and never an empty object.
fn read_arguments(json: &str) -> Result<Value, String> {
    if json.len() > MAX_ARGUMENTS {
        return Err(format!("longer than {MAX_ARGUMENTS} bytes"));
    }
    if json.trim().is_empty() {
        return Ok(Value::Object(Default::default()));
    }
    serde_json::from_str(json).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fold(events: impl IntoIterator<Item = Event>) -> ProviderResponse {
        let mut fold = Fold::new("test");
        events.into_iter().for_each(|event| fold.push(event));
        fold.finish(Duration::ZERO)
    }

    fn start(index: usize, id: &str) -> Event {
        Event::CallStart {
            index,
            id: (!id.is_empty()).then(|| id.into()),
            name: "t".into(),
        }
    }

    fn arguments(index: usize, json: &str) -> Event {
        Event::CallArguments {
            index,
            json: json.into(),
        }
    }

    #[test]
    fn interleaved_calls_keep_their_own_arguments_and_order() {
        let reply = fold([
            Event::Text("a".into()),
            start(0, "x"),
            start(1, "y"),
            arguments(1, "{\"n\":"),
            arguments(0, "{\"n\":0}"),
            arguments(1, "1}"),
            Event::CallEnd { index: 0 },
            Event::Text("b".into()),
        ]);
        let args: Vec<_> = reply.calls().map(|call| call.args.clone()).collect();
        assert_eq!(args, [json!({"n": 0}), json!({"n": 1})]);
        assert_eq!(reply.segments[0], ContentSegment::text("a"));
        assert_eq!(reply.segments[3], ContentSegment::text("b"));
    }

    #[test]
    fn broken_arguments_are_kept_as_they_came_and_never_become_an_empty_object() {
        let reply = fold([start(0, "x"), arguments(0, "{\"path\": \"a")]);
        let call = reply.calls().next().unwrap();
        assert_eq!(call.args, Value::Null);
        assert_eq!(call.broken.as_ref().unwrap().raw, "{\"path\": \"a");
    }

    #[test]
    fn missing_empty_and_repeated_ids_become_uuids() {
        let reply = fold([start(0, "same"), start(1, "same"), start(2, "")]);
        let ids: HashSet<_> = reply.calls().map(|call| call.id().to_owned()).collect();
        assert_eq!(ids.len(), 3);
        assert!(ids.contains("same"));
    }

    #[test]
    fn deep_and_long_arguments_are_broken_and_bounded() {
        let deep = "[".repeat(100_000);
        let long = format!("\"{}\"", "x".repeat(2 * MAX_ARGUMENTS));
        let reply = fold([
            start(0, "a"),
            arguments(0, &deep),
            start(1, "b"),
            arguments(1, &long),
        ]);
        assert!(reply.calls().all(|call| call.broken.is_some()));
        assert!(
            reply
                .calls()
                .all(|call| call.args_text().len() <= MAX_ARGUMENTS + 1)
        );
    }

    #[test]
    fn too_many_calls_are_left_out_with_a_warning() {
        let reply = fold((0..MAX_CALLS + 5).map(|index| start(index, "")));
        assert_eq!(reply.calls().count(), MAX_CALLS);
        assert_eq!(reply.metadata.warnings.len(), 5);
    }

    #[test]
    fn a_broken_stream_keeps_what_was_said_but_no_half_call() {
        let mut fold = Fold::new("test");
        for event in [
            Event::Text("so far".into()),
            start(0, "x"),
            arguments(0, "{"),
        ] {
            fold.push(event);
        }
        let AgentPain::Interrupted { partial, .. } = fold.interrupt(AgentPain::Network("x".into()))
        else {
            panic!("what was said is lost");
        };
        assert_eq!(partial.segments, [ContentSegment::text("so far")]);
    }

    #[test]
    fn a_call_that_the_limit_cut_before_its_arguments_is_broken_and_not_empty() {
        let cut = |reason| {
            fold([
                start(0, "x"),
                arguments(0, "{\"n\":1}"),
                start(1, "y"),
                Event::Finish(reason),
            ])
        };
        let broken = |reply: ProviderResponse| -> Vec<bool> {
            reply.calls().map(|call| call.broken.is_some()).collect()
        };
        for stop in [
            StopReason::MaxTokens,
            StopReason::ContextFull,
            StopReason::Other("abort".into()),
        ] {
            assert_eq!(broken(cut(stop)), [false, true]);
        }
        assert_eq!(broken(cut(StopReason::ToolUse)), [false, false]);
    }

    #[test]
    fn usage_told_in_two_parts_is_one() {
        let reply = fold([
            Event::Usage(Usage {
                input_tokens: 7,
                ..Usage::default()
            }),
            Event::Usage(Usage {
                output_tokens: 3,
                ..Usage::default()
            }),
        ]);
        assert_eq!(reply.metadata.usage.unwrap().total(), 10);
    }
}
