//! Reputation: what others think of a member's doings, counted by public rules.
//!
//! Posting pays nothing for it: [`scorer`] reads a room's log after the fact. Reactions and
//! removals are counted where they happen. [`score`] holds the rules, [`leaderboard`] reads.

pub mod leaderboard;
pub mod score;
pub mod scorer;
