//! chatroom
