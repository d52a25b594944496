//! `fs.glob` and `fs.grep`: they leave out what `.gitignore` and its like leave
//! out, as ripgrep does.

use super::{FsCall, Workspace, failed, inside, kept_back};
use crate::segment::ContentSegment;
use crate::tool::{Risk, ToolError, ToolOutput, ToolSpec, parse};
use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use ignore::WalkBuilder;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The most files that one search looks at.
const MAX_FILES: usize = 200_000;
const MAX_FOUND: usize = 1000;
const MAX_LINES: usize = 400;
/// The most of a line that is shown.
const MAX_LINE: usize = 300;
/// The longest line that is searched.
const MAX_HEAP: usize = 4 << 20;
const MAX_CONTEXT: usize = 10;
const MAX_PATTERN: usize = 4096;
const GLOB: &str = "fs.glob";
const GREP: &str = "fs.grep";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GlobArgs {
    /// What the names look like: `*.rs`, `src/**/mod.rs`, `*.{ts,tsx}`.
    pattern: String,
    /// The folder to look in, from the workspace; all of it when left out.
    #[serde(default)]
    path: Option<String>,
}

pub(super) fn glob_spec() -> ToolSpec {
    ToolSpec::of::<GlobArgs>(
        GLOB,
        "Find files of the workspace by name. Ignored and hidden files are left out.",
        Risk::Safe,
    )
}

pub(super) fn glob(workspace: &Workspace, args: Value, call: &FsCall) -> ToolOutput {
    let args: GlobArgs = parse(args)?;
    let matcher = matcher(&args.pattern)?;
    let mut found = Vec::new();
    let seen = walk(workspace, GLOB, args.path.as_deref(), call, |path| {
        if matcher.is_match(path) {
            found.push(path.display().to_string());
        }
        found.len() < MAX_FOUND
    })?;
    finish(found, seen, "no file has such a name")
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GrepArgs {
    /// A regular expression, for each line.
    pattern: String,
    /// The file or folder to look in, from the workspace; all of it when left out.
    #[serde(default)]
    path: Option<String>,
    /// Only files whose names look like this: `*.rs`.
    #[serde(default)]
    glob: Option<String>,
    /// Whether capitals do not matter.
    #[serde(default)]
    ignore_case: bool,
    /// How many lines to show before and after each.
    #[serde(default)]
    #[schemars(range(max = 10))]
    context: usize,
}

pub(super) fn grep_spec() -> ToolSpec {
    ToolSpec::of::<GrepArgs>(
        GREP,
        "Search the texts of the workspace with a regular expression. Ignored, hidden and binary files are left out.",
        Risk::Safe,
    )
}

pub(super) fn grep(workspace: &Workspace, args: Value, call: &FsCall) -> ToolOutput {
    let args: GrepArgs = parse(args)?;
    if args.pattern.len() > MAX_PATTERN {
        return Err(ToolError(format!(
            "the pattern is over {MAX_PATTERN} bytes"
        )));
    }
    let names = args.glob.as_deref().map(matcher).transpose()?;
    let regex = RegexMatcherBuilder::new()
        .case_insensitive(args.ignore_case)
        .line_terminator(Some(b'\n'))
        .size_limit(4 << 20)
        .dfa_size_limit(16 << 20)
        .build(&args.pattern)
        .map_err(|error| ToolError(format!("pattern: {error}")))?;
    let context = args.context.min(MAX_CONTEXT);
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(MAX_HEAP))
        .build();
    let mut lines = Vec::new();
    let seen = walk(workspace, GREP, args.path.as_deref(), call, |path| {
        if names.as_ref().is_none_or(|names| names.is_match(path)) {
            search(workspace, path, &regex, &mut searcher, call, &mut lines);
        }
        lines.len() < MAX_LINES
    })?;
    finish(lines, seen, "no line fits")
}

