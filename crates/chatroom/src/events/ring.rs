//! The frames of a room's last commits, for readers who hold a cursor into them.

use super::{
    frame::{Form, FrameBuffer, Frames},
    hub::Commit,
};
use protocol::Cursor;
use std::collections::VecDeque;

/// Frames held for the readers of one room, at the most. The messages beside them take about as much.
const MAX_CHANNEL_BYTES: usize = 8 * 1024 * 1024;
/// Readers that fell behind are looked for once in so many evictions.
const CUT_EVERY: u64 = 64;

/// The last commits, oldest first.
#[derive(Default)]
pub struct Ring {
    commits: VecDeque<(Cursor, Frames)>,
    /// The frames held begin after this cursor; unknown until the first commit.
    tail: Option<Cursor>,
    head: Cursor,
    bytes: usize,
    /// Up to here, frames were dropped for want of room.
    evicted: Cursor,
    evictions: u64,
}

/// What a reader finds in the ring after its cursor.
pub enum RingRead {
    /// Frames after its cursor, and where they end.
    Frames(Frames, Cursor),
    /// Nothing new.
    UpToDate,
    /// The channel does not reach back to its cursor; the log does.
    ReadLog,
    /// It fell too far behind.
    CutOff,
}

impl Ring {
    /// Adds a commit. Gives the cursor up to which frames are gone when it is time to look for
    /// readers that stand before it.
    pub fn push(&mut self, commit: Commit, capacity: usize) -> Option<Cursor> {
        if self.tail.is_some() && commit.head <= self.head {
            return None;
        }
        if self.tail.is_none() || self.head != commit.from {
            // Commits in between are not published yet, or came from another node.
            self.skip_to(commit.from);
        }
        self.bytes += commit.frames.size();
        self.head = commit.head;
        self.commits.push_back((commit.head, commit.frames));
        let mut look_for_slow = false;
        while self.commits.len() > capacity
            || (self.bytes > MAX_CHANNEL_BYTES && self.commits.len() > 1)
        {
            let Some((head, frames)) = self.commits.pop_front() else {
                break;
            };
            self.bytes -= frames.size();
            self.tail = Some(head);
            self.evicted = head;
            self.evictions += 1;
            look_for_slow |= self.evictions.is_multiple_of(CUT_EVERY);
        }
        look_for_slow.then_some(self.evicted)
    }

    /// Forgets all frames: what comes next follows this cursor.
    pub fn skip_to(&mut self, cursor: Cursor) {
        if self.tail.is_some() && cursor <= self.head {
            return;
        }
        self.commits.clear();
        self.bytes = 0;
        self.tail = Some(cursor);
        self.head = cursor;
    }

    /// The newest cursor that readers were told of.
    pub fn head(&self) -> Cursor {
        self.head
    }

    /// What stands after a reader's cursor, in the form that it wants.
    pub fn read_after(&self, cursor: Cursor, form: Form) -> RingRead {
        let Some(tail) = self.tail else {
            return RingRead::UpToDate;
        };
        if cursor >= self.head {
            return RingRead::UpToDate;
        }
        if cursor < self.evicted {
            return RingRead::CutOff;
        }
        if cursor < tail {
            return RingRead::ReadLog;
        }
        let start = self.commits.partition_point(|(head, _)| *head <= cursor);
        let begins_at = match start.checked_sub(1) {
            Some(before) => self.commits[before].0,
            None => tail,
        };
        if cursor != begins_at {
            // A page of the log may end inside a commit, whose frames begin before that.
            return RingRead::ReadLog;
        }
        let mut fresh = self.commits.range(start..);
        match (fresh.next(), fresh.len()) {
            (None, _) => RingRead::UpToDate,
            (Some((head, frames)), 0) => RingRead::Frames(frames.in_form(form), *head),
            (Some((_, first)), _) => {
                let mut all = FrameBuffer::default();
                all.append(first, form);
                fresh.for_each(|(_, frames)| all.append(frames, form));
                RingRead::Frames(all.finish(), self.head)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn commit(from: i64, head: i64) -> Commit {
        Commit {
            room_id: "rm_a".parse().unwrap(),
            from: Cursor::at(from),
            head: Cursor::at(head),
            frames: Bytes::from(format!("[{from}-{head}]")).into(),
        }
    }

    fn frames(read: RingRead) -> String {
        match read {
            RingRead::Frames(frames, _) => String::from_utf8(frames.into_bytes().to_vec()).unwrap(),
            RingRead::UpToDate => "up to date".into(),
            RingRead::ReadLog => "read the log".into(),
            RingRead::CutOff => "cut off".into(),
        }
    }

    #[test]
    fn a_reader_gets_what_came_after_its_cursor() {
        let mut ring = Ring::default();
        ring.push(commit(4, 5), 10);
        ring.push(commit(5, 7), 10);
        assert_eq!(
            frames(ring.read_after(Cursor::at(4), Form::Plain)),
            "[4-5][5-7]"
        );
        assert_eq!(frames(ring.read_after(Cursor::at(5), Form::Plain)), "[5-7]");
        assert_eq!(
            frames(ring.read_after(Cursor::at(7), Form::Plain)),
            "up to date"
        );
    }

    #[test]
    fn a_reader_from_before_the_channel_reads_the_log() {
        let mut ring = Ring::default();
        ring.push(commit(4, 5), 10);
        assert_eq!(
            frames(ring.read_after(Cursor::at(3), Form::Plain)),
            "read the log"
        );
    }

    #[test]
    fn a_commit_published_too_early_leaves_no_hole() {
        let mut ring = Ring::default();
        ring.push(commit(1, 2), 10);
        ring.push(commit(3, 4), 10);
        assert_eq!(
            frames(ring.read_after(Cursor::at(2), Form::Plain)),
            "read the log"
        );
        assert_eq!(frames(ring.read_after(Cursor::at(3), Form::Plain)), "[3-4]");
        ring.push(commit(2, 3), 10);
        assert_eq!(frames(ring.read_after(Cursor::at(3), Form::Plain)), "[3-4]");
    }

    #[test]
    fn a_reader_that_stands_inside_a_commit_reads_the_log() {
        let mut ring = Ring::default();
        ring.push(commit(1, 4), 10);
        ring.push(commit(4, 8), 10);
        assert_eq!(
            frames(ring.read_after(Cursor::at(2), Form::Plain)),
            "read the log"
        );
        assert_eq!(
            frames(ring.read_after(Cursor::at(6), Form::Plain)),
            "read the log"
        );
        assert_eq!(frames(ring.read_after(Cursor::at(4), Form::Plain)), "[4-8]");
    }

    #[test]
    fn a_commit_published_twice_is_read_once() {
        let mut ring = Ring::default();
        ring.push(commit(1, 2), 10);
        ring.push(commit(1, 2), 10);
        assert_eq!(frames(ring.read_after(Cursor::at(1), Form::Plain)), "[1-2]");
    }

    #[test]
    fn a_reader_that_falls_behind_is_cut_off() {
        let mut ring = Ring::default();
        for n in 0..20 {
            ring.push(commit(n, n + 1), 4);
        }
        assert_eq!(ring.commits.len(), 4);
        assert_eq!(
            frames(ring.read_after(Cursor::at(3), Form::Plain)),
            "cut off"
        );
        assert_eq!(
            frames(ring.read_after(Cursor::at(16), Form::Plain)),
            "[16-17][17-18][18-19][19-20]"
        );
    }
}
