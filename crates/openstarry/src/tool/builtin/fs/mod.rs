//! Files of a workspace, and nothing outside of it. Paths are resolved against
//! an open folder, so that neither `..` nor a symbolic link leads outside, also
//! when links change while we look.

mod change;
mod find;
mod patch;
mod read;
mod undo_journal;

pub(super) use read::cut;
pub(crate) use read::media_or_text;

use crate::approval::Policy;
use crate::tool::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use futures_util::future::BoxFuture;
use runtime::CancellationToken;
use serde_json::Value;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use undo_journal::UndoJournal;

/// A folder that tools may use, and nothing outside of it.
#[derive(Clone)]
pub struct Workspace {
    dir: Arc<Dir>,
    /// The same folder by name, for walks.
    root: PathBuf,
    /// What can be undone.
    journal: Arc<UndoJournal>,
    /// What searches leave out.
    policy: Arc<Policy>,
}

impl Workspace {
    /// Opens the folder. Changes can be undone while the program runs.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        Ok(Self {
            dir: Arc::new(Dir::open_ambient_dir(path, ambient_authority())?),
            root: path.canonicalize()?,
            journal: Arc::default(),
            policy: Arc::default(),
        })
    }

    /// Keeps lists and searches from files that a rule denies or asks about by
    /// their path.
    pub fn with_policy(mut self, policy: &Policy) -> Self {
        self.policy = Arc::new(policy.clone());
        self
    }

    /// Keeps what is needed to undo changes in a folder, so that a later program
    /// can undo them too.
    pub fn with_journal(mut self, folder: &Path) -> std::io::Result<Self> {
        self.journal = Arc::new(UndoJournal::open(folder)?);
        Ok(self)
    }

    /// `fs.read`, `fs.list`, `fs.glob` and `fs.grep`.
    pub fn read_tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![
            self.tool(read::read_spec(), read::read),
            self.tool(read::list_spec(), read::list),
            self.tool(find::glob_spec(), find::glob),
            self.tool(find::grep_spec(), find::grep),
        ]
    }

    /// `fs.write`, `fs.edit` and `fs.undo`.
    pub fn write_tools(&self) -> Vec<Arc<dyn Tool>> {
        let changing = |spec, run, preview: Preview| {
            Arc::new(FsTool {
                spec,
                workspace: self.clone(),
                run,
                preview: Some(preview),
            }) as Arc<dyn Tool>
        };
        vec![
            changing(change::write_spec(), change::write, change::preview_write),
            changing(change::edit_spec(), change::edit, change::preview_edit),
            self.tool(change::undo_spec(), change::undo),
        ]
    }

    fn tool(&self, spec: ToolSpec, run: Run) -> Arc<dyn Tool> {
        Arc::new(FsTool {
            spec,
            workspace: self.clone(),
            run,
            preview: None,
        })
    }

    /// A path in the one spelling that links and dots leave. What does not exist
    /// yet is added to what does.
    fn canonical(&self, path: &str) -> String {
        let path = Path::new(path);
        for known in path.ancestors() {
            let known = if known == Path::new("") {
                Path::new(".")
            } else {
                known
            };
            if let Ok(real) = self.dir.canonicalize(known) {
                let new = path.strip_prefix(known).unwrap_or(path);
                let mut whole = PathBuf::new();
                for part in real.components().chain(new.components()) {
                    match part {
                        Component::ParentDir => {
                            whole.pop();
                        }
                        Component::Normal(name) => whole.push(name),
                        _ => {}
                    }
                }
                return whole.to_string_lossy().into_owned();
            }
        }
        path.to_string_lossy().into_owned()
    }
}

/// In whose name a tool runs, and whether anyone still waits for it.
#[derive(Default)]
struct FsCall {
    session: String,
    cancellation: CancellationToken,
}

impl FsCall {
    fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }
}

type Run = fn(&Workspace, Value, &FsCall) -> ToolOutput;
type Preview = fn(&Workspace, Value) -> Option<String>;

struct FsTool {
    spec: ToolSpec,
    workspace: Workspace,
    run: Run,
    preview: Option<Preview>,
}

impl Tool for FsTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, args: Value, context: &'a ToolContext) -> BoxFuture<'a, ToolOutput> {
        let (workspace, run) = (self.workspace.clone(), self.run);
        let call = FsCall {
            session: context.session.clone(),
            ..FsCall::default()
        };
        // Tells the thread that works that nobody waits any more.
        let cancel_on_drop = call.cancellation.clone().drop_guard();
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || run(&workspace, args, &call)).await;
            drop(cancel_on_drop);
            done.unwrap_or_else(|error| Err(ToolError::new(error)))
        })
    }

    fn canonical_args(&self, args: &Value) -> Value {
        let mut args = args.clone();
        if let Some(Value::String(path)) = args.get_mut("path") {
            *path = self.workspace.canonical(path);
        }
        args
    }

    fn preview<'a>(&'a self, args: &'a Value) -> BoxFuture<'a, Option<String>> {
        let Some(preview) = self.preview else {
            return Box::pin(async { None });
        };
        let (workspace, args) = (self.workspace.clone(), args.clone());
        Box::pin(async move {
            let shown = tokio::task::spawn_blocking(move || preview(&workspace, args));
            shown.await.ok().flatten()
        })
    }
}

/// What is said of files that rules keep back.
fn kept_back(files: usize) -> Option<String> {
    (files > 0).then(|| format!("[files left out by the owner's rules: {files}]"))
}

/// Why a file could not be used.
fn failed(path: &str, error: &std::io::Error) -> ToolError {
    let why = error.to_string();
    match why.contains("outside of the filesystem") {
        true => ToolError(format!("{path} leads out of the workspace")),
        false => ToolError(format!("{path}: {why}")),
    }
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
mod tests;
