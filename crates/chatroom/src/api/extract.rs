//! Reading requests: whatever cannot be read becomes a row of the error table.

use crate::{
    app::App,
    error::{Error, Result},
};
use axum::{
    body::to_bytes,
    extract::{FromRequest, FromRequestParts, Request},
    http::{header, request::Parts},
};
use protocol::{ErrorCode, RoomId, UserId};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::time::Duration;
use utoipa::ToSchema;

/// The largest body that is read.
const MAX_BODY: usize = 64 * 1024;

/// A JSON body.
pub struct Json<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = Error;

    async fn from_request(request: Request, app: &App) -> Result<Self> {
        let body = Body::read(app, request, MAX_BODY).await?;
        if body.bytes.is_empty() {
            return Err(Error::bad_request("The body is empty; send a JSON object"));
        }
        body.parse().map(Self)
    }
}

/// A JSON body that may be left out where everything in it is optional.
pub struct JsonOrEmpty<T>(pub T);

impl<T: DeserializeOwned + Default> FromRequest<App> for JsonOrEmpty<T> {
    type Rejection = Error;

    async fn from_request(request: Request, app: &App) -> Result<Self> {
        let body = Body::read(app, request, MAX_BODY).await?;
        match body.bytes.is_empty() {
            true => Ok(Self(T::default())),
            false => body.parse().map(Self),
        }
    }
}

/// A body of at most so many bytes, which arrives in time.
pub async fn read_body(app: &App, request: Request, most: usize) -> Result<bytes::Bytes> {
    let seconds = app.config.limits.body_seconds;
    let reading = to_bytes(request.into_body(), most);
    let read = match seconds {
        0 => reading.await,
        _ => tokio::time::timeout(Duration::from_secs(seconds), reading)
            .await
            .map_err(|_| {
                Error::bad_request(format!("The body did not arrive within {seconds} s"))
            })?,
    };
    read.map_err(|error| {
        // The limit's own error is the only one that tells of a length.
        match std::error::Error::source(&error) {
            Some(source) if source.is::<http_body_util::LengthLimitError>() => Error::new(
                ErrorCode::PayloadTooLarge,
                format!("The body is larger than {most} bytes"),
            ),
            _ => Error::bad_request("The body could not be read to its end"),
        }
    })
}

/// A body that says whether it is JSON.
pub struct Body {
    bytes: bytes::Bytes,
    is_json: bool,
}

impl Body {
    pub async fn read(app: &App, request: Request, most: usize) -> Result<Self> {
        let content_type = request.headers().get(header::CONTENT_TYPE);
        let is_json = content_type
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| {
                let essence = value
                    .split(';')
                    .next()
                    .unwrap_or_default()
                    .trim()
                    .to_ascii_lowercase();
                essence == "application/json" || essence.ends_with("+json")
            });
        let bytes = read_body(app, request, most).await?;
        Ok(Self { bytes, is_json })
    }

    /// The JSON object in it.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        if !self.is_json {
            return Err(Error::bad_request(
                "Send the body with Content-Type: application/json",
            ));
        }
        // Fields that nobody reads are checked too: what is no UTF-8 is no JSON.
        let text = std::str::from_utf8(&self.bytes)
            .map_err(|_| Error::bad_request("The body is not UTF-8, so it is no JSON"))?;
        // An array would be read as an object's fields in their order.
        if !text.trim_start().starts_with('{') {
            return Err(Error::bad_request("The body must be a JSON object"));
        }
        let value = serde_json::from_str(text)
            .or_else(|error| with_whole_numbers(text).ok_or(error))
            .map_err(|error| Error::bad_request(format!("The body does not fit: {error}")))?;
        if self.bytes.windows(6).any(|escape| escape == b"\\u0000") && self.holds_nul() {
            return Err(Error::bad_request(
                "Text must not hold the character U+0000",
            ));
        }
        Ok(value)
    }

    /// Whether any text in the document holds a NUL, which PostgreSQL cannot store.
    fn holds_nul(&self) -> bool {
        fn walk(value: &Value) -> bool {
            match value {
                Value::String(text) => text.contains('\0'),
                Value::Array(items) => items.iter().any(walk),
                Value::Object(fields) => fields
                    .iter()
                    .any(|(key, value)| key.contains('\0') || walk(value)),
                _ => false,
            }
        }
        serde_json::from_slice::<Value>(&self.bytes).is_ok_and(|value| walk(&value))
    }
}

/// Reads a body whose whole numbers are written with a fraction: `42.0` is as good as `42`.
fn with_whole_numbers<T: DeserializeOwned>(text: &str) -> Option<T> {
    fn whole(value: &mut Value) {
        match value {
            Value::Number(number) => {
                let fits = |n: &f64| n.fract() == 0.0 && n.abs() <= Seq::LARGEST as f64;
                if let Some(n) = number.as_f64().filter(|n| number.is_f64() && fits(n)) {
                    *value = Value::from(n as i64);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(whole),
            Value::Object(fields) => fields.values_mut().for_each(whole),
            _ => {}
        }
    }
    let mut value = serde_json::from_str(text).ok()?;
    whole(&mut value);
    serde_json::from_value(value).ok()
}

/// A query string.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<App> for Query<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self> {
        refuse_nul("query", parts.uri.query().unwrap_or_default())?;
        axum::extract::Query::try_from_uri(&parts.uri)
            .map(|query| Self(query.0))
            .map_err(|error| {
                Error::bad_request(format!("The query does not fit: {}", error.body_text()))
            })
    }
}

/// Parameters of the path.
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Path<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        refuse_nul("path", parts.uri.path())?;
        axum::extract::Path::<T>::from_request_parts(parts, app)
            .await
            .map(|path| Self(path.0))
            .map_err(|error| {
                Error::bad_request(format!("The path does not fit: {}", error.body_text()))
            })
    }
}

/// PostgreSQL cannot even be asked about text that holds a NUL.
fn refuse_nul(part: &str, encoded: &str) -> Result<()> {
    if encoded.contains("%00") {
        return Err(Error::bad_request(format!(
            "The {part} must not hold the character U+0000"
        )));
    }
    Ok(())
}

/// A message's place in its room: a whole number that every JSON parser reads exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i64")]
pub struct Seq(pub i64);

impl Seq {
    /// The largest there can be.
    pub const LARGEST: i64 = (1 << 53) - 1;
}

impl TryFrom<i64> for Seq {
    type Error = String;

    fn try_from(number: i64) -> Result<Self, String> {
        match (0..=Self::LARGEST).contains(&number) {
            true => Ok(Self(number)),
            false => Err(format!("{number} is not between 0 and {}", Self::LARGEST)),
        }
    }
}

/// Where reading begins or ends. Programs that want the newest messages send the largest number
/// they know: whatever is larger than a [`Seq`] stands for the largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i64")]
pub struct SeqBound(pub i64);

impl TryFrom<i64> for SeqBound {
    type Error = String;

    fn try_from(number: i64) -> Result<Self, String> {
        Seq::try_from(number.min(Seq::LARGEST)).map(|seq| Self(seq.0))
    }
}

/// How a caller wants texts besides as they were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Render {
    /// Rendered for a page.
    Html,
}

/// A room's id from a path. What is no id names no room.
pub fn room(text: &str) -> Result<RoomId> {
    text.parse().map_err(|_| Error::room_not_found())
}

/// A user's id from a path. What is no id names no member.
pub fn user(text: &str) -> Result<UserId> {
    text.parse()
        .map_err(|_| Error::not_found("No such member in this room"))
}
