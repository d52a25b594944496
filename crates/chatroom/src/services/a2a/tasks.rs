//! Tasks, read from a room's log.

use super::{
    TaskName,
    state::{Status, TaskFacts, status_of},
};
use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    services::{
        access::{self, ReadAccess, RoomLock},
        messages::posting::mentions::mentioned,
        visitors,
    },
    store::{
        Conn,
        members::MemberRow,
        messages::{MessageRow, Page},
        rooms::RoomRow,
    },
};
use protocol::{
    MessageType, RoleClass, RoomId, UserId,
    a2a::{Artifact, Message, Part, Role, Task, TaskStatus},
};
use serde_json::json;
use std::{collections::BTreeSet, net::IpAddr};

/// Members who are looked at, far more than a room of people and agents has.
const MOST_MEMBERS: i64 = 100;
/// Of each member, the messages after the question among which answers are looked for.
const MOST_MESSAGES: i64 = 200;
/// Messages of one client that belong to one task.
const MOST_TURNS: usize = 50;
/// A thread is followed this far up.
const LONGEST_THREAD: i64 = 1000;
/// The newest messages of a member that are listed as tasks.
const MOST_LISTED: i64 = 50;
/// The newest messages of a room, among which a conversation's last word is looked for.
const NEWEST: i64 = 200;

/// A task as the room's log has it.
#[derive(Debug)]
pub struct LoadedTask {
    pub name: TaskName,
    /// The message that its thread begins with.
    pub root: i64,
    /// What its client said, the question first.
    pub turns: Vec<MessageRow>,
    /// What others said to that, oldest first.
    pub answers: Vec<MessageRow>,
    pub status: Status,
    /// Who may still answer, and which message.
    pub pending: Vec<(UserId, i64)>,
    /// Everybody who was asked.
    pub asked: BTreeSet<UserId>,
}

impl LoadedTask {
    pub fn author(&self) -> &UserId {
        // There is always the question.
        &self.turns[0].sender_user_id
    }

    pub fn context_id(&self) -> String {
        format!("{}.{}", self.name.room, self.root)
    }

    /// Whether a message that somebody answers belongs to the task.
    pub fn has_turn(&self, seq: Option<i64>) -> bool {
        seq.is_some_and(|seq| self.turns.iter().any(|turn| turn.seq == seq))
    }

    /// The name of the artifact that a member's next answer becomes.
    pub fn next_artifact(&self, user: &str) -> String {
        let answers = self.answers.iter();
        let before = answers
            .filter(|answer| answer.sender_user_id.as_str() == user)
            .count();
        artifact_id(user, before)
    }

    /// As A2A has it.
    pub fn to_task(&self) -> Task {
        let (id, context) = (self.name.to_string(), self.context_id());
        let mut artifacts: Vec<Artifact> = Vec::with_capacity(self.answers.len());
        for (at, answer) in self.answers.iter().enumerate() {
            let user = &answer.sender_user_id;
            let before = self.answers[..at].iter();
            let before = before
                .filter(|earlier| earlier.sender_user_id == *user)
                .count();
            artifacts.push(Artifact {
                artifact_id: artifact_id(user.as_str(), before),
                name: Some(shown_name(answer).to_owned()),
                description: None,
                parts: vec![Part::text(answer.content.clone())],
                metadata: Some(json!({"seq": answer.seq, "userId": user})),
            });
        }
        let turn = |turn: &MessageRow| Message {
            message_id: format!("{}.{}", self.name.room, turn.seq),
            context_id: Some(context.clone()),
            task_id: Some(id.clone()),
            role: Role::User,
            parts: vec![Part::text(turn.content.clone())],
            metadata: Some(json!({"seq": turn.seq, "userId": turn.sender_user_id})),
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        };
        let message = self.status.words.as_ref().map(|words| {
            Message::of_agent(
                format!("{id}-{:?}", self.status.state),
                &id,
                &context,
                words,
            )
        });
        let since_ms = self.status.since.saturating_mul(1000);
        Task {
            status: TaskStatus::new(self.status.state, since_ms, message),
            artifacts,
            history: self.turns.iter().map(turn).collect(),
            metadata: Some(json!({"roomId": self.name.room, "seq": self.name.seq})),
            context_id: context,
            id,
        }
    }

    /// What tells one state of the task from another.
    pub fn fingerprint(&self) -> String {
        let waits = self.status.words.as_deref().unwrap_or_default();
        format!("{:?} {} {waits}", self.status.state, self.answers.len())
    }
}

fn artifact_id(user: &str, before: usize) -> String {
    format!("{user}.{}", before + 1)
}

fn shown_name(message: &MessageRow) -> &str {
    let name = message.sender_user_name.as_deref();
    name.unwrap_or(message.sender_user_id.as_str())
}

/// A task, for somebody who may read its room.
pub async fn read(app: &App, caller: &Caller, ip: IpAddr, name: &TaskName) -> Result<LoadedTask> {
    let mut conn = app.db.read().await?;
    let room = match access::reader(&mut conn, caller, &name.room).await? {
        ReadAccess::Member(entry) => entry.room,
        ReadAccess::Visitor(room) => {
            drop(conn);
            visitors::count_read(app, ip, &name.room).await?;
            conn = app.db.read().await?;
            *room
        }
    };
    load(app, &mut conn, &room, name.seq)
        .await?
        .ok_or_else(no_task)
}

