//! JSON-RPC: one request in a body, and its answer or its events.

use super::{
    A2aError, ErrorKind, OLDER_VERSION, Operation, OperationResult, StreamResponse, VERSION, older,
};
use serde_json::{Value, json};

/// The longest id of a request that is given back.
const MAX_ID_BYTES: usize = 256;

/// How an answer is written.
#[derive(Debug, Clone, PartialEq)]
pub enum Binding {
    /// As JSON-RPC, to the request with this id.
    Rpc {
        /// The request's id.
        id: Value,
        /// Whether the client speaks 0.3.
        older: bool,
    },
    /// As HTTP+JSON.
    Http,
}

/// A request that was read.
#[derive(Debug, PartialEq)]
pub struct ParsedRequest {
    /// How it is answered.
    pub binding: Binding,
    /// What is asked, or why that cannot be said.
    pub operation: Result<Operation, A2aError>,
}

impl ParsedRequest {
    /// Reads a body of JSON-RPC, with the version that the caller names.
    pub(super) fn of_rpc(body: &[u8], version: Option<&str>) -> Self {
        let value: Value = match serde_json::from_slice(body) {
            Ok(value) => value,
            Err(error) => {
                let error = A2aError::new(
                    ErrorKind::ParseError,
                    format!("The body is no JSON that is read here: {error}"),
                );
                return Self::refused(Value::Null, false, error);
            }
        };
        let invalid = |words: &str| A2aError::new(ErrorKind::InvalidRequest, words);
        let Value::Object(mut request) = value else {
            let error = invalid("Send one request as a JSON object; batches are not taken");
            return Self::refused(Value::Null, false, error);
        };
        let id = request.remove("id").unwrap_or_default();
        let id_fits = match &id {
            Value::String(text) => text.len() <= MAX_ID_BYTES,
            Value::Number(_) | Value::Null => true,
            _ => false,
        };
        if !id_fits {
            let error = invalid("id is a number or a short text");
            return Self::refused(Value::Null, false, error);
        }
        if request.get("jsonrpc") != Some(&json!("2.0")) {
            return Self::refused(id, false, invalid("jsonrpc must be \"2.0\""));
        }
        let Some(Value::String(method)) = request.remove("method") else {
            return Self::refused(id, false, invalid("method is missing"));
        };
        let params = match request.remove("params") {
            None | Some(Value::Null) => json!({}),
            Some(params) => params,
        };
        let older = method.contains('/');
        let operation = speaks(version, older).and_then(|()| match older {
            true => older::operation(&method, params),
            false => Operation::read(&method, params),
        });
        Self {
            binding: Binding::Rpc { id, older },
            operation,
        }
    }

    fn refused(id: Value, older: bool, error: A2aError) -> Self {
        Self {
            binding: Binding::Rpc { id, older },
            operation: Err(error),
        }
    }
}

/// Whether a method's version is the one that the caller names. Who names none may speak either: the
/// methods have different names.
fn speaks(version: Option<&str>, older: bool) -> Result<(), A2aError> {
    let version = version.map(str::trim).filter(|version| !version.is_empty());
    match (version, older) {
        (None, _) | (Some(VERSION), false) | (Some(OLDER_VERSION), true) => Ok(()),
        (Some(VERSION | OLDER_VERSION), _) => Err(A2aError::new(
            ErrorKind::MethodNotFound,
            "There is no such method in the version that A2A-Version names",
        )),
        (Some(_), _) => Err(unsupported_version()),
    }
}

/// The version that HTTP+JSON is asked in.
pub(super) fn check_http_version(version: Option<&str>) -> Result<(), A2aError> {
    match version.map(str::trim).filter(|version| !version.is_empty()) {
        None | Some(VERSION) => Ok(()),
        Some(_) => Err(unsupported_version()),
    }
}

fn unsupported_version() -> A2aError {
    A2aError::new(
        ErrorKind::VersionNotSupported,
        "A2A-Version must be 1.0; over JSON-RPC it may be 0.3",
    )
}

impl Binding {
    /// The body of an answer.
    pub fn write_result(&self, outcome: &OperationResult) -> Value {
        match self {
            Self::Http => outcome.to_json(),
            Self::Rpc { id, older } => {
                let result = match older {
                    true => older::write_result(outcome),
                    false => outcome.to_json(),
                };
                json!({"jsonrpc": "2.0", "id": id, "result": result})
            }
        }
    }

    /// The data of an event.
    pub fn event(&self, event: &StreamResponse) -> Value {
        match self {
            Self::Http => json!(event),
            Self::Rpc { id, older } => {
                let result = match older {
                    true => older::event(event),
                    false => json!(event),
                };
                json!({"jsonrpc": "2.0", "id": id, "result": result})
            }
        }
    }

    /// The status and the body of an error. JSON-RPC's errors travel with 200, but for those that HTTP's
    /// own machinery reads: who is nobody, and who has to wait.
    pub fn error(&self, error: &A2aError) -> (u16, Value) {
        match self {
            Self::Http => (error.kind.status(), error.to_http()),
            Self::Rpc { id, .. } => {
                let status = match error.kind.status() {
                    status @ (401 | 429 | 503) => status,
                    _ => 200,
                };
                let body = json!({"jsonrpc": "2.0", "id": id, "error": error.to_rpc()});
                (status, body)
            }
        }
    }
}
