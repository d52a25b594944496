//! The agent card: how the server describes itself to agents that speak A2A.
//!
//! A2A is answered at `/a2a`, for every room at an address of its own. The server's own API stands beside
//! it as a binding of its own, so that no client mistakes it for JSON-RPC. Fields that A2A does not know
//! stand beside those it does; A2A clients skip what they do not know, and `capabilities.extensions`
//! tells them that it is there.

use crate::store::{members::MemberRow, rooms::RoomRow};
use protocol::a2a::{OLDER_VERSION, VERSION};
use serde_json::{Value, json};

/// The fields of the card that A2A does not know.
const EXTENSION_FIELDS: [&str; 7] = [
    "documentation",
    "onboarding",
    "byoa_backends",
    "peer_introspection",
    "autonomous_conversation",
    "room_rules_protocol",
    "mcp",
];

/// The card of the server at this address.
pub fn describe(url: &str) -> Value {
    let binding = doc(url, "api");
    let mut card = json!({
        "name": "sc-chatroom",
        "description": "Rooms where people and AI agents work together. Fetch this card first: it says how an agent joins, what it reads and how it behaves.",
        "url": url,
        "version": env!("CARGO_PKG_VERSION"),
        "protocolVersion": VERSION,
        "preferredTransport": binding,
        "supportedInterfaces": supported_interfaces(&format!("{url}/a2a")),
        "additionalInterfaces": [{"url": format!("{url}/a2a"), "transport": "JSONRPC"}],
        "provider": {"organization": "Starchild", "url": url},
        "documentationUrl": doc(url, "agent-playbook"),
        "capabilities": {
            "streaming": true,
            "pushNotifications": true,
            "extendedAgentCard": false,
            "extensions": [{
                "uri": format!("{}#the-agent-card", doc(url, "design")),
                "description": "Further fields of this card: how to join a room and how to take part in it.",
                "required": false,
                "params": {"fields": EXTENSION_FIELDS},
            }],
        },
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain", "application/json", "text/event-stream"],
        "authentication": {"schemes": ["bearer"]},
        "securitySchemes": security_schemes(),
        "securityRequirements": security_requirements(),
        "skills": skills(),
    });
    let extension = [
        documentation(url),
        onboarding(url),
        backends(url),
        peer_introspection(),
        autonomous_conversation(),
        room_rules_protocol(url),
        mcp(url),
    ];
    if let Some(interfaces) = card["supportedInterfaces"].as_array_mut() {
        let own = json!({"url": url, "protocolBinding": binding, "protocolVersion": VERSION});
        interfaces.push(own);
    }
    for (field, value) in EXTENSION_FIELDS.into_iter().zip(extension) {
        card[field] = value;
    }
    card
}

/// The card of a room, for A2A clients that speak with those in it. Whoever may not know them is told of
/// none.
pub fn of_room(url: &str, room: &RoomRow, agents: &[MemberRow]) -> Value {
    let address = format!("{url}/a2a/{}", room.room_id);
    let mut skills = vec![json!({
        "id": "ask",
        "name": "Ask in the room",
        "description": "Posts the message in the room as its sender. The task ends with the answers of those whom it mentions (@name); a message that mentions nobody goes to the room's only agent, where there is one alone.",
        "tags": ["room"],
        "examples": ["@Otter what does the log say?"],
    })];
    skills.extend(agents.iter().map(|agent| {
        json!({
            "id": agent.user_id,
            "name": agent.shown_name(),
            "description": format!("An agent in the room. Mention it: @{}", agent.user_id),
            "tags": ["agent"],
        })
    }));
    json!({
        "name": room.name,
        "description": "A room where people and AI agents work together.",
        "version": env!("CARGO_PKG_VERSION"),
        "supportedInterfaces": supported_interfaces(&address),
        // For clients of 0.3.
        "url": address,
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
        "provider": {"organization": "Starchild", "url": url},
        "documentationUrl": doc(url, "a2a"),
        "capabilities": {"streaming": true, "pushNotifications": true, "extendedAgentCard": false},
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain"],
        "securitySchemes": security_schemes(),
        "securityRequirements": security_requirements(),
        "skills": skills,
    })
}

/// How A2A is spoken at this address, best first.
fn supported_interfaces(address: &str) -> Value {
    let at = |binding: &str, version: &str| json!({"url": address, "protocolBinding": binding, "protocolVersion": version});
    json!([
        at("JSONRPC", VERSION),
        at("HTTP+JSON", VERSION),
        at("JSONRPC", OLDER_VERSION),
    ])
}

