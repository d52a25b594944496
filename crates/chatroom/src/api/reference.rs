//! The API described by itself: as OpenAPI, and as a page for people.

use super::SECTIONS;
use crate::app::App;
use axum::{
    Router,
    http::header,
    response::{Html, IntoResponse},
    routing::get,
};
use bytes::Bytes;
use serde_json::Value;
use std::{fmt::Write, sync::LazyLock};
use utoipa::{
    OpenApi,
    openapi::{
        self,
        security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme},
    },
};

const BEARER: &str = "bearer";
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
/// The sections of the page, in the order a newcomer needs them.
const HEADINGS: [&str; 12] = [
    "Rooms",
    "Joining",
    "Identity",
    "Members",
    "Messages",
    "Room keys",
    "Short codes",
    "CLI bridge",
    "Welcome",
    "Reputation",
    "Discovery",
    "System",
];
const STYLE: &str = "<style>body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;\
color:#1c1c1c;background:#fdfdfc}code{font:14px/1.4 ui-monospace,monospace;overflow-wrap:anywhere}\
h2{border-bottom:1px solid #ddd;margin-top:2.5rem}section{margin:1.2rem 0;padding:.2rem 0}\
.m{display:inline-block;min-width:4.5rem;font-weight:600;color:#0a5f8a}ul{margin:.3rem 0}\
@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#161616}h2{border-color:#444}.m{color:#7cc4ee}}</style>";

#[derive(OpenApi)]
#[openapi(info(
    title = "sc-chatroom",
    description = "Rooms where people and agents work together. Every error has the body {error, message}."
))]
struct Head;

struct Reference {
    json: Bytes,
    page: Bytes,
}

/// Made when it is first asked for.
static REFERENCE: LazyLock<Reference> = LazyLock::new(|| {
    let mut document = Head::openapi();
    for section in &SECTIONS {
        document.merge((section.describe)());
    }
    complete(&mut document);
    let json = document.to_json().unwrap_or_default();
    let page = page(&serde_json::from_str(&json).unwrap_or_default());
    Reference {
        json: json.into(),
        page: page.into(),
    }
});

/// Adds what is the same for every route: who may call, what an answer's status means, and a name that
/// no other operation has.
fn complete(document: &mut openapi::OpenApi) {
    let bearer = Http::builder()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "A user token, a room key, an identity token or a short code, as the route says",
        ))
        .build();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer));
    // Many routes answer without one, too: what nobody may do is refused with 401.
    let anonymous = SecurityRequirement::default();
    document.security = Some(vec![
        SecurityRequirement::new(BEARER, Vec::<String>::new()),
        anonymous,
    ]);
    for (path, item) in &mut document.paths.paths {
        let operations = [
            ("get", &mut item.get),
            ("put", &mut item.put),
            ("post", &mut item.post),
            ("patch", &mut item.patch),
            ("delete", &mut item.delete),
        ];
        for (method, operation) in operations {
            if let Some(operation) = operation {
                operation.operation_id = Some(operation_id(method, path));
                describe_statuses(operation);
            }
        }
    }
}

/// `get_rooms_by_id_messages` for `GET /rooms/{id}/messages`.
fn operation_id(method: &str, path: &str) -> String {
    let words = path
        .replace('{', "by_")
        .replace(|c: char| !c.is_alphanumeric(), "_");
    let words = words.split('_').filter(|word| !word.is_empty());
    [method]
        .into_iter()
        .chain(words)
        .collect::<Vec<_>>()
        .join("_")
}

fn describe_statuses(operation: &mut openapi::path::Operation) {
    for (status, response) in &mut operation.responses.responses {
        let openapi::RefOr::T(response) = response else {
            continue;
        };
        if response.description.is_empty() {
            response.description = match status.as_str() {
                "201" => "Made",
                "302" | "303" | "307" => "It is elsewhere",
                "304" => "Nothing has changed",
                "4XX" | "5XX" => "Refused; `error` says why and `message` what to do",
                _ => "Done",
            }
            .to_owned();
        }
    }
}

