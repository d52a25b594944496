//! Joining a room.

use super::{
    AgentArg, answering,
    invite::{self, Kind},
};
use crate::{
    backend::config::{BackendConfig, BackendKind, default_name},
    cli::{
        byoa,
        failure::Failure,
        show::{self, Spinner},
    },
    daemon::{
        credentials::key::{self, KeyError},
        process,
    },
    home::{AgentHome, CursorFile, Home, JoinAttempt, RoomAddress, RoomFile},
};
use clap::Args;
use client::{Client, ClientError, MessageQuery, protocol::ErrorCode};
use protocol::{AdapterType, AutoJoin, ClientKind, Join, Joined, Message, Notice, RoomId};

/// The largest number that a server takes.
const MAX_SEQ: i64 = (1 << 53) - 1;

/// What `join` takes.
#[derive(Args)]
pub struct JoinArgs {
    /// A short code (i_…), an invite code (inv_…), or a link with one in it.
    pub code: String,
    #[command(flatten)]
    pub agent: AgentArg,
    /// The room server; otherwise the link's, or the agent's own.
    #[arg(long, value_name = "URL", env = "STARCHILD_SERVER")]
    server: Option<String>,
    /// The name the agent goes by, where the invite names none.
    #[arg(long, value_name = "NAME")]
    display_name: Option<String>,
    /// Join, but do not answer there.
    #[arg(long)]
    silent: bool,
    /// Whether the agent is started next, so that nobody has to be told how.
    #[arg(skip)]
    pub starts: bool,
}

/// The name to join with.
enum Name {
    /// The owner's choice.
    Chosen(String),
    /// What the agent's id makes.
    Default(String),
    /// The server's business.
    None,
}

/// Joins, keeps what it takes to come back, and joins the reserved rooms too.
pub async fn join(home: &Home, args: JoinArgs) -> Result<(), Failure> {
    let agent = byoa::choose_agent(home, args.agent.id.as_ref())?;
    let code = invite::parse(&args.code).map_err(Failure::permanent)?;
    let config = BackendConfig::load(&agent.config_file())?;
    let server = args.server.or(code.server);
    let server = server.unwrap_or_else(|| config.server.clone());
    let server = server.trim_end_matches('/').to_owned();
    let spinner = Spinner::new("joining");
    let client = Client::new(&server)?;
    let (target, admission) = JoinTarget::find(&agent, &client, &server, code.kind).await?;
    drop(spinner);
    let room = &target.address;
    let answer = !args.silent && answering::ask_owner(&config, room)?;
    let spinner = Spinner::new("joining");
    let is_new = match admission {
        Admission::Member => false,
        Admission::Invite(invite_code, short) => {
            let chosen = args.display_name.or_else(|| config.name.clone());
            let name = match &chosen {
                Some(name) => Name::Chosen(name.clone()),
                None => Name::Default(default_name(agent.id())),
            };
            target.join_room(invite_code, name, short, answer).await?
        }
    };
    let reserved = target.join_reserved_rooms(config.name.clone()).await;
    drop(spinner);
    let was = if is_new { "joined" } else { "is already in" };
    show::note(&format!("{} {was} {}.", agent.id(), room.room));
    if !reserved.is_empty() {
        let rooms = reserved.join(", ");
        show::note(&format!("Like every agent, it is now in {rooms} too."));
    }
    answering::save_choice(&agent, &config, room, answer)?;
    if answer {
        let words = words_to_call(&agent, room, &config.backend);
        show::note(&format!("To call it, write in the room: {words}"));
    }
    if !args.starts && process::running(&agent).is_none() {
        show::next(&format!("starchild run --agent {}", agent.id()));
    }
    Ok(show::print(&format!("{}\n", room.room))?)
}

/// What lets the agent in.
enum Admission {
    /// It is a member already, and has the key.
    Member,
    /// An invite, and the short code that stood for it.
    Invite(String, Option<String>),
}

