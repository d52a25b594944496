//! `starchild service`: an agent or a team that starts with the machine's user session. A unit of
//! systemd on Linux, a property list of launchd on macOS.

use super::{
    byoa,
    failure::Failure,
    show::{self, Table},
};
use crate::{home::Home, up::project::Project};
use clap::{Args, Subcommand};
use sha2::{Digest, Sha256};
use std::{
    path::{Path, PathBuf},
    process::Command as Process,
};

/// What can be done with services.
#[derive(Subcommand)]
pub enum Command {
    /// Start an agent, or a team, whenever you are logged in.
    #[command(
        after_help = "Examples:\n  starchild service install --agent otter\n  starchild service install --team ~/support\n\nKeys of models are not written into the service: put them where your session has them\n(~/.config/environment.d/*.conf for systemd, launchctl setenv on macOS). To go on while you are\nlogged out: loginctl enable-linger"
    )]
    Install {
        #[command(flatten)]
        service: ServiceArgs,
        /// Write it, but do not start it.
        #[arg(long)]
        no_start: bool,
    },
    /// End it and forget it.
    Uninstall {
        #[command(flatten)]
        service: ServiceArgs,
    },
    /// Say which services there are, and whether they run.
    #[command(after_help = "In a pipe: name, state, file; with tabs between.")]
    Status,
}

/// What is started.
#[derive(Args)]
pub struct ServiceArgs {
    /// The agent, or any part of its id; not needed where there is only one.
    #[arg(long, value_name = "ID", conflicts_with = "team")]
    agent: Option<String>,
    /// A folder with a starchild.yaml, or the file itself.
    #[arg(long, value_name = "FOLDER|FILE")]
    team: Option<PathBuf>,
}

/// Runs one command.
pub fn run(home: &Home, command: Command) -> Result<(), Failure> {
    let manager = Manager::here()?;
    match command {
        Command::Install { service, no_start } => install(home, &manager, &service, no_start),
        Command::Uninstall { service } => uninstall(home, &manager, &service),
        Command::Status => status(&manager),
    }
}

/// A service, whoever runs it.
#[derive(Debug, PartialEq)]
struct Service {
    name: String,
    about: String,
    /// The program and its arguments.
    command: Vec<String>,
    /// `STARCHILD_HOME`.
    home: String,
    /// The search path, so that backends are found.
    path: String,
}

impl Service {
    fn of(home: &Home, service: &ServiceArgs) -> Result<Self, Failure> {
        let program = utf8(&std::env::current_exe()?)?;
        let (name, about, args) = match &service.team {
            Some(folder) => {
                let project = Project::find(folder)?;
                let file = utf8(project.file())?;
                if !project.file().is_file() {
                    return Err(Failure::permanent(format!("there is no {file}"))
                        .with_hint("starchild init writes one."));
                }
                let hash = Sha256::digest(file.as_bytes());
                let hash: String = hash
                    .iter()
                    .take(4)
                    .map(|byte| format!("{byte:02x}"))
                    .collect();
                let name = format!("starchild-team-{hash}");
                (
                    name,
                    format!("Starchild team {file}"),
                    vec!["up".to_owned(), file],
                )
            }
            None => {
                let agent = byoa::choose_agent(home, service.agent.as_ref())?;
                let id = agent.id().to_string();
                let args = ["run", "--foreground", "--agent", &id].map(str::to_owned);
                (
                    format!("starchild-{id}"),
                    format!("Starchild agent {id}"),
                    args.to_vec(),
                )
            }
        };
        Ok(Self {
            name,
            about,
            command: std::iter::once(program).chain(args).collect(),
            home: utf8(home.folder())?,
            path: std::env::var("PATH").unwrap_or_default(),
        })
    }

    fn unit(&self) -> String {
        let quoted: Vec<String> = self.command.iter().map(|word| systemd_word(word)).collect();
        format!(
            "# Written by starchild service install.\n[Unit]\nDescription={about}\nAfter=network-online.target\n\n\
             [Service]\nExecStart={command}\nEnvironment={home}\nEnvironment={path}\n\
             Restart=on-failure\nRestartSec=5\nTimeoutStopSec=180\n\n[Install]\nWantedBy=default.target\n",
            about = self.about.replace('%', "%%"),
            command = quoted.join(" "),
            home = systemd_word(&format!("STARCHILD_HOME={}", self.home)),
            path = systemd_word(&format!("PATH={}", self.path)),
        )
    }

