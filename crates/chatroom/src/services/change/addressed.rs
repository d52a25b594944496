//! Whom a message addresses. An agent that does not say what it answers is taken to answer the
//! newest message that addressed it.

use crate::store::posting::AddressedBy;
use protocol::SYSTEM_USER;

/// Who is addressed by a message, and who, having spoken, has answered what it was told.
///
/// `spoke` is the agent whose message it is; a person may speak to the agent of the same id.
pub fn addressed<'a>(
    by: AddressedBy,
    spoke: Option<&'a str>,
    to: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = (&'a str, Option<AddressedBy>)> {
    to.filter(move |user| Some(*user) != spoke && *user != SYSTEM_USER)
        .map(move |user| (user, Some(by)))
        .chain(spoke.map(|user| (user, None)))
}
