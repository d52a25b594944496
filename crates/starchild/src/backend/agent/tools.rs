//! What an agent can do in the room that it answers in: with its own key, and never beyond it.

use super::notes::Notes;
use crate::backend::{
    Inbound, Me,
    prompt::{one_line, quote, transcript},
};
use client::{Client, ClientError, MessageQuery};
use openstarry::tool::{Risk, Tool, ToolContext, ToolError, function};
use protocol::{MemberView, Message, PostMessage, RoomId};
use schemars::JsonSchema;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

/// All of them.
pub const NAMES: [&str; 9] = [
    "room.read",
    "room.search",
    "room.thread",
    "room.members",
    "room.rules",
    "room.react",
    "room.post",
    "room.remember",
    "room.hand_over",
];
const PAGE: u32 = 50;
/// How far back a search goes.
const SEARCH_PAGES: u32 = 10;
const SEARCH_PAGE: u32 = 200;
const MAX_FOUND: usize = 20;

/// The room that a session works in, and the message that it answers now.
pub struct RoomContext {
    client: Client,
    room: RoomId,
    me: Me,
    message: Message,
    pub notes: Notes,
}

impl RoomContext {
    pub fn new(inbound: &Inbound, notes: PathBuf) -> Self {
        Self {
            client: inbound.client.clone(),
            room: inbound.room_id.clone(),
            me: inbound.me.clone(),
            message: inbound.message.clone(),
            notes: Notes::new(notes),
        }
    }

    async fn post(&self, text: String) -> Result<i64, ClientError> {
        // Asked again after a crash, the agent says the same once.
        let hash = Sha256::digest(text.as_bytes());
        let hash: String = hash
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let (me, seq) = (&self.me.user_id, self.message.seq);
        let key = format!("starchild-{me}-{}-{seq}-{hash}", self.room);
        let message = PostMessage {
            content: text,
            // An answer is deeper than what it answers: that is how agents fall silent.
            reply_to_seq: Some(seq),
            reply_chain_depth: Some(self.message.reply_chain_depth + 1),
            client_msg_id: None,
        };
        let posted = self.client.post_message(&self.room, &message, Some(&key));
        Ok(posted.await?.seq)
    }
}

/// The rooms of an agent's sessions. Clones are the same.
#[derive(Clone, Default)]
pub struct RoomContexts(Arc<Mutex<HashMap<String, Arc<RoomContext>>>>);

impl RoomContexts {
    /// From now on the session works here.
    pub fn insert(&self, session: &str, context: RoomContext) {
        let mut contexts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        contexts.insert(session.to_owned(), Arc::new(context));
    }

