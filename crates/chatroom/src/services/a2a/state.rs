//! Where a task stands, by what is known of it. A rule without I/O.

use protocol::a2a::TaskState;

/// What is known of a task.
pub struct TaskFacts {
    /// When it was taken back, in unix seconds.
    pub canceled_at: Option<i64>,
    /// Whether the message that asks was deleted.
    pub deleted: bool,
    /// How many members were asked.
    pub asked: usize,
    /// How many of those may still answer.
    pub pending: usize,
    /// How many answers there are.
    pub answers: usize,
    /// What an agent waits to be allowed, in words.
    pub waits_for: Option<String>,
    /// When it began, in unix seconds.
    pub began_at: i64,
    /// When the newest answer came.
    pub answered_at: Option<i64>,
}

/// Where a task stands, since when, and in which words.
#[derive(Debug, PartialEq, Eq)]
pub struct Status {
    pub state: TaskState,
    pub since: i64,
    pub words: Option<String>,
}

/// Decides where a task stands at this second.
pub fn status_of(facts: TaskFacts, task_seconds: i64, now: i64) -> Status {
    let last = facts.answered_at.unwrap_or(facts.began_at);
    let at = |state, since, words: Option<String>| Status {
        state,
        since,
        words,
    };
    let words = |text: &str| Some(text.to_owned());
    if let Some(canceled_at) = facts.canceled_at {
        return at(TaskState::Canceled, canceled_at, None);
    }
    if facts.deleted {
        return at(TaskState::Canceled, last, words("the message was deleted"));
    }
    let ends_at = facts.began_at.saturating_add(task_seconds.max(1));
    let overdue = facts.pending > 0 && now >= ends_at;
    if facts.pending > 0 && !overdue {
        return match facts.waits_for {
            Some(tool) => at(TaskState::AuthRequired, last, Some(tool)),
            None => at(TaskState::Working, last, None),
        };
    }
    match (facts.answers, facts.asked) {
        (0, 0) => at(
            TaskState::Completed,
            last,
            words("the message is in the room; nobody was asked to answer"),
        ),
        (0, _) if overdue => at(
            TaskState::Failed,
            ends_at,
            Some(format!("nobody answered within {task_seconds} s")),
        ),
        (0, _) => at(
            TaskState::Rejected,
            last,
            words("nobody of those who were asked answers"),
        ),
        _ if overdue => at(TaskState::Completed, ends_at, None),
        _ => at(TaskState::Completed, last, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> TaskFacts {
        TaskFacts {
            canceled_at: None,
            deleted: false,
            asked: 1,
            pending: 1,
            answers: 0,
            waits_for: None,
            began_at: 100,
            answered_at: None,
        }
    }

    #[test]
    fn a_task_goes_on_while_somebody_may_answer_and_not_for_ever() {
        let state = |facts, now| status_of(facts, 60, now).state;
        assert_eq!(state(facts(), 159), TaskState::Working);
        assert_eq!(state(facts(), 160), TaskState::Failed);
        let waits = || TaskFacts {
            waits_for: Some("shell".into()),
            ..facts()
        };
        assert_eq!(state(waits(), 159), TaskState::AuthRequired);
        assert_eq!(state(waits(), 160), TaskState::Failed);
        let one_of_two = || TaskFacts {
            asked: 2,
            answers: 1,
            answered_at: Some(110),
            ..facts()
        };
        assert_eq!(state(one_of_two(), 120), TaskState::Working);
        assert_eq!(state(one_of_two(), 160), TaskState::Completed);
    }

    #[test]
    fn a_task_ends_with_the_last_answer_or_with_silence() {
        let over = |asked, answers| {
            let facts = TaskFacts {
                asked,
                pending: 0,
                answers,
                answered_at: (answers > 0).then_some(120),
                ..facts()
            };
            status_of(facts, 60, 130)
        };
        assert_eq!(over(1, 1).state, TaskState::Completed);
        assert_eq!(over(1, 1).since, 120);
        assert_eq!(over(1, 0).state, TaskState::Rejected);
        assert_eq!(over(0, 0).state, TaskState::Completed);
        assert_eq!(over(0, 3).state, TaskState::Completed);
    }

    #[test]
    fn what_was_taken_back_stays_so() {
        let facts = TaskFacts {
            canceled_at: Some(105),
            answers: 1,
            pending: 0,
            answered_at: Some(110),
            ..facts()
        };
        let stands = status_of(facts, 60, 130);
        assert_eq!((stands.state, stands.since), (TaskState::Canceled, 105));
    }
}
