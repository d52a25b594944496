//! Rate limits. A window opens with the first thing it counts and allows so many until it ends.
//!
//! [`Windows`] is the rule, without I/O: it is filled with what the store knows, asked, and what
//! has changed is written back.

use crate::{
    clock::Now,
    error::{Error, Result},
    store::{Db, Tx, limits::WindowRow},
};
use protocol::ErrorCode;
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// A window may begin so much later than now and still count: whoever opened it looked at another
/// clock, or looked at this one later and was served first.
const SKEW_MS: i64 = 10_000;

/// So many of something in so much time.
#[derive(Debug, Clone)]
pub struct Limit {
    /// What is counted, for whom.
    pub bucket: String,
    /// 0 means no limit.
    pub most: i64,
    pub window_ms: i64,
    pub code: ErrorCode,
    /// What the caller is told.
    pub words: &'static str,
    /// Whether it is counted in the store, or in memory alone.
    pub stored: bool,
}

/// The windows that are open.
#[derive(Debug, Default)]
pub struct Windows {
    open: HashMap<String, WindowRow>,
    changed: std::collections::HashSet<String>,
}

impl Windows {
    pub fn new(rows: Vec<WindowRow>) -> Self {
        let mut windows = Self::default();
        windows.add(rows);
        windows
    }

    /// Adds what the store knows.
    pub fn add(&mut self, rows: Vec<WindowRow>) {
        self.open
            .extend(rows.into_iter().map(|row| (row.bucket.clone(), row)));
    }

    /// The windows as the store keeps them.
    fn into_rows(self) -> Vec<WindowRow> {
        self.open.into_values().collect()
    }

    /// Whether a bucket's window is here.
    pub fn has(&self, bucket: &str) -> bool {
        self.open.contains_key(bucket)
    }

    /// Counts one more under every limit, or under none if one of them is reached.
    pub fn count_against(&mut self, limits: &[Limit], now: Now) -> Result<()> {
        self.refuse_full(limits, now)?;
        for limit in limits.iter().filter(|limit| limit.most > 0) {
            match self.window(limit, now).is_some() {
                true => {
                    if let Some(window) = self.open.get_mut(&limit.bucket) {
                        window.count += 1;
                    }
                }
                false => {
                    let row = WindowRow {
                        bucket: limit.bucket.clone(),
                        started_ms: now.millis(),
                        count: 1,
                        ends_ms: now.millis() + limit.window_ms,
                    };
                    self.open.insert(limit.bucket.clone(), row);
                }
            }
            if limit.stored {
                self.changed.insert(limit.bucket.clone());
            }
        }
        Ok(())
    }

    /// Refuses what a limit that is reached would.
    fn refuse_full(&self, limits: &[Limit], now: Now) -> Result<()> {
        for limit in limits.iter().filter(|limit| limit.most > 0) {
            if let Some(window) = self.window(limit, now)
                && window.count >= limit.most
            {
                let wait = window.started_ms + limit.window_ms - now.millis();
                return Err(Error::limited(limit.code, limit.words, wait));
            }
        }
        Ok(())
    }

    /// The window that counts now; one that has ended, or began in the future, does not.
    fn window(&self, limit: &Limit, now: Now) -> Option<&WindowRow> {
        self.open.get(&limit.bucket).filter(|window| {
            (window.started_ms - SKEW_MS..window.started_ms + limit.window_ms)
                .contains(&now.millis())
        })
    }

    /// How many windows are here.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Forgets windows that have ended.
    pub fn forget_ended(&mut self, now: Now) {
        self.open.retain(|_, window| window.ends_ms > now.millis());
    }

    /// What changes from now on is what has to be written back.
    pub fn saved(&mut self) {
        self.changed.clear();
    }

    /// What has to be written back.
    pub fn changed(&self) -> Vec<&WindowRow> {
        self.changed
            .iter()
            .filter_map(|bucket| self.open.get(bucket))
            .collect()
    }
}

/// Counts one more in the store, as part of a transaction.
pub async fn count_against(tx: &mut Tx, limits: &[Limit], now: Now) -> Result<()> {
    let mut windows = lock_windows(tx, limits).await?;
    windows.count_against(limits, now)?;
    tx.save_windows(&windows.changed()).await?;
    Ok(())
}

