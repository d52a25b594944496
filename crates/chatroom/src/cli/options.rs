//! What `sc-chatroom` can be told on the command line.

use crate::auth::TokenType;
use clap::{Args, Parser, Subcommand};
use protocol::ExportFormat;
use std::{net::SocketAddr, path::PathBuf, time::Duration};

/// Keeps rooms where people and agents work together.
///
/// Without a command it serves, and takes the options of `serve`. Every setting can be given in a TOML file
/// (--config) or as an environment variable: SC_CHATROOM__ and the path in capitals, joined by
/// two underscores, e.g. SC_CHATROOM__LIMITS__AGENT_COOLDOWN_SECONDS=0.
#[derive(Parser)]
#[command(name = "sc-chatroom", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub serve: Serve,
}

#[derive(Subcommand)]
pub enum Command {
    /// Serve rooms over HTTP until SIGTERM or Ctrl-C.
    Serve(Serve),
    /// Print a user token, signed with this server's own key.
    Token(TokenOptions),
    /// Let people in, list them, and end what they hold.
    #[command(subcommand)]
    User(User),
    /// List and revoke room keys.
    #[command(subcommand)]
    Key(CredentialCommand),
    /// List and revoke identity tokens.
    #[command(subcommand)]
    Identity(CredentialCommand),
    /// Keep a user or a network out of the server.
    #[command(subcommand)]
    Ban(Ban),
    /// Copy the rooms and the keys into one file, while the server runs.
    Backup {
        /// The file to write; it must not exist.
        file: PathBuf,
        #[command(flatten)]
        location: Location,
    },
    /// Unpack a backup into a new data folder.
    Restore {
        /// The file that `backup` wrote.
        file: PathBuf,
        /// The new data folder.
        #[arg(long)]
        data: PathBuf,
    },
    /// Write a room out, as lines of JSON or as Markdown.
    Export {
        /// The room's id.
        room: String,
        /// As what.
        #[arg(long, default_value = "jsonl")]
        format: ExportFormat,
        #[command(flatten)]
        beside: RunningServer,
    },
    /// Bring messages from elsewhere into new rooms: what `export` wrote, or an export of Slack's, as a folder
    /// or a zip file.
    Import {
        /// The file or the folder.
        source: PathBuf,
        /// The user who owns the new rooms.
        #[arg(long)]
        owner: String,
        /// A channel of Slack's to bring in; all of them where none is named.
        #[arg(long)]
        channel: Vec<String>,
        #[command(flatten)]
        beside: RunningServer,
    },
    /// Let agents be called, or not. A restored copy does not call them until it is told to.
    #[command(subcommand)]
    Calls(Calls),
}

#[derive(Args)]
pub struct Location {
    /// The folder for the database and the keys [default: ./data].
    #[arg(long)]
    pub data: Option<PathBuf>,
    /// A TOML file with settings.
    #[arg(long)]
    pub config: Option<PathBuf>,
}

#[derive(Args)]
pub struct Serve {
    #[command(flatten)]
    pub location: Location,
    /// The address to listen on [default: 127.0.0.1:8080].
    #[arg(long)]
    pub listen: Option<SocketAddr>,
    /// Keep the rooms in PostgreSQL: postgres://user:password@host/database.
    #[arg(long)]
    pub database_url: Option<String>,
    /// Keep several nodes in step: nats://host:port.
    #[arg(long)]
    pub bus: Option<String>,
    /// What links begin with, e.g. https://rooms.example.org.
    #[arg(long)]
    pub public_url: Option<String>,
}

#[derive(Args)]
pub struct TokenOptions {
    #[command(flatten)]
    pub location: Location,
    /// The user's id.
    #[arg(long)]
    pub user: String,
    /// The user's name, as rooms show it.
    #[arg(long)]
    pub name: Option<String>,
    /// What the token is for.
    #[arg(long, value_enum, default_value = "container")]
    pub r#type: TokenType,
    /// How long it lasts, e.g. 15m, 1h, 30d.
    #[arg(long, default_value = "1h", value_parser = humantime::parse_duration)]
    pub ttl: Duration,
}

#[derive(Subcommand)]
pub enum User {
    /// Make an account and print a link with which its person signs in. Two people may have one name.
    Add {
        /// The person's name.
        name: String,
        #[command(flatten)]
        location: Location,
        /// How long the link works, e.g. 15m, 1h.
        #[arg(long, default_value = "1h", value_parser = humantime::parse_duration)]
        ttl: Duration,
    },
    /// Print another link for an account, e.g. for a second device.
    Link {
        /// The account's id, as `list` shows it.
        user: String,
        #[command(flatten)]
        location: Location,
        /// How long the link works, e.g. 15m, 1h.
        #[arg(long, default_value = "1h", value_parser = humantime::parse_duration)]
        ttl: Duration,
    },
    /// Give a user another name, in all rooms.
    Rename {
        /// The user's id.
        user: String,
        /// The new name.
        name: String,
        #[command(flatten)]
        beside: RunningServer,
    },
    /// Take a user out of all rooms that they do not own, end what they hold, and forget their name and picture.
    Remove {
        /// The user's id.
        user: String,
        #[command(flatten)]
        beside: RunningServer,
    },
    /// List users: id, name, rooms, keys and identity tokens, whether banned.
    List {
        #[command(flatten)]
        beside: RunningServer,
    },
    /// End every key, identity token, short code and user token that a user has so far.
    Revoke {
        /// The user's id.
        user: String,
        #[command(flatten)]
        beside: RunningServer,
    },
}

#[derive(Subcommand)]
pub enum CredentialCommand {
    /// List those of a user: id, kind, room, when issued, when it ends.
    List {
        /// The user's id.
        user: String,
        #[command(flatten)]
        beside: RunningServer,
    },
    /// Revoke one, and everything derived from it.
    Revoke {
        /// Its id, as `list` shows it.
        id: String,
        #[command(flatten)]
        beside: RunningServer,
    },
}

#[derive(Subcommand)]
pub enum Ban {
    /// Ban a user's id, an address or a network. An IPv6 address stands for its /64.
    Add {
        /// Whom.
        subject: String,
        /// Why, for the list.
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        beside: RunningServer,
    },
    /// List bans: whom, since when, why.
    List {
        #[command(flatten)]
        beside: RunningServer,
    },
    /// Lift a ban. What ended with it stays ended.
    Remove {
        /// Whom, as `list` shows it.
        subject: String,
        #[command(flatten)]
        beside: RunningServer,
    },
}

/// Which running server is meant.
#[derive(Args)]
pub struct RunningServer {
    #[command(flatten)]
    pub location: Location,
    /// A running server, where it is not the one on the data folder.
    #[arg(long)]
    pub server: Option<String>,
}

#[derive(Subcommand)]
pub enum Calls {
    /// Call nobody, e.g. before a server starts on a copy of another's PostgreSQL database.
    Pause(Database),
    /// Call agents, e.g. once the server that a copy was made of is gone for good.
    Resume(Database),
}

#[derive(Args)]
pub struct Database {
    #[command(flatten)]
    pub location: Location,
    /// Where the rooms are kept in PostgreSQL: postgres://user:password@host/database.
    #[arg(long)]
    pub database_url: Option<String>,
}
