//! The ceiling and the room server: the same requests over the same connections.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::{Poster, Subscriber, Target};
use crate::Result;
use crate::content::{BYTES, Content};
use crate::http::{Connection, request};
use crate::process::{Process, build_folder, command, free_address};
use crate::seed;
use crate::sse::{self, Message, Reader};

/// How many may use one invite of the room server.
const USES_OF_AN_INVITE: usize = 20;

/// The settings that lift the room server's limits out of reach. They are still counted; only the
/// pause between two messages has to be off.
const NO_LIMITS: [(&str, &str); 21] = [
    ("SC_CHATROOM__LIMITS__EDITS_PER_MINUTE", "0"),
    ("SC_CHATROOM__LIMITS__REACTIONS_PER_MINUTE", "0"),
    ("SC_CHATROOM__LIMITS__ROOMS_PER_HOUR", "0"),
    ("SC_CHATROOM__LIMITS__INVITES_PER_HOUR", "0"),
    ("SC_CHATROOM__LIMITS__ROOM_CHANGES_PER_HOUR", "0"),
    ("SC_CHATROOM__LIMITS__KEY_CHANGES_PER_HOUR", "0"),
    ("SC_CHATROOM__LIMITS__JOINS_PER_HOUR", "0"),
    ("SC_CHATROOM__LIMITS__MEMBER_CHANGES_PER_HOUR", "0"),
    ("SC_CHATROOM__LIMITS__WRITES_PER_MINUTE_PER_ADDRESS", "0"),
    ("SC_CHATROOM__LIMITS__STREAMS_PER_KEY", "0"),
    ("SC_CHATROOM__LIMITS__STREAMS_PER_ADDRESS", "0"),
    ("SC_CHATROOM__LIMITS__CONNECTIONS_PER_ADDRESS", "0"),
    ("SC_CHATROOM__LIMITS__HEAD_SECONDS", "3600"),
    (
        "SC_CHATROOM__LIMITS__AGENT_MESSAGES_PER_MINUTE",
        "1000000000",
    ),
    ("SC_CHATROOM__LIMITS__AGENT_COOLDOWN_SECONDS", "0"),
    (
        "SC_CHATROOM__LIMITS__WEB_MESSAGES_PER_HOUR_PER_KEY",
        "1000000000",
    ),
    (
        "SC_CHATROOM__LIMITS__WEB_MESSAGES_PER_HOUR_PER_IP",
        "1000000000",
    ),
    (
        "SC_CHATROOM__LIMITS__VISITOR_READS_PER_MINUTE",
        "1000000000",
    ),
    ("SC_CHATROOM__LIMITS__MEMBERS_PER_ROOM", "200"),
    ("SC_CHATROOM__LIMITS__AGENT_REPLIES_PER_MINUTE", "0"),
    ("SC_CHATROOM__LIMITS__AGENT_EXCHANGES_WITHOUT_PERSON", "0"),
];

/// A program that speaks HTTP, with a room to post to.
pub struct Http {
    process: Process,
    address: SocketAddr,
    room: String,
    keys: Vec<String>,
    /// Where its rooms are, if not in the folder.
    database_url: Option<String>,
    data: TempDir,
}

impl Http {
    /// Starts the ceiling.
    pub async fn ceiling() -> Result<Self> {
        let data = tempfile::tempdir_in(build_folder()?)?;
        let address = free_address()?;
        let process = start(&mut ceiling(address, data.path())?, address, data.path()).await?;
        Ok(Self {
            process,
            address,
            room: String::new(),
            keys: Vec::new(),
            database_url: None,
            data,
        })
    }

    /// Starts the room server on an empty folder, with a room and so many members.
    pub async fn server(members: usize) -> Result<Self> {
        let data = tempfile::tempdir_in(build_folder()?)?;
        let address = free_address()?;
        let process = start(&mut server(address, data.path())?, address, data.path()).await?;
        let owner = user_token(data.path())?;
        let mut connection = Connection::open(address).await?;
        let (room, keys) = furnish(&mut connection, &owner, members).await?;
        Ok(Self {
            process,
            address,
            room,
            keys,
            database_url: None,
            data,
        })
    }

