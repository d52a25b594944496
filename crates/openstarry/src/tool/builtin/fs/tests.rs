use super::*;
use crate::segment::ContentSegment;
use serde_json::json;
use std::os::unix::fs::{PermissionsExt, symlink};

fn workspace() -> (tempfile::TempDir, tempfile::TempDir, Workspace) {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "hidden").unwrap();
    let inside = tempfile::tempdir().unwrap();
    std::fs::write(inside.path().join("a.txt"), "one\ntwo\nthree\n").unwrap();
    std::fs::create_dir(inside.path().join("sub")).unwrap();
    symlink(outside.path(), inside.path().join("way-out")).unwrap();
    symlink(outside.path().join("secret"), inside.path().join("link")).unwrap();
    symlink("a.txt", inside.path().join("inner")).unwrap();
    let workspace = Workspace::open(inside.path()).unwrap();
    (outside, inside, workspace)
}

/// The tools, called in the session `s`.
macro_rules! tools {
    ($($module:ident::$name:ident),*) => {
        $(fn $name(workspace: &Workspace, args: Value) -> ToolOutput {
            super::$module::$name(workspace, args, &call())
        })*
    };
}

tools!(
    read::read,
    read::list,
    find::glob,
    find::grep,
    change::write,
    change::edit,
    change::undo
);

fn text(output: ToolOutput) -> String {
    crate::segment::joined_text(&output.unwrap())
}

#[test]
fn files_are_read_whole_or_in_part() {
    let (_outside, _inside, dir) = workspace();
    assert_eq!(
        text(read(&dir, json!({"path": "a.txt"}))),
        "one\ntwo\nthree\n"
    );
    let part = json!({"path": "sub/../a.txt", "first_line": 2, "lines": 1});
    assert_eq!(text(read(&dir, part)), "two\n");
    assert_eq!(
        text(read(&dir, json!({"path": "inner"}))),
        "one\ntwo\nthree\n"
    );
}

#[test]
fn lines_that_are_not_there_or_not_read_are_told() {
    let (_outside, inside, dir) = workspace();
    let part = json!({"path": "a.txt", "first_line": 9});
    assert_eq!(text(read(&dir, part)), "[no line 9: 3 lines are read]");
    std::fs::write(inside.path().join("long.txt"), "line\n".repeat(2_000_000)).unwrap();
    let late = json!({"path": "long.txt", "first_line": 1_900_000, "lines": 1});
    let told = text(read(&dir, late));
    assert!(
        told.starts_with("[no line 1900000") && told.contains("8 MiB"),
        "{told}"
    );
    let early = json!({"path": "long.txt", "first_line": 5, "lines": 1});
    assert_eq!(text(read(&dir, early)), "line\n");
}

#[test]
fn nothing_outside_is_read_listed_or_written() {
    let (outside, _inside, dir) = workspace();
    let absolute = outside.path().join("secret");
    for path in [
        "link",
        "way-out/secret",
        "../secret",
        "/etc/passwd",
        "sub/../../x",
        "",
        absolute.to_str().unwrap(),
    ] {
        assert!(read(&dir, json!({ "path": path })).is_err(), "{path}");
    }
    for path in ["way-out", "..", "/"] {
        assert!(list(&dir, json!({ "path": path })).is_err(), "{path}");
    }
    for path in [
        "link",
        "way-out/new",
        "way-out/deep/new",
        "../new",
        "/tmp/new",
        "..",
        ".",
    ] {
        assert!(
            write(&dir, json!({ "path": path, "content": "x" })).is_err(),
            "{path}"
        );
    }
    let left: Vec<_> = std::fs::read_dir(outside.path()).unwrap().collect();
    assert_eq!(left.len(), 1);
    assert_eq!(std::fs::read_to_string(absolute).unwrap(), "hidden");
}

