use super::super::plan::PlannedAction;
use super::*;
use crate::segment::{BrokenArgs, Metadata, ToolCall};
use crate::tool::{FnTool, Registry, Risk, ToolSpec};
use serde_json::{Value, json};

fn tools() -> Arc<ToolSet> {
    let schema = json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
    let spec = ToolSpec::new("count.up", "", Risk::Safe, schema);
    let registry = Registry::new();
    registry
        .add(vec![Arc::new(FnTool::new(spec, async |_| Ok(vec![])))])
        .unwrap();
    registry.snapshot()
}

fn call(id: &str, name: &str, args: Value) -> ToolCall {
    ToolCall::new(id, name, args)
}

fn reply(calls: Vec<ToolCall>) -> ProviderResponse {
    ProviderResponse {
        segments: calls
            .into_iter()
            .map(|tool_call| ContentSegment::ToolCall { tool_call })
            .collect(),
        metadata: Metadata::default(),
    }
}

fn begun() -> SessionState {
    let mut state = SessionState::new("s");
    assert!(matches!(
        state.begin(vec![ContentSegment::text("go")]),
        Step::Ask
    ));
    state
}

fn refusal(calls: Vec<ToolCall>) -> String {
    let step = begun().reply(reply(calls), 0, &tools(), &Limits::default());
    let Step::Run(plan) = step else { panic!() };
    match &plan[0].action {
        PlannedAction::Refuse(why) | PlannedAction::Deny(why) => why.clone(),
        PlannedAction::Run(_) => panic!("it would run"),
    }
}

fn call_result(result: ToolResult) -> CallResult {
    CallResult {
        at: 0,
        result,
        denied: false,
    }
}

#[test]
fn an_unknown_tool_is_observed_with_the_nearest_names() {
    let why = refusal(vec![call("1", "count_up", json!({ "n": 1 }))]);
    assert!(
        why.contains("System observation") && why.contains("count.up"),
        "{why}"
    );
}

#[test]
fn unfit_and_broken_arguments_are_observed_and_nothing_runs() {
    let why = refusal(vec![call("1", "count.up", json!({ "n": "one" }))]);
    assert!(why.contains("/n"), "{why}");
    let mut broken = call("1", "count.up", Value::Null);
    broken.broken = Some(BrokenArgs {
        raw: "{\"n".into(),
        error: "EOF".into(),
    });
    let why = refusal(vec![broken]);
    assert!(why.contains("EOF"), "{why}");
}

#[test]
fn after_the_last_round_calls_are_answered_and_the_turn_ends() {
    let limits = Limits {
        rounds: 2,
        ..Limits::default()
    };
    let mut state = begun();
    for _ in 0..2 {
        let step = state.reply(
            reply(vec![call("same", "count.up", json!({ "n": 1 }))]),
            0,
            &tools(),
            &limits,
        );
        let Step::Run(plan) = step else { panic!() };
        let result = super::super::history::failed(&plan[0].call, "x");
        state.results(vec![call_result(result)]);
    }
    let step = state.reply(
        reply(vec![call("same", "count.up", json!({ "n": 1 }))]),
        0,
        &tools(),
        &limits,
    );
    assert!(matches!(step, Step::End(EndReason::Rounds(_))));
    let rounds = &state.history.turns[0].rounds;
    assert_eq!(rounds.len(), 3);
    assert!(rounds[2].results()[0].text().contains("limit of 2 rounds"));
    // Ids that an API gives twice are told apart.
    let ids: std::collections::HashSet<_> =
        rounds.iter().map(|r| r.results()[0].id.clone()).collect();
    assert_eq!(ids.len(), 3);
}

#[test]
fn a_session_that_fails_too_often_is_stopped_until_it_is_reset() {
    let mut state = begun();
    let mut told = Vec::new();
    let mut end = None;
    for n in 0..10 {
        let limits = Limits {
            rounds: 100,
            ..Limits::default()
        };
        let Step::Run(plan) = state.reply(
            reply(vec![call("1", "count.up", json!({ "n": 1 }))]),
            0,
            &tools(),
            &limits,
        ) else {
            panic!()
        };
        let (more, step) = state.results(vec![call_result(super::super::history::failed(
            &plan[0].call,
            "no",
        ))]);
        told.extend(more.user);
        if let Step::End(reason) = step {
            assert_eq!(n, 9);
            end = Some(reason);
        }
    }
    assert!(matches!(end, Some(EndReason::Stopped(_))));
    assert_eq!(told.len(), 2, "the fifth and the tenth in a row");
    let observed = state.history.turns[0]
        .rounds
        .iter()
        .filter(|r| !r.observations().is_empty())
        .count();
    assert_eq!(
        observed, 3,
        "the third, the sixth and the ninth identical one"
    );
    assert!(matches!(
        state.begin(vec![]),
        Step::End(EndReason::Stopped(_))
    ));
    let saved = serde_json::to_string(&state).unwrap();
    let mut resumed: SessionState = serde_json::from_str(&saved).unwrap();
    assert!(matches!(
        resumed.begin(vec![]),
        Step::End(EndReason::Stopped(_))
    ));
    resumed.reset();
    assert!(matches!(resumed.begin(vec![]), Step::Ask));
}

#[test]
fn a_turn_that_breaks_off_leaves_every_call_answered() {
    let mut state = begun();
    state.reply(
        reply(vec![call("1", "count.up", json!({ "n": 1 }))]),
        0,
        &tools(),
        &Limits::default(),
    );
    state.break_off("it was cancelled", &Limits::default());
    let round = &state.history.turns[0].rounds[0];
    assert!(round.results()[0].is_error);
    assert!(round.results()[0].text().contains("cancelled"));
}

#[test]
fn a_call_the_api_could_not_read_is_observed_and_asked_again() {
    let mut state = begun();
    let mut malformed = reply(vec![]);
    malformed.metadata.stop_reason = Some(StopReason::MalformedCall);
    let Step::Run(plan) = state.reply(malformed, 0, &tools(), &Limits::default()) else {
        panic!();
    };
    assert!(plan.is_empty());
    let (_, step) = state.results(vec![]);
    assert!(matches!(step, Step::Ask));
    assert!(state.history.turns[0].rounds[0].observations()[0].contains("could not be read"));
}