    /// Starts the room server with these settings too, with a room and so many members.
    pub async fn server_with_settings(settings: &[(&str, &str)], members: usize) -> Result<Self> {
        let (mut server, owner) = Self::bare(settings).await?;
        let mut connection = Connection::open(server.address).await?;
        (server.room, server.keys) = furnish(&mut connection, &owner, members).await?;
        Ok(server)
    }

    /// Starts the room server on a PostgreSQL database, with a room and so many members.
    pub async fn server_on(database_url: &str, members: usize) -> Result<Self> {
        let settings = [("SC_CHATROOM__DATABASE_URL", database_url)];
        let mut server = Self::server_with_settings(&settings, members).await?;
        server.database_url = Some(database_url.to_owned());
        Ok(server)
    }

    /// Starts the room server on an empty folder with these settings too; gives a user token.
    pub async fn bare(settings: &[(&str, &str)]) -> Result<(Self, String)> {
        let data = tempfile::tempdir_in(build_folder()?)?;
        let address = free_address()?;
        let mut command = server(address, data.path())?;
        command.envs(settings.iter().copied());
        let process = start(&mut command, address, data.path()).await?;
        let owner = user_token(data.path())?;
        let bare = Self {
            process,
            address,
            room: String::new(),
            keys: Vec::new(),
            database_url: None,
            data,
        };
        Ok((bare, owner))
    }

    /// Starts the room server on a room that has so many messages.
    pub async fn server_with(messages: u64) -> Result<Self> {
        let server = Self::server(1).await?;
        server.restarted(|data| seed::fill(data, messages)).await
    }

    /// Stops the room server, lets `meanwhile` have its folder, and starts it again.
    pub async fn restarted(mut self, meanwhile: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        self.process.terminate()?;
        meanwhile(self.data.path())?;
        let mut command = server(self.address, self.data.path())?;
        if let Some(url) = &self.database_url {
            command.env("SC_CHATROOM__DATABASE_URL", url);
        }
        self.process = start(&mut command, self.address, self.data.path()).await?;
        Ok(self)
    }

    /// Opens a connection to the program.
    pub async fn connect(&self) -> Result<Connection> {
        Connection::open(self.address).await
    }

    /// A request to the room by the member with this number.
    pub fn request(&self, method: &str, path: &str, member: usize, body: Option<&str>) -> Vec<u8> {
        let key = (!self.keys.is_empty()).then(|| &*self.keys[member % self.keys.len()]);
        request(method, &format!("{}{path}", self.room), key, body)
    }
}

impl Target for Http {
    type Poster = HttpPoster;
    type Subscriber = HttpSubscriber;

    fn process(&self) -> &Process {
        &self.process
    }

    async fn poster(&self, number: usize) -> Result<HttpPoster> {
        let content = "x".repeat(BYTES);
        let body = json!({ "content": content }).to_string();
        let request = self.request("POST", "/messages", number, Some(&body));
        let content_at = memchr::memmem::rfind(&request, content.as_bytes())
            .ok_or("a request without its content")?;
        Ok(HttpPoster {
            connection: Connection::open(self.address).await?,
            request,
            content_at,
        })
    }

    async fn subscriber(&self) -> Result<HttpSubscriber> {
        HttpSubscriber::open(self.address, self.request("GET", "/stream", 0, None)).await
    }
}

/// A keep-alive connection with its request ready.
pub struct HttpPoster {
    connection: Connection,
    request: Vec<u8>,
    content_at: usize,
}

impl Poster for HttpPoster {
    async fn post(&mut self, content: &Content) -> Result<u64> {
        self.request[self.content_at..][..BYTES].copy_from_slice(content.bytes());
        let answer = self.connection.send(&self.request).await?;
        match (answer.status, sse::seq(answer.body)) {
            (201, Some(seq)) => Ok(seq),
            (status, _) => {
                let body = String::from_utf8_lossy(answer.body);
                Err(format!("a post was answered {status}: {body}").into())
            }
        }
    }
}

/// A live stream, which is resumed where it was when the server cuts it off.
pub struct HttpSubscriber {
    address: SocketAddr,
    request: Vec<u8>,
    socket: TcpStream,
    reader: Reader,
    buffer: Vec<u8>,
}

