//! `fs.read`, `fs.list` and `fs.write`, jailed to a workspace. Paths are
//! resolved against an open folder, so that neither `..` nor a symbolic link
//! leads outside, also when links change while we look.

use crate::segment::{ContentSegment, Media};
use crate::tool::{Risk, Tool, ToolContext, ToolError, ToolOutcome, ToolSpec, parse};
use base64::Engine as _;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::io::{Read, Write};
use std::path::{Component, Path};
use std::sync::Arc;

/// The most that one read gives, and one write takes.
const MAX_TEXT: u64 = 256 << 10;
const MAX_IMAGE: u64 = 8 << 20;
const MAX_WRITE: usize = 4 << 20;
const MAX_ENTRIES: usize = 1000;

/// A folder that tools may use, and nothing outside of it.
#[derive(Clone)]
pub struct Workspace(Arc<Dir>);

impl Workspace {
    /// Opens the folder.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        Ok(Self(Arc::new(Dir::open_ambient_dir(
            path,
            ambient_authority(),
        )?)))
    }

    /// `fs.read` and `fs.list`.
    pub fn read_tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![self.tool(read_spec(), read), self.tool(list_spec(), list)]
    }

    /// `fs.write`.
    pub fn write_tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![self.tool(write_spec(), write)]
    }

    fn tool(&self, spec: ToolSpec, run: Run) -> Arc<dyn Tool> {
        Arc::new(FsTool {
            spec,
            dir: Arc::clone(&self.0),
            run,
        })
    }
}

type Run = fn(&Dir, Value) -> ToolOutcome;

struct FsTool {
    spec: ToolSpec,
    dir: Arc<Dir>,
    run: Run,
}

impl Tool for FsTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, args: Value, _: &'a ToolContext) -> BoxFuture<'a, ToolOutcome> {
        let (dir, run) = (Arc::clone(&self.dir), self.run);
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || run(&dir, args)).await;
            done.unwrap_or_else(|error| Err(ToolError::new(error)))
        })
    }
}

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

fn read_spec() -> ToolSpec {
    ToolSpec::of::<ReadArgs>(
        "fs.read",
        "Read a file of the workspace: text, or a picture.",
        Risk::Safe,
    )
}

fn read(dir: &Dir, args: Value) -> ToolOutcome {
    let args: ReadArgs = parse(args)?;
    let path = inside(&args.path)?;
    let told = |error: std::io::Error| ToolError(format!("{}: {error}", args.path));
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
    let picked: String = text
        .split_inclusive('\n')
        .skip(first - 1)
        .take(count)
        .collect();
    Ok(vec![ContentSegment::text(cut(picked, MAX_TEXT as usize))])
}

/// Text as text and known pictures as pictures; `None` for anything else.
pub(crate) fn media_or_text(bytes: Vec<u8>, whole: bool) -> Option<ContentSegment> {
    let mime = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    };
    if let Some(mime) = mime.filter(|_| whole) {
        let data = base64::engine::general_purpose::STANDARD.encode(&bytes);
        return Some(ContentSegment::Image(Media::base64(mime, data)));
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
pub(super) fn cut(mut text: String, limit: usize) -> String {
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

fn list_spec() -> ToolSpec {
    ToolSpec::of::<ListArgs>(
        "fs.list",
        "List a folder of the workspace: names, folders with a slash, sizes in bytes.",
        Risk::Safe,
    )
}

fn list(dir: &Dir, args: Value) -> ToolOutcome {
    let args: ListArgs = parse(args)?;
    let name = args
        .path
        .as_deref()
        .filter(|path| !path.is_empty())
        .unwrap_or(".");
    let path = inside(name)?;
    let told = |error: std::io::Error| ToolError(format!("{name}: {error}"));
    let mut rows = Vec::new();
    let mut more = false;
    for entry in dir.read_dir(path).map_err(told)? {
        if rows.len() == MAX_ENTRIES {
            more = true;
            break;
        }
        let entry = entry.map_err(told)?;
        let name = entry.file_name().to_string_lossy().into_owned();
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
    if rows.is_empty() {
        rows.push("[empty]".into());
    }
    Ok(vec![ContentSegment::text(rows.join("\n"))])
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteArgs {
    /// The file, from the workspace. Its folder is made where it is missing.
    path: String,
    /// All that the file will hold.
    content: String,
}

fn write_spec() -> ToolSpec {
    ToolSpec::of::<WriteArgs>(
        "fs.write",
        "Write a file of the workspace. What it held before is gone.",
        Risk::Destructive,
    )
}

fn write(dir: &Dir, args: Value) -> ToolOutcome {
    let args: WriteArgs = parse(args)?;
    if args.content.len() > MAX_WRITE {
        return Err(ToolError(format!("more than {MAX_WRITE} bytes")));
    }
    let path = inside(&args.path)?;
    let told = |error: std::io::Error| ToolError(format!("{}: {error}", args.path));
    let Some(name) = path.file_name() else {
        return Err(ToolError(format!("{:?} names no file", args.path)));
    };
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    if let Some(folder) = folder {
        dir.create_dir_all(folder).map_err(told)?;
    }
    if dir.symlink_metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return Err(ToolError(format!("{} is no ordinary file", args.path)));
    }
    // The new text takes the place of the old in one step, or not at all.
    let draft = format!(".{}.{}", name.to_string_lossy(), uuid::Uuid::new_v4());
    let draft = folder.unwrap_or(Path::new("")).join(draft);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let written = dir
        .open_with(&draft, &options)
        .and_then(|mut file| file.write_all(args.content.as_bytes()).and(file.sync_all()))
        .and_then(|()| dir.rename(&draft, dir, path));
    if let Err(error) = written {
        let _ = dir.remove_file(&draft);
        return Err(told(error));
    }
    let said = format!("wrote {} bytes to {}", args.content.len(), args.path);
    Ok(vec![ContentSegment::text(said)])
}

/// A plain word for the commonest slip; the folder itself guards the rest.
fn inside(path: &str) -> Result<&Path, ToolError> {
    let path = Path::new(path);
    match path.components().next() {
        None => Err(ToolError("the path is empty".into())),
        Some(Component::RootDir | Component::Prefix(_)) => Err(ToolError(
            "paths start at the workspace: give a relative one".into(),
        )),
        _ => Ok(path),
    }
}

#[cfg(test)]
#[path = "fs_tests.rs"]
mod tests;
