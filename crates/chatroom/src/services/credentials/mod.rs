//! What callers prove with who they are: room keys, identity tokens, short codes of the CLI bridge,
//! and how each ends with what it was made from.

pub mod cli_keys;
pub mod identity;
pub mod key_cache;
pub mod keys;
pub mod oauth;
pub mod revocation;
pub mod sessions;
