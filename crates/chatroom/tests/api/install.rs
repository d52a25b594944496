//! The one-liner, run by real shells against the real server. The program that it fetches is a
//! stand-in that writes down how it was called.

use crate::harness::{Caller, Engine, Home, Setup, TestServer, claims, eventually, one_engine};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use std::{
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};
use tempfile::TempDir;

one_engine![
    an_invite_is_looked_up,
    a_used_up_invite_starts_only_who_joined_with_it,
];

const STAND_IN: &str = include_str!("starchild-stand-in.sh");
const AGENT: &str = "curious_otter-0a1b2c3d";

/// A server that hands out the stand-in, and a room of Alice's.
struct Site {
    server: TestServer,
    alice: Caller,
    room: String,
    programs: TempDir,
}

impl Site {
    async fn new() -> Self {
        Self::with(Setup::new(Engine::Sqlite)).await
    }

    async fn with(setup: Setup) -> Self {
        let programs = tempfile::tempdir().unwrap();
        for platform in ["linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"] {
            let path = programs.path().join(format!("starchild-{platform}"));
            std::fs::write(path, STAND_IN).unwrap();
        }
        let folder = programs.path().to_str().unwrap();
        let server = setup.env("ASSETS__FOLDER", folder).start().await;
        let alice = server.user("u_alice");
        let room = alice.creates_a_room().await;
        Self {
            server,
            alice,
            room,
            programs,
        }
    }

    async fn invites(&self, body: Value) -> Value {
        let path = format!("/rooms/{}/invites", self.room);
        self.alice.post(path, body).await.created()
    }

    /// A fresh invite's path, as its address names it.
    async fn path(&self) -> String {
        let invite = self.invites(json!({})).await;
        let address = invite["install_url"].as_str().unwrap();
        address
            .strip_prefix(self.server.base_url())
            .unwrap()
            .to_owned()
    }

    async fn script(&self, path: &str) -> (u16, String) {
        let reply = self.server.anonymous().seen_from_outside().get(path).await;
        assert_eq!(
            reply.header("content-type"),
            Some("text/plain; charset=utf-8")
        );
        (reply.status, reply.text().to_owned())
    }

    /// The script for a fresh invite.
    async fn fresh(&self, query: &str) -> String {
        let path = self.path().await;
        let (status, script) = self.script(&format!("{path}{query}")).await;
        assert_eq!(status, 200, "{script}");
        script
    }
}