/// What to type in the room so that the agent answers: the name it has there, which is nobody else's.
fn words_to_call(agent: &AgentHome, room: &RoomAddress, backend: &BackendKind) -> String {
    let file = agent.room(room).ok().flatten();
    let name = file.and_then(|file| file.user_name);
    let name = name.unwrap_or_else(|| agent.id().to_string());
    let said = match backend {
        BackendKind::Plain => "help",
        _ => "hello",
    };
    format!("@{name} {said}")
}

/// The room that the agent entered with this code before.
fn room_joined_with(agent: &AgentHome, server: &str, code: &Kind) -> Option<RoomId> {
    let Kind::Short(short) = code else {
        return None;
    };
    let mut rooms = agent.rooms().ok()?.into_iter();
    let came = |file: &RoomFile| file.server == server && file.joined_with.as_ref() == Some(short);
    rooms.find(came).map(|file| file.room_id)
}

/// The invite code of a request with this short code whose answer was lost: it may be used up.
fn invite_tried_with(
    agent: &AgentHome,
    server: &str,
    short: &str,
) -> Result<Option<String>, Failure> {
    let mut attempts = agent.join_attempts(server)?.into_iter();
    let attempt = attempts.find(|attempt| attempt.short_code.as_deref() == Some(short));
    Ok(attempt.and_then(|attempt| attempt.join.invite_code))
}

/// The invite code behind a short code.
async fn redeem_short_code(client: &Client, code: &str) -> Result<String, Failure> {
    let invite = client.invite_code(code).await.map_err(|error| {
        let gone = matches!(error.code(), Some(ErrorCode::NotFound | ErrorCode::Gone));
        let failure = Failure::from(error);
        match gone {
            true => failure.with_hint(
                "The code is wrong, used up or too old. Ask the room's owner for a new one.",
            ),
            false => failure,
        }
    })?;
    Ok(invite.trim().to_owned())
}

/// An agent before a room.
struct JoinTarget<'a> {
    agent: &'a AgentHome,
    client: &'a Client,
    address: RoomAddress,
}

impl<'a> JoinTarget<'a> {
    /// Finds the room that a code is for, and what lets the agent in.
    async fn find(
        agent: &'a AgentHome,
        client: &'a Client,
        server: &str,
        code: Kind,
    ) -> Result<(Self, Admission), Failure> {
        let at = |room: &RoomId| Self {
            agent,
            client,
            address: RoomAddress::new(server, room),
        };
        // A code that this very agent used up is no mistake.
        if let Some(room) = room_joined_with(agent, server, &code)
            && at(&room).is_member().await?
        {
            return Ok((at(&room), Admission::Member));
        }
        let (invite_code, short) = match code {
            Kind::Invite(code) => (code, None),
            Kind::Short(short) => match invite_tried_with(agent, server, &short)? {
                Some(invite_code) => (invite_code, Some(short)),
                None => (redeem_short_code(client, &short).await?, Some(short)),
            },
        };
        let target = at(&invite::room_of(&invite_code).map_err(Failure::permanent)?);
        let admission = match target.is_member().await? {
            true => Admission::Member,
            false => Admission::Invite(invite_code, short),
        };
        Ok((target, admission))
    }

    /// Whether the agent has a key that opens the room. A lost or dead one is replaced, so that
    /// joining twice does no harm even where the invite is used up.
    async fn is_member(&self) -> Result<bool, Failure> {
        let RoomAddress { server, room } = &self.address;
        let file = self.agent.room(&self.address).ok().flatten();
        if let Some(file) = file.filter(|file| file.left.is_none()) {
            let client = self.client.with_token(file.member_token.expose())?;
            match client.me(room).await {
                Ok(_) => return Ok(true),
                Err(error) if error.is_transient() => return Err(error.into()),
                Err(_) => {}
            }
        }
        let known = self.agent.identity(server)?;
        if known.is_some_and(|identity| identity.rooms.contains(room)) {
            let recovered = key::recover(self.agent, self.client, &self.address).await;
            return Ok(recovered.is_ok());
        }
        Ok(false)
    }

