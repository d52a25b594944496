//! Answers without a model: who is here, what happened today, dice, reminders, and how to give the
//! agent a brain.

mod reminders;
mod request;

use super::{Backend, BackendError, Call, Inbound, Remark, Reply, config::BackendConfig};
use client::MessageQuery;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use protocol::{Message, Via};
use reminders::{Reminder, Reminders};
use request::{Dice, Request};
use std::{collections::BTreeMap, path::Path};

/// How many messages of a day are looked at.
const MAX_TODAY: usize = 1000;
const PAGE: u32 = 200;
const DAY_SECONDS: i64 = 24 * 3600;

/// An agent without a model.
pub struct Plain {
    /// The owner's words, in place of all others.
    greeting: Option<String>,
    reminders: Reminders,
}

impl Plain {
    /// `system_prompt` stands in for our own words. Reminders are kept in the agent's folder.
    pub fn new(config: &BackendConfig, folder: &Path) -> Self {
        let greeting = config.system_prompt.as_deref().map(str::trim);
        Self {
            greeting: greeting.filter(|text| !text.is_empty()).map(str::to_owned),
            reminders: Reminders::new(folder),
        }
    }

    async fn reply(&self, inbound: &Inbound) -> Result<Reply, BackendError> {
        // Two agents without a brain would greet each other for ever.
        if inbound.message.reply_chain_depth > 0 {
            return Ok(Reply::Silent);
        }
        if let Some(greeting) = &self.greeting {
            return Ok(Reply::from_output(greeting));
        }
        let (content, me) = (&inbound.message.content, inbound.me.mentionable());
        let text = match request::parse(content, me, Timestamp::now()) {
            Request::Help => help(inbound),
            Request::WhoIsHere => who_is_here(inbound).await?,
            Request::Today => today(inbound).await?,
            Request::Roll(dice) => rolled(dice, *uuid::Uuid::new_v4().as_bytes()),
            Request::Coin => {
                let is_heads = uuid::Uuid::new_v4().as_bytes()[0] & 1 == 0;
                format!("{}.", if is_heads { "Heads" } else { "Tails" })
            }
            Request::Remind { at, of } => self.remind(inbound, at, of)?,
            Request::NotUnderstood(why) => why,
            Request::Else(words) => format!(
                "I have no model, so “{words}” is beyond me for now. {}",
                help(inbound)
            ),
        };
        Ok(Reply::from_output(&text))
    }

    fn remind(&self, inbound: &Inbound, at: Timestamp, of: String) -> Result<String, BackendError> {
        let reminder = Reminder {
            seq: inbound.message.seq,
            at: at.as_second(),
            of: of.clone(),
        };
        let kept = self.reminders.add(&inbound.room_name, reminder);
        match kept.map_err(|error| BackendError::Unavailable(error.to_string()))? {
            true => Ok(format!("I will remind you of “{of}” {}.", when(at))),
            false => Ok("I have too many reminders for this room already.".into()),
        }
    }
}

impl Backend for Plain {
    fn answer<'a>(
        &'a self,
        inbound: &'a Inbound,
        _call: &'a Call,
    ) -> BoxFuture<'a, Result<Reply, BackendError>> {
        Box::pin(self.reply(inbound))
    }

    fn next_remark<'a>(&'a self, room_name: &'a str) -> BoxFuture<'a, Remark> {
        Box::pin(self.reminders.next(room_name))
    }

    fn remark_is_dealt_with(&self, room_name: &str, remark: &Remark) {
        let Some(seq) = remark.reply_to_seq else {
            return;
        };
        if let Err(error) = self.reminders.remove(room_name, seq) {
            tracing::error!(%error, "a reminder that was given is still kept");
        }
    }
}

fn help(inbound: &Inbound) -> String {
    let me = inbound.me.user_name.as_deref();
    let me = me.unwrap_or(&inbound.me.user_id);
    format!(
        "I am {me}. Without a model I can do this:\n\
         - **who is here**: the members of this room\n\
         - **what happened today**: who said how much, and the last words\n\
         - **roll 2d6**, **flip a coin**\n\
         - **remind me in 20 minutes to stretch**, or **at 17:30 to call home** (UTC)\n\n\
         My owner can give me a model: `starchild agents edit --help`"
    )
}

async fn who_is_here(inbound: &Inbound) -> Result<String, BackendError> {
    let members = inbound.client.members(&inbound.room_id).await;
    let members = members.map_err(|error| BackendError::Unavailable(error.to_string()))?;
    let mut lines = Vec::new();
    for member in &members.members {
        let id = shown(member.user_id.as_str());
        let name = member.user_name.as_deref().map_or(id.clone(), shown);
        let you = match member.user_id.as_str() == inbound.me.user_id {
            true => ", that is me",
            false => "",
        };
        let here = if member.online { "here now" } else { "away" };
        lines.push(format!("- {name} ({here}{you})"));
    }
    Ok(format!(
        "{} in this room:\n{}",
        lines.len(),
        lines.join("\n")
    ))
}

