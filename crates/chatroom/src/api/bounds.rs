//! What requests may hold, as the description tells it: lengths, ranges, patterns and examples, from
//! the constants that the checks use. `utoipa`'s attributes take literals alone, so they are added to
//! the finished document. A parameter or a field of a request that has none fails
//! `every_part_of_a_request_has_bounds` in `tests/api/system.rs`.

use super::{extract::Seq, idempotency, messages::DEEPEST};
use crate::{
    discovery::install,
    services::{
        checks,
        credentials::cli_keys,
        joining::invites,
        members,
        reputation::leaderboard,
        rooms::{self, MOST_EXCHANGES},
        search,
    },
};
use protocol::{
    AGENT_ID_PATTERN, MAX_ACTIVITY_CHARS, MAX_CONTENT_BYTES, MAX_IMPORTED_BYTES,
    MAX_IMPORTED_MESSAGES, MAX_MODEL_CHARS, MAX_NAME_CHARS, MAX_ROOM_NAME_CHARS, MAX_RULES_BYTES,
    MAX_TOOL_CHARS, MAX_TOOLS, ROOM_ID_PATTERN, USER_ID_PATTERN,
};
use serde_json::{Map, Value, json};
use std::ops::RangeInclusive;

/// One line with something to see in it, without control characters.
const LINE: &str = r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$";
/// A text that is not blank.
const NOT_BLANK: &str = r"[^\s\x00]";
/// Printable ASCII without spaces.
const OPAQUE: &str = "^[!-~]+$";
/// The id of a key or an invite, a short code, a document's name.
const WORD: &str = r"^[A-Za-z0-9_.\-]+$";
/// A cursor: `43` or `43.2`.
const CURSOR: &str = r"^[0-9]{1,15}(\.[0-9]{1,9})?$";

/// Adds the bounds of parameters and of requests' fields.
pub fn add(document: &mut Value) {
    let paths = document["paths"].as_object_mut();
    for (path, item) in paths.into_iter().flatten() {
        for (_, operation) in item.as_object_mut().into_iter().flatten() {
            let parameters = operation.get_mut("parameters");
            for parameter in parameters
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                let name = parameter["name"].as_str().unwrap_or_default().to_owned();
                // A header or a parameter that is not there is not null.
                let schema = &mut parameter["schema"];
                not_null(schema);
                if let Some(bounds) = of_parameter(path, &name) {
                    bounds.apply(schema);
                }
                if let Some(example) = schema.as_object_mut().and_then(|s| s.remove("example")) {
                    parameter["example"] = example;
                }
            }
        }
    }
    let items = document["paths"].as_object_mut().into_iter().flatten();
    for (_, item) in items {
        for place in ["/get/responses/200/content", "/put/requestBody/content"] {
            let content = item.pointer_mut(place).and_then(Value::as_object_mut);
            for (kind, content) in content.into_iter().flatten() {
                if BINARY.contains(&kind.as_str()) {
                    content["schema"] = json!({"type": "string", "format": "binary"});
                }
            }
        }
    }
    for (schema, field, bounds) in fields() {
        let path = format!("/components/schemas/{schema}/properties/{field}");
        if let Some(field) = document.pointer_mut(&path) {
            bounds.apply(field);
        }
    }
    for path in BODIES_LEFT_OUT {
        let item = document["paths"].get_mut(path);
        if let Some(body) = item.and_then(|item| item.pointer_mut("/post/requestBody")) {
            body["required"] = json!(false);
        }
    }
}

/// Answers that are no text.
const BINARY: [&str; 3] = ["application/gzip", "application/octet-stream", "image/*"];
/// Routes whose body may be left out.
const BODIES_LEFT_OUT: [&str; 4] = [
    "/rooms/public/auto-join",
    "/rooms/{id}/invites",
    "/rooms/{id}/members/{user_id}/stop",
    "/rooms/{id}/messages/{seq}/retry",
];

/// The keywords of JSON Schema that bound a value.
struct Bounds(Map<String, Value>);

impl Bounds {
    fn of(keywords: Value) -> Self {
        match keywords {
            Value::Object(keywords) => Self(keywords),
            _ => Self(Map::new()),
        }
    }

    fn like(mut self, example: impl Into<Value>) -> Self {
        self.0.insert("example".to_owned(), example.into());
        self
    }

