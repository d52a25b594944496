//! `starchild agent sessions`: conversations with an agent of ours, by folder. An agent's sign-ins on a
//! server are `starchild sessions`.

use super::state::StateFolder;
use super::{Failure, project_of};
use crate::cli::show;
use clap::Args;
use openstarry::config::AgentConfig;
use openstarry::session::SessionInfo;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// What `sessions` takes.
#[derive(Args)]
pub struct SessionsArgs {
    /// The agent's file.
    #[arg(long, short, default_value = "agent.yaml")]
    config: PathBuf,
    /// List the sessions of all folders and agents.
    #[arg(long)]
    all: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Lists sessions, the latest first.
pub fn list(args: &SessionsArgs) -> Result<ExitCode, Failure> {
    let folders = match args.all {
        true => StateFolder::all()?,
        false => {
            let config = AgentConfig::load(&args.config)?;
            let project = project_of(&args.config);
            let state = StateFolder::open(&config.name, project)?;
            vec![(state, project.canonicalize()?.display().to_string())]
        }
    };
    let mut sessions: Vec<(String, SessionInfo)> = Vec::new();
    for (state, folder) in folders {
        let listed = state.sessions()?.list()?;
        sessions.extend(listed.into_iter().map(|info| (folder.clone(), info)));
    }
    sessions.sort_by_key(|(_, info)| std::cmp::Reverse(info.changed));
    if args.json {
        let row = |(folder, info): &(String, SessionInfo)| {
            json!({
                "session": info.id, "folder": folder, "changed": time(info), "turns": info.turns,
                "first": info.first, "waits": info.waits,
            })
        };
        show::json(&sessions.iter().map(row).collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |(folder, info): (String, SessionInfo)| {
        let waits = if info.waits { "a yes" } else { "" };
        let first: String = info.first.chars().take(60).collect();
        let changed = time(&info);
        [
            info.id,
            changed,
            info.turns.to_string(),
            waits.into(),
            folder,
            first,
        ]
    };
    show::Table {
        columns: [
            "SESSION",
            "CHANGED",
            "TURNS",
            "WAITS FOR",
            "FOLDER",
            "BEGAN WITH",
        ],
        rows: sessions.into_iter().map(row).collect(),
        empty: "There are no sessions here yet.",
    }
    .show()?;
    Ok(ExitCode::SUCCESS)
}

fn time(info: &SessionInfo) -> String {
    match jiff::Timestamp::try_from(info.changed) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
        Err(_) => String::new(),
    }
}