pub fn routes() -> Router<App> {
    Router::new()
        .route("/openapi.json", get(json))
        .route("/docs/api-reference", get(shown))
}

async fn json() -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, "application/json")],
        REFERENCE.json.clone(),
    )
}

async fn shown() -> impl IntoResponse {
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    (
        [(header::CONTENT_SECURITY_POLICY, policy)],
        Html(REFERENCE.page.clone()),
    )
}

/// The whole page. Everything in it comes from this program's own code.
fn page(document: &Value) -> String {
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>API reference</title>{STYLE}<h1>API reference</h1><p>{}</p><p>The same as a document for programs: \
         <a href=\"/openapi.json\">/openapi.json</a></p>",
        escape(document["info"]["description"].as_str().unwrap_or_default())
    );
    let routes: Vec<(&str, &String, &Value)> = document["paths"]
        .as_object()
        .into_iter()
        .flatten()
        .flat_map(|(path, item)| {
            METHODS
                .iter()
                .filter_map(move |m| Some((*m, path, item.get(*m)?)))
        })
        .collect();
    for wanted in HEADINGS {
        let _ = write!(html, "<h2>{}</h2>", escape(wanted));
        for (method, path, route) in routes.iter().filter(|(_, _, route)| tag(route) == wanted) {
            write_route(&mut html, document, method, path, route);
        }
    }
    html + "</html>"
}

fn tag(route: &Value) -> &str {
    route["tags"][0].as_str().unwrap_or_default()
}

fn write_route(html: &mut String, document: &Value, method: &str, path: &str, route: &Value) {
    let words = route["summary"]
        .as_str()
        .or(route["description"].as_str())
        .unwrap_or_default();
    let _ = write!(
        html,
        "<section><div><span class=\"m\">{}</span><code>{}</code></div><p>{}</p><ul>",
        method.to_uppercase(),
        escape(path),
        escape(words)
    );
    for parameter in route["parameters"].as_array().into_iter().flatten() {
        if parameter["in"] == "path" {
            continue;
        }
        let _ = write!(
            html,
            "<li>{} <code>{}</code> {}</li>",
            escape(parameter["in"].as_str().unwrap_or_default()),
            escape(parameter["name"].as_str().unwrap_or_default()),
            escape(parameter["description"].as_str().unwrap_or_default())
        );
    }
    let body = &route["requestBody"]["content"]["application/json"]["schema"];
    if !body.is_null() {
        let _ = write!(
            html,
            "<li>body <code>{}</code></li>",
            escape(&fields(document, body))
        );
    }
    for (status, reply) in route["responses"].as_object().into_iter().flatten() {
        if status == "4XX" {
            continue;
        }
        let schema = &reply["content"]["application/json"]["schema"];
        let _ = write!(
            html,
            "<li>{} <code>{}</code></li>",
            escape(status),
            escape(&fields(document, schema))
        );
    }
    html.push_str("</ul></section>");
}

/// A schema's fields, in one line.
fn fields(document: &Value, schema: &Value) -> String {
    let schema = match schema["$ref"].as_str() {
        Some(reference) => {
            &document["components"]["schemas"][reference.rsplit('/').next().unwrap_or_default()]
        }
        None => schema,
    };
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let Some(properties) = schema["properties"].as_object() else {
        return String::new();
    };
    let names = properties
        .keys()
        .map(|name| match required.contains(&name.as_str()) {
            true => name.clone(),
            false => format!("{name}?"),
        });
    format!("{{ {} }}", names.collect::<Vec<_>>().join(", "))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_stands_under_its_section() {
        let document = serde_json::json!({"paths": {"/rooms": {"get": {
            "tags": ["Rooms"], "summary": "List <rooms>.", "responses": {}}}}});
        let html = page(&document);
        let section = html.split("<h2>Rooms</h2>").nth(1).unwrap();
        assert!(section.contains("/rooms") && section.contains("List &lt;rooms&gt;."));
    }
}
