//! The errors of A2A, and how each binding writes them.

use serde_json::{Value, json};

macro_rules! kinds {
    ($($(#[$meta:meta])* $kind:ident = $code:literal, $status:literal, $grpc:literal, $reason:literal;)+) => {
        /// What went wrong, as programs read it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ErrorKind { $($(#[$meta])* $kind),+ }

        impl ErrorKind {
            /// The code of JSON-RPC.
            pub const fn code(self) -> i64 {
                match self { $(Self::$kind => $code),+ }
            }

            /// The status of HTTP.
            pub const fn status(self) -> u16 {
                match self { $(Self::$kind => $status),+ }
            }

            /// The status's word in HTTP+JSON.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$kind => $grpc),+ }
            }

            /// What tells errors of one status apart.
            pub const fn reason(self) -> &'static str {
                match self { $(Self::$kind => $reason),+ }
            }
        }
    };
}

kinds! {
    /// The body is no JSON.
    ParseError = -32700, 400, "INVALID_ARGUMENT", "PARSE_ERROR";
    /// The body is no request.
    InvalidRequest = -32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST";
    /// There is no such method.
    MethodNotFound = -32601, 404, "NOT_FOUND", "METHOD_NOT_FOUND";
    /// Something in the request is wrong.
    InvalidParams = -32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS";
    /// The server failed.
    Internal = -32603, 500, "INTERNAL", "INTERNAL_ERROR";
    /// There is no such task, or none that the caller may know of.
    TaskNotFound = -32001, 404, "NOT_FOUND", "TASK_NOT_FOUND";
    /// The task is over already.
    TaskNotCancelable = -32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE";
    /// This agent sends no notifications.
    PushNotificationNotSupported = -32003, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED";
    /// This agent does not do that.
    UnsupportedOperation = -32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION";
    /// A part is of a sort that this agent does not read.
    ContentTypeNotSupported = -32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED";
    /// This version of A2A is not spoken here.
    VersionNotSupported = -32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED";
    /// The bearer is missing, or no good.
    Unauthenticated = -32010, 401, "UNAUTHENTICATED", "UNAUTHENTICATED";
    /// The caller may not do that.
    PermissionDenied = -32011, 403, "PERMISSION_DENIED", "PERMISSION_DENIED";
    /// There is no such thing, or none that the caller may know of.
    NotFound = -32012, 404, "NOT_FOUND", "NOT_FOUND";
    /// A limit was hit.
    ResourceExhausted = -32013, 429, "RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED";
    /// It cannot be done as things are.
    Conflict = -32014, 409, "ABORTED", "CONFLICT";
    /// The server cannot answer now.
    Unavailable = -32015, 503, "UNAVAILABLE", "UNAVAILABLE";
}

impl ErrorKind {
    /// Whether A2A itself, and not JSON-RPC or HTTP, knows the error.
    fn is_of_a2a(self) -> bool {
        (-32009..=-32001).contains(&self.code())
    }
}

/// A request that was refused or failed, with words that say what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct A2aError {
    /// What went wrong.
    pub kind: ErrorKind,
    /// In words.
    pub message: String,
}

impl A2aError {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// Something in the request is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidParams, message)
    }

    /// There is no such task, or none that the caller may know of: the same words for both.
    pub fn task_not_found() -> Self {
        Self::new(
            ErrorKind::TaskNotFound,
            "There is no such task, or none that you may see",
        )
    }

    /// The object of JSON-RPC.
    pub fn to_rpc(&self) -> Value {
        json!({"code": self.kind.code(), "message": self.message, "data": [self.info()]})
    }

    /// The body of HTTP+JSON.
    pub fn to_http(&self) -> Value {
        json!({"error": {
            "code": self.kind.status(),
            "status": self.kind.word(),
            "message": self.message,
            "details": [self.info()],
        }})
    }

    fn info(&self) -> Value {
        let domain = match self.kind.is_of_a2a() {
            true => "a2a-protocol.org",
            false => "starchild",
        };
        json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": self.kind.reason(),
            "domain": domain,
        })
    }
}
