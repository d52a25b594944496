use super::*;
use serde_json::json;
use std::time::Instant;

fn shell(allow: &[&str], timeout: Duration) -> (tempfile::TempDir, ShellRun) {
    let folder = tempfile::tempdir().unwrap();
    let config = ShellConfig {
        allow: allow.iter().map(|name| (*name).to_owned()).collect(),
        timeout,
        folder: folder.path().into(),
        confine: Some(ShellFiles::default()),
    };
    (folder, ShellRun::new(config))
}

async fn run(tool: &ShellRun, command: &str) -> Result<String, String> {
    let args = parse(json!({ "command": command })).unwrap();
    match tool.run(args).await {
        Ok(segments) => Ok(crate::segment::joined_text(&segments)),
        Err(error) => Err(error.0),
    }
}

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn an_allowed_program_runs_in_the_workspace() {
    let (folder, tool) = shell(&["echo", "pwd"], LONG);
    assert_eq!(
        run(&tool, "echo 'a  b' \"c\" d\\ e").await.unwrap(),
        "a  b c d e\n"
    );
    let place = run(&tool, "pwd").await.unwrap();
    let real = folder.path().canonicalize().unwrap();
    assert_eq!(place.trim(), real.to_str().unwrap());
}

#[tokio::test]
async fn the_list_cannot_be_talked_around() {
    let (_folder, tool) = shell(&["echo"], LONG);
    for command in [
        "ls",
        "/bin/echo x",
        "./echo",
        "echo x; ls",
        "echo x | sh",
        "echo `ls`",
        "echo $(ls)",
        "echo x > y",
        "echo x && ls",
        "echo x\nls",
        "",
        "'",
        "\\",
    ] {
        assert!(run(&tool, command).await.is_err(), "{command:?}");
    }
}

