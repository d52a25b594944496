//! A process group, from its start to its end.

use rustix::process::{Pid, Signal, kill_process_group};
use std::time::Duration;
use tokio::process::Child;

/// A program and all it started. Dropping it ends what is left of them.
pub struct Group(Option<Pid>);

impl Group {
    /// The group of a child that was started as the first of its own.
    pub fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.cast_signed())))
    }

    /// Lets the group be: its first process is gone.
    pub fn release(&mut self) {
        self.0 = None;
    }

    /// Asks the group to leave, and makes it leave when the first process has gone or `grace` is
    /// over.
    pub async fn end(&mut self, child: &mut Child, grace: Duration) {
        let Some(group) = self.0 else { return };
        let _ = kill_process_group(group, Signal::TERM);
        let _ = tokio::time::timeout(grace, child.wait()).await;
        self.kill();
        let _ = child.wait().await;
    }

    fn kill(&mut self) {
        if let Some(group) = self.0.take() {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
