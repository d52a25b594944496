//! Calls that fail again and again: told to the model, then to the user, then
//! the session stops. Pure.

use crate::segment::ToolCall;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

const IDENTICAL: u32 = 3;
const IN_A_ROW: u32 = 5;
const RECENT: usize = 10;
const RECENT_FAILED: usize = 8;
const REMEMBERED: usize = 64;

/// What a failure leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// The same call failed too often: the model should try another way.
    TellModel(String),
    /// Too many failures in a row: the user should know.
    TellUser(String),
    /// Most of the last calls failed: the session stops until it is reset.
    Stop(String),
}

/// The failures of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Failures {
    /// How often a call failed since it last succeeded, the latest last.
    identical: VecDeque<(u64, u32)>,
    in_a_row: u32,
    recent: VecDeque<bool>,
}

impl Failures {
    /// Takes the outcome of a call.
    pub fn record(&mut self, call: &ToolCall, failed: bool) -> Vec<Alarm> {
        let key = fingerprint(call);
        let known = self.identical.iter().position(|(other, _)| *other == key);
        let before = known
            .and_then(|at| self.identical.remove(at))
            .map_or(0, |(_, n)| n);
        self.recent.push_back(failed);
        while self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        if !failed {
            self.in_a_row = 0;
            return Vec::new();
        }
        self.in_a_row += 1;
        self.identical.push_back((key, before + 1));
        while self.identical.len() > REMEMBERED {
            self.identical.pop_front();
        }

        let mut alarms = Vec::new();
        if (before + 1).is_multiple_of(IDENTICAL) {
            alarms.push(Alarm::TellModel(format!(
                "{} failed {} times with the same arguments. Do not repeat the call: change the \
                 arguments, use another tool, or say what stands in the way.",
                call.name,
                before + 1
            )));
        }
        if self.in_a_row.is_multiple_of(IN_A_ROW) {
            let text = format!("{} tool calls in a row failed", self.in_a_row);
            alarms.push(Alarm::TellUser(text));
        }
        let failures = self.recent.iter().filter(|failed| **failed).count();
        if self.recent.len() == RECENT && failures >= RECENT_FAILED {
            alarms.push(Alarm::Stop(format!(
                "{failures} of the last {RECENT} tool calls failed"
            )));
        }
        alarms
    }
}

/// The same for the same tool with the same arguments; keys of objects are in
/// order already.
fn fingerprint(call: &ToolCall) -> u64 {
    crate::hash::fnv([call.name.as_str(), "\0", &call.args_text()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(n: u32) -> ToolCall {
        ToolCall::new("x", "t", json!({ "n": n }))
    }

    #[test]
    fn the_third_identical_failure_is_told_to_the_model() {
        let mut failures = Failures::default();
        assert!(failures.record(&call(1), true).is_empty());
        assert!(failures.record(&call(2), true).is_empty());
        assert!(failures.record(&call(1), true).is_empty());
        let alarms = failures.record(&call(1), true);
        assert!(
            matches!(alarms.as_slice(), [Alarm::TellModel(_)]),
            "{alarms:?}"
        );
    }

    #[test]
    fn a_success_of_the_same_call_forgives_it() {
        let mut failures = Failures::default();
        failures.record(&call(1), true);
        failures.record(&call(1), true);
        failures.record(&call(1), false);
        assert!(failures.record(&call(1), true).is_empty());
    }

    #[test]
    fn the_fifth_in_a_row_is_told_to_the_user() {
        let mut failures = Failures::default();
        for n in 0..4 {
            assert!(failures.record(&call(n), true).is_empty());
        }
        let alarms = failures.record(&call(9), true);
        assert!(
            matches!(alarms.as_slice(), [Alarm::TellUser(_)]),
            "{alarms:?}"
        );
    }

    #[test]
    fn eight_of_ten_stop_the_session_and_so_do_ten_of_ten() {
        for successes in 0..=3 {
            let mut failures = Failures::default();
            let mut stopped = false;
            for n in 0..10 {
                let alarms = failures.record(&call(n), n >= successes);
                stopped |= alarms.iter().any(|alarm| matches!(alarm, Alarm::Stop(_)));
                assert!(!stopped || n == 9);
            }
            assert_eq!(stopped, successes <= 2, "{successes}");
        }
    }
}
