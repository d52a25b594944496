//! What operators do to users while the server runs. It goes through the server itself, so that it
//! takes effect at once, streams included, on every node.

use super::users::{self, UsersError};
use crate::{auth::TokenType, config::Config};
use protocol::{
    AdminUsers, Ban, BeginImport, ErrorBody, ExportFormat, ImportBegun, ImportMessages, Imported,
    Ok as Yes, RoomId, ServerBan, ServerBans, SessionKind, Sessions, SessionsEnded, UpdateAccount,
};
use reqwest::{Client, Method, RequestBuilder, Response, Url};
use serde::de::DeserializeOwned;
use std::{
    fs::{File, TryLockError},
    io::Write,
    path::PathBuf,
    time::Duration,
};

/// Who the server sees, and for how long.
const OPERATOR: &str = "u_operator";
const TOKEN_LASTS: Duration = Duration::from_secs(60);

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error(
        "no server runs on the data folder {0}; start it, name the folder with --data, or name a running server with --server URL"
    )]
    NotRunning(PathBuf),
    #[error("{0} is no server's address")]
    BadAddress(String),
    #[error("cannot reach the server: {0}")]
    Unreachable(#[from] reqwest::Error),
    #[error("{0}")]
    Refused(String),
    #[error("cannot write: {0}")]
    Output(#[from] std::io::Error),
    #[error(transparent)]
    Token(#[from] UsersError),
}

/// A running server, and the right to manage it.
pub struct Server {
    base: Url,
    token: String,
    http: Client,
}

impl Server {
    /// The server that runs on the data folder, or the one that is named.
    pub fn find(config: &Config, named: Option<&str>) -> Result<Self, AdminError> {
        let address = match named {
            Some(address) => address.to_owned(),
            None => running_on(config)?,
        };
        let base = address
            .parse()
            .map_err(|_| AdminError::BadAddress(address))?;
        let token = users::token(
            &config.keys_dir(),
            OPERATOR,
            None,
            TokenType::Admin,
            TOKEN_LASTS,
        )?;
        Ok(Self {
            base,
            token,
            http: Client::builder().no_proxy().build()?,
        })
    }

    /// One line for each user.
    pub async fn users(&self) -> Result<Vec<String>, AdminError> {
        let mut lines = Vec::new();
        let mut after = String::new();
        loop {
            let request = self.request_with(Method::GET, &["users"], ("after", &after));
            let page: AdminUsers = send(request).await?;
            lines.extend(page.users.into_iter().map(|user| {
                let banned = if user.banned { "banned" } else { "-" };
                let name = user.user_name.unwrap_or_else(|| "-".to_owned());
                let (rooms, sessions) = (user.rooms, user.sessions);
                format!("{}\t{name}\t{rooms}\t{sessions}\t{banned}", user.user_id)
            }));
            match page.next {
                Some(next) => after = next,
                None => return Ok(lines),
            }
        }
    }

    /// One line for each key, or each identity token, of a user.
    pub async fn credentials(
        &self,
        user: &str,
        identities: bool,
    ) -> Result<Vec<String>, AdminError> {
        let found: Sessions = send(self.request(Method::GET, &["users", user, "sessions"])).await?;
        let wanted = found
            .sessions
            .into_iter()
            .filter(|session| (session.kind == SessionKind::Identity) == identities);
        Ok(wanted
            .map(|session| {
                let room = session
                    .room_id
                    .map_or_else(|| "-".to_owned(), |room| room.to_string());
                format!(
                    "{}\t{}\t{room}\t{}\t{}",
                    session.id,
                    session.kind.as_str(),
                    session.issued_at,
                    session.expires_at
                )
            })
            .collect())
    }

    /// Ends every credential of a user; how many.
    pub async fn revoke_user(&self, user: &str) -> Result<i64, AdminError> {
        let request = self.request(Method::DELETE, &["users", user, "sessions"]);
        let ended: SessionsEnded = send(request).await?;
        Ok(ended.ended)
    }

    /// Gives a user another name.
    pub async fn rename_user(&self, user: &str, name: &str) -> Result<(), AdminError> {
        let display_name = name.to_owned();
        let request = self.request(Method::PATCH, &["users", user]);
        let request = request.json(&UpdateAccount { display_name });
        send::<Yes>(request).await.map(drop)
    }

    /// Takes a user out of rooms and forgets their account; how many credentials ended.
    pub async fn remove_user(&self, user: &str) -> Result<i64, AdminError> {
        let request = self.request(Method::DELETE, &["users", user]);
        Ok(send::<SessionsEnded>(request).await?.ended)
    }

    /// Ends a key or an identity token, and what was derived from it.
    pub async fn revoke(&self, jti: &str) -> Result<(), AdminError> {
        let request = self.request(Method::DELETE, &["credentials", jti]);
        send::<SessionsEnded>(request).await.map(drop)
    }

    /// Keeps a user or a network out; what was banned.
    pub async fn ban(&self, subject: &str, reason: Option<String>) -> Result<String, AdminError> {
        let subject = subject.to_owned();
        let request = self.request(Method::POST, &["bans"]);
        let banned: ServerBan = send(request.json(&Ban { subject, reason })).await?;
        Ok(banned.subject)
    }

    /// One line for each ban.
    pub async fn bans(&self) -> Result<Vec<String>, AdminError> {
        let found: ServerBans = send(self.request(Method::GET, &["bans"])).await?;
        let lines = found.bans.into_iter().map(|ban| {
            let reason = ban.reason.unwrap_or_else(|| "-".to_owned());
            format!("{}\t{}\t{reason}", ban.subject, ban.banned_at)
        });
        Ok(lines.collect())
    }

    /// Lifts a ban.
    pub async fn unban(&self, subject: &str) -> Result<(), AdminError> {
        let request = self.request_with(Method::DELETE, &["bans"], ("subject", subject));
        send::<Yes>(request).await.map(drop)
    }

    /// Makes a room to be filled with messages from elsewhere.
    pub async fn begin_import(&self, begin: &BeginImport) -> Result<RoomId, AdminError> {
        let request = self.request(Method::POST, &["imports"]);
        Ok(send::<ImportBegun>(request.json(begin)).await?.room_id)
    }

    /// Adds the next messages to such a room; how far it has come.
    pub async fn import(&self, room: &RoomId, next: &ImportMessages) -> Result<i64, AdminError> {
        let request = self.request(Method::POST, &["imports", room.as_str()]);
        Ok(send::<Imported>(request.json(next)).await?.latest_seq)
    }

    /// Writes a room out as a file.
    pub async fn export(
        &self,
        room: &str,
        format: ExportFormat,
        out: &mut impl Write,
    ) -> Result<(), AdminError> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["rooms", room, "export"]);
        }
        url.query_pairs_mut().append_pair("format", format.as_str());
        let request = self.http.get(url).bearer_auth(&self.token);
        let mut reply = accepted(request.send().await?).await?;
        while let Some(piece) = reply.chunk().await? {
            out.write_all(&piece)?;
        }
        Ok(out.flush()?)
    }

    fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        let url = self.url(path);
        self.http.request(method, url).bearer_auth(&self.token)
    }

    fn request_with(&self, method: Method, path: &[&str], query: (&str, &str)) -> RequestBuilder {
        let mut url = self.url(path);
        url.query_pairs_mut().append_pair(query.0, query.1);
        self.http.request(method, url).bearer_auth(&self.token)
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments
                .pop_if_empty()
                .extend(["internal", "admin"])
                .extend(path);
        }
        url
    }
}

/// Where the server is that holds the folder. It has written so into its lock.
pub fn running_on(config: &Config) -> Result<String, AdminError> {
    let not_running = || AdminError::NotRunning(config.data.clone());
    let path = config.data.join("server.lock");
    let lock = File::open(&path).map_err(|_| not_running())?;
    match lock.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        Ok(()) | Err(TryLockError::Error(_)) => return Err(not_running()),
    }
    let address = std::fs::read_to_string(path).map_err(|_| not_running())?;
    match address.trim() {
        "" => Err(not_running()),
        address => Ok(address.to_owned()),
    }
}

async fn send<T: DeserializeOwned>(request: RequestBuilder) -> Result<T, AdminError> {
    Ok(accepted(request.send().await?).await?.json().await?)
}

/// The reply, unless it is a refusal.
async fn accepted(reply: Response) -> Result<Response, AdminError> {
    if reply.status().is_success() {
        return Ok(reply);
    }
    let status = reply.status();
    let refused = reply.json::<ErrorBody>().await;
    Err(AdminError::Refused(match refused {
        Ok(body) => body.message,
        Err(_) => format!("the server answered {status}"),
    }))
}
