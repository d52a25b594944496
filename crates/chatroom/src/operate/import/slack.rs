//! An export of Slack's: who is there, which channels, and a file of messages for each channel and day.

use super::{
    ImportError, NAME_CHARS, NewRoom, Sink, TOPIC_CHARS,
    files::{Files, is_folder_name},
    one_line,
};
use crate::render::slack;
use protocol::ImportedMessage;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::collections::HashMap;

/// What tells of coming and going, and nothing else.
const NOT_SHOWN: [&str; 4] = ["channel_join", "channel_leave", "group_join", "group_leave"];

#[derive(Deserialize)]
pub struct Channel {
    name: String,
    #[serde(default)]
    topic: Option<Topic>,
}

#[derive(Deserialize)]
struct Topic {
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
struct User {
    id: String,
    name: Option<String>,
    real_name: Option<String>,
    #[serde(default)]
    profile: Profile,
}

#[derive(Deserialize, Default)]
struct Profile {
    display_name: Option<String>,
    real_name: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    r#type: String,
    subtype: Option<String>,
    user: Option<String>,
    bot_id: Option<String>,
    username: Option<String>,
    ts: String,
    thread_ts: Option<String>,
    edited: Option<Edited>,
    #[serde(default)]
    files: Vec<SharedFile>,
    #[serde(flatten)]
    rest: HashMap<String, Value>,
}

#[derive(Deserialize)]
struct Edited {
    ts: String,
}

#[derive(Deserialize)]
struct SharedFile {
    name: Option<String>,
    title: Option<String>,
}

/// The parts of an export that are the same for all channels.
pub struct Export {
    names: HashMap<String, String>,
    channels: Vec<Channel>,
}

impl Channel {
    pub fn room(&self) -> NewRoom {
        let topic = self.topic.as_ref().map(|topic| topic.value.as_str());
        NewRoom {
            name: one_line(&self.name, NAME_CHARS),
            topic: one_line(topic.unwrap_or_default(), TOPIC_CHARS),
        }
    }
}

impl Export {
    /// Reads who and which; of the channels those that are named, or all.
    pub fn read(files: &mut Files, wanted: &[String]) -> Result<Self, ImportError> {
        let users: Vec<User> = parse(files, "users.json")?;
        let mut channels: Vec<Channel> = parse(files, "channels.json")?;
        if let Some(missing) = wanted
            .iter()
            .find(|name| channels.iter().all(|channel| channel.name != **name))
        {
            return Err(ImportError::unfit(
                "channels.json",
                format!("there is no channel {missing}"),
            ));
        }
        channels.retain(|channel| wanted.is_empty() || wanted.contains(&channel.name));
        if let Some(channel) = channels
            .iter()
            .find(|channel| !is_folder_name(&channel.name))
        {
            let why = format!("{:?} is no channel's name", channel.name);
            return Err(ImportError::unfit("channels.json", why));
        }
        let names = users.into_iter().filter_map(|user| {
            let names = [
                user.profile.display_name,
                user.profile.real_name,
                user.real_name,
                user.name,
            ];
            let name = names
                .into_iter()
                .flatten()
                .find(|name| !name.trim().is_empty());
            Some((user.id, name?))
        });
        Ok(Self {
            names: names.collect(),
            channels,
        })
    }

    pub fn channels(&self) -> &[Channel] {
        &self.channels
    }

    /// Reads a channel's messages in their order.
    pub async fn read_channel(
        &self,
        files: &mut Files,
        channel: &Channel,
        sink: &mut Sink<'_>,
    ) -> Result<(), ImportError> {
        // The place of each message that a thread may begin with.
        let mut seqs: HashMap<String, i64> = HashMap::new();
        for day in files.days(&channel.name)? {
            let mut messages: Vec<Message> = parse(files, &day)?;
            messages.retain(|message| {
                let subtype = message.subtype.as_deref().unwrap_or_default();
                message.r#type == "message" && !NOT_SHOWN.contains(&subtype)
            });
            messages.sort_by_cached_key(|message| time(&message.ts));
            for message in messages {
                let Some(imported) = self.message(&message, &seqs) else {
                    continue;
                };
                let seq = i64::try_from(seqs.len() + 1).unwrap_or(i64::MAX);
                if seqs.insert(message.ts.clone(), seq).is_some() {
                    return Err(ImportError::unfit(
                        &day,
                        format!("two messages have the time {}", message.ts),
                    ));
                }
                sink.import_message(imported).await?;
            }
        }
        Ok(())
    }

    fn message(&self, message: &Message, seqs: &HashMap<String, i64>) -> Option<ImportedMessage> {
        let name_of = |id: &str| self.names.get(id).cloned();
        let text = message
            .rest
            .get("text")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let mut content = slack::to_markdown(text, name_of);
        if content.trim().is_empty() {
            let rest = Value::Object(message.rest.clone().into_iter().collect());
            content = slack::message(&rest).unwrap_or_default();
        }
        for file in &message.files {
            let name = file.name.as_deref().or(file.title.as_deref());
            content.push_str(&format!("\n(file: {})", name.unwrap_or("without a name")));
        }
        let content = content.trim().replace('\0', "");
        if content.is_empty() {
            return None;
        }
        let author = message.user.as_ref().or(message.bot_id.as_ref());
        let author_id = author.cloned().unwrap_or_else(|| "somebody".to_owned());
        let author_name = message
            .user
            .as_deref()
            .and_then(name_of)
            .or(message.username.clone());
        let parent = message
            .thread_ts
            .as_ref()
            .filter(|parent| **parent != message.ts);
        Some(ImportedMessage {
            author_id,
            author_name: author_name.map(|name| name.replace('\0', "")),
            content,
            created_at: time(&message.ts).0,
            edited_at: message.edited.as_ref().map(|edited| time(&edited.ts).0),
            reply_to_seq: parent.and_then(|parent| seqs.get(parent).copied()),
            deleted: false,
        })
    }
}

/// Seconds and what comes after the point, of `1700000000.000200`.
fn time(ts: &str) -> (i64, i64) {
    let (seconds, rest) = ts.split_once('.').unwrap_or((ts, "0"));
    (seconds.parse().unwrap_or(0), rest.parse().unwrap_or(0))
}

fn parse<T: DeserializeOwned>(files: &mut Files, name: &str) -> Result<T, ImportError> {
    let bytes = files.read(name)?;
    serde_json::from_slice(&bytes).map_err(|error| ImportError::unfit(name, error))
}
