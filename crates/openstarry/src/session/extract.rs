//! Typed answers: the API's own structured output where there is one, and else a
//! tool that the answer is given to. What does not fit goes back with the
//! validator's words.

use super::{AskError, EndReason, Session, TurnEvents};
use crate::segment::{ContentSegment, joined_text};
use crate::tool::args::Checker;
use crate::tool::{Risk, Tool, ToolContext, ToolOutput, ToolSpec};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};

/// The tool that takes the answer.
pub(super) const TOOL: &str = "final_answer";
/// How often an answer that does not fit is asked for again.
const REPAIRS: usize = 2;

/// Why there is no typed answer.
#[derive(Debug, thiserror::Error)]
pub enum ExtractError {
    /// The session takes no question.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The turn ended without an answer.
    #[error("there is no answer: {}", .0.why())]
    Ended(EndReason),
    /// The type's schema cannot be used.
    #[error("the schema of the answer: {0}")]
    Schema(String),
    /// The answer does not fit, after all repairs.
    #[error("the answer does not fit: {why}: {answer}")]
    Unfit {
        /// What is wrong with it.
        why: String,
        /// The beginning of it.
        answer: String,
    },
}

/// The schema of an answer, and the place for it.
pub(crate) struct Wanted {
    spec: ToolSpec,
    checker: Checker,
    given: Mutex<Option<Value>>,
}

impl Wanted {
    fn of<T: JsonSchema>() -> Result<Self, ExtractError> {
        let about = "Give your final answer by calling this, when you have it.";
        let spec = ToolSpec::of::<T>(TOOL, about, Risk::Safe);
        let checker = Checker::new(&spec.parameters);
        let checker = checker.map_err(|error| ExtractError::Schema(error.to_string()))?;
        Ok(Self {
            spec,
            checker,
            given: Mutex::default(),
        })
    }

    pub(crate) fn schema(&self) -> &Value {
        &self.spec.parameters
    }

    /// Whether the answer was given to the tool.
    pub(crate) fn is_given(&self) -> bool {
        self.lock().is_some()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Value>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer: what the tool was given, or the JSON that was said.
    fn take(&self, said: &str) -> Result<Value, String> {
        if let Some(given) = self.lock().take() {
            return Ok(given);
        }
        let value: Value =
            serde_json::from_str(json_of(said)).map_err(|error| error.to_string())?;
        self.checker
            .check(&value)
            .map_err(|error| error.to_string())?;
        Ok(value)
    }
}

/// The JSON of an answer that may stand between fences.
fn json_of(said: &str) -> &str {
    let said = said.trim();
    let inner = said.strip_prefix("```").and_then(|s| s.strip_suffix("```"));
    inner.map_or(said, |inner| {
        inner.trim_start_matches(char::is_alphanumeric).trim()
    })
}

/// The tool's arguments are the answer; the session has checked them.
impl Tool for Arc<Wanted> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, args: Value, _: &'a ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            *self.lock() = Some(args);
            Ok(vec![ContentSegment::text("The answer is taken.")])
        })
    }
}

impl Session {
    /// Asks, and gives the answer as a value of `T`. Tools run as in any turn. An
    /// answer that does not fit the type's schema is sent back with what is wrong.
    ///
    /// `T` is an object: a struct, or an enum whose variants are.
    ///
    /// ```no_run
    /// # async fn example(session: openstarry::session::Session) -> Result<(), Box<dyn std::error::Error>> {
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Weather {
    ///     city: String,
    ///     /// Degrees Celsius.
    ///     degrees: f64,
    /// }
    /// let weather: Weather = session.extract("What is the weather in Taipei?").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn extract<T>(&self, question: impl Into<String>) -> Result<T, ExtractError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let wanted = Arc::new(Wanted::of::<T>()?);
        let mut words = question.into();
        for repairs in 0.. {
            let input = vec![ContentSegment::text(words)];
            let turn: TurnEvents = self.ask_for(input, Arc::clone(&wanted))?;
            let outcome = turn.outcome().await;
            if outcome.end != EndReason::Answered {
                return Err(ExtractError::Ended(outcome.end));
            }
            let said = joined_text(&outcome.segments);
            let read = wanted
                .take(&said)
                .and_then(|value| serde_json::from_value(value).map_err(|error| error.to_string()));
            let why = match read {
                Ok(answer) => return Ok(answer),
                Err(why) => why,
            };
            if repairs == REPAIRS {
                let answer = crate::pain::excerpt(&said, 300).to_owned();
                return Err(ExtractError::Unfit { why, answer });
            }
            words = format!("Your answer does not fit: {why}. Give it again, whole.");
        }
        unreachable!("the loop ends with an answer or an error")
    }
}