/// The windows of these limits, which nobody else counts in until the transaction ends.
async fn lock_windows(tx: &mut Tx, limits: &[Limit]) -> Result<Windows> {
    let buckets: Vec<&str> = limits
        .iter()
        .filter(|limit| limit.most > 0)
        .map(|limit| limit.bucket.as_str())
        .collect();
    tx.open_windows(&buckets).await?;
    Ok(Windows::new(tx.windows(&buckets).await?))
}

/// Counts in the store where other processes count too, and in memory where this one is alone.
#[derive(Debug, Default)]
pub struct Counter {
    memory: Mutex<Memory>,
}

/// What a counter remembers. Beside a store, this is the windows that were found full: whoever goes
/// on asking is refused without the store.
#[derive(Debug, Default)]
struct Memory {
    windows: Windows,
    asked: usize,
}

impl Counter {
    /// After so many the windows that have ended are forgotten: a flood fills no memory.
    const SWEEP_EVERY: usize = 10_000;

    /// Counts one more under every limit, or under none if one of them is reached.
    pub async fn count_against(&self, db: &Db, limits: &[Limit], now: Now) -> Result<()> {
        if limits.iter().all(|limit| limit.most <= 0) {
            return Ok(());
        }
        if db.is_sqlite() {
            let mut memory = self.memory(now);
            memory.windows.count_against(limits, now)?;
            memory.windows.saved();
            return Ok(());
        }
        self.memory(now).windows.refuse_full(limits, now)?;
        let mut tx = db.begin_keeping_cache().await?;
        let mut windows = lock_windows(&mut tx, limits).await?;
        if let Err(refused) = windows.count_against(limits, now) {
            self.memory(now).windows.add(windows.into_rows());
            return Err(refused);
        }
        tx.save_windows(&windows.changed()).await?;
        Ok(tx.commit().await?)
    }

    fn memory(&self, now: Now) -> MutexGuard<'_, Memory> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.asked += 1;
        if memory.asked.is_multiple_of(Self::SWEEP_EVERY) {
            memory.windows.forget_ended(now);
        }
        memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(bucket: &str, most: i64, seconds: i64) -> Limit {
        Limit {
            bucket: bucket.into(),
            most,
            window_ms: seconds * 1000,
            code: ErrorCode::RateLimited,
            words: "Too many",
            stored: true,
        }
    }

    #[test]
    fn so_many_pass_until_the_window_ends() {
        let mut windows = Windows::default();
        let six = [limit("a", 6, 60)];
        for n in 0..6 {
            windows.count_against(&six, Now(n * 1000)).unwrap();
        }
        assert_eq!(
            windows.count_against(&six, Now(59_999)).unwrap_err().code(),
            ErrorCode::RateLimited
        );
        windows.count_against(&six, Now(60_000)).unwrap();
    }

    #[test]
    fn one_in_a_window_is_a_cooldown() {
        let mut windows = Windows::default();
        let cooldown = [limit("a", 1, 15)];
        windows.count_against(&cooldown, Now(0)).unwrap();
        assert!(windows.count_against(&cooldown, Now(14_999)).is_err());
        windows.count_against(&cooldown, Now(15_000)).unwrap();
        assert!(windows.count_against(&cooldown, Now(29_999)).is_err());
    }

    #[test]
    fn what_one_limit_refuses_is_counted_by_none() {
        let mut windows = Windows::default();
        let both = [limit("many", 10, 60), limit("one", 1, 60)];
        windows.count_against(&both, Now(0)).unwrap();
        windows.count_against(&both, Now(1)).unwrap_err();
        assert_eq!(windows.open["many"].count, 1);
    }

    #[test]
    fn zero_means_no_limit() {
        let mut windows = Windows::default();
        for _ in 0..1000 {
            windows.count_against(&[limit("a", 0, 60)], Now(0)).unwrap();
        }
        assert!(windows.changed().is_empty());
    }

    #[test]
    fn whoever_asked_earlier_and_is_served_later_is_counted_too() {
        let mut windows = Windows::default();
        windows
            .count_against(&[limit("a", 1, 60)], Now(100_005))
            .unwrap();
        assert!(
            windows
                .count_against(&[limit("a", 1, 60)], Now(100_000))
                .is_err()
        );
    }

    #[test]
    fn a_clock_set_back_does_not_lock_anybody_out() {
        let mut windows = Windows::default();
        windows
            .count_against(&[limit("a", 1, 60)], Now(1_000_000))
            .unwrap();
        windows
            .count_against(&[limit("a", 1, 60)], Now(5_000))
            .unwrap();
    }
}
