//! GitHub's events.

use super::{MOST_LINES, text};
use crate::render::untrusted::{code, link, plain, quote};
use serde_json::Value;

/// What an event says; nothing for those that are only steps on the way.
pub fn render(event: &str, payload: &Value) -> Option<String> {
    let action = text(payload, "/action");
    let said = match event {
        "ping" => format!("GitHub is connected. {}", plain(text(payload, "/zen"))),
        "push" => push(payload)?,
        "pull_request" => {
            let merged = payload.pointer("/pull_request/merged") == Some(&Value::Bool(true));
            let done = match action {
                "closed" if merged => "merged",
                "opened" | "closed" | "reopened" => action,
                "ready_for_review" => "marked as ready",
                _ => return None,
            };
            let which = numbered(payload, "/pull_request");
            format!("{} {done} pull request {which}", sender(payload))
        }
        "issues" => match action {
            "opened" | "closed" | "reopened" | "deleted" => {
                let which = numbered(payload, "/issue");
                format!("{} {action} issue {which}", sender(payload))
            }
            _ => return None,
        },
        "issue_comment" | "commit_comment" | "pull_request_review_comment" => {
            if event != "commit_comment" && action != "created" {
                return None;
            }
            comment(payload)
        }
        "workflow_run" if action == "completed" => run(payload, "/workflow_run", "workflow"),
        "check_run" if action == "completed" => run(payload, "/check_run", "check"),
        "workflow_run" | "check_run" | "check_suite" | "workflow_job" | "status" => return None,
        "release" => match action {
            "published" => {
                let name = [
                    text(payload, "/release/name"),
                    text(payload, "/release/tag_name"),
                ];
                let name = name.into_iter().find(|name| !name.is_empty());
                let name = plain(name.unwrap_or("a release"));
                let which = link(&name, text(payload, "/release/html_url"));
                format!("{} published {which}", sender(payload))
            }
            _ => return None,
        },
        _ => {
            let words = [
                plain(&event.replace('_', " ")),
                plain(&action.replace('_', " ")),
            ];
            let words: Vec<&str> = words
                .iter()
                .map(String::as_str)
                .filter(|w| !w.is_empty())
                .collect();
            format!("{} by {}", words.join(" "), sender(payload))
        }
    };
    Some(match text(payload, "/repository/full_name") {
        "" => said,
        name => {
            let place = link(&plain(name), text(payload, "/repository/html_url"));
            format!("**{place}** · {said}")
        }
    })
}

fn sender(payload: &Value) -> String {
    match text(payload, "/sender/login") {
        "" => "somebody".to_owned(),
        name => plain(name),
    }
}

/// Number and title of what the payload holds there, linked.
fn numbered(payload: &Value, at: &str) -> String {
    let number = payload
        .pointer(&format!("{at}/number"))
        .and_then(Value::as_i64);
    let title = plain(text(payload, &format!("{at}/title")));
    let words = match number {
        Some(number) => format!("#{number} {title}"),
        None => title,
    };
    link(&words, text(payload, &format!("{at}/html_url")))
}

fn push(payload: &Value) -> Option<String> {
    let reference = text(payload, "/ref");
    let (what, name) = match reference.strip_prefix("refs/tags/") {
        Some(tag) => ("tag", tag),
        None => (
            "branch",
            reference.strip_prefix("refs/heads/").unwrap_or(reference),
        ),
    };
    let (who, name) = (sender(payload), code(name));
    if payload.pointer("/deleted") == Some(&Value::Bool(true)) {
        return Some(format!("{who} deleted {what} {name}"));
    }
    let none = Vec::new();
    let commits = payload
        .pointer("/commits")
        .and_then(Value::as_array)
        .unwrap_or(&none);
    if commits.is_empty() {
        let created = payload.pointer("/created") == Some(&Value::Bool(true));
        return created.then(|| format!("{who} made {what} {name}"));
    }
    let count = match commits.len() {
        1 => "1 commit".to_owned(),
        many => format!("{many} commits"),
    };
    let count = link(&count, text(payload, "/compare"));
    let forced = payload.pointer("/forced") == Some(&Value::Bool(true));
    let pushed = if forced { "force-pushed" } else { "pushed" };
    let mut said = format!("{who} {pushed} {count} to {name}");
    for commit in commits.iter().take(MOST_LINES) {
        let id: String = text(commit, "/id").chars().take(7).collect();
        let title = plain(text(commit, "/message").lines().next().unwrap_or_default());
        let id = link(&code(&id), text(commit, "/url"));
        said.push_str(&format!("\n- {id} {title}"));
    }
    if commits.len() > MOST_LINES {
        said.push_str(&format!("\n- … and {} more", commits.len() - MOST_LINES));
    }
    Some(said)
}

fn comment(payload: &Value) -> String {
    let on = ["/issue", "/pull_request"]
        .into_iter()
        .find(|at| payload.pointer(at).is_some());
    let on = on.map_or_else(|| "a commit".to_owned(), |at| numbered(payload, at));
    let commented = link("commented", text(payload, "/comment/html_url"));
    let quoted = quote(text(payload, "/comment/body"));
    format!("{} {commented} on {on}\n\n{quoted}", sender(payload))
}

/// A run that has come to its end.
fn run(payload: &Value, at: &str, what: &str) -> String {
    let field = |name: &str| text(payload, &format!("{at}/{name}"));
    let (sign, ended) = match field("conclusion") {
        "success" => ("✅", "succeeded"),
        "failure" => ("❌", "failed"),
        "timed_out" => ("❌", "timed out"),
        "startup_failure" => ("❌", "could not start"),
        "cancelled" => ("⚪", "was cancelled"),
        "skipped" => ("⚪", "was skipped"),
        "action_required" => ("🟡", "waits for somebody"),
        _ => ("⚪", "ended"),
    };
    let name = link(&plain(field("name")), field("html_url"));
    let branch = [field("head_branch"), field("check_suite/head_branch")];
    let branch = branch.into_iter().find(|branch| !branch.is_empty());
    let on = branch.map(|branch| format!(" on {}", code(branch)));
    let sha: String = field("head_sha").chars().take(7).collect();
    let sha = if sha.is_empty() {
        String::new()
    } else {
        format!(" ({})", code(&sha))
    };
    format!(
        "{sign} {what} {name} {ended}{}{sha}",
        on.unwrap_or_default()
    )
}