    fn property_list(&self) -> String {
        let words = self.command.iter();
        let words: String = words
            .map(|word| format!("    <string>{}</string>\n", xml(word)))
            .collect();
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
             <plist version=\"1.0\">\n<dict>\n  <key>Label</key>\n  <string>{name}</string>\n  \
             <key>ProgramArguments</key>\n  <array>\n{words}  </array>\n  \
             <key>EnvironmentVariables</key>\n  <dict>\n    <key>STARCHILD_HOME</key>\n    <string>{home}</string>\n    \
             <key>PATH</key>\n    <string>{path}</string>\n  </dict>\n  \
             <key>RunAtLoad</key>\n  <true/>\n  <key>KeepAlive</key>\n  \
             <dict>\n    <key>SuccessfulExit</key>\n    <false/>\n  </dict>\n</dict>\n</plist>\n",
            name = xml(&self.name),
            home = xml(&self.home),
            path = xml(&self.path),
        )
    }
}

/// A word of a unit: quoted, and nothing in it expanded.
fn systemd_word(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"");
    let escaped = escaped
        .replace('%', "%%")
        .replace('$', "$$")
        .replace('\n', "\\n");
    format!("\"{escaped}\"")
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn utf8(path: &Path) -> Result<String, Failure> {
    let text = path.to_str();
    let text = text.ok_or_else(|| Failure::permanent(format!("{} is no UTF-8", path.display())))?;
    Ok(text.to_owned())
}

/// What runs services here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Systemd,
    Launchd,
}

struct Manager {
    kind: Kind,
    folder: PathBuf,
}