/// A task, whoever asks.
pub async fn load(
    app: &App,
    conn: &mut Conn,
    room: &RoomRow,
    seq: i64,
) -> Result<Option<LoadedTask>> {
    let id = &room.room_id;
    let question = conn.message(id, seq).await?;
    let Some(question) = question.filter(|message| message.r#type == MessageType::Chat) else {
        return Ok(None);
    };
    let chain = conn.thread(id, seq, LONGEST_THREAD).await?;
    let root = chain.first().map_or(seq, |first| first.seq);
    let above = question.reply_to_seq;
    let above = above.and_then(|seq| chain.iter().find(|message| message.seq == seq));
    let members = conn.members(id, MOST_MEMBERS, 0).await?;
    let turns = turns(conn, id, question).await?;
    let author = &turns[0].sender_user_id;

    let mut asks: Vec<(UserId, i64)> = Vec::new();
    if let Some(above) = above.filter(|above| above.r#type == MessageType::Chat) {
        asks.push((above.sender_user_id.clone(), seq));
    }
    for turn in &turns {
        let mentioned = conn.mentioned_by(id, turn.seq).await?;
        asks.extend(mentioned.into_iter().map(|user| (user, turn.seq)));
    }
    asks.retain(|(user, _)| user != author);
    let asked: BTreeSet<UserId> = asks.iter().map(|(user, _)| user.clone()).collect();
    let is_asked = !asks.is_empty();
    if asks.is_empty() && turns[0].calls_agents {
        // Agents that the server calls for every message may answer unasked.
        let called = members
            .iter()
            .filter(|member| member.agent_endpoint.is_some());
        asks.extend(called.map(|member| (member.user_id.clone(), seq)));
        asks.retain(|(user, _)| user != author);
    }
    // Before the answers: an answer and the end of its call are written together, so whoever has been called
    // by now and has no answer there gives none.
    let mut calls = Vec::new();
    for (user, turn) in asks {
        let is_over = match conn.delivery(id, &user).await? {
            Some(lane) => lane.next_seq > turn && lane.answer_anew_seq != Some(turn),
            None => !is_asked,
        };
        calls.push((user, turn, is_over));
    }
    let answers = answers(conn, id, &members, &turns).await?;
    let mut pending = Vec::new();
    for (user, turn, is_over) in calls {
        let answered = |answer: &MessageRow| {
            answer.sender_user_id == user && answer.reply_to_seq == Some(turn)
        };
        let is_member = members.iter().any(|member| member.user_id == user);
        if is_over || !is_member || answers.iter().any(answered) {
            continue;
        }
        if !pending.contains(&(user.clone(), turn)) {
            pending.push((user, turn));
        }
    }
    let facts = TaskFacts {
        canceled_at: conn.a2a_canceled_at(id, seq).await?,
        deleted: turns[0].deleted,
        asked: asked.len(),
        pending: pending.len(),
        answers: answers.len(),
        waits_for: waits_for(conn, id, &members, &pending).await?,
        began_at: turns.last().map_or(0, |turn| turn.created_at),
        answered_at: answers.last().map(|answer| answer.created_at),
    };
    let seconds = app.config.a2a.task_seconds;
    let status = status_of(facts, seconds, Now::get().seconds());
    if status.state.is_terminal() {
        pending.clear();
    }
    Ok(Some(LoadedTask {
        name: TaskName {
            room: id.clone(),
            seq,
        },
        root,
        turns,
        answers,
        status,
        pending,
        asked,
    }))
}

/// The question, and what its author said to it since.
async fn turns(conn: &mut Conn, room: &RoomId, question: MessageRow) -> Result<Vec<MessageRow>> {
    let page = Page {
        since: question.seq,
        sender: Some(&question.sender_user_id),
        limit: MOST_MESSAGES,
        ..Page::default()
    };
    let later = conn.messages(room, &page).await?;
    let mut turns = vec![question];
    for message in later {
        let is_turn = turns
            .iter()
            .any(|turn| message.reply_to_seq == Some(turn.seq));
        if is_turn && !message.deleted && turns.len() < MOST_TURNS {
            turns.push(message);
        }
    }
    Ok(turns)
}

async fn answers(
    conn: &mut Conn,
    room: &RoomId,
    members: &[MemberRow],
    turns: &[MessageRow],
) -> Result<Vec<MessageRow>> {
    let author = &turns[0].sender_user_id;
    let mut answers = Vec::new();
    for member in members.iter().filter(|member| member.user_id != *author) {
        let page = Page {
            since: turns[0].seq,
            sender: Some(&member.user_id),
            limit: MOST_MESSAGES,
            ..Page::default()
        };
        let said = conn.messages(room, &page).await?;
        answers.extend(said.into_iter().filter(|message| {
            let to_a_turn = turns
                .iter()
                .any(|turn| message.reply_to_seq == Some(turn.seq));
            to_a_turn && !message.deleted
        }));
    }
    answers.sort_by_key(|answer| answer.seq);
    Ok(answers)
}

