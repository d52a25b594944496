//! `starchild sessions`: sign-ins of an agent on a server, that is what acts for it there, and an end to
//! them. The conversations of an agent of ours are `starchild agent sessions`.

use super::{
    byoa,
    confirm::confirm,
    failure::Failure,
    room::AgentArg,
    show::{self, Spinner, Table},
};
use crate::home::{AgentHome, Home, RoomAddress};
use clap::{Args, Subcommand};
use client::Client;
use jiff::Timestamp;
use protocol::Session;

/// Why an agent is in no room after all its sessions were ended.
const ENDED: &str = "its sessions were ended; join again with a recovery invite from the owner";

/// What can be done with sessions.
#[derive(Subcommand)]
pub enum Command {
    /// List what acts for the agent: identity tokens, room keys, short codes.
    #[command(
        after_help = "In a pipe: id, kind, room, issued, expires, and current for the one that asks; with tabs between."
    )]
    List {
        #[command(flatten)]
        account: AccountArgs,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// End sessions: one, or all but this machine's, or all at once.
    #[command(
        after_help = "Examples:\n  starchild sessions end               all but the one that asks: what leaked is dead\n  starchild sessions end --all         all at once; each room's owner has to let the agent in again\n  starchild sessions end SESSION       one, and what was derived from it"
    )]
    End {
        /// The session, as `list` shows it.
        #[arg(conflicts_with = "all")]
        session: Option<String>,
        /// All of them, this machine's too.
        #[arg(long)]
        all: bool,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        account: AccountArgs,
    },
}

/// Whose sessions, and where.
#[derive(Args)]
pub struct AccountArgs {
    #[command(flatten)]
    agent: AgentArg,
    /// The server, where the agent knows several.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

/// An agent at a server, where it shows its identity token.
pub struct Account {
    agent: AgentHome,
    /// The server's address.
    pub server: String,
    /// The identity token.
    pub token: String,
    client: Client,
}

/// Runs one command.
pub async fn run(home: &Home, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { account, json } => list(&account.find(home)?.client, json).await,
        Command::End {
            session,
            all,
            yes,
            account,
        } => end(&account.find(home)?, session, all, yes).await,
    }
}

impl AccountArgs {
    /// The agent, and the server where it has an identity token.
    pub fn find(&self, home: &Home) -> Result<Account, Failure> {
        let agent = byoa::choose_agent(home, self.agent.id.as_ref())?;
        let known = agent.identities()?;
        let mut known: Vec<_> = known.iter().flat_map(|file| file.all()).collect();
        if let Some(server) = &self.server {
            known.retain(|identity| identity.server == server.trim_end_matches('/'));
        }
        match known[..] {
            [identity] => {
                let client = Client::new(&identity.server)?;
                Ok(Account {
                    client: client.with_token(identity.identity_token.expose())?,
                    server: identity.server.clone(),
                    token: identity.identity_token.expose().to_owned(),
                    agent,
                })
            }
            [] => Err(
                Failure::permanent(format!("{} has no identity token there", agent.id()))
                    .with_hint("It gets one when it joins a room: starchild room join CODE"),
            ),
            [first, ..] => Err(
                Failure::permanent(format!("{} knows several servers", agent.id()))
                    .with_hint(format!("Say which one, e.g. --server {}", first.server)),
            ),
        }
    }
}

async fn list(client: &Client, as_json: bool) -> Result<(), Failure> {
    let spinner = Spinner::new("asking");
    let sessions = client.sessions().await?.sessions;
    drop(spinner);
    if as_json {
        return Ok(show::json(&sessions)?);
    }
    let row = |session: Session| {
        let room = session.room_id.map_or("-".into(), |room| room.to_string());
        let current = if session.current { "current" } else { "-" };
        [
            session.id,
            session.kind.to_string(),
            room,
            day(session.issued_at),
            day(session.expires_at),
            current.into(),
        ]
    };
    let table = Table {
        columns: ["SESSION", "KIND", "ROOM", "ISSUED", "EXPIRES", "CURRENT"],
        rows: sessions.into_iter().map(row).collect(),
        empty: "Nothing acts for the agent.",
    };
    Ok(table.show()?)
}

async fn end(
    account: &Account,
    session: Option<String>,
    all: bool,
    yes: bool,
) -> Result<(), Failure> {
    let question = match (&session, all) {
        (Some(id), _) => format!("End the session {id}?"),
        (None, false) => {
            "End all sessions but the one that asks? A daemon gets new room keys by itself.".into()
        }
        (None, true) => {
            "End all sessions, this machine's too? Each room's owner has to let the agent in again."
                .into()
        }
    };
    if !yes && confirm(&question, false)? != Some(true) {
        return Err(
            Failure::permanent("nothing was ended").with_hint("--yes ends them without asking.")
        );
    }
    let spinner = Spinner::new("ending");
    let ended = match session {
        Some(id) => account.client.end_session(&id).await?,
        None => account.client.end_sessions(!all).await?,
    };
    drop(spinner);
    show::note(&format!("Ended: {}.", ended.ended));
    if all {
        account.leave_rooms()?;
        show::note(
            "The agent is in no room any more. A recovery invite from a room's owner brings it back: starchild room join CODE",
        );
    }
    Ok(())
}

impl Account {
    /// Notes that no key here holds any more, and what to do, for the daemon and `room list`.
    fn leave_rooms(&self) -> Result<(), Failure> {
        for mut file in self.agent.rooms()? {
            if file.server == self.server && file.left.is_none() {
                file.left = Some(ENDED.into());
                self.agent.save_room(&file)?;
            }
        }
        let known = self.agent.identity(&self.server)?;
        for room in known.iter().flat_map(|identity| &identity.rooms) {
            let address = RoomAddress::new(&self.server, room);
            self.agent.unremember_room(&address)?;
        }
        Ok(())
    }
}

/// A day, for people.
fn day(seconds: i64) -> String {
    let time = Timestamp::from_second(seconds);
    time.map_or("-".into(), |time| time.strftime("%Y-%m-%d").to_string())
}