fn calls(home: &Home) -> Vec<String> {
    let text = std::fs::read_to_string(home.file("calls")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Puts a program that does nothing into the home's own folder of programs.
fn put(home: &Home, name: &str, text: &str) {
    let folder = home.file("programs");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// A home whose own programs go first.
fn home() -> Home {
    let home = Home::new();
    let path = format!("{}:/usr/bin:/bin", home.file("programs").display());
    home.env("PATH", &path)
}

#[tokio::test]
async fn every_shell_and_linter_takes_the_script() {
    let site = Site::new().await;
    let custom = format!(
        "?backend=custom&agent_prefix=curious_otter&cmd={}",
        STANDARD.encode("echo 'a'\necho b")
    );
    let scripts = [
        site.fresh("").await,
        site.fresh(&custom).await,
        site.script("/install/cli").await.1,
        site.script("/install/i_unknown1").await.1,
    ];
    let home = Home::new();
    for script in &scripts {
        assert!(script.starts_with("#!/bin/sh\n"));
        for shell in [
            &["sh", "-n"][..],
            &["dash", "-n"],
            &["busybox", "sh", "-n"],
            &["bash", "--posix", "-n"],
        ] {
            home.run(shell, script).await.ok();
        }
        home.run(&["shellcheck", "-s", "sh", "-"], script)
            .await
            .ok();
    }
}

#[tokio::test]
async fn one_line_puts_an_agent_into_the_room() {
    let site = Site::new().await;
    for shell in [&["sh"][..], &["dash"], &["busybox", "sh"], &["bash"]] {
        let home = home();
        let path = site.path().await;
        let code = path.rsplit('/').next().unwrap();
        let (_, script) = site
            .script(&format!("{path}?agent_prefix=curious_otter"))
            .await;
        let said = home.run(shell, &script).await.ok();
        let url = site.server.base_url();
        assert_eq!(
            calls(&home),
            [
                "<--version>".to_owned(),
                "<id><--prefix><curious_otter>".to_owned(),
                format!(
                    "<agents><add><--prefix><curious_otter><--backend><plain><--server><{url}>"
                ),
                format!("<room><join><{code}><--agent><{AGENT}><--server><{url}>"),
                format!("<run><--agent><{AGENT}>"),
            ]
        );
        assert!(said.contains("starchild logs -f --agent"), "{said}");
        assert!(said.contains("export PATH="), "{said}");
        assert_eq!(home.reads(".starchild/bin/starchild"), STAND_IN);
        let program = std::fs::metadata(home.file(".starchild/bin/starchild")).unwrap();
        assert_eq!(program.permissions().mode() & 0o777, 0o755);
        let left: Vec<_> = std::fs::read_dir(home.file(".starchild/bin"))
            .unwrap()
            .collect();
        assert_eq!(left.len(), 1, "nothing half-done is left: {left:?}");
    }
}

#[tokio::test]
async fn the_program_alone_is_installed_and_nothing_started() {
    let site = Site::new().await;
    let (status, script) = site.script("/install/cli").await;
    assert_eq!(status, 200);
    let home = home();
    let said = home.run(&["sh"], &script).await.ok();
    assert_eq!(calls(&home), ["<--version>"]);
    assert!(said.contains("starchild --help"), "{said}");
}

#[tokio::test]
async fn another_home_is_used_where_one_is_named() {
    let site = Site::new().await;
    let script = site.fresh("").await;
    let elsewhere = tempfile::tempdir().unwrap();
    let home = home().env("STARCHILD_HOME", elsewhere.path().to_str().unwrap());
    home.run(&["sh"], &script).await.ok();
    assert!(elsewhere.path().join("bin/starchild").exists());
    assert!(!home.file(".starchild").exists());
}

#[tokio::test]
async fn running_it_twice_does_no_harm() {
    let site = Site::new().await;
    let path = site.path().await;
    let home = home();
    let (_, script) = site.script(&path).await;
    home.run(&["sh"], &script).await.ok();
    let first = calls(&home);
    let agent = first
        .last()
        .unwrap()
        .strip_prefix("<run>")
        .unwrap()
        .to_owned();
    std::fs::remove_file(home.file("calls")).unwrap();
    let said = home.run(&["sh"], &script).await.ok();
    let started = [format!("<run>{agent}")];
    assert_eq!(calls(&home), started, "it is started and nothing else");
    assert!(said.contains("already"), "{said}");
}

#[tokio::test]
async fn an_agent_that_was_removed_is_made_again() {
    let site = Site::new().await;
    let script = site.fresh("").await;
    let home = home();
    home.run(&["sh"], &script).await.ok();
    let first = calls(&home);
    std::fs::remove_file(home.file("calls")).unwrap();
    std::fs::remove_dir_all(home.file(".starchild/sc-chatroom")).unwrap();
    home.run(&["sh"], &script).await.ok();
    assert_eq!(calls(&home), first[1..], "all but the download");
}

#[tokio::test]
async fn a_name_that_was_chosen_at_random_stays_when_joining_failed() {
    let site = Site::new().await;
    let script = site.fresh("").await;
    let home = home();
    let failing = STAND_IN.replace("echo rm_8f3kz2", "exit 1");
    std::fs::write(site.programs.path().join("starchild-linux-amd64"), &failing).unwrap();
    std::fs::write(site.programs.path().join("starchild-linux-arm64"), &failing).unwrap();
    let said = home.run(&["sh"], &script).await.failed(1);
    assert!(said.contains("could not join"), "{said}");
    home.run(&["sh"], &script).await.failed(1);
    let named: Vec<String> = calls(&home)
        .into_iter()
        .filter(|call| call.starts_with("<id>"))
        .collect();
    assert_eq!(named.len(), 2);
    assert_eq!(named[0], named[1]);
    let adds = calls(&home)
        .iter()
        .filter(|call| call.starts_with("<agents>"))
        .count();
    assert_eq!(adds, 1, "the agent is made once");
}

#[tokio::test]
async fn a_download_that_is_cut_off_does_nothing() {
    let site = Site::new().await;
    let script = site.fresh("").await;
    let home = home();
    let last_line = script.trim_end().rfind('\n').unwrap();
    for cut in (0..script.len())
        .step_by(331)
        .chain([last_line, last_line + 3])
    {
        if script.is_char_boundary(cut) {
            home.run(&["sh"], &script[..cut]).await;
        }
    }
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_damaged_download_is_not_installed() {
    let site = Site::new().await;
    let script = site.fresh("").await;
    let home = home();
    put(
        &home,
        "curl",
        "#!/bin/sh\n/usr/bin/curl \"$@\"\nfor word; do\n  [ \"$last\" = -o ] && file=$word\n  last=$word\ndone\n\
         case $last in *.sha256) ;; *) echo more >>\"$file\" ;; esac\n",
    );
    let said = home.run(&["sh"], &script).await.failed(1);
    assert!(said.contains("damaged"), "{said}");
    assert_eq!(
        std::fs::read_dir(home.file(".starchild/bin"))
            .unwrap()
            .count(),
        0
    );
    assert_eq!(calls(&home), [""; 0]);
}

/// All that the script needs besides sh and curl.
const TOOLS: [&str; 10] = [
    "uname", "chmod", "mkdir", "mktemp", "mv", "rm", "cat", "sed", "od", "tr",
];

/// A home with a folder of links to programs, and no other programs.
fn with_nothing_but(programs: &[(&str, &str)]) -> Home {
    let home = Home::new();
    let folder = home.file("programs");
    std::fs::create_dir(&folder).unwrap();
    for (name, program) in programs {
        let places = ["/usr/bin", "/bin"].map(|place| format!("{place}/{program}"));
        let found = places.iter().find(|path| Path::new(path).exists());
        symlink(found.unwrap(), folder.join(name)).unwrap();
    }
    home.env("PATH", folder.to_str().unwrap())
}

#[tokio::test]
async fn it_needs_sh_and_curl_and_little_else() {
    let site = Site::new().await;
    let script = site.fresh("?agent_prefix=curious_otter").await;
    let mut programs: Vec<(&str, &str)> = TOOLS.map(|tool| (tool, tool)).to_vec();
    programs.extend([("sh", "dash"), ("curl", "curl")]);
    let home = with_nothing_but(&programs);
    let said = home.run(&["/bin/sh"], &script).await.ok();
    assert!(said.contains("not checked"), "{said}");
    assert!(calls(&home).contains(&format!("<run><--agent><{AGENT}>")));
}

#[tokio::test]
async fn busybox_and_curl_are_enough() {
    let site = Site::new().await;
    let script = site.fresh("").await;
    let mut programs: Vec<(&str, &str)> = TOOLS.map(|tool| (tool, "busybox")).to_vec();
    programs.extend([
        ("sh", "busybox"),
        ("sha256sum", "busybox"),
        ("curl", "curl"),
    ]);
    let home = with_nothing_but(&programs);
    let said = home.run(&["/bin/busybox", "sh"], &script).await.ok();
    assert!(!said.contains("not checked"), "{said}");
    assert!(calls(&home).last().unwrap().starts_with("<run>"));
}

#[tokio::test]
async fn another_platform_is_told_which_there_are() {
    let site = Site::new().await;
    let script = site.fresh("").await;
    let home = home();
    put(
        &home,
        "uname",
        "#!/bin/sh\n[ \"$1\" = -s ] && echo Plan9 || echo mips\n",
    );
    let said = home.run(&["sh"], &script).await.failed(1);
    for word in [
        "Plan9",
        "mips",
        "linux-amd64",
        "linux-arm64",
        "darwin-amd64",
        "darwin-arm64",
    ] {
        assert!(said.contains(word), "{said}");
    }
}

#[tokio::test]
async fn each_platform_gets_its_own_program() {
    let site = Site::new().await;
    let script = site.script("/install/cli").await.1;
    for (system, machine, platform) in [
        ("Linux", "x86_64", "linux-amd64"),
        ("Linux", "aarch64", "linux-arm64"),
        ("Darwin", "x86_64", "darwin-amd64"),
        ("Darwin", "arm64", "darwin-arm64"),
    ] {
        let marked = format!("{STAND_IN}# {platform}\n");
        std::fs::write(
            site.programs.path().join(format!("starchild-{platform}")),
            marked,
        )
        .unwrap();
        let home = home();
        put(
            &home,
            "uname",
            &format!("#!/bin/sh\n[ \"$1\" = -s ] && echo {system} || echo {machine}\n"),
        );
        home.run(&["sh"], &script).await.ok();
        assert!(
            home.reads(".starchild/bin/starchild")
                .ends_with(&format!("# {platform}\n"))
        );
    }
}

#[tokio::test]
async fn a_program_that_the_server_lacks_is_named() {
    let site = Site::new().await;
    let script = site.fresh("").await;
    for file in std::fs::read_dir(site.programs.path()).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    let said = home().run(&["sh"], &script).await.failed(1);
    assert!(
        said.contains("404") && said.contains("assets.folder"),
        "{said}"
    );
}

#[tokio::test]
async fn the_best_backend_that_is_there_is_taken() {
    let site = Site::new().await;
    let script = site.fresh("").await;
    let program = "#!/bin/sh\n";
    let backend = async |home: Home| {
        home.run(&["sh"], &script).await.ok();
        let add = calls(&home)
            .into_iter()
            .find(|call| call.starts_with("<agents>"))
            .unwrap();
        add.split("<--backend><")
            .nth(1)
            .unwrap()
            .split('>')
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(backend(home()).await, "plain");
    assert_eq!(backend(home().env("OPENAI_API_KEY", "sk")).await, "openai");
    let with_claude = home().env("OPENAI_API_KEY", "sk");
    put(&with_claude, "claude", program);
    assert_eq!(backend(with_claude).await, "claude");
    let with_both = home();
    put(&with_both, "claude", program);
    put(&with_both, "codex", program);
    assert_eq!(backend(with_both).await, "codex");
}

#[tokio::test]
async fn an_agent_that_could_not_answer_does_not_join() {
    let site = Site::new().await;
    for (backend, needs) in [
        ("codex", "codex"),
        ("claude", "claude"),
        ("openai", "OPENAI_API_KEY"),
        ("starchild", "login"),
    ] {
        let script = site.fresh(&format!("?backend={backend}")).await;
        let home = home();
        let said = home.run(&["sh"], &script).await.failed(1);
        assert!(said.contains(needs), "{said}");
        assert!(!calls(&home).iter().any(|call| call.starts_with("<room>")));
    }
}

#[tokio::test]
async fn a_handler_to_begin_with_is_silent() {
    let site = Site::new().await;
    let script = site
        .fresh("?backend=handler&agent_prefix=curious_otter")
        .await;
    let home = home();
    home.run(&["sh"], &script).await.ok();
    let handler = home.file(&format!(".starchild/handlers/{AGENT}.sh"));
    let handler = handler.to_str().unwrap();
    let add = calls(&home)
        .into_iter()
        .find(|call| call.starts_with("<agents>"))
        .unwrap();
    assert!(
        add.ends_with(&format!("<--handler-path><{handler}>")),
        "{add}"
    );
    let answer = home.run(&[handler], r#"{"content":"hello"}"#).await.ok();
    assert_eq!(answer, "[SILENT]\n");
}

#[tokio::test]
async fn a_custom_command_arrives_as_it_was_written() {
    let site = Site::new().await;
    for command in [
        "cat",
        "'; touch \"$HOME/owned\"; '",
        "$(touch \"$HOME/owned\") `touch \"$HOME/owned\"`",
        "line one\nline 'two'\n\ttouch \"$HOME/owned\"",
        "\\'\\; touch ~/owned #",
        "@SETTINGS@ main ü → 🦦",
    ] {
        let encoded = STANDARD.encode(command).replace('+', "%2B");
        let script = site.fresh(&format!("?backend=custom&cmd={encoded}")).await;
        let home = home();
        // Nobody is there to be asked, so nothing of it stays on the machine.
        let refused = home.run(&["dash"], &script).await.failed(1);
        assert!(refused.contains("--yes"), "{refused}");
        assert!(!home.reads("calls").contains("<agents>"), "{refused}");
        let said = home.run(&["dash", "-s", "--", "--yes"], &script).await.ok();
        let calls = home.reads("calls");
        assert!(
            calls.contains(&format!("<--command><{command}>")),
            "{calls}"
        );
        assert!(
            said.contains(command.lines().next().unwrap()),
            "the person sees it: {said}"
        );
        assert!(!home.file("owned").exists(), "{command}");
    }
}

#[tokio::test]
async fn a_hostile_query_gets_a_script_that_refuses() {
    let site = Site::new().await;
    let path = site.path().await;
    for query in [
        "backend=bash",
        "backend=codex%3Btouch%20owned",
        "backend=%24(touch%20owned)",
        "backend=plain&backend=codex",
        "agent_prefix=%27%3Btouch%20owned%3B%27",
        "agent_prefix=%24(touch%20owned)aa",
        "agent_prefix=aaaaaaaa%0Atouch%20owned",
        "agent_prefix=short",
        "agent_prefix=..%2F..%2F..%2Fetc",
        "agent_prefix=%00aaaaaaaaa",
        "cmd=!!!!",
        "cmd=",
        "backend=custom",
        "backend=codex&cmd=Y2F0",
        "cmd=AAAA",
        "cmd=/w==",
        "agent_prefix=%FF%FE%FF%FE%FF%FE%FF%FE",
    ] {
        let (status, script) = site.script(&format!("{path}?{query}")).await;
        assert_eq!(status, 400, "{query}: {script}");
        let home = home();
        let said = home.run(&["sh"], &script).await.failed(1);
        assert!(said.starts_with("starchild: "), "{said}");
        assert_eq!(
            std::fs::read_dir(home.path()).unwrap().count(),
            0,
            "{query}"
        );
    }
}

#[tokio::test]
async fn a_hostile_code_gets_a_script_that_refuses() {
    let site = Site::new().await;
    for code in [
        "i_unknown1",
        "i_%27%3Btouch%20owned%3B%27",
        "%24(touch%20owned)",
        "%0Atouch%20owned",
        "..%2Fcli",
        "inv_eyJ",
    ] {
        let (status, script) = site.script(&format!("/install/{code}")).await;
        assert_eq!(status, 404, "{code}");
        let home = home();
        let said = home.run(&["sh"], &script).await.failed(1);
        assert!(said.contains("ask for a new one"), "{said}");
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "{code}");
    }
}

#[tokio::test]
async fn whoever_guesses_codes_is_slowed_down_by_a_script() {
    let setup = Setup::new(Engine::Sqlite).limit("visitor_reads_per_minute", 2);
    let site = Site::with(setup).await;
    let guesser = site.server.anonymous().seen_from_outside();
    for _ in 0..2 {
        assert_eq!(guesser.get("/install/i_guess123").await.status, 404);
    }
    let reply = guesser.get("/install/i_guess123").await;
    assert_eq!(reply.status, 429);
    assert!(reply.header("retry-after").is_some());
    let said = home().run(&["sh"], reply.text()).await.failed(1);
    assert!(said.contains("Try again in"), "{said}");
}

async fn an_invite_is_looked_up(setup: Setup) {
    let site = Site::with(setup).await;
    let script = site.fresh("").await;
    assert!(script.contains(&format!("server='{}'", site.server.base_url())));
    let invite = site.invites(json!({})).await;
    let path = format!("/install/{}", invite["short_code"].as_str().unwrap());
    let claims = claims(invite["invite_code"].as_str().unwrap());
    let jti = claims["jti"].as_str().unwrap();
    let revoke = format!("/rooms/{}/invites/{jti}", site.room);
    site.alice.delete(revoke).await.ok();
    assert_eq!(site.script(&path).await.0, 404, "a revoked one is unknown");
    let invite = site.invites(json!({"ttl_seconds": 1})).await;
    let path = format!("/install/{}", invite["short_code"].as_str().unwrap());
    let script = eventually("the invite expires", async || {
        let (status, script) = site.script(&path).await;
        (status != 200).then_some((status, script))
    });
    let (status, script) = script.await;
    assert_eq!(status, 410);
    let said = home().run(&["sh"], &script).await.failed(1);
    assert!(said.contains("expired"), "{said}");
}

async fn a_used_up_invite_starts_only_who_joined_with_it(setup: Setup) {
    let site = Site::with(setup).await;
    let invite = site.invites(json!({})).await;
    let path = format!("/install/{}", invite["short_code"].as_str().unwrap());
    let joined = home();
    let (_, script) = site.script(&path).await;
    joined.run(&["sh"], &script).await.ok();
    let code = invite["invite_code"].as_str().unwrap();
    site.server.anonymous().joins(&site.room, code, AGENT).await;
    let (status, script) = site.script(&path).await;
    assert_eq!(status, 410);
    std::fs::remove_file(joined.file("calls")).unwrap();
    joined.run(&["sh"], &script).await.ok();
    assert_eq!(calls(&joined).len(), 1, "it is started again");
    let elsewhere = home();
    let said = elsewhere.run(&["sh"], &script).await.failed(1);
    assert!(said.contains("used up"), "{said}");
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}