/// What an agent that may still answer waits to be allowed.
async fn waits_for(
    conn: &mut Conn,
    room: &RoomId,
    members: &[MemberRow],
    pending: &[(UserId, i64)],
) -> Result<Option<String>> {
    for (user, seq) in pending {
        let open = conn.open_consents_of(room, user).await?;
        let asks = open.iter().find(|ask| ask.reply_to_seq == Some(*seq));
        if let Some(ask) = asks {
            let member = members.iter().find(|member| member.user_id == *user);
            let name = member.map_or(user.as_str(), MemberRow::shown_name);
            return Ok(Some(format!(
                "{name} waits until somebody in the room allows it: {}",
                ask.summary
            )));
        }
    }
    Ok(None)
}

/// Takes a task back: whoever asked, or the room's owner. Those who still work at it are for the caller
/// to stop.
pub async fn cancel(app: &App, caller: &Caller, task: &LoadedTask) -> Result<()> {
    let name = &task.name;
    let mut tx = app.db.begin_keeping_cache().await?;
    let entry = access::member(&mut tx, caller, &name.room, RoomLock::Unlocked)
        .await?
        .as_oneself()?;
    let me = &entry.member.user_id;
    if me != task.author() && !entry.is_owner() {
        return Err(Error::forbidden(
            "Only whoever asked and the room's owner may take a task back",
        ));
    }
    tx.insert_a2a_cancel(&name.room, name.seq, me, Now::get().seconds())
        .await?;
    tx.commit().await?;
    Ok(())
}

/// The words to post: where a text mentions nobody, the agent that is meant is put before it. That is
/// the one that the task asked, or the room's only one.
pub async fn addressed(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    text: String,
    task: Option<&LoadedTask>,
) -> Result<String> {
    let mut conn = app.db.read().await?;
    let entry = access::member(&mut conn, caller, room, RoomLock::Unlocked).await?;
    let me = entry.member.user_id;
    let members = conn.members(room, MOST_MEMBERS, 0).await?;
    drop(conn);
    if !mentioned(&app.db, room, &text).await?.users.is_empty() {
        return Ok(text);
    }
    let is_meant = |member: &&MemberRow| match task {
        Some(task) if !task.asked.is_empty() => task.asked.contains(&member.user_id),
        _ => {
            let is_agent = RoleClass::from(&member.member_kind) == RoleClass::Agent;
            is_agent && member.user_id != me
        }
    };
    let meant: Vec<&MemberRow> = members.iter().filter(is_meant).take(2).collect();
    Ok(match meant[..] {
        [one] => format!("@{} {text}", one.user_id),
        _ => text,
    })
}

/// The message that the next one of a conversation answers.
pub struct LastWord {
    pub seq: i64,
    /// Whether the caller wrote it.
    pub is_own: bool,
}

/// The message that the next one of a conversation answers: its newest that is not the caller's, as far
/// as that is among the newest of the room; otherwise the one that it begins with.
pub async fn last_word(app: &App, caller: &Caller, room: &RoomId, root: i64) -> Result<LastWord> {
    let mut conn = app.db.read().await?;
    let entry = access::member(&mut conn, caller, room, RoomLock::Unlocked).await?;
    let begins = conn.message(room, root).await?;
    let begins = begins.filter(|message| message.r#type == MessageType::Chat);
    let begins =
        begins.ok_or_else(|| Error::bad_request("contextId names no conversation of this room"))?;
    let page = Page {
        before: Some(i64::MAX),
        limit: NEWEST,
        ..Page::default()
    };
    let newest = conn.messages(room, &page).await?;
    let mut within = BTreeSet::from([root]);
    let me = &entry.member.user_id;
    let mut last = LastWord {
        seq: root,
        is_own: begins.sender_user_id == *me,
    };
    for message in &newest {
        let follows = message
            .reply_to_seq
            .is_some_and(|seq| within.contains(&seq));
        if message.deleted || !follows {
            continue;
        }
        within.insert(message.seq);
        if message.sender_user_id != *me {
            last = LastWord {
                seq: message.seq,
                is_own: false,
            };
        }
    }
    Ok(last)
}

/// The caller's newest messages in a room as tasks, newest first: so far back tasks are listed.
pub async fn asked_by(app: &App, caller: &Caller, room: &RoomId) -> Result<Vec<LoadedTask>> {
    let mut conn = app.db.read().await?;
    let entry = access::member(&mut conn, caller, room, RoomLock::Unlocked).await?;
    let page = Page {
        before: Some(i64::MAX),
        sender: Some(&entry.member.user_id),
        limit: MOST_LISTED,
        ..Page::default()
    };
    let mut tasks = Vec::new();
    for message in conn.messages(room, &page).await?.into_iter().rev() {
        tasks.extend(load(app, &mut conn, &entry.room, message.seq).await?);
    }
    Ok(tasks)
}

fn no_task() -> Error {
    Error::not_found("No such task in this room")
}
