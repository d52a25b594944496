//! `starchild host`: serves an agent to rooms that push.

mod attach;

use super::{byoa, failure::Failure, room::AgentArg, show};
use crate::{
    home::{Home, Secret},
    host::{Host, Listen},
};
use attach::Attach;
use clap::Args;
use std::net::SocketAddr;

/// Variables that may hold the owner's user token, the first that does counts.
const USER_TOKENS: [&str; 3] = ["STARCHILD_USER_TOKEN", "CONTAINER_JWT", "USER_JWT"];

/// What `host` takes.
#[derive(Args)]
pub struct HostArgs {
    #[command(flatten)]
    agent: AgentArg,
    /// Where to listen. Beyond this machine, put a proxy with TLS before it.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8000")]
    listen: SocketAddr,
    /// What rooms call the host by, e.g. https://agent.example.org; otherwise where it listens.
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Manage keys (/api/keys) here. Needed with --public-url: behind a proxy on this machine,
    /// everybody would seem to call from it.
    #[arg(long, value_name = "ADDRESS")]
    keys_listen: Option<SocketAddr>,
    /// Let A2A clients have notifications sent to private addresses: loopback, home and office networks.
    #[arg(long)]
    private_notifications: bool,
    /// Make a key, join the room of this invite and have it call the host; may be given several
    /// times. Rooms that were joined before are called by again.
    #[arg(long, value_name = "CODE")]
    room: Vec<String>,
    /// The room server; otherwise the link's, or the agent's own.
    #[arg(long, value_name = "URL", env = "STARCHILD_SERVER")]
    server: Option<String>,
    /// The name the agent goes by, where the invite names none.
    #[arg(long, value_name = "NAME")]
    display_name: Option<String>,
}

/// Serves until it is asked to end.
pub async fn run(home: &Home, args: HostArgs) -> Result<(), Failure> {
    let agent = byoa::choose_agent(home, args.agent.id.as_ref())?;
    if let Some(url) = &args.public_url {
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        if !is_web {
            return Err(Failure::permanent(format!(
                "{url:?} is no address; it begins with https:// or http://"
            )));
        }
    } else if args.listen.ip().is_unspecified() && !args.room.is_empty() {
        return Err(
            Failure::permanent("rooms need an address to call the host by")
                .with_hint("Say --public-url, e.g. --public-url https://agent.example.org"),
        );
    }
    let user_token = USER_TOKENS.iter().find_map(|name| std::env::var(name).ok());
    let user_token: Option<Secret> = user_token.map(Secret::from);
    let listen = Listen {
        address: args.listen,
        public_url: args.public_url,
        keys_address: args.keys_listen,
        private_notifications: args.private_notifications,
    };
    let host = Host::prepare(agent.clone(), listen, user_token.clone()).await?;
    let shared = host.shared.clone();
    let attach = Attach {
        agent: &agent,
        host: &shared,
        server: args.server,
        display_name: args.display_name,
        user_token,
    };
    let attaching = async {
        attach.reattach_moved().await?;
        for code in &args.room {
            attach.room(code).await?;
        }
        let rooms = shared.rooms.all().len();
        show::note(&format!(
            "{} is served at {}, to {rooms} room{} of its own. Ctrl-C ends it.",
            agent.id(),
            shared.base_url,
            if rooms == 1 { "" } else { "s" },
        ));
        Ok::<(), Failure>(())
    };
    let mut serving = Box::pin(host.run());
    // Rooms may call while they are being joined.
    tokio::select! {
        ended = &mut serving => return Ok(ended?),
        attached = attaching => attached?,
    }
    Ok(serving.await?)
}
