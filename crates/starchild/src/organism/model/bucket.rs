//! A token bucket: how often a provider may be asked.

use std::time::Duration;
use tokio::time::Instant;

/// Fills at a steady rate up to its size.
pub struct Bucket {
    size: f64,
    per_second: f64,
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    /// A full bucket.
    pub fn new(per_minute: u32, now: Instant) -> Self {
        let size = f64::from(per_minute.max(1));
        Self {
            size,
            per_second: size / 60.0,
            tokens: size,
            filled: now,
        }
    }

    /// Takes a token, or says how long to wait for one.
    pub fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + passed * self.per_second).min(self.size);
        self.filled = now;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64(
            (1.0 - self.tokens) / self.per_second,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_fill_at_once_and_then_a_token_at_a_time() {
        let start = Instant::now();
        let mut bucket = Bucket::new(60, start);
        assert_eq!((0..100).filter(|_| bucket.take(start).is_ok()).count(), 60);
        let wait = bucket.take(start).unwrap_err();
        assert!(wait > Duration::from_millis(900) && wait <= Duration::from_secs(1));
        assert!(bucket.take(start + Duration::from_millis(1001)).is_ok());
        assert!(bucket.take(start + Duration::from_millis(1001)).is_err());
    }
}
