//! What an agent can do in the room that it answers in: with its own key, and never beyond it.

use super::notes::Notes;
use crate::{
    backend::{
        Call, Inbound, Me,
        consent::Asker,
        prompt::{one_line, quote, transcript},
    },
    dedup_key::dedup_key,
};
use client::{Client, ClientError, MessageQuery, SearchQuery};
use openstarry::tool::{Risk, Tool, ToolContext, ToolError, function};
use protocol::{MemberView, Message, PostMessage, RoomId, mentions::Mentionable};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
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
const MAX_FOUND: u32 = 20;

/// The room that a session works in, and the message that it answers now.
pub struct ToolRoom {
    client: Client,
    room: RoomId,
    me: Me,
    message: Message,
    pub notes: Notes,
    pub asker: Asker,
}

impl ToolRoom {
    pub fn new(inbound: &Inbound, call: &Call, notes: PathBuf) -> Self {
        Self {
            client: inbound.client.clone(),
            room: inbound.room_id.clone(),
            me: inbound.me.clone(),
            message: inbound.message.clone(),
            notes: Notes::new(notes),
            asker: Asker::new(inbound, call),
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
        let seq = self.message.seq;
        let dedup_key = dedup_key(&self.me.user_id, &self.room, seq, &hash);
        let message = PostMessage {
            content: text,
            // An answer is deeper than what it answers: that is how agents fall silent.
            reply_to_seq: Some(seq),
            reply_chain_depth: Some(self.message.reply_chain_depth + 1),
            ..PostMessage::default()
        };
        let posted = self
            .client
            .post_message(&self.room, &message, Some(&dedup_key));
        Ok(posted.await?.seq)
    }
}

/// The rooms of an agent's sessions. Clones are the same.
#[derive(Clone, Default)]
pub struct ToolRooms(Arc<Mutex<HashMap<String, Arc<ToolRoom>>>>);

impl ToolRooms {
    /// From now on the session works here.
    pub fn insert(&self, session: &str, context: ToolRoom) {
        let mut contexts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        contexts.insert(session.to_owned(), Arc::new(context));
    }

    /// Where a session works.
    pub fn of_session(&self, session: &str) -> Option<Arc<ToolRoom>> {
        let contexts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        contexts.get(session).cloned()
    }

    fn of(&self, context: &ToolContext) -> Result<Arc<ToolRoom>, ToolError> {
        let room = self.of_session(&context.session);
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
    /// Words that all have to be in the message, "phrases", and from:NAME, has:link, is:agent,
    /// before:2026-11-17, after:2026-11-10.
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
pub fn all(contexts: &ToolRooms) -> Vec<Arc<dyn Tool>> {
    let tools = Tools(contexts);
    vec![
        tools.add(
            "room.read",
            "Messages of the room, oldest first.",
            read_messages,
        ),
        tools.add(
            "room.search",
            "Finds messages of the room by their words.",
            search_messages,
        ),
        tools.add(
            "room.thread",
            "What a message answers, from the beginning.",
            read_thread,
        ),
        tools.add("room.members", "Who is in the room.", list_members),
        tools.add(
            "room.rules",
            "The room's rules and its reference text, as its owner wrote them.",
            rules_and_data,
        ),
        tools.add("room.react", "Puts an emoji on a message.", react),
        tools.add(
            "room.post",
            "Says something in the room now, besides the answer, which is posted by itself.",
            post,
        ),
        tools.add(
            "room.remember",
            "Writes down one line about this room. All such lines are shown to you each time.",
            remember,
        ),
        tools.add(
            "room.hand_over",
            "Asks another member of the room to take over. They see your words and are called.",
            hand_over,
        ),
    ]
}

/// Makes tools that act in the room of the session that calls them.
struct Tools<'a>(&'a ToolRooms);

impl Tools<'_> {
    fn add<A, F, O>(&self, name: &str, description: &str, run: F) -> Arc<dyn Tool>
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(Arc<ToolRoom>, A) -> O + Copy + Send + Sync + 'static,
        O: Future<Output = Result<String, ToolError>> + Send + 'static,
    {
        let contexts = self.0.clone();
        function(
            name,
            description,
            Risk::Safe,
            move |args: A, context: ToolContext| {
                let room = contexts.of(&context);
                async move { run(room?, args).await }
            },
        )
    }
}

async fn read_thread(room: Arc<ToolRoom>, args: Numbered) -> Result<String, ToolError> {
    let thread = room.client.thread(&room.room, args.seq).await;
    let thread = thread.map_err(ToolError::new)?.thread;
    Ok(transcript(&thread, &room.me))
}

async fn list_members(room: Arc<ToolRoom>, _: Nothing) -> Result<String, ToolError> {
    let members = member_list(&room).await?;
    let lines: Vec<_> = members.iter().map(shown_member).collect();
    Ok(lines.join("\n"))
}

async fn react(room: Arc<ToolRoom>, args: React) -> Result<String, ToolError> {
    let done = room.client.react(&room.room, args.seq, &args.emoji).await;
    done.map_err(ToolError::new)?;
    Ok("done".into())
}

async fn post(room: Arc<ToolRoom>, args: Say) -> Result<String, ToolError> {
    let seq = room.post(args.text).await.map_err(ToolError::new)?;
    Ok(format!("posted as #{seq}"))
}

async fn remember(room: Arc<ToolRoom>, args: Say) -> Result<String, ToolError> {
    room.notes.add(&args.text).map_err(ToolError::new)?;
    Ok("written down".into())
}

async fn read_messages(room: Arc<ToolRoom>, args: Read) -> Result<String, ToolError> {
    let query = MessageQuery {
        before: args.before,
        limit: Some(args.limit.unwrap_or(PAGE).clamp(1, PAGE)),
        ..MessageQuery::default()
    };
    let page = room.client.messages(&room.room, &query).await;
    let messages = page.map_err(ToolError::new)?.messages;
    Ok(transcript(shown(&messages), &room.me))
}

/// Asks the server, which finds what the agent may read.
async fn search_messages(room: Arc<ToolRoom>, args: Search) -> Result<String, ToolError> {
    let query = SearchQuery {
        text: args.words,
        limit: Some(MAX_FOUND),
        ..SearchQuery::default()
    };
    let found = room.client.search_room(&room.room, &query).await;
    let found = found.map_err(ToolError::new)?.results;
    let mut text = String::new();
    for one in &found {
        let name = one.sender_user_name.as_deref();
        let name = one_line(name.unwrap_or(&one.sender_user_id));
        text.push_str(&format!("#{} {name}:\n", one.seq));
        let pieces: Vec<&str> = one.snippet.iter().map(|piece| &*piece.text).collect();
        quote(&mut text, &pieces.concat());
    }
    Ok(match found.is_empty() {
        true => "nothing was found".into(),
        false => text,
    })
}

fn shown(messages: &[Message]) -> impl Iterator<Item = &Message> {
    messages.iter().filter(|message| !message.deleted)
}

async fn rules_and_data(room: Arc<ToolRoom>, _: Nothing) -> Result<String, ToolError> {
    let rules = room.client.rules(&room.room).await;
    let data = room.client.data(&room.room).await;
    let mut text = String::from("Rules:\n");
    quote(&mut text, &rules.map_err(ToolError::new)?.content);
    text.push_str("Reference:\n");
    quote(&mut text, &data.map_err(ToolError::new)?.content);
    Ok(text)
}

async fn member_list(room: &ToolRoom) -> Result<Vec<MemberView>, ToolError> {
    let members = room.client.members(&room.room).await;
    Ok(members.map_err(ToolError::new)?.members)
}

fn shown_member(member: &MemberView) -> String {
    let id = one_line(member.user_id.as_str());
    let name = member.user_name.as_deref().map_or(id.clone(), one_line);
    let here = if member.online { "online" } else { "away" };
    format!("{name} ({id}, {}, {here})", member.member_kind.as_str())
}

/// What calls a member: its name, unless another has the same.
fn mention_of<'a>(member: &'a MemberView, members: &[MemberView]) -> &'a str {
    let id = member.user_id.as_str();
    let name = member.user_name.as_deref().unwrap_or(id);
    match find_member(members, name) {
        Some(_) => name,
        None => id,
    }
}

