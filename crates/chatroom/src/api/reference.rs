//! The API described by itself: as OpenAPI, and as a page for people.

use super::{SECTIONS, bounds, pages};
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
/// The sections of the page, in the order a newcomer needs them. Others follow.
const HEADINGS: [&str; 13] = [
    "Rooms",
    "Joining",
    "Identity",
    "Members",
    "Messages",
    "Room keys",
    "Short codes",
    "Webhooks",
    "CLI bridge",
    "Welcome",
    "Reputation",
    "Discovery",
    "System",
];
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
    let mut document = serde_json::to_value(&document).unwrap_or_default();
    bounds::add(&mut document);
    let page = page(&document);
    Reference {
        json: document.to_string().into(),
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
    let policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
                  base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    (
        [(header::CONTENT_SECURITY_POLICY, policy)],
        Html(REFERENCE.page.clone()),
    )
}

/// The whole page. Everything in it comes from this program's own code.
fn page(document: &Value) -> String {
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>API reference</title>\
         <link rel=\"stylesheet\" href=\"{}\"><script type=\"module\" src=\"{}\"></script>\
         <nav aria-label=\"Operations\"><div id=\"filter\"></div><ul>",
        pages::asset_path("reference.css"),
        pages::asset_path("reference.js")
    );
    let headings = headings(document);
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
    for heading in &headings {
        let _ = write!(
            html,
            "<li><a href=\"#{}\">{}</a><ul>",
            anchor(heading),
            escape(heading)
        );
        for (method, path, route) in routes.iter().filter(|(_, _, route)| tag(route) == *heading) {
            let _ = write!(
                html,
                "<li><a href=\"#{}\"><span class=\"m\">{}</span> {}</a></li>",
                escape(route["operationId"].as_str().unwrap_or_default()),
                method.to_uppercase(),
                escape(path)
            );
        }
        html.push_str("</ul></li>");
    }
    let _ = write!(
        html,
        "</ul></nav><main><h1>API reference</h1><p>{}</p><p>The same as a document for programs: \
         <a href=\"/openapi.json\">/openapi.json</a></p><div id=\"bearer\"></div>",
        prose(document["info"]["description"].as_str().unwrap_or_default())
    );
    for wanted in headings {
        let _ = write!(
            html,
            "<h2 id=\"{}\">{}</h2>",
            anchor(wanted),
            escape(wanted)
        );
        for (method, path, route) in routes.iter().filter(|(_, _, route)| tag(route) == wanted) {
            write_route(&mut html, document, method, path, route);
        }
    }
    html + "</main></html>"
}

/// What the routes are sorted under.
fn headings(document: &Value) -> Vec<&str> {
    let mut headings = HEADINGS.to_vec();
    let items = document["paths"].as_object().into_iter().flatten();
    let routes = items.flat_map(|(_, item)| METHODS.iter().filter_map(|m| item.get(*m)));
    for tag in routes.map(tag) {
        if !headings.contains(&tag) {
            headings.push(tag);
        }
    }
    headings
}

fn tag(route: &Value) -> &str {
    route["tags"][0].as_str().unwrap_or_default()
}

fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-")
}

fn write_route(html: &mut String, document: &Value, method: &str, path: &str, route: &Value) {
    let words = [&route["summary"], &route["description"]];
    let words: Vec<&str> = words.iter().filter_map(|words| words.as_str()).collect();
    let _ = write!(
        html,
        "<section id=\"{}\" data-method=\"{method}\" data-path=\"{}\"><h3><span class=\"m\">{}</span> <code>{}</code></h3><p>{}</p>",
        escape(route["operationId"].as_str().unwrap_or_default()),
        escape(path),
        method.to_uppercase(),
        escape(path),
        prose(&words.join(" "))
    );
    let parameters: Vec<Row> = route["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|parameter| Row {
            name: parameter["name"].as_str().unwrap_or_default(),
            place: parameter["in"].as_str().unwrap_or_default(),
            required: parameter["required"] == true,
            schema: &parameter["schema"],
            words: parameter["description"].as_str(),
            example: parameter.get("example"),
        })
        .collect();
    write_rows(html, document, "Parameters", &parameters, None);
    for (kind, content) in route["requestBody"]["content"]
        .as_object()
        .into_iter()
        .flatten()
    {
        let optional = if route["requestBody"]["required"] == true {
            ""
        } else {
            ", may be left out"
        };
        write_schema(
            html,
            document,
            &format!("Body, {kind}{optional}"),
            &content["schema"],
        );
    }
    for (status, reply) in route["responses"].as_object().into_iter().flatten() {
        let words = reply["description"].as_str().unwrap_or_default();
        let title = format!("{status}: {words}");
        match reply["content"]
            .as_object()
            .and_then(|content| content.iter().next())
        {
            Some((_, content)) if !status.starts_with('4') => {
                write_schema(html, document, &title, &content["schema"]);
            }
            _ => {
                let _ = write!(html, "<p>{}</p>", prose(&title));
            }
        }
    }
    html.push_str("</section>");
}

/// A parameter, or a field of a body.
struct Row<'a> {
    name: &'a str,
    place: &'a str,
    required: bool,
    schema: &'a Value,
    words: Option<&'a str>,
    example: Option<&'a Value>,
}

