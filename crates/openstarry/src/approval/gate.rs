//! Whom to ask.

use super::{Answer, Consent};
use futures_util::future::BoxFuture;
use serde_json::Value;

/// Asks someone.
pub trait Gate: Send + Sync {
    /// What the person says to a call. An answer that comes through
    /// [`super::Consents`] first counts in its place.
    fn ask<'a>(&'a self, consent: &'a Consent) -> BoxFuture<'a, Answer>;

    /// Has a form filled in for a server; `None` when nobody does.
    fn fill_in<'a>(&'a self, _form: &'a Form) -> BoxFuture<'a, Option<Value>> {
        Box::pin(async { None })
    }
}

/// What a server wants to know from the person.
#[derive(Clone, Debug)]
pub struct Form {
    /// Who asks.
    pub server: String,
    /// What for.
    pub message: String,
    /// The fields: a JSON Schema of a flat object.
    pub schema: Value,
}

/// Says no to everything.
pub struct DenyAll;

impl Gate for DenyAll {
    fn ask<'a>(&'a self, _: &'a Consent) -> BoxFuture<'a, Answer> {
        let reason = Some("nobody is here to be asked".into());
        Box::pin(async { Answer::Deny { reason } })
    }
}

/// Says yes to everything.
pub struct AllowAll;

impl Gate for AllowAll {
    fn ask<'a>(&'a self, _: &'a Consent) -> BoxFuture<'a, Answer> {
        Box::pin(async { Answer::Once })
    }
}

/// Leaves every question to whoever answers it through [`super::Consents`].
pub struct Elsewhere;

impl Gate for Elsewhere {
    fn ask<'a>(&'a self, _: &'a Consent) -> BoxFuture<'a, Answer> {
        Box::pin(std::future::pending())
    }
}