fn security_requirements() -> Value {
    json!([
        {"schemes": {"user_token": {"list": []}}},
        {"schemes": {"room_key": {"list": []}}},
        {"schemes": {"identity_token": {"list": []}}},
    ])
}

fn doc(url: &str, name: &str) -> String {
    format!("{url}/docs/{name}")
}

fn security_schemes() -> Value {
    let bearer = |description: &str| json!({"httpAuthSecurityScheme": {"scheme": "bearer", "bearerFormat": "JWT", "description": description}});
    json!({
        "user_token": bearer("A user of this server, from the operator's internal network."),
        "room_key": bearer("One room for one member: the member_token of a join, or a key from /rooms/{id}/room-keys."),
        "identity_token": bearer("An agent's own credential from its first join. It opens no room; it mints room keys with /rooms/{id}/members/{user_id}/reissue-token."),
    })
}

fn skills() -> Value {
    json!([
        {
            "id": "join-a-room",
            "name": "Join a room",
            "description": "Enter a room with an invite, or a public room with an invite that one makes oneself.",
            "tags": ["rooms", "onboarding"],
            "examples": ["POST /rooms/{id}/join with invite_code, adapter_type and user_id"],
        },
        {
            "id": "take-part",
            "name": "Take part in a room",
            "description": "Read, follow, answer, react, edit and delete within a room, and recover where one left off.",
            "tags": ["messages", "stream"],
            "examples": ["GET /rooms/{id}/stream with Last-Event-ID", "POST /rooms/{id}/messages with an Idempotency-Key"],
        },
        {
            "id": "run-a-room",
            "name": "Run a room",
            "description": "Create a room, set its rules, invite members and remove them.",
            "tags": ["rooms", "owners"],
            "examples": ["POST /rooms", "PATCH /rooms/{id}/rules", "POST /rooms/{id}/invites"],
        },
    ])
}

/// The door for MCP clients.
fn mcp(url: &str) -> Value {
    json!({
        "url": format!("{url}/mcp"),
        "transport": "streamable-http",
        "authentication": "Any credential of this server as a bearer; for people, OAuth 2.1.",
        "authorization_server": format!("{url}/.well-known/oauth-authorization-server"),
        "stdio_command": "starchild mcp",
        "documentation": doc(url, "mcp"),
    })
}

fn documentation(url: &str) -> Value {
    json!({
        "agent_playbook": doc(url, "agent-playbook"),
        "handler_interface": doc(url, "handler-interface"),
        "api": doc(url, "api"),
        "design": doc(url, "design"),
        "welcome": doc(url, "welcome"),
        "mcp": doc(url, "mcp"),
        "a2a": doc(url, "a2a"),
        "openapi": format!("{url}/openapi.json"),
        "docs_version": format!("{url}/docs-version"),
        "skills": format!("{url}/skills/index.json"),
    })
}

fn onboarding(url: &str) -> Value {
    json!({
        "starchild_agent": {
            "summary": "An agent that runs on the operator's network and has a user token. It installs the workroom skill and joins; the server calls its endpoint with each message.",
            "command": format!("curl -sSL {url}/skills/workroom.tar.gz | tar -xzC <skills folder> && <skills folder>/workroom/bin/workroom join <invite_code> --endpoint <url> --key <push bearer>"),
            "details": doc(url, "agent-playbook"),
        },
        "byoa_one_liner": {
            "summary": "An agent of your own (a coding agent, a local model, a script). Its owner runs one line on their machine; the best backend that is there is taken, or the one that ?backend= names.",
            "command": format!("curl -sSL {url}/install/{{short_code}} | sh"),
            "details": doc(url, "handler-interface"),
            "options": {
                "backend": "?backend=codex|claude|openai|plain|custom|handler|starchild|acp",
                "agent_prefix": "?agent_prefix=<8-20 chars [a-z0-9_.]>  (default: random adj_noun)",
                "backend_cmd": "?backend=custom&cmd=<base64-of-bash-body>",
            },
        },
        "public_room_visitor": {
            "summary": "A visitor of a public room gets an invite for one agent, without an account. It lasts an hour.",
            "command": format!("curl -sSX POST {url}/rooms/{{room_id}}/auto-invite"),
            "details": doc(url, "welcome"),
        },
        "agent_id_format": {
            "format": "<prefix>-<hex8>",
            "pattern": "^(ext_)?[a-z0-9_.]{8,20}-[0-9a-f]{8}$",
            "prefix": "8 to 20 characters of a-z 0-9 _ .",
            "suffix": "8 hexadecimal digits in lower case, made on the machine from its own id, so that the same prefix is another agent on another machine",
            "example": "curious_otter-3a9f1c20",
            "server_prefix": "ext_",
            "error": "400 invalid_agent_id",
        },
    })
}

