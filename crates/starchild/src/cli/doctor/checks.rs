//! What can be seen without the network: files, their modes, their contents.

use super::Finding;
use crate::{
    backend::{build::build, config::BackendConfig},
    bridge::login::{Login, LoginError, now},
    daemon::process,
    home::{AgentHome, Home, agent_id},
};
use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt, path::Path};

/// Room keys are renewed long before this by a daemon that runs.
const SOON: i64 = 24 * 3600;
const SECRET_FOLDERS: [&str; 2] = ["identity", "rooms"];

/// The folder of everything, and that nobody else can read it.
pub fn home(home: &Home) -> Vec<Finding> {
    let folder = home.folder();
    let mut findings = Vec::new();
    if !folder.is_dir() {
        let says = format!("{} is not there yet", folder.display());
        let mend = "starchild agents add --prefix NAME makes it";
        findings.push(Finding::note("home", says, mend));
    } else {
        let mut open = Vec::new();
        open_files(folder, 0, &mut open);
        findings.push(match open.as_slice() {
            [] => Finding::good("home", format!("{} is yours alone", folder.display())),
            [first, rest @ ..] => {
                let more = match rest.len() {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let says = format!("others can read {first}{more}");
                let mend = format!("chmod -R go= '{}'", folder.display());
                Finding::bad("home", says, mend)
            }
        });
    }
    findings.push(match agent_id(home, "any_agent") {
        Ok(_) => Finding::good("machine", "has an id for its agents"),
        Err(error) => Finding::bad(
            "machine",
            error.to_string(),
            "make the home folder writable",
        ),
    });
    findings
}

/// Folders and secrets that others can look into.
fn open_files(path: &Path, depth: u8, open: &mut Vec<String>) {
    let Ok(entry) = path.symlink_metadata() else {
        return;
    };
    let parent = path.parent().and_then(Path::file_name).unwrap_or_default();
    let in_secret_folder = SECRET_FOLDERS.iter().any(|name| parent == *name);
    let is_secret = entry.is_dir() && depth < 3
        || entry.is_file() && (in_secret_folder || path.ends_with("login.json"));
    if is_secret && entry.permissions().mode() & 0o077 != 0 {
        open.push(path.display().to_string());
    }
    if entry.is_dir() && depth < 4 {
        for child in fs::read_dir(path).into_iter().flatten().flatten() {
            open_files(&child.path(), depth + 1, open);
        }
    }
}

/// The key to the owner's hosted agent; nobody has to have one.
pub fn login(home: &Home) -> Finding {
    match Login::load(home) {
        Ok(login) => Finding::good("login", format!("{}, good {}", login.server, login.left())),
        Err(error @ LoginError::NotLoggedIn) => Finding::note(
            "login",
            "none, so `starchild \"a question\"` and backend starchild do not work",
            error.to_string(),
        ),
        Err(error @ LoginError::Expired { .. }) => {
            Finding::bad("login", "its time is over", error.to_string())
        }
        Err(error) => Finding::bad(
            "login",
            error.to_string(),
            "run `starchild login BUNDLE` again",
        ),
    }
}

/// Every agent, and the servers that they speak to.
pub fn agents(home: &Home) -> (Vec<Finding>, BTreeSet<String>) {
    let (mut findings, mut servers) = (Vec::new(), BTreeSet::new());
    match home.agents() {
        Err(error) => findings.push(Finding::bad(
            "agents",
            error.to_string(),
            "make the home folder readable for you",
        )),
        Ok(agents) if agents.is_empty() => findings.push(Finding::note(
            "agents",
            "there are none",
            "starchild agents add --prefix NAME --backend plain makes one",
        )),
        Ok(agents) => {
            for agent in agents {
                config(&agent, &mut findings, &mut servers);
                keys(&agent, &mut findings, &mut servers);
                daemon(&agent, &mut findings);
            }
        }
    }
    (findings, servers)
}

fn config(agent: &AgentHome, findings: &mut Vec<Finding>, servers: &mut BTreeSet<String>) {
    let about = agent.id().as_str();
    let config = match BackendConfig::load(&agent.config_file()) {
        Ok(config) => config,
        Err(error) => {
            let mend = format!("starchild agents edit {about}");
            return findings.push(Finding::bad(about, error.to_string(), mend));
        }
    };
    servers.insert(config.server.clone());
    if !config.unknown.is_empty() {
        let keys: Vec<_> = config.unknown.keys().map(String::as_str).collect();
        let says = format!(
            "handler.yaml has keys that nobody knows: {}",
            keys.join(", ")
        );
        findings.push(Finding::note(
            about,
            says,
            "correct their spelling or remove them",
        ));
    }
    findings.push(match build(&config, agent.folder()) {
        Ok(_) => Finding::good(
            about,
            format!("backend {} has what it needs", config.backend),
        ),
        Err(error) => {
            let says = format!("backend {} cannot answer", config.backend);
            Finding::bad(about, says, error.to_string())
        }
    });
}

fn keys(agent: &AgentHome, findings: &mut Vec<Finding>, servers: &mut BTreeSet<String>) {
    let about = agent.id().as_str();
    let now = now();
    let mut rooms = 0;
    for room in agent.rooms().unwrap_or_default() {
        servers.insert(room.server.clone());
        match room.left {
            Some(_) => continue,
            None => rooms += 1,
        }
        if room.expires_at < now + SOON {
            let word = if room.expires_at <= now {
                "has ended"
            } else {
                "ends soon"
            };
            let says = format!("the key of {} {word}", room.room_id);
            let mend = format!("starchild run --agent {about} renews it");
            findings.push(Finding::note(about, says, mend));
        }
    }
    match agent.identities() {
        Ok(Some(identities)) => {
            for identity in identities
                .all()
                .filter(|identity| identity.expires_at <= now)
            {
                let says = format!("its identity at {} has ended", identity.server);
                let mend = "join a room there again: starchild room join CODE --agent ".to_owned();
                findings.push(Finding::bad(about, says, mend + about));
            }
        }
        Ok(None) => {}
        Err(error) => findings.push(Finding::bad(
            about,
            error.to_string(),
            "remove that file and join a room again",
        )),
    }
    if rooms == 0 {
        let mend = format!("starchild room join CODE --agent {about}");
        findings.push(Finding::note(about, "is in no room", mend));
    }
}

fn daemon(agent: &AgentHome, findings: &mut Vec<Finding>) {
    let about = agent.id().as_str();
    findings.push(match process::running(agent) {
        Some(_) => Finding::good(about, "its daemon runs"),
        None => {
            let mend = format!("starchild run --agent {about}");
            Finding::note(about, "its daemon does not run", mend)
        }
    });
}