    fn apply(mut self, schema: &mut Value) {
        // A set of words stands in for whatever type was there.
        if self.0.contains_key("enum") {
            let description = schema.get("description").cloned();
            *schema = json!({});
            self.0
                .extend(description.map(|words| ("description".to_owned(), words)));
        }
        if let Some(schema) = schema.as_object_mut() {
            schema.extend(self.0);
        }
    }
}

fn not_null(schema: &mut Value) {
    if let Some(types) = schema["type"].as_array() {
        let first = types.iter().find(|kind| *kind != "null").cloned();
        schema["type"] = first.unwrap_or_default();
    }
}

fn text(length: RangeInclusive<usize>, pattern: &str) -> Bounds {
    Bounds::of(json!({"minLength": length.start(), "maxLength": length.end(), "pattern": pattern}))
}

fn number(range: RangeInclusive<i64>) -> Bounds {
    Bounds::of(json!({"minimum": range.start(), "maximum": range.end()}))
}

fn at_least(least: i64) -> Bounds {
    Bounds::of(json!({"minimum": least}))
}

fn word(words: &[&str]) -> Bounds {
    Bounds::of(json!({"type": "string", "enum": words}))
}

/// A word, or null.
fn maybe_word(words: &[&str]) -> Bounds {
    let words: Vec<Option<&str>> = words.iter().copied().map(Some).chain([None]).collect();
    Bounds::of(json!({"type": ["string", "null"], "enum": words}))
}

fn seq() -> Bounds {
    number(0..=Seq::LARGEST).like(42)
}

fn user() -> Bounds {
    text(1..=128, USER_ID_PATTERN).like("ext_curious_otter-3a9f1c20")
}

fn address() -> Bounds {
    let pattern = r"^[hH][tT][tT][pP][sS]?://[A-Za-z0-9\[]";
    Bounds::of(json!({"format": "uri", "maxLength": checks::MAX_ADDRESS_BYTES, "pattern": pattern}))
        .like("https://agent.example/a2a")
}

/// An address, or nothing to clear it.
fn address_or_empty() -> Bounds {
    let pattern = r"^([hH][tT][tT][pP][sS]?://[A-Za-z0-9\[].*)?$";
    Bounds::of(json!({"maxLength": checks::MAX_ADDRESS_BYTES, "pattern": pattern}))
        .like("https://agent.example/a2a")
}

fn name() -> Bounds {
    text(1..=MAX_NAME_CHARS, LINE).like("Curious Otter")
}

fn emoji() -> Bounds {
    text(1..=checks::MAX_EMOJI_CHARS, r"^[^\s\x00-\x1f\x7f]+$").like("👍")
}

fn tools() -> Bounds {
    let name =
        json!({"type": "string", "minLength": 1, "maxLength": MAX_TOOL_CHARS, "pattern": LINE});
    Bounds::of(json!({"items": name, "maxItems": MAX_TOOLS}))
}

fn opaque() -> Bounds {
    text(1..=checks::MAX_OPAQUE_BYTES, OPAQUE)
}