#[tokio::test]
async fn keys_of_the_agent_are_not_handed_on() {
    let (_folder, tool) = shell(&["env"], LONG);
    let variables = run(&tool, "env").await.unwrap();
    for line in variables.lines() {
        let name = line.split('=').next().unwrap();
        assert!(KEPT_VARIABLES.contains(&name), "{line}");
    }
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_killed_with_all_it_started() {
    let (folder, tool) = shell(&["sh"], Duration::from_secs(2));
    let started = Instant::now();
    let error = run(
        &tool,
        "sh -c 'echo begun; sleep 600 & echo \"$!\" > pid; wait'",
    )
    .await
    .unwrap_err();
    assert!(error.contains("killed"), "{error}");
    assert!(
        error.starts_with("begun\n"),
        "what it said is told: {error}"
    );
    assert!(started.elapsed() < Duration::from_secs(10));
    is_gone(&folder, started).await;
}

/// The process whose id is in the file `pid` ends.
async fn is_gone(folder: &tempfile::TempDir, started: Instant) {
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    let gone = || {
        // A zombie has no command line any more.
        let line = std::fs::read(format!("/proc/{}/cmdline", pid.trim()));
        line.is_err() || line.is_ok_and(|line| line.is_empty())
    };
    while !gone() {
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "the child lives on"
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_a_program_leaves_in_the_background_ends_with_it() {
    for script in [
        "sleep 600 & echo \"$!\" > pid; echo done",
        "setsid sleep 600 & echo \"$!\" > pid; echo done",
        "setsid sleep 600 > /dev/null 2>&1 & echo \"$!\" > pid; echo done",
    ] {
        let (folder, tool) = shell(&["sh"], LONG);
        let started = Instant::now();
        let said = run(&tool, &format!("sh -c '{script}'")).await.unwrap();
        assert_eq!(said, "done\n", "{script}");
        is_gone(&folder, started).await;
    }
}

#[tokio::test]
async fn a_program_cannot_read_our_environment() {
    if !confine::is_available() {
        println!("this kernel has no Landlock: nothing to see");
        return;
    }
    let (_folder, tool) = shell(&["sh"], LONG);
    let me = std::process::id();
    let read = format!("sh -c 'cat /proc/{me}/environ /proc/{me}/mem /proc/{me}/maps'");
    let error = run(&tool, &read).await.unwrap_err();
    assert!(
        !error.contains("PATH=") && !error.contains("r-xp"),
        "{error}"
    );
    run(&tool, "sh -c 'head -c 1 /dev/urandom > /dev/null'")
        .await
        .unwrap();
    let log = run(&tool, "sh -c 'exec < /dev/kmsg'").await;
    assert!(log.is_err(), "nor what only root may read: {log:?}");
    let own = run(&tool, "sh -c 'cat /proc/self/status'").await.unwrap();
    assert!(own.contains("Name:"), "its own it can: {own}");
}

#[test]
fn the_limit_of_other_tools_does_not_cut_a_program_short() {
    let (_folder, tool) = shell(&["sh"], Duration::from_secs(600));
    let limit = tool.spec().timeout.expect("a limit of its own");
    assert!(limit > Duration::from_secs(600));
}

#[tokio::test]
async fn failing_programs_and_floods_of_output_are_told() {
    let (_folder, tool) = shell(&["sh", "head"], LONG);
    let error = run(&tool, "sh -c 'echo out; echo err >&2; exit 3'")
        .await
        .unwrap_err();
    assert!(
        error.contains("out") && error.contains("err") && error.contains('3'),
        "{error}"
    );
    let flood = run(&tool, "head -c 1000000 /dev/zero").await.unwrap();
    assert!(flood.len() < 70_000 && flood.contains("[cut:"));
}

#[tokio::test]
async fn a_program_reaches_no_file_outside_of_the_workspace() {
    if !confine::is_available() {
        println!("this kernel has no Landlock: nothing to see");
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "hidden").unwrap();
    let (folder, tool) = shell(&["sh", "cat", "touch"], LONG);
    std::fs::write(folder.path().join("a.txt"), "mine").unwrap();
    assert_eq!(run(&tool, "cat a.txt").await.unwrap(), "mine");
    run(
        &tool,
        "sh -c 'echo x > b.txt && echo y > \"$TMPDIR/z\" && echo z > /dev/null'",
    )
    .await
    .unwrap();
    let error = run(&tool, &format!("cat {}", secret.display()))
        .await
        .unwrap_err();
    assert!(
        error.contains("ermission denied") && error.contains("tools.shell.read"),
        "{error}"
    );
    let new = outside.path().join("new");
    for command in [
        format!("touch {}", new.display()),
        format!("sh -c 'echo x > {}'", new.display()),
        format!("sh -c 'ln -s {} link; cat link'", secret.display()),
    ] {
        assert!(run(&tool, &command).await.is_err(), "{command}");
    }
    assert!(!new.exists());
    let granted = ShellRun::new(ShellConfig {
        confine: Some(ShellFiles {
            read: vec![outside.path().into()],
            write: vec![],
        }),
        ..tool.config.clone()
    });
    assert_eq!(
        run(&granted, &format!("cat {}", secret.display()))
            .await
            .unwrap(),
        "hidden"
    );
    assert!(
        run(&granted, &format!("touch {}", new.display()))
            .await
            .is_err()
    );
    // We ourselves are as free as before.
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "hidden");
}

#[test]
fn a_rule_sees_one_spelling_of_a_command() {
    let (_folder, tool) = shell(&["git"], LONG);
    let seen = |command: &str| tool.canonical_args(&json!({ "command": command }));
    assert_eq!(
        seen("git   'status' -s"),
        json!({ "command": "git status -s" })
    );
    assert_eq!(
        seen("git commit -m \"a  b\""),
        json!({ "command": "git commit -m 'a  b'" })
    );
    assert_ne!(seen("git 'a b'"), seen("git a b"));
}
