//! `fs.read` and `fs.list`.

use super::{FsCall, Workspace, failed, inside, kept_back};
use crate::segment::ContentSegment;
use crate::tool::{Risk, ToolError, ToolOutput, ToolSpec, parse};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// The most that one read gives.
const MAX_TEXT: u64 = 256 << 10;
const MAX_IMAGE: u64 = 8 << 20;
const MAX_ENTRIES: usize = 1000;
const LIST: &str = "fs.list";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadArgs {
    /// The file, from the workspace.
    path: String,
    /// The first line to read, counted from 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    first_line: Option<usize>,
    /// How many lines to read.
    #[serde(default)]
    #[schemars(range(min = 1))]
    lines: Option<usize>,
}

pub(super) fn read_spec() -> ToolSpec {
    ToolSpec::of::<ReadArgs>(
        "fs.read",
        "Read a file of the workspace: text, or a picture.",
        Risk::Safe,
    )
}

pub(super) fn read(workspace: &Workspace, args: Value, _: &FsCall) -> ToolOutput {
    let args: ReadArgs = parse(args)?;
    let dir = &workspace.dir;
    let path = inside(&args.path)?;
    let told = |error: std::io::Error| failed(&args.path, &error);
    // Opening a pipe would wait for its writer: look first.
    let meta = dir.metadata(path).map_err(told)?;
    if !meta.is_file() {
        let what = if meta.is_dir() {
            "a folder"
        } else {
            "no ordinary file"
        };
        return Err(ToolError(format!("{} is {what}", args.path)));
    }
    let mut bytes = Vec::new();
    let file = dir.open(path).map_err(told)?;
    file.take(MAX_IMAGE + 1)
        .read_to_end(&mut bytes)
        .map_err(told)?;
    let whole = bytes.len() as u64 <= MAX_IMAGE;
    let segment = media_or_text(bytes, whole)
        .ok_or_else(|| ToolError(format!("{} is neither text nor a picture", args.path)))?;
    let ContentSegment::Text { text } = segment else {
        return Ok(vec![segment]);
    };
    let first = args.first_line.unwrap_or(1).max(1);
    let count = args.lines.unwrap_or(usize::MAX);
    let mut lines = text.split_inclusive('\n').skip(first - 1);
    let picked: String = lines.by_ref().take(count).collect();
    let at_end = lines.next().is_none();
    let mut picked = cut(picked, MAX_TEXT as usize);
    if picked.is_empty() && first > 1 {
        let known = text.lines().count();
        picked = format!("[no line {first}: {known} lines are read]");
    }
    if at_end && !whole {
        picked.push_str("\n[the file is longer: only its first 8 MiB are read; fs.grep finds what is behind them]");
    }
    Ok(vec![ContentSegment::text(picked)])
}

/// Text as text and known pictures as pictures; `None` for anything else.
pub(crate) fn media_or_text(bytes: Vec<u8>, whole: bool) -> Option<ContentSegment> {
    if whole && let Some(picture) = ContentSegment::picture(&bytes) {
        return Some(picture);
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // The end may have been cut within a character.
        Err(error) if !whole && error.utf8_error().error_len().is_none() => {
            let valid = error.utf8_error().valid_up_to();
            String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned()
        }
        Err(_) => return None,
    };
    (!text.contains('\0')).then(|| ContentSegment::text(text))
}

/// At most `limit` bytes, with a note when there was more.
pub(in super::super) fn cut(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let left = text.len() - limit;
        text.truncate(text.floor_char_boundary(limit));
        text.push_str(&format!("\n[cut: {left} more bytes]"));
    }
    text
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArgs {
    /// The folder, from the workspace; the workspace itself when left out.
    #[serde(default)]
    path: Option<String>,
}

pub(super) fn list_spec() -> ToolSpec {
    ToolSpec::of::<ListArgs>(
        LIST,
        "List a folder of the workspace: names, folders with a slash, sizes in bytes.",
        Risk::Safe,
    )
}

pub(super) fn list(workspace: &Workspace, args: Value, _: &FsCall) -> ToolOutput {
    let args: ListArgs = parse(args)?;
    let dir = &workspace.dir;
    let name = args
        .path
        .as_deref()
        .filter(|path| !path.is_empty())
        .unwrap_or(".");
    let path = inside(name)?;
    let told = |error: std::io::Error| failed(name, &error);
    let mut rows = Vec::new();
    let mut more = false;
    let mut back = 0;
    let folder = workspace.canonical(name);
    for entry in dir.read_dir(path).map_err(told)? {
        if rows.len() == MAX_ENTRIES {
            more = true;
            break;
        }
        let entry = entry.map_err(told)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let whole = Path::new(&folder).join(&name);
        if workspace.policy.keeps_back(LIST, &whole.to_string_lossy()) {
            back += 1;
            continue;
        }
        let meta = entry.metadata().map_err(told)?;
        rows.push(match (meta.is_dir(), meta.is_symlink()) {
            (true, _) => format!("{name}/"),
            (_, true) => format!("{name} (link)"),
            _ => format!("{name}  {}", meta.len()),
        });
    }
    rows.sort_unstable();
    if more {
        rows.push(format!("[cut after {MAX_ENTRIES} entries]"));
    }
    rows.extend(kept_back(back));
    if rows.is_empty() {
        rows.push("[empty]".into());
    }
    Ok(vec![ContentSegment::text(rows.join("\n"))])
}