impl Manager {
    fn here() -> Result<Self, Failure> {
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        let home = home.ok_or_else(|| Failure::permanent("there is no home folder; set HOME"))?;
        Ok(match cfg!(target_os = "macos") {
            true => Self {
                kind: Kind::Launchd,
                folder: home.join("Library/LaunchAgents"),
            },
            false => {
                let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
                let config = config.filter(|config| config.is_absolute());
                let config = config.unwrap_or_else(|| home.join(".config"));
                Self {
                    kind: Kind::Systemd,
                    folder: config.join("systemd/user"),
                }
            }
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(match self.kind {
            Kind::Systemd => format!("{name}.service"),
            Kind::Launchd => format!("{name}.plist"),
        })
    }

    fn text(&self, service: &Service) -> String {
        match self.kind {
            Kind::Systemd => service.unit(),
            Kind::Launchd => service.property_list(),
        }
    }

    /// The commands that take a service up, as they are typed.
    fn start(&self, name: &str) -> Vec<Vec<String>> {
        let file = self.file(name).display().to_string();
        let lines: &[&[&str]] = match self.kind {
            Kind::Systemd => &[
                &["systemctl", "--user", "daemon-reload"],
                &["systemctl", "--user", "enable", "--now", name],
            ],
            Kind::Launchd => &[&["launchctl", "load", "-w", &file]],
        };
        owned(lines)
    }

    /// The commands that take a service down.
    fn stop(&self, name: &str) -> Vec<Vec<String>> {
        let file = self.file(name).display().to_string();
        let lines: &[&[&str]] = match self.kind {
            Kind::Systemd => &[&["systemctl", "--user", "disable", "--now", name]],
            Kind::Launchd => &[&["launchctl", "unload", "-w", &file]],
        };
        owned(lines)
    }

    fn is_running(&self, name: &str) -> Option<bool> {
        let line: &[&str] = match self.kind {
            Kind::Systemd => &["systemctl", "--user", "is-active", "--quiet", name],
            Kind::Launchd => &["launchctl", "list", name],
        };
        let status = Process::new(line[0]).args(&line[1..]).output().ok()?;
        Some(status.status.success())
    }
}

fn owned(lines: &[&[&str]]) -> Vec<Vec<String>> {
    let own = |line: &&[&str]| line.iter().map(|word| (*word).to_owned()).collect();
    lines.iter().map(own).collect()
}

/// Runs commands until one fails, which is then said.
fn run_all(lines: &[Vec<String>]) -> Result<(), String> {
    for line in lines {
        let shown = line.join(" ");
        let output = Process::new(&line[0]).args(&line[1..]).output();
        let output = output.map_err(|error| format!("{shown}: {error}"))?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{shown}: {}", why.trim()));
        }
    }
    Ok(())
}

fn install(
    home: &Home,
    manager: &Manager,
    service: &ServiceArgs,
    no_start: bool,
) -> Result<(), Failure> {
    let service = Service::of(home, service)?;
    let file = manager.file(&service.name);
    std::fs::create_dir_all(&manager.folder)?;
    std::fs::write(&file, manager.text(&service))?;
    show::print(&format!("{}\n", file.display()))?;
    if no_start {
        return Ok(());
    }
    let lines = manager.start(&service.name);
    run_all(&lines).map_err(|why| {
        let typed: Vec<String> = lines.iter().map(|line| line.join(" ")).collect();
        Failure::transient(format!("the service is written, but not started: {why}")).with_hint(
            format!("Start it where your session runs: {}", typed.join(" && ")),
        )
    })?;
    show::note(&format!(
        "{} runs, and starts with your session.",
        service.name
    ));
    Ok(())
}

fn uninstall(home: &Home, manager: &Manager, service: &ServiceArgs) -> Result<(), Failure> {
    let name = Service::of(home, service)?.name;
    let file = manager.file(&name);
    if !file.exists() {
        return Err(Failure::permanent(format!("there is no service {name}"))
            .with_hint("starchild service status lists those there are."));
    }
    if let Err(why) = run_all(&manager.stop(&name)) {
        show::note(&format!("note: it was not ended: {why}"));
    }
    std::fs::remove_file(&file)?;
    show::note(&format!("{name} is gone."));
    Ok(())
}

fn status(manager: &Manager) -> Result<(), Failure> {
    let entries = std::fs::read_dir(&manager.folder)
        .into_iter()
        .flatten()
        .flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names
        .filter(|name| name.starts_with("starchild-"))
        .filter_map(|name| name.rsplit_once('.').map(|(name, _)| name.to_owned()))
        .collect();
    names.sort();
    let rows = names.into_iter().map(|name| {
        let state = match manager.is_running(&name) {
            Some(true) => "running",
            Some(false) => "stopped",
            None => "unknown",
        };
        let file = manager.file(&name).display().to_string();
        [name, state.to_owned(), file]
    });
    let table = Table {
        columns: ["SERVICE", "STATE", "FILE"],
        rows: rows.collect(),
        empty: "No services yet. Make one: starchild service install",
    };
    Ok(table.show()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Service {
        Service {
            name: "starchild-otter".into(),
            about: "100% otter".into(),
            command: vec![
                "/opt/my apps/starchild".into(),
                "up".into(),
                "/a \"b\"/$x".into(),
            ],
            home: "/home/me".into(),
            path: "/usr/bin".into(),
        }
    }

    #[test]
    fn a_unit_expands_nothing() {
        let unit = service().unit();
        assert!(
            unit.contains("ExecStart=\"/opt/my apps/starchild\" \"up\" \"/a \\\"b\\\"/$$x\"\n"),
            "{unit}"
        );
        assert!(unit.contains("Description=100%% otter\n"), "{unit}");
        assert!(
            unit.contains("Environment=\"STARCHILD_HOME=/home/me\"\n"),
            "{unit}"
        );
    }

    #[test]
    fn a_property_list_holds_whatever_is_in_a_path() {
        let mut service = service();
        service.command.push("<&>".into());
        let list = service.property_list();
        assert!(list.contains("<string>&lt;&amp;&gt;</string>"), "{list}");
        assert!(
            list.contains("<key>Label</key>\n  <string>starchild-otter</string>"),
            "{list}"
        );
    }
}