fn of_parameter(path: &str, parameter: &str) -> Option<Bounds> {
    Some(match (path, parameter) {
        ("/auth/sessions/{id}", "id") => text(1..=256, OPAQUE).like("key:8c4f0d"),
        (_, "id") => text(4..=67, ROOM_ID_PATTERN).like("rm_8f3kz2"),
        (_, "user_id" | "sender_user_id") => user(),
        (_, "seq") => seq(),
        (_, "emoji") => emoji(),
        (_, "jti" | "code_jti") => text(1..=64, WORD).like("8c4f0d9e6a1b"),
        ("/hooks/{code}", "code") => text(1..=64, WORD).like("wh_x9j2k7vpx9j2k7vpx9j2k7vpx9j2k7vp"),
        (_, "webhook_id") => text(1..=64, WORD).like("hook_x9j2k7vpx9j2"),
        (_, "X-GitHub-Event") => text(1..=64, WORD).like("push"),
        (_, "X-GitHub-Delivery") => text(1..=idempotency::MAX_KEY_CHARS, OPAQUE),
        (_, "X-Hub-Signature-256") => text(71..=71, "^sha256=[0-9a-f]{64}$"),
        (_, "code") => text(1..=64, WORD).like("ck_x9j2k7vp"),
        (_, "short_code") => text(1..=64, WORD).like("i_x9j2k7vp"),
        ("/docs/{name}", "name") => text(1..=64, WORD).like("agent-playbook"),
        (_, "archive") => text(1..=64, WORD).like("workroom.tar.gz"),
        (_, "platform") => text(1..=64, WORD).like("linux-amd64"),
        (_, "Idempotency-Key") => text(1..=idempotency::MAX_KEY_CHARS, OPAQUE),
        (_, "Last-Event-ID") | ("/rooms/{id}/stream", "since") => text(1..=25, CURSOR).like("43.2"),
        (_, "token") => text(1..=checks::MAX_OPAQUE_BYTES, OPAQUE),
        (_, "deltas" | "ban") => word(&["0", "1", "true", "false"]),
        (_, "mentions") => word(&["me"]),
        (_, "window") => number(1..=leaderboard::MOST_DAYS).like(30),
        ("/leaderboard" | "/rooms/{id}/leaderboard", "limit") => {
            number(1..=leaderboard::MOST_USERS).like(20)
        }
        ("/rooms/{id}/members", "limit") => number(1..=members::PAGE).like(100),
        // More than there are to have is as good as all.
        (_, "limit") => at_least(1).like(50),
        (_, "recent" | "recent_limit") => at_least(0).like(20),
        (_, "offset") => number(0..=checks::MAX_OFFSET).like(0),
        (_, "since" | "before") => at_least(0).like(42),
        (_, "after") => text(0..=128, r"^[A-Za-z0-9_.@:+\-]*$").like("u_alice"),
        (_, "subject") => text(1..=128, OPAQUE).like("203.0.113.0/24"),
        (_, "backend") => word(&install::BACKENDS),
        (_, "agent_prefix") => text(8..=20, "^[a-z0-9_.]+$").like("curious_otter"),
        (_, "cmd") => text(2..=install::MAX_ENCODED_COMMAND, "^[A-Za-z0-9+/_=-]+$").like("Y2F0"),
        (_, "X-Starchild-Container") => opaque().like("568359"),
        (_, "q") => text(1..=search::query::MOST_CHARS, NOT_BLANK).like("launch date"),
        (_, "cursor") => text(1..=256, OPAQUE),
        (_, "consent_id") => text(1..=64, WORD).like("cns_x9j2k7vp"),
        (_, "state") => word(&["open"]),
        (_, "seed") => text(1..=64, WORD).like("8c4f0d9e6a1b"),
        (_, "If-Match") => text(3..=17, "^\"[0-9]{1,15}\"$").like("\"6\""),
        (_, "days") => Bounds::of(json!({})).like(30),
        (_, "include_revoked") => Bounds::of(json!({})),
        _ => return None,
    })
}