#[test]
fn a_file_is_written_with_its_folder_and_no_draft_is_left() {
    let (_outside, inside, dir) = workspace();
    write(&dir, json!({"path": "new/b.txt", "content": "hello"})).unwrap();
    write(&dir, json!({"path": "new/b.txt", "content": "again"})).unwrap();
    assert_eq!(
        std::fs::read_to_string(inside.path().join("new/b.txt")).unwrap(),
        "again"
    );
    assert_eq!(text(list(&dir, json!({"path": "new"}))), "b.txt  5");
}

#[test]
fn a_list_tells_folders_links_and_sizes() {
    let (_outside, _inside, dir) = workspace();
    let listed = text(list(&dir, json!({})));
    assert_eq!(
        listed,
        "a.txt  14\ninner (link)\nlink (link)\nsub/\nway-out (link)"
    );
}

#[test]
fn pipes_folders_and_binaries_are_refused_and_pictures_are_pictures() {
    let (_outside, inside, dir) = workspace();
    let pipe = inside.path().join("pipe");
    let made = std::process::Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .unwrap();
    assert!(made.success());
    std::fs::write(inside.path().join("bin"), [0, 159, 146, 150]).unwrap();
    std::fs::write(inside.path().join("p.png"), [0x89, b'P', b'N', b'G', 1, 2]).unwrap();
    for path in ["pipe", "sub", "bin", "missing"] {
        assert!(read(&dir, json!({ "path": path })).is_err(), "{path}");
    }
    let picture = read(&dir, json!({"path": "p.png"})).unwrap();
    assert!(matches!(picture.as_slice(), [ContentSegment::Image(_)]));
}

#[test]
fn a_large_text_is_cut_with_a_note() {
    let (_outside, inside, dir) = workspace();
    std::fs::write(inside.path().join("big"), "天".repeat(200_000)).unwrap();
    let read = text(read(&dir, json!({"path": "big"})));
    assert!(read.len() < 300_000 && read.contains("[cut:"));
}

fn call() -> FsCall {
    FsCall {
        session: "s".into(),
        ..FsCall::default()
    }
}

#[test]
fn a_write_and_an_edit_keep_the_modes() {
    let (_outside, inside, dir) = workspace();
    let script = inside.path().join("run.sh");
    std::fs::write(&script, "#!/bin/sh\necho one\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o750)).unwrap();
    let mode = || std::fs::metadata(&script).unwrap().permissions().mode() & 0o7777;
    write(
        &dir,
        json!({"path": "run.sh", "content": "#!/bin/sh\necho two\n"}),
    )
    .unwrap();
    assert_eq!(mode(), 0o750);
    edit(
        &dir,
        json!({"path": "run.sh", "old": "two", "new": "three"}),
    )
    .unwrap();
    assert_eq!(mode(), 0o750);
    undo(&dir, json!({"count": 2})).unwrap();
    assert_eq!(mode(), 0o750);
    assert!(std::fs::read_to_string(&script).unwrap().contains("one"));
}

#[test]
fn an_edit_replaces_what_occurs_once_and_tells_of_the_rest() {
    let (_outside, inside, dir) = workspace();
    let file = inside.path().join("a.txt");
    let diff = text(edit(
        &dir,
        json!({"path": "a.txt", "old": "two", "new": "2"}),
    ));
    assert!(diff.contains("-two\n+2\n"), "{diff}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\n2\nthree\n");
    let patch = "@@ -1,2 +1,2 @@\n-one\n+1\n 2\n";
    edit(&dir, json!({"path": "a.txt", "patch": patch})).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "1\n2\nthree\n");
    std::fs::write(&file, "x\nx\r\n").unwrap();
    for (args, word) in [
        (
            json!({"path": "a.txt", "old": "x", "new": "y"}),
            "2 times, at the lines 1, 2",
        ),
        (
            json!({"path": "a.txt", "old": "z", "new": "y"}),
            "not in the file",
        ),
        (json!({"path": "a.txt", "old": "", "new": "y"}), "empty"),
        (json!({"path": "a.txt", "old": "x", "new": "x"}), "same"),
        (json!({"path": "a.txt", "old": "x"}), "either"),
        (json!({"path": "b.txt", "old": "x", "new": "y"}), "fs.write"),
        (
            json!({"path": "link", "old": "hidden", "new": "y"}),
            "no ordinary file",
        ),
    ] {
        let error = edit(&dir, args).unwrap_err().0;
        assert!(error.contains(word), "{word}: {error}");
    }
    edit(
        &dir,
        json!({"path": "a.txt", "old": "x", "new": "y", "all": true}),
    )
    .unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "y\ny\r\n");
    edit(
        &dir,
        json!({"path": "a.txt", "old": "y\ny\n", "new": "z\nz\n"}),
    )
    .unwrap_err();
    std::fs::write(&file, "a\r\nb\r\n").unwrap();
    edit(&dir, json!({"path": "a.txt", "old": "a\nb", "new": "b\na"})).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "b\r\na\r\n");
}

