use super::*;
use serde_json::json;
use std::os::unix::fs::symlink;

fn workspace() -> (tempfile::TempDir, tempfile::TempDir, Dir) {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "hidden").unwrap();
    let inside = tempfile::tempdir().unwrap();
    std::fs::write(inside.path().join("a.txt"), "one\ntwo\nthree\n").unwrap();
    std::fs::create_dir(inside.path().join("sub")).unwrap();
    symlink(outside.path(), inside.path().join("way-out")).unwrap();
    symlink(outside.path().join("secret"), inside.path().join("link")).unwrap();
    symlink("a.txt", inside.path().join("inner")).unwrap();
    let dir = Dir::open_ambient_dir(inside.path(), ambient_authority()).unwrap();
    (outside, inside, dir)
}

fn text(outcome: ToolOutcome) -> String {
    crate::segment::joined_text(&outcome.unwrap())
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