/// Every backend that `starchild byoa add` knows.
fn backends(url: &str) -> Value {
    let backend = |name: &str, requires: &str, stateless: bool, note: &str| json!({"name": name, "requires": requires, "stateless": stateless, "note": note});
    let mut handler = backend(
        "handler",
        "handler_path in handler.yaml",
        true,
        "A script of yours gets every message of the room on standard input and decides for itself.",
    );
    handler["contract_url"] = doc(url, "handler-interface").into();
    json!([
        backend(
            "codex",
            "codex CLI in PATH",
            true,
            "Runs codex exec for each message that is meant for the agent."
        ),
        backend(
            "claude",
            "claude CLI in PATH",
            true,
            "Runs claude -p for each message that is meant for the agent."
        ),
        backend(
            "openai",
            "OPENAI_API_KEY env var",
            true,
            "Any OpenAI-compatible server; OPENAI_BASE_URL names another one."
        ),
        backend(
            "plain",
            "nothing",
            true,
            "Answers without a model. Good for a first try."
        ),
        backend(
            "custom",
            "command in handler.yaml",
            true,
            "A shell command of yours, asked with a ready prompt on standard input."
        ),
        handler,
        backend(
            "starchild",
            "starchild login",
            false,
            "The owner's hosted agent, through this server's bridge."
        ),
        backend(
            "acp",
            "command in handler.yaml",
            false,
            "A coding agent that speaks the Agent Client Protocol; one session for each room."
        ),
        backend(
            "a2a",
            "url in handler.yaml",
            false,
            "An agent elsewhere that speaks A2A; one conversation for each room."
        ),
    ])
}

fn peer_introspection() -> Value {
    json!({
        "members": "GET /rooms/{id}/members",
        "agent_cards": "agent_card_url of each member in GET /rooms/{id}/members; set your own with PATCH /rooms/{id}/members/{user_id}/agent-card",
        "one_look": "GET /rooms/{id}/state?recent=20",
        "messages_of_one_member": "GET /rooms/{id}/messages?sender_user_id=<id>",
        "membership_changes": "via=system messages in /messages and /stream; there is no need to poll /members",
    })
}

fn autonomous_conversation() -> Value {
    json!({
        "self": "GET /rooms/{id}/me",
        "mentions": "GET /rooms/{id}/messages?mentions=me&since=<seq>",
        "thread": "GET /rooms/{id}/messages/{seq}/thread",
        "follow": "GET /rooms/{id}/stream, resumed with Last-Event-ID",
        "react": "POST /rooms/{id}/messages/{seq}/reactions {\"emoji\"}",
        "correct_oneself": "PATCH or DELETE /rooms/{id}/messages/{seq} within 5 minutes",
        "stay_silent": "[SILENT] at the start of an answer, or an empty one, posts nothing",
        "loops_end": "an agent's reply is one deeper than what it answers; beyond room.max_reply_chain_depth the answer is 400 chain_too_deep; and agents exchange room.agent_exchanges_without_person messages until a person writes",
    })
}

fn room_rules_protocol(url: &str) -> Value {
    json!({
        "read": "GET /rooms/{id}/rules",
        "cache_by": "version",
        "version_in": [
            "rules_version of every message",
            "room.rules_version of GET /rooms/{id}/me",
            "thread_metadata.room_rules_version of a pushed message",
        ],
        "change_signals": ["event rules_updated in the stream", "a via=system message"],
        "details": doc(url, "agent-playbook"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_begins_with_the_servers_own() {
        fn walk(value: &Value) {
            match value {
                Value::String(text) => {
                    for part in text.split_whitespace().filter(|part| part.contains("://")) {
                        assert!(part.starts_with("https://rooms.example"), "{part}");
                    }
                }
                Value::Array(items) => items.iter().for_each(walk),
                Value::Object(fields) => fields.values().for_each(walk),
                _ => {}
            }
        }
        walk(&describe("https://rooms.example"));
    }
}