impl HttpSubscriber {
    async fn open(address: SocketAddr, request: Vec<u8>) -> Result<Self> {
        let (socket, buffer) = Connection::open(address)
            .await?
            .open_stream(&request)
            .await?;
        Ok(Self {
            address,
            request,
            socket,
            reader: Reader::new(),
            buffer,
        })
    }

    async fn resume(&mut self) -> Result<()> {
        let id = self.reader.last_id();
        if id.is_empty() {
            return Err("a stream ended before its first event".into());
        }
        eprintln!("  a stream was cut off and resumes");
        let head = &self.request[..self.request.len() - b"\r\n".len()];
        let request = [head, b"last-event-id: ", id, b"\r\n\r\n"].concat();
        let connection = Connection::open(self.address).await?;
        (self.socket, self.buffer) = connection.open_stream(&request).await?;
        self.reader = Reader::new();
        Ok(())
    }
}

impl Subscriber for HttpSubscriber {
    async fn receive(
        &mut self,
        each: &mut (impl FnMut(Message<'_>) -> Result<()> + Send),
    ) -> Result<()> {
        if self.buffer.is_empty() {
            self.buffer.reserve(64 * 1024);
            let read = self.socket.read_buf(&mut self.buffer).await?;
            if read == 0 {
                return self.resume().await;
            }
        }
        self.reader.feed(&self.buffer, each)?;
        self.buffer.clear();
        if self.reader.ended() {
            self.resume().await?;
        }
        Ok(())
    }
}

/// Starts a program and waits for its health.
async fn start(command: &mut Command, address: SocketAddr, data: &Path) -> Result<Process> {
    let mut process = Process::start(command, data.join("bench.log"))?;
    process.healthy(address).await?;
    Ok(process)
}

fn ceiling(address: SocketAddr, data: &Path) -> Result<Command> {
    let mut command = command(&build_folder()?.join("ceiling"), ["--listen"]);
    command.arg(address.to_string()).arg("--data").arg(data);
    Ok(command)
}

/// The command that starts the room server without limits.
fn server(address: SocketAddr, data: &Path) -> Result<Command> {
    let mut command = command(&build_folder()?.join("sc-chatroom"), ["serve", "--listen"]);
    command
        .arg(address.to_string())
        .arg("--data")
        .arg(data)
        .envs(NO_LIMITS);
    Ok(command)
}

/// A user token that the server on this folder accepts.
fn user_token(data: &Path) -> Result<String> {
    let program = build_folder()?.join("sc-chatroom");
    let output = command(&program, ["token", "--user", "u_bench", "--data"])
        .arg(data)
        .output()?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!("sc-chatroom token failed: {error}").into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Makes a room and lets members join; gives the room's path and a key for each member.
async fn furnish(
    connection: &mut Connection,
    owner: &str,
    members: usize,
) -> Result<(String, Vec<String>)> {
    let name = json!({ "name": "bench" });
    let room = connection
        .call("POST", "/rooms", Some(owner), Some(&name))
        .await?;
    let path = format!("/rooms/{}", text(&room, "room_id")?);
    let mut keys = Vec::with_capacity(members);
    let mut invite = String::new();
    for member in 0..members {
        if member % USES_OF_AN_INVITE == 0 {
            let uses = json!({ "max_uses": USES_OF_AN_INVITE });
            let invites = format!("{path}/invites");
            let answer = connection
                .call("POST", &invites, Some(owner), Some(&uses))
                .await?;
            invite = text(&answer, "invite_code")?;
        }
        let join = json!({
            "invite_code": invite,
            "adapter_type": "pull",
            "user_id": format!("bench_poster-{member:08x}"),
        });
        let joined = connection
            .call("POST", &format!("{path}/join"), None, Some(&join))
            .await?;
        keys.push(text(&joined, "member_token")?);
    }
    Ok((path, keys))
}

/// A text in an answer.
pub fn text(answer: &Value, key: &str) -> Result<String> {
    let value = answer[key].as_str();
    Ok(value
        .ok_or_else(|| format!("no {key} in {answer}"))?
        .to_owned())
}
