//! Requests that are not answered as they would like: a code, and words that say
//! what to change.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why a request was refused.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    error: &'static str,
    message: String,
}

/// Answers are nobody else's.
pub fn no_store() -> [(HeaderName, &'static str); 1] {
    [(header::CACHE_CONTROL, "no-store")]
}

impl Refusal {
    fn new(status: StatusCode, error: &'static str, message: impl ToString) -> Self {
        let message = message.to_string();
        Self {
            status,
            error,
            message,
        }
    }

    pub fn invalid(why: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", why)
    }

    pub fn unauthorized(why: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", why)
    }

    pub fn no_payload(name: &str, known: &[String]) -> Self {
        let known = known.join(", ");
        let message = format!("no peer of this gateway accepts {name:?}; there are: {known}");
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub fn no_address() -> Self {
        let message = "there is nothing at this address; /openapi.json tells what there is";
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub fn no_method() -> Self {
        let message = "this address takes another method; /openapi.json tells which";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method", message)
    }

    pub fn no_conversation() -> Self {
        let message = "there is no conversation of this id, or it is over";
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub fn too_large(limit: usize) -> Self {
        let message = format!("the body is over {limit} bytes, or broke off");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    }

    pub fn slow() -> Self {
        let message = "the body did not come in time";
        Self::new(StatusCode::REQUEST_TIMEOUT, "timeout", message)
    }

    pub fn media_type() -> Self {
        let message = "send application/json or application/xml";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media_type", message)
    }

    /// By the pump, whose own words these are.
    pub fn refused(xml: &str) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", xml)
    }

    pub fn busy(why: &str) -> Self {
        let message = format!("{why}; try again soon");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let told = Json(json!({ "error": self.error, "message": self.message }));
        let mut response = (self.status, no_store(), told).into_response();
        let (name, value) = match self.status {
            StatusCode::SERVICE_UNAVAILABLE => (header::RETRY_AFTER, "5"),
            // The rest of the body is not read, so nothing can follow it.
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT => {
                (header::CONNECTION, "close")
            }
            _ => return response,
        };
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
        response
    }
}