#[test]
fn the_last_changes_of_a_session_are_undone_by_a_later_program_too() {
    let (_outside, inside, dir) = workspace();
    let kept = tempfile::tempdir().unwrap();
    let dir = dir.with_journal(kept.path()).unwrap();
    let read = |name: &str| std::fs::read_to_string(inside.path().join(name));
    write(&dir, json!({"path": "new.txt", "content": "new"})).unwrap();
    write(&dir, json!({"path": "a.txt", "content": "changed"})).unwrap();
    let other = FsCall {
        session: "other".into(),
        ..FsCall::default()
    };
    let nothing = text(super::change::undo(&dir, json!({}), &other));
    assert!(nothing.contains("nothing"), "{nothing}");
    drop(dir);
    let dir = Workspace::open(inside.path()).unwrap();
    let dir = dir.with_journal(kept.path()).unwrap();
    undo(&dir, json!({})).unwrap();
    assert_eq!(read("a.txt").unwrap(), "one\ntwo\nthree\n");
    std::fs::write(inside.path().join("new.txt"), "by someone else").unwrap();
    let error = undo(&dir, json!({})).unwrap_err().0;
    assert!(error.contains("changed otherwise"), "{error}");
    std::fs::write(inside.path().join("new.txt"), "new").unwrap();
    undo(&dir, json!({})).unwrap();
    assert!(read("new.txt").is_err());
    assert_eq!(std::fs::read_dir(kept.path()).unwrap().count(), 0);
}