    fn join(&self, invite_code: String, name: &Name) -> Join {
        let display_name = match name {
            Name::Chosen(name) | Name::Default(name) => Some(name.clone()),
            Name::None => None,
        };
        Join {
            invite_code: Some(invite_code),
            adapter_type: Some(AdapterType::Pull),
            client_kind: Some(ClientKind::ExternalAgent),
            user_id: Some(self.agent.id().to_string()),
            display_name,
            ..Join::default()
        }
    }

    /// Joins; false where the agent was in the room already.
    async fn join_room(
        &self,
        invite_code: String,
        name: Name,
        short: Option<String>,
        answer: bool,
    ) -> Result<bool, Failure> {
        let join = self.join(invite_code.clone(), &name);
        let attempt = self.attempt(join, short.clone())?;
        let outcome = self.send(&attempt).await;
        let refused = |error: &ClientError| error.code().is_some() && !error.is_transient();
        if outcome.as_ref().is_err_and(refused) {
            self.agent.forget_join_attempt(&self.address)?;
        }
        let joined = match outcome {
            Ok(joined) => joined,
            // Somebody in the room looks like it. A name that nobody chose is not worth a refusal.
            Err(error)
                if error.code() == Some(ErrorCode::BadRequest)
                    && matches!(name, Name::Default(_)) =>
            {
                let nameless = self.join_room(invite_code, Name::None, short, answer);
                return Box::pin(nameless).await;
            }
            Err(error) if error.code() == Some(ErrorCode::AlreadyMember) => {
                return self.rejoin().await.map(|()| false);
            }
            Err(error) if error.code() == Some(ErrorCode::InviteInvalid) => {
                return Err(Failure::from(error).with_hint("Ask the room's owner for a new code."));
            }
            Err(error) => return Err(error.into()),
        };
        self.keep(joined, attempt.short_code, answer).await?;
        self.agent.forget_join_attempt(&self.address)?;
        Ok(true)
    }

    /// The request, kept; where one with this invite got no answer, that one as it was sent.
    fn attempt(&self, join: Join, short_code: Option<String>) -> Result<JoinAttempt, Failure> {
        let mut attempts = self.agent.join_attempts(&self.address.server)?.into_iter();
        if let Some(kept) = attempts.find(|kept| kept.join.invite_code == join.invite_code) {
            return Ok(kept);
        }
        let attempt = JoinAttempt {
            server: self.address.server.clone(),
            short_code,
            idempotency_key: uuid::Uuid::new_v4().to_string().into(),
            join,
        };
        self.agent.save_join_attempt(&self.address, &attempt)?;
        Ok(attempt)
    }

    /// Asks with the identity token, so that the server knows the agent for the one it met before.
    async fn send(&self, attempt: &JoinAttempt) -> Result<Joined, ClientError> {
        let (join, key) = (&attempt.join, Some(attempt.idempotency_key.expose()));
        let RoomAddress { server, room } = &self.address;
        let identity = self.agent.identity(server).ok().flatten();
        if let Some(identity) = identity {
            let client = self.client.with_token(identity.identity_token.expose())?;
            match client.join(room, join, key).await {
                Err(error) if error.status() == Some(401) => {}
                outcome => return outcome,
            }
        }
        self.client.join(room, join, key).await
    }

    async fn rejoin(&self) -> Result<(), Failure> {
        let recovered = key::recover(self.agent, self.client, &self.address).await;
        recovered.map(drop).map_err(|error| {
            let room = &self.address.room;
            let id = self.agent.user_id();
            let lost = matches!(error, KeyError::NoIdentity(_));
            let failure = Failure::from(error);
            match lost {
                true => Failure::permanent(format!("{id} is in {room} already, but this machine has no key for it"))
                    .with_hint("Ask the room's owner to remove it, then join again; or choose another --prefix."),
                false => failure,
            }
        })
    }

