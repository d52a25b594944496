use super::reader::KEPT_BYTES;
use super::*;
use crate::backend::testing::inbound;

const LONG: Duration = Duration::from_secs(60);

fn sh(body: &str, timeout: Duration) -> Program {
    let environment = Environment::inherited(&[]);
    Program::new("sh", &std::env::temp_dir(), timeout, environment).args(["-c", body])
}

/// What a program said, and how it ended.
struct Output {
    text: String,
    success: bool,
    ending: String,
}

async fn run_with(body: &str, input: &[u8]) -> Output {
    let mut kept = HeadReader::default();
    let ran = sh(body, LONG).run(input, &inbound("hi"), &mut kept).await;
    let ending = ran.unwrap();
    Output {
        text: kept.text(),
        success: ending.success,
        ending: ending.words,
    }
}

async fn run(body: &str) -> Output {
    run_with(body, b"the input").await
}

#[tokio::test]
async fn input_goes_in_and_output_comes_out() {
    let output =
        run("cat; echo; echo \"$SCCHAT_ROOM_ID $SCCHAT_USER_ID $SCCHAT_SESSION_ID\"").await;
    assert_eq!(
        output.text,
        "the input\nrm_8f3kz2 ext_my_bot.v2-3a9f1c20 20260503-024118\n"
    );
    assert!(output.success);
}

#[tokio::test]
async fn a_program_that_does_not_read_a_large_input_is_none_the_worse() {
    let input = vec![b'x'; 4 << 20];
    let output = run_with("echo done", &input).await;
    assert_eq!(output.text, "done\n");
}

#[tokio::test]
async fn a_failure_tells_the_status_and_the_last_words() {
    let output = run("echo partial; echo 'no such model' >&2; exit 3").await;
    assert!(!output.success);
    assert_eq!(output.ending, "ended with exit status: 3: no such model");
    let error = sh("exit 4", LONG)
        .ask(b"", &inbound("hi"))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "sh ended with exit status: 4");
}

#[tokio::test]
async fn bytes_that_are_no_text_are_replaced() {
    assert_eq!(run(r"printf 'a\377b'").await.text, "a\u{fffd}b");
}

#[tokio::test]
async fn output_without_end_is_not_awaited() {
    let output = run("yes").await;
    assert!(output.success, "{}", output.ending);
    assert_eq!(output.text.len(), KEPT_BYTES);
}

#[tokio::test]
async fn much_output_does_not_hide_a_failure() {
    let output = run("head -c 300000 /dev/zero; exit 5").await;
    assert!(!output.success);
    assert_eq!(output.text.len(), KEPT_BYTES);
}

#[tokio::test]
async fn a_child_that_keeps_the_pipes_does_not_hold_the_answer_up() {
    let started = Instant::now();
    let output = run("echo now; sleep 300 & echo $!").await;
    let (now, child) = output.text.trim().split_once('\n').unwrap();
    assert_eq!(now, "now");
    assert!(started.elapsed() < LONG);
    // What was left running on purpose is left running.
    let pid = rustix::process::Pid::from_raw(child.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Waits until the process whose id is in the file has gone.
async fn gone(pid_file: &Path) {
    let pid = std::fs::read_to_string(pid_file).unwrap();
    let stat = format!("/proc/{}/stat", pid.trim());
    let end = Instant::now() + LONG;
    // A process that was ended but not yet waited for by init is gone too.
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(Instant::now() < end, "process {pid} is still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn when_the_time_is_up_the_whole_group_goes_even_what_does_not_want_to() {
    let folder = tempfile::tempdir().unwrap();
    let pid_file = folder.path().join("pid");
    let body = format!(
        "sh -c 'trap \"\" TERM; echo $$ > {0}.part; mv {0}.part {0}; while :; do sleep 1; done' & wait",
        pid_file.display()
    );
    // Long enough for the child to write its file on a busy machine.
    let program = sh(&body, Duration::from_secs(10));
    let error = program.ask(b"", &inbound("hi")).await.unwrap_err();
    assert!(matches!(error, BackendError::TimedOut(_)), "{error}");
    gone(&pid_file).await;
}

#[tokio::test]
async fn when_nobody_waits_any_more_the_group_goes() {
    let folder = tempfile::tempdir().unwrap();
    let pid_file = folder.path().join("pid");
    let body = format!(
        "sleep 300 & echo $! > {0}.part; mv {0}.part {0}; wait",
        pid_file.display()
    );
    let (program, inbound) = (sh(&body, LONG), inbound("hi"));
    tokio::select! {
        _ = program.ask(b"", &inbound) => panic!("it ended by itself"),
        () = async {
            while !pid_file.exists() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        } => {}
    }
    gone(&pid_file).await;
}

#[tokio::test]
async fn a_program_that_is_not_there_is_missing_and_says_how_to_get_it() {
    let program = Program {
        program: "no-such-program-here".into(),
        ..sh("", LONG)
    };
    let error = program.ask(b"", &inbound("hi")).await.unwrap_err();
    assert!(matches!(error, BackendError::Missing { .. }));
    assert!(error.to_string().contains("PATH"), "{error}");
}
