//! A program and everything that it started, ended together.

use rustix::process::{Pid, Signal, kill_process_group};
use std::{io, time::Duration};
use tokio::process::{Child, Command};

/// A process group. Dropping it kills what is left of it.
#[derive(Debug)]
pub struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// Starts a program as the first of a group of its own.
    pub fn spawn(command: &mut Command) -> io::Result<(Child, Self)> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let group = Self::of(&child);
        Ok((child, group))
    }

    /// As [`ProcessGroup::spawn`], where something else starts the program, as a thread that is
    /// confined.
    pub async fn spawn_with<F>(
        mut command: Command,
        start: impl FnOnce(Command) -> F,
    ) -> io::Result<(Child, Self)>
    where
        F: Future<Output = io::Result<Child>>,
    {
        command.process_group(0).kill_on_drop(true);
        let child = start(command).await?;
        let group = Self::of(&child);
        Ok((child, group))
    }

    /// The group of a child that was started as the first of its own.
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.cast_signed())))
    }

    /// Lets the group live on.
    pub fn release(&mut self) {
        self.0 = None;
    }

    /// Asks the group to end, and kills it when its first process has gone or `grace` is over.
    pub async fn terminate(&mut self, child: &mut Child, grace: Duration) {
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

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;
    use tokio::{
        io::{AsyncBufReadExt, AsyncReadExt, BufReader},
        time::timeout,
    };

    const DEADLINE: Duration = Duration::from_secs(30);

    /// A shell with a child of its own: both hold the pipe open for as long as they live.
    async fn start(script: &str) -> (Child, ProcessGroup, BufReader<tokio::process::ChildStdout>) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped());
        let (mut child, group) = ProcessGroup::spawn(&mut command).unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).await.unwrap();
        assert_eq!(line, "started\n");
        (child, group, output)
    }

    async fn all_are_gone(mut output: BufReader<tokio::process::ChildStdout>) {
        let mut rest = Vec::new();
        let end = timeout(DEADLINE, output.read_to_end(&mut rest)).await;
        end.expect("a process of the group is left").unwrap();
    }

    #[tokio::test]
    async fn dropping_a_group_kills_the_children_too() {
        let (_child, group, output) = start("sleep 1000 & echo started; wait").await;
        drop(group);
        all_are_gone(output).await;
    }

    #[tokio::test]
    async fn what_ignores_the_request_to_end_is_killed_after_the_grace() {
        let deaf = "trap '' TERM; sleep 1000 & echo started; wait; wait";
        let (mut child, mut group, output) = start(deaf).await;
        let grace = Duration::from_millis(50);
        timeout(DEADLINE, group.terminate(&mut child, grace))
            .await
            .unwrap();
        all_are_gone(output).await;
    }

    #[tokio::test]
    async fn a_program_that_ends_when_asked_says_goodbye() {
        let polite = "trap 'echo bye; exit 0' TERM; echo started; while :; do sleep 0.01; done";
        let (mut child, mut group, mut output) = start(polite).await;
        group.terminate(&mut child, DEADLINE).await;
        let mut rest = String::new();
        output.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "bye\n");
    }
}
