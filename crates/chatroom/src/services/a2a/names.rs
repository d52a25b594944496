//! How A2A clients name tasks and conversations: by room and message.

use protocol::RoomId;
use std::{fmt, str::FromStr};

/// A task: the message that asks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskName {
    pub room: RoomId,
    pub seq: i64,
}

/// A conversation: a room, or a thread in it, by the message that it begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    pub room: RoomId,
    pub root: Option<i64>,
}

impl fmt::Display for TaskName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.room, self.seq)
    }
}

impl FromStr for TaskName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let context: Context = text.parse()?;
        let (room, root) = (context.room, context.root);
        root.map(|seq| Self { room, seq }).ok_or(())
    }
}

impl FromStr for Context {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (room, root) = match text.split_once('.') {
            None => (text, None),
            Some((room, digits)) => {
                let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
                let seq = digits.parse::<i64>().map_err(|_| ())?;
                if !plain || seq < 1 {
                    return Err(());
                }
                (room, Some(seq))
            }
        };
        let room = room.parse().map_err(|_| ())?;
        Ok(Self { room, root })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_a_room_and_a_message() {
        let name: TaskName = "rm_a-b.12".parse().unwrap();
        assert_eq!((name.room.as_str(), name.seq), ("rm_a-b", 12));
        assert_eq!(name.to_string(), "rm_a-b.12");
        for bad in [
            "",
            "rm_a",
            "rm_a.",
            "rm_a.0",
            "rm_a.-1",
            "rm_a.+1",
            "rm_a.01",
            "rm_a.1.2",
            "x.1",
            "rm_a.99999999999999999999",
        ] {
            assert_eq!(bad.parse::<TaskName>(), Err(()), "{bad}");
        }
        let room: Context = "rm_a".parse().unwrap();
        assert_eq!(room.root, None);
    }
}
