//! What the tests need around them: programs, servers, and other people's packages.

use crate::{
    packages,
    run::{command, run, target},
    services::{self, Service},
};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Everything that the tests need, as long as this lives.
pub struct Environment {
    postgres: Service,
    nats: Service,
    mcp: PathBuf,
    coding_agents: PathBuf,
    a2a: PathBuf,
    clients: PathBuf,
    sdk: PathBuf,
    acp: PathBuf,
    web_modules: PathBuf,
    sdk_python: PathBuf,
    sdk_typescript: PathBuf,
}

impl Environment {
    /// Installs what is missing and starts the servers.
    pub fn prepare() -> Result<Self, String> {
        packages::ensure()?;
        let a2a = installed("crates/chatroom/tests/a2a/install.sh", "test-a2a")?;
        let sdk = installed("crates/openstarry/tests/sdk/install.sh", "test-sdk")?;
        Ok(Self {
            mcp: installed("crates/openstarry/tests/install-mcp.sh", "test-mcp")?,
            coding_agents: installed(
                "crates/starchild/tests/install-coding-agents.sh",
                "test-coding-agents",
            )?,
            a2a: a2a.join("bin/python"),
            clients: clients()?,
            sdk: sdk.join("bin/python"),
            acp: installed("crates/starchild/tests/acp/install.sh", "test-acp")?,
            web_modules: web_modules()?,
            sdk_python: installed("sdk/python/tests/install.sh", "test-sdk-python")?,
            sdk_typescript: installed("sdk/typescript/tests/install.sh", "test-sdk-typescript")?,
            postgres: services::postgres()?,
            nats: services::nats()?,
        })
    }

    /// Tells a test program where everything is.
    pub fn apply(&self, command: &mut Command) {
        command
            .env("SC_TEST_POSTGRES_URL", &self.postgres.url)
            .env("SC_TEST_NATS_URL", &self.nats.url)
            .env("SC_TEST_SCRATCH", services::memory_or_disk())
            .env("STARCHILD_TEST_MCP", &self.mcp)
            .env("STARCHILD_TEST_CODING_AGENTS", &self.coding_agents)
            .env("SC_TEST_A2A_PYTHON", &self.a2a)
            .env("SC_TEST_CLIENTS", &self.clients)
            .env("SC_TEST_SDK_PYTHON", &self.sdk)
            .env("SC_TEST_ACP", &self.acp)
            .env("SC_TEST_WEB", &self.web_modules);
    }

    /// What the browser's tests import.
    pub fn web_modules(&self) -> &Path {
        &self.web_modules
    }

    /// Clients of the server that others made.
    pub fn clients(&self) -> &Path {
        &self.clients
    }

    /// The client libraries, each with the tests that run against the real server.
    pub fn sdk_tests(&self) -> [(&'static str, Command); 2] {
        let tests = |script: &str, folder: &Path| {
            let mut tests = command("sh");
            tests.arg(script).arg(folder);
            tests
        };
        let python = tests("sdk/python/tests/run.sh", &self.sdk_python);
        let typescript = tests("sdk/typescript/tests/run.sh", &self.sdk_typescript);
        [("sdk python", python), ("sdk typescript", typescript)]
    }
}

/// Installs what the browser's tests import.
pub fn web_modules() -> Result<PathBuf, String> {
    installed("web/tests/install.sh", "test-web")
}

/// Installs clients of the server that others made.
pub fn clients() -> Result<PathBuf, String> {
    installed("crates/chatroom/tests/clients/install.sh", "test-clients")
}

/// Runs a script that installs something into a folder beside what Cargo builds, where it is kept;
/// gives the folder.
fn installed(script: &str, folder: &str) -> Result<PathBuf, String> {
    let folder = target()?.join(folder);
    run(command("sh").arg(script).arg(&folder))?;
    Ok(folder)
}
