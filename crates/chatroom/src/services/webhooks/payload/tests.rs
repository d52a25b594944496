use super::*;
use serde_json::json;

fn said(event: Option<&str>, payload: &Value) -> String {
    let rendered = render(event, payload).unwrap();
    rendered.content.as_str().to_owned()
}

#[test]
fn a_push_tells_its_commits() {
    let payload = json!({
        "ref": "refs/heads/main", "compare": "https://github.com/o/r/compare/a...b",
        "repository": {"full_name": "o/r", "html_url": "https://github.com/o/r"},
        "sender": {"login": "ann"},
        "commits": [{"id": "0123456789", "message": "Fix *it*\n\nlong", "url": "https://github.com/o/r/commit/0"}],
    });
    assert_eq!(
        said(Some("push"), &payload),
        "**[o/r](https://github.com/o/r)** · ann pushed [1 commit](https://github.com/o/r/compare/a...b) to `main`\n\
         - [`0123456`](https://github.com/o/r/commit/0) Fix \\*it\\*"
    );
    assert_eq!(render(Some("push"), &json!({"ref": "refs/heads/x"})), None);
}

#[test]
fn pull_requests_issues_and_comments_read_well() {
    let pull = json!({"action": "closed", "sender": {"login": "ann"},
        "pull_request": {"number": 7, "title": "Add b", "merged": true, "html_url": "https://x.example/7"}});
    assert_eq!(
        said(Some("pull_request"), &pull),
        "ann merged pull request [#7 Add b](https://x.example/7)"
    );
    let step = json!({"action": "synchronize", "pull_request": {}});
    assert_eq!(render(Some("pull_request"), &step), None);
    let issue = json!({"action": "opened", "sender": {"login": "ann"}, "issue": {"number": 1, "title": "t", "html_url": "javascript:x"}});
    assert_eq!(said(Some("issues"), &issue), "ann opened issue #1 t");
    let comment = json!({"action": "created", "sender": {"login": "ann"}, "issue": {"number": 1, "title": "t"},
        "comment": {"body": "first\n\nsecond", "html_url": "https://x.example/c"}});
    assert_eq!(
        said(Some("issue_comment"), &comment),
        "ann [commented](https://x.example/c) on #1 t\n\n> first\n> second"
    );
}

#[test]
fn runs_and_releases_read_well() {
    let run = json!({"action": "completed", "workflow_run": {"name": "CI", "conclusion": "failure",
        "head_branch": "main", "head_sha": "abcdef012", "html_url": "https://x.example/r"}});
    assert_eq!(
        said(Some("workflow_run"), &run),
        "❌ workflow [CI](https://x.example/r) failed on `main` (`abcdef0`)"
    );
    let check = json!({"action": "completed", "check_run": {"name": "lint", "conclusion": "success",
        "check_suite": {"head_branch": "b"}}});
    assert_eq!(
        said(Some("check_run"), &check),
        "✅ check lint succeeded on `b`"
    );
    assert_eq!(
        render(Some("workflow_run"), &json!({"action": "requested"})),
        None
    );
    let release =
        json!({"action": "published", "sender": {"login": "ann"}, "release": {"tag_name": "v1"}});
    assert_eq!(said(Some("release"), &release), "ann published v1");
    assert_eq!(
        said(Some("star"), &json!({"action": "created"})),
        "star created by somebody"
    );
    assert_eq!(
        said(Some("ping"), &json!({"zen": "Keep it."})),
        "GitHub is connected. Keep it."
    );
}

#[test]
fn alerts_are_told_one_by_one() {
    let payload = json!({"version": "4", "status": "firing", "externalURL": "http://am.example",
    "commonLabels": {"alertname": "Down", "severity": "page"},
    "alerts": [
        {"status": "firing", "labels": {"alertname": "Down", "severity": "page", "instance": "a:1"},
         "annotations": {"summary": "a is down"}, "generatorURL": "http://p.example/g"},
        {"status": "resolved", "labels": {"alertname": "Down", "severity": "page", "instance": "b:1"}, "annotations": {}},
    ]});
    assert_eq!(
        said(None, &payload),
        "🔥 **Firing (1)** [Down](http://am.example) · page\n\
         - [a is down (instance=a:1)](http://p.example/g)\n\
         - resolved: instance=b:1"
    );
}

#[test]
fn strangers_words_are_no_markup_and_mention_nobody() {
    let title = "@otter ![x](http://evil.example/t.png) <script> `rm` https://evil.example [a](b)";
    let issue = json!({"action": "opened", "sender": {"login": "ann"}, "issue": {"number": 1, "title": title}});
    let rendered = render(Some("issues"), &issue).unwrap();
    assert!(!rendered.mentions);
    let text = rendered.content.as_str();
    let mut without_escapes = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            other => without_escapes.push(other),
        }
    }
    for bad in ["@otter", "![", "](", "<script", " `", "https://"] {
        assert!(!without_escapes.contains(bad), "{bad} in {text}");
    }
    let branch = json!({"ref": "refs/heads/a`](http://evil.example)", "deleted": true});
    assert_eq!(
        said(Some("push"), &branch),
        "somebody deleted branch `a](http://evil.example)`"
    );
}

#[test]
fn anything_else_is_a_block_of_code_of_bounded_size() {
    let text = said(None, &json!({"a": "```\n# x"}));
    assert!(
        text.starts_with("````json\n{") && text.ends_with("\n````"),
        "{text}"
    );
    let large = json!({"x": "é".repeat(100_000), "y": "`".repeat(50)});
    let text = said(None, &large);
    assert!(
        text.len() <= MAX_CONTENT_BYTES
            && text.ends_with("\n```````````````````````````````````````````````````")
    );
    for odd in [json!(null), json!([]), json!(7), json!("x"), json!({})] {
        render(None, &odd).unwrap();
        for event in [
            "push",
            "issues",
            "pull_request",
            "release",
            "check_run",
            "",
            "x\n@y",
        ] {
            render(Some(event), &odd);
        }
    }
    let slack = render(None, &json!({"text": "@otter look\u{0}"})).unwrap();
    assert!(slack.mentions && slack.content.as_str() == "@otter look");
}
