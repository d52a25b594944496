//! The room server: one that runs already, or one that is started here.

use super::{UpError, file::TeamFile, project::Project, supervisor::SupervisedProgram};
use client::Client;
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// The server's program.
const PROGRAM: &str = "sc-chatroom";
/// How long the server may take until it serves.
const READY_WITHIN: Duration = Duration::from_secs(60);
const CHECK_EVERY: Duration = Duration::from_millis(100);
/// How long a sign-in link, and the token that owns the rooms, is good for.
const TOKEN_TTL: &str = "12h";

/// Where the rooms are, and how the team's owner gets in.
#[derive(Debug, Clone)]
pub struct RoomServer {
    /// Its address.
    pub url: String,
    /// Its program, where it is started here.
    program: Option<PathBuf>,
}

impl RoomServer {
    /// What the file names, or the program beside this one or on PATH.
    pub fn find(file: &TeamFile) -> Result<Self, UpError> {
        if let Some(url) = &file.server.url {
            let url = url.trim_end_matches('/').to_owned();
            return Ok(Self { url, program: None });
        }
        let beside = std::env::current_exe()?.with_file_name(PROGRAM);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let on_path = std::env::split_paths(&path).map(|folder| folder.join(PROGRAM));
        let mut places = std::iter::once(beside).chain(on_path);
        let program = places.find(|place| place.is_file()).ok_or_else(|| {
            UpError::Failed(format!(
                "{PROGRAM} is neither beside this program nor on PATH; install it, or name a server that runs: server: {{url: https://…}}"
            ))
        })?;
        Ok(Self {
            url: format!("http://{}", file.server.listen),
            program: Some(program),
        })
    }

    /// What is to be run for it, where it is started here.
    pub fn program(&self, file: &TeamFile, project: &Project) -> Option<SupervisedProgram> {
        let program = self.program.as_ref()?;
        let settings = file.server.settings.iter().map(|(path, value)| {
            let name = path.to_uppercase().replace('.', "__");
            let value = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            (format!("SC_CHATROOM__{name}"), value)
        });
        Some(SupervisedProgram {
            name: "server".into(),
            command: program.clone(),
            args: vec![
                "serve".into(),
                "--listen".into(),
                file.server.listen.to_string().into(),
                "--data".into(),
                project.server_data().into(),
            ],
            env: settings.collect(),
            folder: project.folder().to_owned(),
            log: project.logs().join("server.log"),
        })
    }

    /// Waits until it serves.
    pub async fn ready(&self) -> Result<(), UpError> {
        let client = Client::new(&self.url)?;
        let begun = Instant::now();
        loop {
            match client.health().await {
                Ok(_) => return Ok(()),
                Err(error) if begun.elapsed() > READY_WITHIN => {
                    return Err(UpError::Failed(format!(
                        "the server at {} does not answer: {error}",
                        self.url
                    )));
                }
                Err(_) => tokio::time::sleep(CHECK_EVERY).await,
            }
        }
    }

    /// The team's owner, as the server knows them.
    pub async fn owner(&self, file: &TeamFile, project: &Project) -> Result<Client, UpError> {
        let token = match (&self.program, file.people.first()) {
            (Some(program), Some(person)) => sign(program, &project.server_data(), person).await?,
            _ => {
                let variable = &file.server.token_env;
                std::env::var(variable).map_err(|_| {
                    UpError::Failed(format!(
                        "set {variable} to a user token of {}: its user owns the rooms",
                        self.url
                    ))
                })?
            }
        };
        Ok(Client::new(&self.url)?.with_token(token)?)
    }

    /// A person of the team, where the server is started here.
    pub async fn person(&self, project: &Project, person: &str) -> Result<Option<Client>, UpError> {
        let Some(program) = &self.program else {
            return Ok(None);
        };
        let token = sign(program, &project.server_data(), person).await?;
        Ok(Some(Client::new(&self.url)?.with_token(token)?))
    }

    /// The links with which people sign in, where the server is started here.
    pub async fn sign_in_links(
        &self,
        file: &TeamFile,
        project: &Project,
    ) -> Result<Vec<(String, String)>, UpError> {
        let Some(program) = &self.program else {
            return Ok(Vec::new());
        };
        let mut links = Vec::new();
        for person in &file.people {
            let token = sign(program, &project.server_data(), person).await?;
            links.push((
                person.clone(),
                format!("{}/view#user_jwt={token}", self.url),
            ));
        }
        Ok(links)
    }
}

/// A token of a person, who is the same person whenever they have the same name in the file.
async fn sign(program: &Path, data: &Path, person: &str) -> Result<String, UpError> {
    let id = user_id(person)?;
    let mut command = tokio::process::Command::new(program);
    command
        .args(["token", "--user", &id, "--name", person, "--type", "access"])
        .args(["--ttl", TOKEN_TTL, "--data"])
        .arg(data)
        .kill_on_drop(true);
    let output = command.output().await?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(UpError::Failed(format!(
            "no token for {person}: {}",
            why.trim()
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn user_id(person: &str) -> Result<String, UpError> {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '_'
        }
    };
    let slug: String = person.chars().map(plain).collect();
    match slug.chars().any(|c| c != '_') {
        true => Ok(format!("u_{}", &slug[..slug.len().min(60)])),
        false => Err(UpError::File(format!(
            "people: {person:?} needs a letter or digit of ASCII in the name"
        ))),
    }
}
