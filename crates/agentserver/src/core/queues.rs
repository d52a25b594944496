//! Waiting messages: a lane for each listener, and in each lane a queue for each
//! sender, taken in turn, so that one busy agent does not keep the others waiting.

use super::ids::IdMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Serialize, Deserialize)]
pub struct Queues<J> {
    /// A lane stays when it is empty: there are as many as there were listeners.
    lanes: IdMap<Arc<str>, Lane<J>>,
}

#[derive(Serialize, Deserialize)]
struct Lane<J> {
    running: usize,
    senders: VecDeque<(Arc<str>, VecDeque<J>)>,
}

impl<J> Lane<J> {
    fn try_start(&mut self, limit: usize) -> bool {
        let is_free = self.running < limit && self.senders.is_empty();
        self.running += usize::from(is_free);
        is_free
    }
}

impl<J> Default for Queues<J> {
    fn default() -> Self {
        Self {
            lanes: IdMap::default(),
        }
    }
}

impl<J> Queues<J> {
    pub fn push(&mut self, listener: &Arc<str>, sender: Arc<str>, job: J) {
        let lane = self.lane(listener);
        match lane.senders.iter_mut().find(|(name, _)| *name == sender) {
            Some((_, queue)) => queue.push_back(job),
            None => lane.senders.push_back((sender, VecDeque::from([job]))),
        }
    }

    /// Takes a place of a listener that runs fewer than `limit`, for a message that
    /// nobody is before.
    pub fn try_start(&mut self, listener: &Arc<str>, limit: usize) -> bool {
        // Mostly it is there, and finding it needs no key of its own.
        match self.lanes.get_mut(listener) {
            Some(lane) => lane.try_start(limit),
            None => self.lane(listener).try_start(limit),
        }
    }

    /// The next message for a listener that runs fewer than `limit`.
    pub fn pop(&mut self, listener: &str, limit: usize) -> Option<J> {
        let lane = self.lanes.get_mut(listener)?;
        if lane.running >= limit {
            return None;
        }
        let (sender, mut queue) = lane.senders.pop_front()?;
        let job = queue.pop_front();
        if !queue.is_empty() {
            lane.senders.push_back((sender, queue));
        }
        lane.running += usize::from(job.is_some());
        job
    }

    /// A message that was taken is done with.
    pub fn done(&mut self, listener: &str) {
        if let Some(lane) = self.lanes.get_mut(listener) {
            lane.running = lane.running.saturating_sub(1);
        }
    }

    /// A message that was taken, and given up its place, goes on. It may be one
    /// more than the listener's limit for a while.
    pub fn resume(&mut self, listener: &Arc<str>) {
        self.lane(listener).running += 1;
    }

    fn lane(&mut self, listener: &Arc<str>) -> &mut Lane<J> {
        let lane = self.lanes.entry(listener.clone());
        lane.or_insert_with(|| Lane {
            running: 0,
            senders: VecDeque::new(),
        })
    }

    /// The same queues of something else.
    pub fn map<'a, K>(&'a self, mut to: impl FnMut(&'a J) -> K) -> Queues<K> {
        let lanes = self.lanes.iter().map(|(listener, lane)| {
            let senders = lane.senders.iter().map(|(sender, jobs)| {
                let jobs = jobs.iter().map(&mut to).collect();
                (sender.clone(), jobs)
            });
            let lane = Lane {
                running: lane.running,
                senders: senders.collect(),
            };
            (listener.clone(), lane)
        });
        Queues {
            lanes: lanes.collect(),
        }
    }

    /// All that wait.
    pub fn iter(&self) -> impl Iterator<Item = &J> {
        let senders = self.lanes.values().flat_map(|lane| &lane.senders);
        senders.flat_map(|(_, jobs)| jobs)
    }

    /// All that wait.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut J> {
        let senders = self.lanes.values_mut().flat_map(|lane| &mut lane.senders);
        senders.flat_map(|(_, jobs)| jobs)
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        let mut lanes = self.lanes.values();
        lanes.all(|lane| lane.running == 0 && lane.senders.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_take_turns() {
        let mut queues = Queues::default();
        let lane: Arc<str> = "tool".into();
        for job in ["a1", "a2", "a3"] {
            queues.push(&lane, "a".into(), job);
        }
        queues.push(&lane, "b".into(), "b1");
        let order: Vec<_> = std::iter::from_fn(|| queues.pop(&lane, 9)).collect();
        assert_eq!(order, ["a1", "b1", "a2", "a3"]);
    }

    #[test]
    fn a_lane_runs_no_more_than_its_limit() {
        let mut queues = Queues::default();
        let lane: Arc<str> = "tool".into();
        queues.push(&lane, "a".into(), 1);
        queues.push(&lane, "a".into(), 2);
        assert_eq!(queues.pop(&lane, 1), Some(1));
        assert_eq!(queues.pop(&lane, 1), None);
        queues.done(&lane);
        assert_eq!(queues.pop(&lane, 1), Some(2));
        queues.done(&lane);
        assert!(queues.is_empty());
    }
}