    /// Keeps the credential first, then where to begin, then the key: a kill in between leaves
    /// something to come back with, and the daemon looks at the key last.
    async fn keep(
        &self,
        joined: Joined,
        joined_with: Option<String>,
        answer: bool,
    ) -> Result<(), Failure> {
        let (Some(token), Some(expires_at)) = (joined.member_token, joined.expires_at) else {
            return Err(Failure::permanent(
                "the server gave no key to read the room with",
            ));
        };
        if joined.room_id != self.address.room || joined.user_id != self.agent.user_id() {
            return Err(Failure::permanent(
                "the server answered for another room or another agent",
            ));
        }
        if let (Some(token), Some(expires)) = (joined.identity_token, joined.identity_expires_at) {
            key::save_identity(self.agent, &self.address.server, token.into(), expires)?;
        }
        self.agent.remember_room(&self.address)?;
        let file = RoomFile {
            room_id: joined.room_id,
            server: self.address.server.clone(),
            user_id: joined.user_id,
            user_name: joined.user_name,
            member_token: token.into(),
            issued_at: key::now(),
            expires_at,
            joined_with,
            answer: Some(answer),
            left: None,
        };
        let client = self.client.with_token(file.member_token.expose())?;
        self.start_at_join(&client, &self.address).await?;
        self.agent.save_room(&file)?;
        Ok(())
    }

    /// Keeps the position in the room where the agent came in: what was said before is not its
    /// business.
    async fn start_at_join(&self, client: &Client, address: &RoomAddress) -> Result<(), Failure> {
        let query = MessageQuery {
            before: Some(MAX_SEQ),
            limit: Some(200),
            ..MessageQuery::default()
        };
        let page = client.messages(&address.room, &query).await?;
        let me = self.agent.user_id();
        let told = |message: &&Message| matches!(&message.event, Some(Notice::MemberJoined { user_id, .. }) if user_id == me.as_str());
        let told = page.messages.iter().rev().find(told);
        let seq = told.map_or(page.latest_seq, |message| message.seq);
        self.agent
            .save_cursor(address, &CursorFile { seq, answer: None })?;
        Ok(())
    }

    /// Joins the rooms that every agent is in, and gives those that are new to it. The daemon
    /// fetches their keys; where there are no such rooms, nothing is amiss. They are joined
    /// together, so an agent that was taken out of one is not brought into any again.
    async fn join_reserved_rooms(&self, user_name: Option<String>) -> Vec<String> {
        let server = &self.address.server;
        let identity = self.agent.identity(server).ok().flatten();
        let Some(identity) = identity.filter(|identity| identity.left.is_empty()) else {
            return Vec::new();
        };
        let Ok(client) = self.client.with_token(identity.identity_token.expose()) else {
            return Vec::new();
        };
        let agent = AutoJoin {
            user_id: Some(self.agent.id().to_string()),
            client_kind: Some(ClientKind::ExternalAgent),
            adapter_type: Some(AdapterType::Pull),
            user_name,
        };
        let Ok(joined) = client.auto_join(&agent).await else {
            return Vec::new();
        };
        let mut new = Vec::new();
        // Only these are joined without asking the owner, whatever else a server names.
        let seats = joined.reserved_rooms.into_iter();
        for seat in seats.filter(|seat| seat.room_id.is_reserved()) {
            let address = RoomAddress::new(server, &seat.room_id);
            if seat.newly_joined {
                // Anybody may read these rooms. Where it fails, the daemon begins at the newest.
                let _ = self.start_at_join(self.client, &address).await;
                new.push(seat.room_id.to_string());
            }
            let _ = self.agent.remember_room(&address);
        }
        new
    }
}
