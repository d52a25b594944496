//! What a query's parameters are bound to: what the drivers know as it is, ids and words as their
//! text.

use super::{Json, posting::json, reputation::ScoreScope, webhooks::SentEvent};
use protocol::{
    AdapterType, ConsentState, EventKind, MemberKind, MessageType, Role, RoomId, Scope, UserId,
    Via, Visibility, Wake,
};

/// A value for a parameter of a query.
pub trait Argument {
    /// As the drivers know it.
    type Bound;
    fn bound(self) -> Self::Bound;
}

macro_rules! plain_arguments {
    ($($kind:ty),+ $(,)?) => {
        $(impl Argument for $kind {
            type Bound = Self;
            fn bound(self) -> Self {
                self
            }
        })+
    };
}
plain_arguments!(i64, f64, bool, String, Vec<u8>, &str);

macro_rules! text_arguments {
    ($($kind:ty),+ $(,)?) => {
        $(impl<'a> Argument for &'a $kind {
            type Bound = &'a str;
            fn bound(self) -> &'a str {
                self.as_str()
            }
        })+
    };
}
text_arguments!(
    String,
    AdapterType,
    MemberKind,
    MessageType,
    Role,
    RoomId,
    Scope,
    UserId,
    Via,
    Visibility,
    Wake,
    ConsentState,
    EventKind,
    ScoreScope,
    SentEvent,
);

impl<T: serde::Serialize> Argument for &Json<T> {
    type Bound = String;
    fn bound(self) -> String {
        json(&self.0)
    }
}

impl<T: Argument> Argument for Option<T> {
    type Bound = Option<T::Bound>;
    fn bound(self) -> Self::Bound {
        self.map(T::bound)
    }
}

impl<'a, T> Argument for &'a Option<T>
where
    &'a T: Argument,
{
    type Bound = Option<<&'a T as Argument>::Bound>;
    fn bound(self) -> Self::Bound {
        self.as_ref().bound()
    }
}