/// Searches one file. It is opened through the workspace, so that a link that
/// appears on the way leads nowhere. What cannot be read is left out.
fn search(
    workspace: &Workspace,
    path: &Path,
    regex: &RegexMatcher,
    searcher: &mut Searcher,
    call: &FsCall,
    lines: &mut Vec<String>,
) {
    let Ok(file) = workspace.dir.open(path) else {
        return;
    };
    let found = Found { path, call, lines };
    if let Err(error) = searcher.search_file(regex, &file.into_std(), found) {
        tracing::debug!(%error, path = %path.display(), "left out of a search");
    }
}

/// Collects lines.
struct Found<'a> {
    path: &'a Path,
    call: &'a FsCall,
    lines: &'a mut Vec<String>,
}

impl Found<'_> {
    fn line(&mut self, number: Option<u64>, mark: char, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let shown = crate::pain::excerpt(text, MAX_LINE);
        let more = if shown.len() < text.len() { "…" } else { "" };
        let number = number.unwrap_or_default();
        let path = self.path.display();
        self.lines
            .push(format!("{path}{mark}{number}{mark}{shown}{more}"));
        self.lines.len() < MAX_LINES && !self.call.is_cancelled()
    }
}

impl Sink for Found<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        Ok(self.line(found.line_number(), ':', found.bytes()))
    }

    fn context(&mut self, _: &Searcher, near: &SinkContext<'_>) -> Result<bool, Self::Error> {
        Ok(match near.kind() {
            SinkContextKind::Other => true,
            _ => self.line(near.line_number(), '-', near.bytes()),
        })
    }
}

/// What a walk came to.
struct Seen {
    /// Whether that was all.
    whole: bool,
    /// Files that the owner's rules keep back.
    kept_back: usize,
}

/// Calls `each` with the files below `path`, in the order of their names, until
/// it says no.
fn walk(
    workspace: &Workspace,
    tool: &str,
    path: Option<&str>,
    call: &FsCall,
    mut each: impl FnMut(&Path) -> bool,
) -> Result<Seen, ToolError> {
    let name = path.filter(|path| !path.is_empty()).unwrap_or(".");
    let told = |error: std::io::Error| failed(name, &error);
    let start: PathBuf = workspace.dir.canonicalize(inside(name)?).map_err(told)?;
    let walker = WalkBuilder::new(workspace.root.join(start))
        .follow_links(false)
        .require_git(false)
        .sort_by_file_path(Path::cmp)
        .build();
    let mut seen = Seen {
        whole: false,
        kept_back: 0,
    };
    for (at, entry) in walker.enumerate() {
        if call.is_cancelled() {
            return Err(ToolError("it was cancelled".into()));
        }
        if at == MAX_FILES {
            return Ok(seen);
        }
        let Ok(entry) = entry else { continue };
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let Ok(path) = entry.path().strip_prefix(&workspace.root) else {
            continue;
        };
        if workspace.policy.keeps_back(tool, &path.to_string_lossy()) {
            seen.kept_back += 1;
        } else if !each(path) {
            return Ok(seen);
        }
    }
    seen.whole = true;
    Ok(seen)
}

/// A pattern without a slash is for the last part of a path.
fn matcher(pattern: &str) -> Result<GlobMatcher, ToolError> {
    let whole = match pattern.contains('/') {
        true => pattern.trim_start_matches("./").to_owned(),
        false => format!("**/{pattern}"),
    };
    if whole.len() > MAX_PATTERN {
        return Err(ToolError(format!(
            "the pattern is over {MAX_PATTERN} bytes"
        )));
    }
    let glob = GlobBuilder::new(&whole).literal_separator(true).build();
    let glob = glob.map_err(|error| ToolError(format!("{pattern}: {error}")))?;
    Ok(glob.compile_matcher())
}

fn finish(mut rows: Vec<String>, seen: Seen, none: &str) -> ToolOutput {
    if rows.is_empty() {
        rows.push(format!("[{none}]"));
    }
    rows.extend(kept_back(seen.kept_back));
    if !seen.whole {
        rows.push(format!(
            "[cut after {} lines: narrow the search]",
            rows.len()
        ));
    }
    Ok(vec![ContentSegment::text(rows.join("\n"))])
}