fn write_rows(
    html: &mut String,
    document: &Value,
    title: &str,
    rows: &[Row<'_>],
    example: Option<&Value>,
) {
    if rows.is_empty() && example.is_none() {
        return;
    }
    let _ = write!(html, "<details><summary>{}</summary><table>", escape(title));
    for row in rows {
        let required = if row.required { " <b>required</b>" } else { "" };
        let example = row.example.or(row.schema.get("example"));
        let example =
            example.map(|example| format!("<br>e.g. <code>{}</code>", escape(&plain(example))));
        let _ = write!(
            html,
            "<tr><th><code>{}</code>{required}<br>{}</th><td>{}<br><small>{}</small>{}</td></tr>",
            escape(row.name),
            escape(row.place),
            prose(row.words.unwrap_or_default()),
            escape(&constraints(document, row.schema)),
            example.unwrap_or_default()
        );
    }
    html.push_str("</table>");
    if let Some(example) = example {
        let _ = write!(html, "<pre>{}</pre>", escape(&format!("{example:#}")));
    }
    html.push_str("</details>");
}

/// A body: its fields, and an example.
fn write_schema(html: &mut String, document: &Value, title: &str, schema: &Value) {
    let resolved = resolve(document, schema);
    let required = resolved["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    let rows: Vec<Row> = resolved["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, field)| Row {
            name,
            place: "",
            required: is_required(name),
            schema: field,
            words: field["description"]
                .as_str()
                .or(field["oneOf"][0]["description"].as_str()),
            example: None,
        })
        .collect();
    let example = example_of(document, schema, 0);
    let example = Some(&example).filter(|example| example.is_object());
    write_rows(html, document, title, &rows, example);
    if rows.is_empty() && example.is_none() {
        let _ = write!(html, "<p>{}</p>", prose(title));
    }
}

/// What a value may be, in a line.
fn constraints(document: &Value, schema: &Value) -> String {
    let schema = match schema["oneOf"].as_array() {
        Some(choices) => choices
            .iter()
            .find(|one| one["type"] != "null")
            .unwrap_or(schema),
        None => schema,
    };
    let schema = resolve(document, schema);
    let mut parts = Vec::new();
    match &schema["type"] {
        Value::String(kind) => parts.push(kind.clone()),
        Value::Array(kinds) => {
            parts.push(
                kinds
                    .iter()
                    .filter_map(Value::as_str)
                    .collect::<Vec<_>>()
                    .join(" or "),
            );
        }
        _ => {}
    }
    if let Some(words) = schema["enum"].as_array() {
        parts.push(words.iter().map(plain).collect::<Vec<_>>().join(", "));
    }
    for (name, before, after) in [
        ("minimum", "at least", ""),
        ("maximum", "at most", ""),
        ("minLength", "at least", " characters"),
        ("maxLength", "at most", " characters"),
        ("minItems", "at least", " of them"),
        ("maxItems", "at most", " of them"),
        ("pattern", "like", ""),
    ] {
        if let Some(bound) = schema.get(name) {
            parts.push(format!("{before} {}{after}", plain(bound)));
        }
    }
    parts.join("; ")
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(reference) => {
            &document["components"]["schemas"][reference.rsplit('/').next().unwrap_or_default()]
        }
        None => schema,
    }
}

/// A value that fits a schema.
fn example_of(document: &Value, schema: &Value, depth: usize) -> Value {
    let schema = resolve(document, schema);
    if let Some(example) = schema.get("example") {
        return example.clone();
    }
    if let Some(word) = schema["enum"].get(0) {
        return word.clone();
    }
    for name in ["oneOf", "allOf"] {
        let choices = schema[name].as_array().into_iter().flatten();
        let mut fitting = choices.filter(|one| one["type"] != "null");
        if let Some(first) = fitting.next() {
            let mut value = example_of(document, first, depth + 1);
            // Of all of them together.
            if let (true, Some(fields)) = (name == "allOf", value.as_object_mut()) {
                for more in fitting {
                    if let Value::Object(more) = example_of(document, more, depth + 1) {
                        fields.extend(more);
                    }
                }
            }
            return value;
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().cloned().unwrap_or_default(),
        kind => kind.clone(),
    };
    match kind.as_str().unwrap_or_default() {
        "object" if depth < 6 => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            let fields = fields.map(|(name, field)| match name.as_str() {
                "created_at" | "updated_at" | "joined_at" | "issued_at" | "expires_at" => {
                    (name.clone(), Value::from(1_785_000_000))
                }
                "room_id" => (name.clone(), Value::from("rm_8f3kz2")),
                "user_id" => (name.clone(), Value::from("ext_curious_otter-3a9f1c20")),
                _ => (name.clone(), example_of(document, field, depth + 1)),
            });
            Value::Object(fields.collect())
        }
        "array" if depth < 6 => {
            Value::Array(vec![example_of(document, &schema["items"], depth + 1)])
        }
        "string" => Value::from("…"),
        "integer" | "number" => schema
            .get("minimum")
            .cloned()
            .unwrap_or_else(|| Value::from(1)),
        "boolean" => Value::from(true),
        _ => Value::Null,
    }
}

/// Words with code in them, between backticks.
fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts
        .map(|(at, part)| match at % 2 {
            0 => escape(part),
            _ => format!("<code>{}</code>", escape(part)),
        })
        .collect()
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
        let section = html.split("<h2 id=\"rooms\">Rooms</h2>").nth(1).unwrap();
        assert!(section.contains("/rooms") && section.contains("List &lt;rooms&gt;."));
    }
}