async fn today(inbound: &Inbound) -> Result<String, BackendError> {
    let now = inbound.message.created_at;
    let midnight = now - now.rem_euclid(DAY_SECONDS);
    let mut said: Vec<Message> = Vec::new();
    let mut before = inbound.message.seq;
    while said.len() < MAX_TODAY {
        let query = MessageQuery {
            before: Some(before),
            limit: Some(PAGE),
            ..MessageQuery::default()
        };
        let page = inbound.client.messages(&inbound.room_id, &query).await;
        let page = page.map_err(|error| BackendError::Unavailable(error.to_string()))?;
        let Some(first) = page.messages.first() else {
            break;
        };
        before = first.seq;
        let is_over = first.created_at < midnight;
        let of_today = page.messages.into_iter();
        said.extend(of_today.filter(|message| message.created_at >= midnight));
        if is_over {
            break;
        }
    }
    said.sort_by_key(|message| message.seq);
    Ok(summary(&said))
}

/// Who said how much, and the last words of each.
fn summary(said: &[Message]) -> String {
    let mut speakers: BTreeMap<&str, (usize, &Message)> = BTreeMap::new();
    let chat = said.iter().filter(|message| message.via != Via::System);
    for message in chat.filter(|message| !message.deleted) {
        let speaker = speakers
            .entry(&message.sender_user_id)
            .or_insert((0, message));
        *speaker = (speaker.0 + 1, message);
    }
    if speakers.is_empty() {
        return "Nothing was said today (UTC) before you asked.".into();
    }
    let mut speakers: Vec<_> = speakers.into_values().collect();
    speakers.sort_by_key(|(count, last)| (std::cmp::Reverse(*count), last.seq));
    let lines = speakers.iter().take(20).map(|(count, last)| {
        let name = last.sender_user_name.as_deref();
        let name = shown(name.unwrap_or(&last.sender_user_id));
        let words = if *count == 1 { "message" } else { "messages" };
        let text = shown(&last.content);
        format!("- {name}: {count} {words}, last “{text}”")
    });
    let all: usize = speakers.iter().map(|(count, _)| count).sum();
    let lines: Vec<_> = lines.collect();
    format!("Today (UTC), {all} in all:\n{}", lines.join("\n"))
}

fn rolled(dice: Dice, random: [u8; 16]) -> String {
    let seed = random.iter().fold(0u64, |seed, byte| {
        seed.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte)
    });
    let mut state = seed | 1;
    let mut roll = || {
        // xorshift: dice need no more.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % u64::from(dice.sides) + 1
    };
    let rolls: Vec<u64> = (0..dice.count).map(|_| roll()).collect();
    let sum: u64 = rolls.iter().sum();
    let shown: Vec<_> = rolls.iter().map(u64::to_string).collect();
    match dice.count {
        1 => format!("🎲 {sum}"),
        _ => format!("🎲 {} = {sum}", shown.join(" + ")),
    }
}

fn when(at: Timestamp) -> String {
    format!("at {} UTC", at.strftime("%Y-%m-%d %H:%M:%S"))
}

/// The beginning of somebody's words, on one line. It mentions nobody: what somebody had us say must
/// not call other agents.
fn shown(words: &str) -> String {
    let words: Vec<&str> = words.split_whitespace().collect();
    let fits = |c: &char| !c.is_control() && *c != '@';
    let line: String = words.join(" ").chars().filter(fits).collect();
    match line.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{
        config::BackendKind,
        testing::{inbound, message},
    };

    fn plain(prompt: Option<&str>) -> (tempfile::TempDir, Plain) {
        let folder = tempfile::tempdir().unwrap();
        let mut config = BackendConfig::new(BackendKind::Plain);
        config.system_prompt = prompt.map(str::to_owned);
        let plain = Plain::new(&config, folder.path());
        (folder, plain)
    }

    async fn ask(plain: &Plain, content: &str) -> String {
        match plain.reply(&inbound(content)).await.unwrap() {
            Reply::Text(text) => text,
            Reply::Silent => "(silence)".into(),
        }
    }

    #[tokio::test]
    async fn it_says_what_it_can_and_mentions_nobody() {
        let (_folder, plain) = plain(None);
        let text = ask(&plain, "@MyBot ask\n@OtherBot for  me").await;
        assert!(text.contains("“ask OtherBot for me”"), "{text}");
        assert!(text.contains("who is here"), "{text}");
        assert!(!text.contains('@'), "{text}");
        let rolled = ask(&plain, "@MyBot roll 3d1").await;
        assert_eq!(rolled, "🎲 1 + 1 + 1 = 3");
    }

    #[tokio::test]
    async fn an_answer_gets_no_answer_so_that_two_of_them_never_talk_for_ever() {
        let (_folder, plain) = plain(None);
        let mut inbound = inbound("@MyBot hello");
        inbound.message.reply_chain_depth = 1;
        assert_eq!(plain.reply(&inbound).await.unwrap(), Reply::Silent);
    }

    #[tokio::test]
    async fn the_owner_can_choose_the_words() {
        let (_folder, plain) = plain(Some(" Back on Monday. "));
        assert_eq!(ask(&plain, "hi").await, "Back on Monday.");
    }

    #[test]
    fn a_day_is_summed_up_by_speaker() {
        let mut gone = message(4, "Eve", "oops");
        gone.deleted = true;
        let said = [
            message(1, "Bob", "morning"),
            message(2, "Alice", "hi @all"),
            message(3, "Bob", "tea?"),
            gone,
        ];
        let text = summary(&said);
        assert!(
            text.starts_with("Today (UTC), 3 in all:\n- Bob: 2 messages, last “tea?”"),
            "{text}"
        );
        assert!(text.contains("Alice: 1 message, last “hi all”") && !text.contains("Eve"));
        assert!(summary(&[]).starts_with("Nothing"));
    }
}