/// The member that is called so, if no other is.
fn find_member<'a>(members: &'a [MemberView], name: &str) -> Option<&'a MemberView> {
    let is_called = |member: &&MemberView| {
        let mentionable = Mentionable {
            id: member.user_id.as_str(),
            name: member.user_name.as_deref(),
        };
        mentionable.is_called(name)
    };
    let mut called = members.iter().filter(is_called);
    called.next().filter(|_| called.next().is_none())
}

async fn hand_over(room: Arc<ToolRoom>, args: HandOver) -> Result<String, ToolError> {
    let members = member_list(&room).await?;
    let wanted = args.to.trim().trim_start_matches('@');
    let Some(member) = find_member(&members, wanted) else {
        let lines: Vec<_> = members.iter().map(shown_member).collect();
        let known = lines.join("\n");
        return Err(ToolError::new(format!(
            "name one of these, by its id:\n{known}"
        )));
    };
    if member.user_id.as_str() == room.me.user_id {
        return Err(ToolError::new("that is you"));
    }
    let text = format!("@{} {}", mention_of(member, &members), args.text);
    let seq = room.post(text).await.map_err(ToolError::new)?;
    Ok(format!(
        "posted as #{seq}; answer [SILENT] unless you have more to say"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn member(id: &str, name: Option<&str>) -> MemberView {
        serde_json::from_value(json!({
            "user_id": id, "user_name": name, "member_kind": "byoa_agent", "role": "member",
            "joined_at": 0, "has_agent_endpoint": false, "has_akm_key": false, "key_stale": false,
            "online": true, "agent_card_url": null,
        }))
        .unwrap()
    }

    #[test]
    fn a_member_is_found_as_a_mention_finds_it() {
        let otter = "ext_curious_otter-3a9f1c20";
        let members = [
            member(otter, Some("Ärger")),
            member("u_2", Some("Sam")),
            member("u_3", Some("SAM")),
            member("u_4", None),
        ];
        let found = |name| find_member(&members, name).map(|member| member.user_id.as_str());
        for name in ["ärger", "ÄRGER", "Curious_Otter-3a9f1c20", otter] {
            assert_eq!(found(name), Some(otter), "{name}");
        }
        assert_eq!(found("sam"), None, "two are called so");
        assert_eq!(found("U_4"), Some("u_4"));
        assert_eq!(found(""), None);
    }

    #[test]
    fn a_member_is_mentioned_by_its_name_unless_another_has_it() {
        let members = [
            member("u_1", Some("Zoë")),
            member("u_2", Some("ΣΊΣΥΦΟΣ")),
            member("u_3", Some("σίσυφοσ")),
            member("u_4", None),
        ];
        let mentions = members.each_ref().map(|one| mention_of(one, &members));
        assert_eq!(mentions, ["Zoë", "u_2", "u_3", "u_4"]);
    }
}
