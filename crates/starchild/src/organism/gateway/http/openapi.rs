//! The gateway's OpenAPI 3.1 document, made from the payloads' schemas.

use agentserver::Offer;
use serde_json::{Map, Value, json};

/// A path for each payload that a peer of the gateway accepts.
pub fn document(organism: &str, offers: &[Offer], has_token: bool) -> Value {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for offer in offers {
        let name = &offer.schema.name;
        schemas.insert(name.clone(), offer.schema.json_schema());
        paths.insert(
            format!("/payloads/{name}"),
            json!({ "post": send(name, offers) }),
        );
        paths.insert(
            format!("/payloads/{name}/xsd"),
            json!({ "get": text(&format!("xsd{name}"), &format!("The XSD of <{name}>."), "application/xml") }),
        );
    }
    schemas.insert("Answers".to_owned(), answers());
    schemas.insert("Error".to_owned(), error());
    paths.insert(
        "/conversations/{id}/events".to_owned(),
        json!({ "get": follow() }),
    );
    paths.insert(
        "/conversations/{id}".to_owned(),
        json!({ "delete": close() }),
    );
    let own = "This document.";
    paths.insert(
        "/openapi.json".to_owned(),
        json!({ "get": text("openapi", own, "application/json") }),
    );
    let counts = "Counts, as Prometheus reads them.";
    paths.insert(
        "/metrics".to_owned(),
        json!({ "get": text("metrics", counts, "application/openmetrics-text") }),
    );
    let mut document = json!({
        "openapi": "3.1.0",
        "info": { "title": organism, "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": { "schemas": schemas },
    });
    if has_token {
        document["components"]["securitySchemes"] =
            json!({ "token": { "type": "http", "scheme": "bearer" } });
        document["security"] = json!([{ "token": [] }]);
    }
    document
}

fn send(name: &str, offers: &[Offer]) -> Value {
    let takers = offers.iter().filter(|offer| offer.schema.name == name);
    let about: Vec<_> = takers
        .clone()
        .map(|offer| offer.description.as_str())
        .collect();
    let peers: Vec<_> = takers.filter_map(|offer| offer.to.as_deref()).collect();
    json!({
        "operationId": format!("send{name}"),
        "summary": format!("Sends <{name}>."),
        "description": about.join(" "),
        "parameters": [
            {
                "name": "to", "in": "query", "description": "Whom to send it to.",
                "schema": { "type": "string", "enum": peers },
            },
            {
                "name": "wait", "in": "query",
                "description": "How many seconds to wait for the answers.",
                "schema": { "type": "integer", "minimum": 0, "maximum": super::WAIT },
            },
            {
                "name": "Correlation-Id", "in": "header",
                "description": "The conversation; a new one unless said.",
                "schema": { "type": "string", "minLength": 1, "maxLength": 128 },
            },
        ],
        "requestBody": {
            "required": true,
            "content": {
                "application/json": { "schema": { "$ref": format!("#/components/schemas/{name}") } },
                "application/xml": { "schema": { "type": "string" } },
            },
        },
        "responses": {
            "200": reply("All answers.", "Answers"),
            "202": reply("Accepted; what comes is at the conversation's events.", "Answers"),
            "400": reply("Not a payload of this type.", "Error"),
            "401": reply("Not allowed.", "Error"),
            "422": reply("Refused by the organism.", "Error"),
            "503": reply("No room at the moment.", "Error"),
        },
    })
}

/// Something to read that is always there.
fn text(operation: &str, summary: &str, kind: &str) -> Value {
    let schema = match kind {
        "application/json" => json!({ "type": "object" }),
        _ => json!({ "type": "string" }),
    };
    json!({
        "operationId": operation,
        "summary": summary,
        "responses": {
            "200": { "description": summary, "content": { kind: { "schema": schema } } },
            "401": reply("Not allowed.", "Error"),
        },
    })
}

fn reply(description: &str, schema: &str) -> Value {
    let schema = json!({ "$ref": format!("#/components/schemas/{schema}") });
    json!({ "description": description, "content": { "application/json": { "schema": schema } } })
}

fn conversation() -> Value {
    json!([{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }])
}

fn follow() -> Value {
    json!({
        "operationId": "followConversation",
        "summary": "What comes for a conversation, as server-sent events `message` and `rest`.",
        "parameters": conversation(),
        "responses": {
            "200": {
                "description": "The events. Last-Event-ID goes on where a reader stopped.",
                "content": { "text/event-stream": { "schema": { "type": "string" } } },
            },
            "404": reply("There is no such conversation.", "Error"),
        },
    })
}

fn close() -> Value {
    json!({
        "operationId": "closeConversation",
        "summary": "Ends a conversation.",
        "parameters": conversation(),
        "responses": {
            "204": { "description": "It is over." },
            "404": reply("There is no such conversation.", "Error"),
        },
    })
}

fn answers() -> Value {
    json!({
        "type": "object",
        "required": ["correlation_id", "answers", "done"],
        "properties": {
            "correlation_id": { "type": "string" },
            "done": { "type": "boolean", "description": "Whether nothing more will come." },
            "answers": { "type": "array", "items": {
                "type": "object",
                "required": ["number", "from", "xml"],
                "properties": {
                    "number": { "type": "integer" },
                    "from": { "type": "string" },
                    "payload": { "type": ["object", "null"] },
                    "xml": { "type": "string" },
                },
            } },
        },
    })
}

fn error() -> Value {
    json!({
        "type": "object",
        "required": ["error", "message"],
        "properties": { "error": { "type": "string" }, "message": { "type": "string" } },
    })
}