#[test]
fn files_are_found_by_name_and_by_what_they_hold() {
    let (_outside, inside, dir) = workspace();
    let put = |name: &str, text: &str| {
        let path = inside.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("src/main.rs", "fn main() {\n    run();\n}\n");
    put("src/deep/run.rs", "pub fn Run() {}\n");
    put("target/out.rs", "fn run() {}\n");
    put(".hidden.rs", "fn run() {}\n");
    put(".gitignore", "target/\n");
    std::fs::write(inside.path().join("src/bin.rs"), b"fn run\0").unwrap();
    assert_eq!(
        text(glob(&dir, json!({"pattern": "*.rs"}))),
        "src/bin.rs\nsrc/deep/run.rs\nsrc/main.rs"
    );
    assert_eq!(
        text(glob(&dir, json!({"pattern": "src/*.rs"}))),
        "src/bin.rs\nsrc/main.rs"
    );
    assert_eq!(
        text(glob(&dir, json!({"pattern": "*.rs", "path": "src/deep"}))),
        "src/deep/run.rs"
    );
    assert!(text(glob(&dir, json!({"pattern": "*.zig"}))).contains("no file"));
    assert_eq!(
        text(grep(&dir, json!({"pattern": r"\brun\("}))),
        "src/main.rs:2:    run();"
    );
    let near = text(grep(
        &dir,
        json!({"pattern": "RUN", "ignore_case": true, "context": 1, "path": "src/main.rs"}),
    ));
    assert_eq!(
        near,
        "src/main.rs-1-fn main() {\nsrc/main.rs:2:    run();\nsrc/main.rs-3-}"
    );
    let named = text(grep(&dir, json!({"pattern": "fn", "glob": "run.*"})));
    assert_eq!(named, "src/deep/run.rs:1:pub fn Run() {}");
    assert!(grep(&dir, json!({"pattern": "("})).is_err());
    assert!(glob(&dir, json!({"pattern": "["})).is_err());
    // Nothing outside is looked at.
    for path in ["way-out", "..", "/etc", "link"] {
        assert!(
            grep(&dir, json!({"pattern": "hidden", "path": path})).is_err(),
            "{path}"
        );
    }
    assert!(text(grep(&dir, json!({"pattern": "hidden"}))).contains("no line"));
}

#[test]
fn a_search_that_nobody_waits_for_ends() {
    let (_outside, _inside, dir) = workspace();
    let call = call();
    call.cancellation.cancel();
    assert!(super::find::grep(&dir, json!({"pattern": "one"}), &call).is_err());
}

#[test]
fn a_rule_sees_one_spelling_of_a_path() {
    let (_outside, inside, dir) = workspace();
    symlink("sub", inside.path().join("other")).unwrap();
    for path in [
        "sub/new.key",
        "./sub/new.key",
        "sub/../sub//new.key",
        "other/new.key",
        "sub/x/../new.key",
    ] {
        assert_eq!(dir.canonical(path), "sub/new.key", "{path}");
    }
}

#[test]
fn a_way_out_is_told_in_words() {
    let (_outside, _inside, dir) = workspace();
    for path in ["link", "way-out/secret", "../x"] {
        let error = read(&dir, json!({"path": path})).unwrap_err();
        assert_eq!(error.0, format!("{path} leads out of the workspace"));
    }
}

#[test]
fn a_path_that_does_not_exist_yet_has_one_spelling_too() {
    let (_outside, _inside, dir) = workspace();
    for path in [
        "new/x",
        "./new/x",
        "no/../new/x",
        "sub/../new//x",
        "new/./y/../x",
    ] {
        assert_eq!(dir.canonical(path), "new/x", "{path}");
    }
    for path in ["sub/x", "no/../sub/x", "./no/way/../../sub/x"] {
        assert_eq!(dir.canonical(path), "sub/x", "{path}");
    }
}

#[test]
fn searches_leave_out_what_a_rule_keeps_back_by_its_path() {
    use crate::approval::{Effect, Pattern, Policy, Rule};
    let (_outside, inside, dir) = workspace();
    std::fs::create_dir(inside.path().join("secrets")).unwrap();
    std::fs::write(inside.path().join("secrets/key"), "one password\n").unwrap();
    let rule = |effect, path: &str| Rule {
        args: [("path".to_owned(), Pattern::new(path))].into(),
        ..Rule::new(effect, Pattern::new("fs.*"))
    };
    for effect in [Effect::Deny, Effect::Ask] {
        let policy = Policy {
            rules: vec![rule(effect, "secrets/*"), rule(Effect::Allow, "*")],
            ..Policy::default()
        };
        let dir = dir.clone().with_policy(&policy);
        let found = text(grep(&dir, json!({"pattern": "one"})));
        assert_eq!(
            found,
            "a.txt:1:one\n[files left out by the owner's rules: 1]"
        );
        let found = text(grep(
            &dir,
            json!({"pattern": "password", "path": "secrets"}),
        ));
        assert!(!found.contains("one password"), "{found}");
        let found = text(glob(&dir, json!({"pattern": "*"})));
        assert!(found.contains("a.txt") && !found.contains("key"), "{found}");
        let listed = text(list(&dir, json!({"path": "./secrets"})));
        assert_eq!(listed, "[files left out by the owner's rules: 1]");
        let listed = text(list(&dir, json!({})));
        assert!(
            listed.contains("secrets/") && listed.contains("a.txt"),
            "{listed}"
        );
    }
}
