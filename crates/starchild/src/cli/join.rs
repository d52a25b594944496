//! `starchild join LINK`: from a link to an agent that answers, in one command.

use super::{
    byoa, daemon,
    failure::Failure,
    room::{self, JoinArgs},
    show,
};
use crate::home::{Home, agent_id};
use clap::Args;
use sha2::{Digest, Sha256};

/// What a new agent may be called.
const FIRST: [&str; 16] = [
    "tidy", "brisk", "calm", "quiet", "bright", "merry", "plain", "swift", "kind", "bold", "wise",
    "sunny", "eager", "gentle", "lucky", "steady",
];
const SECOND: [&str; 16] = [
    "falcon", "otter", "willow", "badger", "heron", "maple", "fox", "lark", "cedar", "finch",
    "marten", "robin", "birch", "hare", "wren", "lynx",
];

/// What `join` takes.
#[derive(Args)]
pub struct JoinCommand {
    #[command(flatten)]
    join: JoinArgs,
    /// Join, but do not start the agent.
    #[arg(long)]
    no_run: bool,
}

/// Makes an agent if there is none, brings it in and starts it.
pub async fn join(home: &Home, mut command: JoinCommand) -> Result<(), Failure> {
    // What is no link makes no agent.
    let code = room::invite::parse(&command.join.code).map_err(Failure::permanent)?;
    if command.join.agent.id.is_none() && home.agents()?.is_empty() {
        let prefix = prefix(home)?;
        byoa::add_plain(home, &prefix, code.server)?;
        let id = agent_id(home, &prefix)?;
        show::print(&format!("{id}\n"))?;
        command.join.agent.id = Some(id.to_string());
    }
    let agent = byoa::choose_agent(home, command.join.agent.id.as_ref())?;
    command.join.starts = !command.no_run;
    room::join(home, command.join).await?;
    match command.no_run {
        true => Ok(()),
        false => daemon::start(&agent).await,
    }
}

/// Two words that are the same on this machine every time.
fn prefix(home: &Home) -> Result<String, Failure> {
    let id = agent_id(home, "an_agent")?;
    let hash = Sha256::digest(id.as_str().as_bytes());
    let word = |words: [&'static str; 16], byte: u8| words[usize::from(byte) % words.len()];
    let prefix = format!("{}_{}", word(FIRST, hash[0]), word(SECOND, hash[1]));
    // Some pairs are a letter too short.
    Ok(format!("{prefix:_<8}"))
}
