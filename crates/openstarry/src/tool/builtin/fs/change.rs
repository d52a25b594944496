//! `fs.write`, `fs.edit` and `fs.undo`.

use super::undo_journal::{Change, Held};
use super::{FsCall, Workspace, failed, inside, patch};
use crate::segment::ContentSegment;
use crate::tool::{Risk, ToolError, ToolOutput, ToolSpec, parse};
use cap_std::fs::{OpenOptions, Permissions, PermissionsExt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

/// The most that a file may hold to be edited, and that one write takes.
const MAX_FILE: usize = 4 << 20;
/// How long it may take to find a short diff.
const DIFF_TIME: Duration = Duration::from_millis(500);
const MAX_DIFF: usize = 256 << 10;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteArgs {
    /// The file, from the workspace. Its folder is made where it is missing.
    path: String,
    /// All that the file will hold.
    content: String,
}

pub(super) fn write_spec() -> ToolSpec {
    ToolSpec::of::<WriteArgs>(
        "fs.write",
        "Write a whole file of the workspace. What it held before is replaced; fs.edit changes a part.",
        Risk::Destructive,
    )
}

pub(super) fn write(workspace: &Workspace, args: Value, call: &FsCall) -> ToolOutput {
    let args: WriteArgs = parse(args)?;
    let before = held(workspace, &args.path)?;
    replace(workspace, &args.path, before, args.content.as_bytes(), call)?;
    said(format!(
        "wrote {} bytes to {}",
        args.content.len(),
        args.path
    ))
}

pub(super) fn preview_write(workspace: &Workspace, args: Value) -> Option<String> {
    let args: WriteArgs = parse(args).ok()?;
    let before = held(workspace, &args.path).ok()?;
    let before = before.map_or(Ok(String::new()), |held| String::from_utf8(held.bytes));
    let before = before.ok()?;
    // A diff of nothing would show nothing: the call itself is shown then.
    (before != args.content).then(|| diff(&args.path, &before, &args.content))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditArgs {
    /// The file, from the workspace.
    path: String,
    /// The exact text to replace, with enough around it to occur once.
    #[serde(default)]
    old: Option<String>,
    /// The text to put in its place.
    #[serde(default)]
    new: Option<String>,
    /// Replace every occurrence.
    #[serde(default)]
    all: bool,
    /// In place of old and new: a unified diff of this file.
    #[serde(default)]
    patch: Option<String>,
}

pub(super) fn edit_spec() -> ToolSpec {
    ToolSpec::of::<EditArgs>(
        "fs.edit",
        "Change a part of a file of the workspace: replace an exact text (old, new), or apply a unified diff (patch).",
        Risk::Destructive,
    )
}

pub(super) fn edit(workspace: &Workspace, args: Value, call: &FsCall) -> ToolOutput {
    let args: EditArgs = parse(args)?;
    let (before, text) = text_of(workspace, &args.path)?;
    let edited = edited(&text, &args)?;
    replace(workspace, &args.path, before, edited.as_bytes(), call)?;
    let diff = diff(&args.path, &text, &edited);
    said(super::cut(diff, 16 << 10))
}

pub(super) fn preview_edit(workspace: &Workspace, args: Value) -> Option<String> {
    let args: EditArgs = parse(args).ok()?;
    let (_, text) = text_of(workspace, &args.path).ok()?;
    Some(diff(&args.path, &text, &edited(&text, &args).ok()?))
}

/// The text after the edit.
fn edited(text: &str, args: &EditArgs) -> Result<String, ToolError> {
    let (old, new) = match (&args.old, &args.new, &args.patch) {
        (None, None, Some(patch)) => return patch::apply(text, patch).map_err(ToolError),
        (Some(old), Some(new), None) => (old.clone(), new.clone()),
        _ => return Err(ToolError("want either old and new, or patch".into())),
    };
    if old.is_empty() {
        return Err(ToolError("old is empty: say which text to replace".into()));
    }
    if old == new {
        return Err(ToolError("old and new are the same".into()));
    }
    // A model does not see that a file ends its lines as Windows does.
    let windows = !text.contains(&old) && text.contains("\r\n") && !old.contains('\r');
    let (old, new) = match windows {
        true => (old.replace('\n', "\r\n"), new.replace('\n', "\r\n")),
        false => (old, new),
    };
    let places: Vec<usize> = text.match_indices(&old).map(|(at, _)| at).collect();
    match places.as_slice() {
        [] => Err(ToolError(
            "old is not in the file. Read it again, and copy the text exactly, with its blanks"
                .into(),
        )),
        [_] => Ok(text.replacen(&old, &new, 1)),
        _ if args.all => Ok(text.replace(&old, &new)),
        many => {
            let line = |at: &usize| text[..*at].matches('\n').count() + 1;
            let lines: Vec<String> = many
                .iter()
                .take(10)
                .map(|at| line(at).to_string())
                .collect();
            Err(ToolError(format!(
                "old is in the file {} times, at the lines {}. Add what is around the one you mean, or set all",
                many.len(),
                lines.join(", ")
            )))
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UndoArgs {
    /// How many changes to undo; one when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100))]
    count: Option<usize>,
}

pub(super) fn undo_spec() -> ToolSpec {
    ToolSpec::of::<UndoArgs>(
        "fs.undo",
        "Undo the last changes that fs.write and fs.edit made in this session. A file that was changed otherwise since is left alone.",
        Risk::Moderate,
    )
}

pub(super) fn undo(workspace: &Workspace, args: Value, call: &FsCall) -> ToolOutput {
    let args: UndoArgs = parse(args)?;
    let mut undone = Vec::new();
    for _ in 0..args.count.unwrap_or(1) {
        let Some(change) = workspace.journal.last(&call.session) else {
            undone.push("there is nothing more to undo".to_owned());
            break;
        };
        match undo_one(workspace, &change) {
            Ok(text) => undone.push(text),
            Err(error) if undone.is_empty() => return Err(error),
            Err(error) => {
                undone.push(error.0);
                break;
            }
        }
        workspace.journal.remove(&change.id);
    }
    said(undone.join("\n"))
}

fn undo_one(workspace: &Workspace, change: &Change) -> Result<String, ToolError> {
    let path = &change.path;
    let now = held(workspace, path)?;
    if now.as_ref().map(|held| hash(&held.bytes)) != Some(change.after) {
        return Err(ToolError(format!(
            "{path} was changed otherwise since, so it is left as it is"
        )));
    }
    match &change.before {
        Some(before) => {
            put(workspace, path, &before.bytes, Some(before.mode))?;
            Ok(format!("{path} is as it was"))
        }
        None => {
            let told = |error: std::io::Error| failed(path, &error);
            workspace.dir.remove_file(path).map_err(told)?;
            Ok(format!("{path} is gone, as it was"))
        }
    }
}

/// What a file holds; `None` where there is none.
fn held(workspace: &Workspace, path: &str) -> Result<Option<Held>, ToolError> {
    let told = |error: std::io::Error| failed(path, &error);
    let name = inside(path)?;
    if name.file_name().is_none() {
        return Err(ToolError(format!("{path:?} names no file")));
    }
    let meta = match workspace.dir.symlink_metadata(name) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        meta => meta.map_err(told)?,
    };
    if !meta.is_file() {
        return Err(ToolError(format!("{path} is no ordinary file")));
    }
    if meta.len() > MAX_FILE as u64 {
        return Err(ToolError(format!(
            "{path} holds more than {MAX_FILE} bytes, too many to change"
        )));
    }
    let mut bytes = Vec::new();
    let file = workspace.dir.open(name).map_err(told)?;
    file.take(MAX_FILE as u64)
        .read_to_end(&mut bytes)
        .map_err(told)?;
    let mode = meta.permissions().mode() & 0o7777;
    Ok(Some(Held { bytes, mode }))
}

fn text_of(workspace: &Workspace, path: &str) -> Result<(Option<Held>, String), ToolError> {
    let held = held(workspace, path)?;
    let Some(held) = held else {
        return Err(ToolError(format!(
            "{path} does not exist; fs.write makes a file"
        )));
    };
    let text = String::from_utf8(held.bytes.clone());
    let text = text.map_err(|_| ToolError(format!("{path} is no text")))?;
    Ok((Some(held), text))
}

/// Puts new bytes in the place of the old ones, and remembers those.
fn replace(
    workspace: &Workspace,
    path: &str,
    before: Option<Held>,
    bytes: &[u8],
    call: &FsCall,
) -> Result<(), ToolError> {
    if bytes.len() > MAX_FILE {
        return Err(ToolError(format!("more than {MAX_FILE} bytes")));
    }
    if call.is_cancelled() {
        return Err(ToolError("it was cancelled".into()));
    }
    let mode = before.as_ref().map(|held| held.mode);
    let time = jiff::Timestamp::now().as_nanosecond();
    let change = Change {
        id: format!("{time:020}-{}", uuid::Uuid::new_v4().simple()),
        session: call.session.clone(),
        path: path.into(),
        before,
        after: hash(bytes),
    };
    let id = change.id.clone();
    if let Err(error) = workspace.journal.push(change) {
        tracing::warn!(%error, path, "this change cannot be undone");
    }
    put(workspace, path, bytes, mode).inspect_err(|_| workspace.journal.remove(&id))
}

/// Writes a file in one step, or not at all. Without a mode it gets that of a
/// new file.
fn put(
    workspace: &Workspace,
    path: &str,
    bytes: &[u8],
    mode: Option<u32>,
) -> Result<(), ToolError> {
    let dir = &workspace.dir;
    let told = |error: std::io::Error| failed(path, &error);
    let path = inside(path)?;
    let name = path.file_name().unwrap_or_default();
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    if let Some(folder) = folder {
        dir.create_dir_all(folder).map_err(told)?;
    }
    let draft = format!(".{}.{}", name.to_string_lossy(), uuid::Uuid::new_v4());
    let draft = folder.unwrap_or(Path::new("")).join(draft);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let written = dir.open_with(&draft, &options).and_then(|mut file| {
        file.write_all(bytes)?;
        if let Some(mode) = mode {
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        file.sync_all()?;
        dir.rename(&draft, dir, path)
    });
    written.map_err(|error| {
        let _ = dir.remove_file(&draft);
        told(error)
    })
}

/// The change as a unified diff.
fn diff(path: &str, before: &str, after: &str) -> String {
    let diff = similar::TextDiff::configure()
        .timeout(DIFF_TIME)
        .diff_lines(before, after);
    let text = diff
        .unified_diff()
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string();
    super::cut(text, MAX_DIFF)
}

fn hash(bytes: &[u8]) -> u64 {
    crate::hash::fnv_bytes(bytes.iter().copied())
}

fn said(text: String) -> ToolOutput {
    Ok(vec![ContentSegment::text(text)])
}
