//! Whom a message addresses. An agent that does not say what it answers is taken to answer the
//! newest message that addressed it.

use crate::store::posting::AddressedBy;
use protocol::{SYSTEM_USER, UserId};

/// Who is addressed by a message, and who, having spoken, has answered what it was told.
///
/// `spoke` is the agent whose message it is; a person may speak to the agent of the same id.
pub fn addressed<'a>(
    by: AddressedBy,
    spoke: Option<&'a UserId>,
    to: impl Iterator<Item = &'a UserId>,
) -> impl Iterator<Item = (&'a UserId, Option<AddressedBy>)> {
    to.filter(move |user| Some(*user) != spoke && user.as_str() != SYSTEM_USER)
        .map(move |user| (user, Some(by)))
        .chain(spoke.map(|user| (user, None)))
}
