//! A line for every tool that someone wanted to run.

use crate::tool::Principal;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It ran and gave a result.
    Done,
    /// It ran and failed.
    Failed,
    /// It did not run: the gate said no.
    Denied,
    /// It did not run: there is no such tool, or the arguments do not fit.
    Refused,
}

/// One line.
#[derive(Clone, Debug, Serialize)]
pub struct AuditLine {
    /// When, in UTC.
    pub time: String,
    /// In which session.
    pub session: String,
    /// Who wanted it.
    pub principal: Principal,
    /// Which tool.
    pub tool: String,
    /// With which arguments, cut.
    pub args: String,
    /// What came of it.
    pub verdict: Verdict,
    /// How long it took.
    pub ms: u64,
}

/// Where lines go.
pub trait Audit: Send + Sync {
    /// Keeps a line. It may not wait for long.
    fn record(&self, line: &AuditLine);
}

/// Lines as log events.
pub struct LogAudit;

impl Audit for LogAudit {
    fn record(&self, line: &AuditLine) {
        tracing::info!(
            target: "openstarry::audit",
            session = line.session,
            principal = ?line.principal,
            tool = line.tool,
            args = line.args,
            verdict = ?line.verdict,
            ms = line.ms,
            "tool"
        );
    }
}

/// Lines at the end of a file, one JSON object each.
pub struct FileAudit(PathBuf);

impl FileAudit {
    /// Lines go to this file.
    pub fn new(path: &Path) -> Self {
        Self(path.into())
    }
}

impl Audit for FileAudit {
    fn record(&self, line: &AuditLine) {
        let write = || {
            let mut text = serde_json::to_string(line)?;
            text.push('\n');
            let mut file = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(&self.0)?;
            file.write_all(text.as_bytes())
        };
        if let Err(error) = write() {
            tracing::error!(%error, "an audit line could not be written");
            LogAudit.record(line);
        }
    }
}