    fn of(&self, context: &ToolContext) -> Result<Arc<RoomContext>, ToolError> {
        let contexts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = contexts.get(&context.session).cloned();
        room.ok_or_else(|| ToolError::new("this session is in no room"))
    }
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct Read {
    /// The newest messages below this number; the room's newest where it is left out.
    before: Option<i64>,
    /// How many, 50 at most.
    limit: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
struct Search {
    /// Words that all have to be in the message, in any order.
    words: String,
}

#[derive(Deserialize, JsonSchema)]
struct Numbered {
    /// The message's number.
    seq: i64,
}

#[derive(Deserialize, JsonSchema)]
struct React {
    /// The message's number.
    seq: i64,
    /// One emoji.
    emoji: String,
}

#[derive(Deserialize, JsonSchema)]
struct Say {
    /// The words, in Markdown.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct HandOver {
    /// The member's name or id.
    to: String,
    /// What the member should do, and all it has to know for it.
    text: String,
}

/// The tools. Which room they act in, the session tells.
pub fn all(contexts: &RoomContexts) -> Vec<Arc<dyn Tool>> {
    let mut tools = looking(contexts);
    tools.extend(acting(contexts));
    tools
}

fn looking(contexts: &RoomContexts) -> Vec<Arc<dyn Tool>> {
    let rooms = || contexts.clone();
    let (read, search, thread, members, rules) = (rooms(), rooms(), rooms(), rooms(), rooms());
    vec![
        function(
            "room.read",
            "Messages of the room, oldest first.",
            Risk::Safe,
            move |args: Read, context: ToolContext| {
                let room = read.of(&context);
                async move { read_messages(&*room?, args).await }
            },
        ),
        function(
            "room.search",
            "Finds messages of the room by their words.",
            Risk::Safe,
            move |args: Search, context: ToolContext| {
                let room = search.of(&context);
                async move { search_messages(&*room?, &args.words).await }
            },
        ),
        function(
            "room.thread",
            "What a message answers, from the beginning.",
            Risk::Safe,
            move |args: Numbered, context: ToolContext| {
                let room = thread.of(&context);
                async move {
                    let room = room?;
                    let thread = room.client.thread(&room.room, args.seq).await;
                    let thread = thread.map_err(ToolError::new)?.thread;
                    Ok::<_, ToolError>(transcript(&thread, &room.me))
                }
            },
        ),
        function(
            "room.members",
            "Who is in the room.",
            Risk::Safe,
            move |_: Nothing, context: ToolContext| {
                let room = members.of(&context);
                async move {
                    let members = member_list(&*room?).await?;
                    let lines: Vec<_> = members.iter().map(shown_member).collect();
                    Ok::<_, ToolError>(lines.join("\n"))
                }
            },
        ),
        function(
            "room.rules",
            "The room's rules and its reference text, as its owner wrote them.",
            Risk::Safe,
            move |_: Nothing, context: ToolContext| {
                let room = rules.of(&context);
                async move { rules_and_data(&*room?).await }
            },
        ),
    ]
}

fn acting(contexts: &RoomContexts) -> Vec<Arc<dyn Tool>> {
    let rooms = || contexts.clone();
    let (react, post, remember, hand_over) = (rooms(), rooms(), rooms(), rooms());
    vec![
        function(
            "room.react",
            "Puts an emoji on a message.",
            Risk::Safe,
            move |args: React, context: ToolContext| {
                let room = react.of(&context);
                async move {
                    let room = room?;
                    let done = room.client.react(&room.room, args.seq, &args.emoji).await;
                    done.map_err(ToolError::new)?;
                    Ok::<_, ToolError>("done")
                }
            },
        ),
        function(
            "room.post",
            "Says something in the room now, besides the answer, which is posted by itself.",
            Risk::Safe,
            move |args: Say, context: ToolContext| {
                let room = post.of(&context);
                async move {
                    let seq = room?.post(args.text).await.map_err(ToolError::new)?;
                    Ok::<_, ToolError>(format!("posted as #{seq}"))
                }
            },
        ),
        function(
            "room.remember",
            "Writes down one line about this room. All such lines are shown to you each time.",
            Risk::Safe,
            move |args: Say, context: ToolContext| {
                let room = remember.of(&context);
                async move {
                    room?.notes.add(&args.text).map_err(ToolError::new)?;
                    Ok::<_, ToolError>("written down")
                }
            },
        ),
        function(
            "room.hand_over",
            "Asks another member of the room to take over. They see your words and are called.",
            Risk::Safe,
            move |args: HandOver, context: ToolContext| {
                let room = hand_over.of(&context);
                async move { hand_over_to(&*room?, &args).await }
            },
        ),
    ]
}

async fn read_messages(room: &RoomContext, args: Read) -> Result<String, ToolError> {
    let query = MessageQuery {
        before: args.before,
        limit: Some(args.limit.unwrap_or(PAGE).clamp(1, PAGE)),
        ..MessageQuery::default()
    };
    let page = room.client.messages(&room.room, &query).await;
    let messages = page.map_err(ToolError::new)?.messages;
    Ok(transcript(shown(&messages), &room.me))
}

/// Goes back through the room, page by page.
async fn search_messages(room: &RoomContext, words: &str) -> Result<String, ToolError> {
    let words = words.to_lowercase();
    let words: Vec<_> = words.split_whitespace().collect();
    if words.is_empty() {
        return Err(ToolError::new("give at least one word"));
    }
    let (mut before, mut found) = (None, Vec::new());
    for _ in 0..SEARCH_PAGES {
        let query = MessageQuery {
            before,
            limit: Some(SEARCH_PAGE),
            ..MessageQuery::default()
        };
        let page = room.client.messages(&room.room, &query).await;
        let messages = page.map_err(ToolError::new)?.messages;
        let Some(first) = messages.first() else { break };
        before = Some(first.seq);
        let fits = |message: &&Message| {
            let text = message.content.to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        let fitting: Vec<_> = shown(&messages).filter(fits).cloned().collect();
        found.splice(0..0, fitting);
        if found.len() >= MAX_FOUND || before <= Some(1) {
            break;
        }
    }
    let newest = &found[found.len().saturating_sub(MAX_FOUND)..];
    Ok(match newest.is_empty() {
        true => "nothing was found".into(),
        false => transcript(newest, &room.me),
    })
}

fn shown(messages: &[Message]) -> impl Iterator<Item = &Message> {
    messages.iter().filter(|message| !message.deleted)
}

async fn rules_and_data(room: &RoomContext) -> Result<String, ToolError> {
    let rules = room.client.rules(&room.room).await;
    let data = room.client.data(&room.room).await;
    let mut text = String::from("Rules:\n");
    quote(&mut text, &rules.map_err(ToolError::new)?.content);
    text.push_str("Reference:\n");
    quote(&mut text, &data.map_err(ToolError::new)?.content);
    Ok(text)
}

async fn member_list(room: &RoomContext) -> Result<Vec<MemberView>, ToolError> {
    let members = room.client.members(&room.room).await;
    Ok(members.map_err(ToolError::new)?.members)
}

fn shown_member(member: &MemberView) -> String {
    let id = one_line(member.user_id.as_str());
    let name = member.user_name.as_deref().map_or(id.clone(), one_line);
    let here = if member.online { "online" } else { "away" };
    format!("{name} ({id}, {}, {here})", member.member_kind.as_str())
}

async fn hand_over_to(room: &RoomContext, args: &HandOver) -> Result<String, ToolError> {
    let members = member_list(room).await?;
    let wanted = args.to.trim().trim_start_matches('@');
    let is_wanted = |member: &&MemberView| {
        let name = member.user_name.as_deref().unwrap_or_default();
        name.eq_ignore_ascii_case(wanted) || member.user_id.as_str() == wanted
    };
    let mut fitting = members.iter().filter(is_wanted);
    let (Some(member), None) = (fitting.next(), fitting.next()) else {
        let lines: Vec<_> = members.iter().map(shown_member).collect();
        let known = lines.join("\n");
        return Err(ToolError::new(format!(
            "name one of these, by its id:\n{known}"
        )));
    };
    if member.user_id.as_str() == room.me.user_id {
        return Err(ToolError::new("that is you"));
    }
    let text = format!("@{} {}", member.user_id, args.text);
    let seq = room.post(text).await.map_err(ToolError::new)?;
    Ok(format!(
        "posted as #{seq}; answer [SILENT] unless you have more to say"
    ))
}