/// Schema, field, bounds.
fn fields() -> Vec<(&'static str, &'static str, Bounds)> {
    let room_name = || text(1..=MAX_ROOM_NAME_CHARS, LINE).like("strategy-sync");
    let reason = || text(1..=MAX_ROOM_NAME_CHARS, LINE).like("Posts the same link again and again");
    let content = || text(1..=MAX_CONTENT_BYTES, NOT_BLANK).like("Hello everyone");
    vec![
        ("CreateRoom", "name", room_name()),
        ("UpdateRoom", "name", room_name()),
        (
            "UpdateRoom",
            "max_reply_chain_depth",
            number(rooms::CHAIN_DEPTHS),
        ),
        (
            "UpdateRoom",
            "agent_exchanges_without_person",
            number(0..=MOST_EXCHANGES),
        ),
        (
            "UpdateText",
            "content",
            text(0..=MAX_RULES_BYTES, r"^[^\x00]*$").like("Be concise. Reply when mentioned."),
        ),
        (
            "CreateInvite",
            "max_uses",
            number(1..=invites::MAX_USES).like(1),
        ),
        (
            "CreateInvite",
            "ttl_seconds",
            number(1..=invites::LONGEST_TTL).like(3600),
        ),
        ("CreateInvite", "display_name", name()),
        (
            "Join",
            "invite_code",
            text(1..=checks::MAX_OPAQUE_BYTES, OPAQUE).like("inv_eyJ…"),
        ),
        ("Join", "agent_endpoint", address()),
        ("Join", "agent_card_url", address()),
        ("Join", "akm_key", opaque()),
        ("Join", "container_id", opaque()),
        ("Join", "user_id", user()),
        ("Join", "display_name", name()),
        (
            "AutoJoin",
            "user_id",
            text(17..=33, AGENT_ID_PATTERN).like("curious_otter-3a9f1c20"),
        ),
        ("AutoJoin", "client_kind", maybe_word(&["external_agent"])),
        ("AutoJoin", "adapter_type", maybe_word(&["pull"])),
        ("AutoJoin", "user_name", name()),
        ("UpdateEndpoint", "agent_endpoint", address_or_empty()),
        ("UpdateEndpoint", "akm_key", opaque()),
        ("UpdateEndpoint", "container_id", opaque()),
        ("UpdateAgentCard", "agent_card_url", address_or_empty()),
        ("Rename", "name", name()),
        ("UpdateAccount", "display_name", name()),
        (
            "Usage",
            "model",
            text(1..=MAX_MODEL_CHARS, LINE).like("small-model"),
        ),
        ("Usage", "tools", tools()),
        ("BanMember", "user_id", user()),
        ("BanMember", "reason", reason()),
        (
            "Ban",
            "subject",
            text(1..=128, OPAQUE).like("203.0.113.0/24"),
        ),
        ("Ban", "reason", reason()),
        ("PostMessage", "content", content()),
        ("PostMessage", "reply_to_seq", seq()),
        (
            "PostMessage",
            "reply_chain_depth",
            number(0..=DEEPEST).like(1),
        ),
        (
            "PostMessage",
            "client_msg_id",
            text(1..=idempotency::MAX_KEY_CHARS, OPAQUE),
        ),
        ("EditMessage", "content", content()),
        ("MarkRead", "seq", at_least(0).like(42)),
        ("MarkThreadRead", "seq", at_least(0).like(42)),
        ("React", "emoji", emoji()),
        ("CreateRoomKey", "for_user_id", user()),
        ("RetryTurn", "user_id", user()),
        ("AskConsent", "tool", name().like("shell.run")),
        (
            "AskConsent",
            "summary",
            text(1..=checks::MAX_SUMMARY_CHARS, LINE).like("Delete old builds"),
        ),
        ("AskConsent", "reply_to_seq", seq()),
        ("PostTyping", "reply_to_seq", seq()),
        (
            "PostTyping",
            "activity",
            text(1..=MAX_ACTIVITY_CHARS, LINE).like("reading the log"),
        ),
        ("StopTurn", "reply_to_seq", seq()),
        ("DecideConsent", "reason", reason()),
        ("CreateCliKey", "akm_key", opaque()),
        ("CreateCliKey", "container_id", opaque().like("568359")),
        ("CreateCliKey", "label", name().like("my laptop")),
        (
            "CreateCliKey",
            "ttl_seconds",
            number(1..=cli_keys::LONGEST_TTL),
        ),
        ("CreateCliKey", "agent_endpoint", address()),
        ("BeginImport", "name", room_name()),
        ("BeginImport", "owner_user_id", user().like("u_alice")),
        ("ImportMessages", "after_seq", seq()),
        (
            "ImportMessages",
            "messages",
            Bounds::of(json!({"maxItems": MAX_IMPORTED_MESSAGES})),
        ),
        (
            "ImportMessages",
            "topic",
            text(0..=checks::MAX_TOPIC_CHARS, r"^[^\x00-\x1f\x7f]*$").like("The launch"),
        ),
        (
            "ImportedMessage",
            "author_id",
            text(0..=MAX_NAME_CHARS * 4, r"^[^\x00]*$").like("U024BE7LH"),
        ),
        (
            "ImportedMessage",
            "author_name",
            text(0..=MAX_NAME_CHARS * 4, r"^[^\x00]*$").like("Ann"),
        ),
        (
            "ImportedMessage",
            "content",
            text(0..=MAX_IMPORTED_BYTES, r"^[^\x00]*$").like("Hello everyone"),
        ),
        (
            "ImportedMessage",
            "created_at",
            at_least(0).like(1_700_000_000),
        ),
        ("ImportedMessage", "edited_at", at_least(0)),
        ("ImportedMessage", "reply_to_seq", seq()),
        ("CreateWebhook", "name", name().like("CI")),
        (
            "CreateWebhook",
            "url",
            address().like("https://ci.example/rooms"),
        ),
        (
            "CreateWebhook",
            "events",
            Bounds::of(json!({"minItems": 1})),
        ),
    ]
}
