//! What a program left behind when it ended: processes that went into a session of their own, where
//! ending its group does not reach them.

use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// How often to look again: one that is being ended may start another.
const ROUNDS: usize = 5;

/// Kills all processes of this user in whose environment `variable` has this value, which is to be
/// one that no other program was given. Where there is no `/proc`, it finds none.
pub fn kill_marked(variable: &str, value: &OsStr) {
    let mark = [variable.as_bytes(), b"=", value.as_bytes()].concat();
    for _ in 0..ROUNDS {
        let found: Vec<Pid> = marked(&mark).collect();
        if found.is_empty() {
            return;
        }
        for process in found {
            let _ = kill_process(process, Signal::KILL);
        }
    }
}

fn marked(mark: &[u8]) -> impl Iterator<Item = Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(move |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ"));
        environment.is_ok_and(|all| all.split(|byte| *byte == 0).any(|one| one == mark))
    })
    .filter_map(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_in_a_session_of_its_own_is_found_by_its_mark_and_others_are_left() {
        let mark = format!("mark-{}", std::process::id());
        let sleep = |marked: bool| {
            let mut command = Command::new("setsid");
            command.args(["sleep", "600"]).stdout(Stdio::null());
            if marked {
                command.env("LEFTOVER_TEST", &mark);
            }
            command.spawn().unwrap()
        };
        let (mut ours, mut other) = (sleep(true), sleep(false));
        // Between fork and exec it has our environment.
        let environ = format!("/proc/{}/environ", ours.id());
        let begun = || {
            let environment = std::fs::read(&environ).unwrap_or_default();
            environment
                .windows(mark.len())
                .any(|part| part == mark.as_bytes())
        };
        while !begun() {
            std::thread::yield_now();
        }
        kill_marked("LEFTOVER_TEST", OsStr::new(&mark));
        assert!(!ours.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none(), "the other lives");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
