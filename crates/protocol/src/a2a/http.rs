//! HTTP+JSON: a method, a path and a body or a query.

use super::{
    A2aError, Binding, ErrorKind, Operation, ParsedRequest, VERSION_HEADER, request::fitting,
    rpc::check_http_version,
};
use serde_json::{Map, Value};

/// A request as it came over HTTP.
#[derive(Debug, Clone, Copy)]
pub struct HttpRequest<'a> {
    /// For example `GET`.
    pub method: &'a str,
    /// The path below the agent's address; JSON-RPC is `/`.
    pub path: &'a str,
    /// The query, decoded.
    pub query: &'a [(String, String)],
    /// The header that names the version.
    pub version: Option<&'a str>,
    /// The body.
    pub body: &'a [u8],
}

impl HttpRequest<'_> {
    /// How a request is answered that is not read yet.
    pub fn binding(&self) -> Binding {
        match self.path {
            "/" => Binding::Rpc {
                id: Value::Null,
                older: false,
            },
            _ => Binding::Http,
        }
    }

    /// What is asked.
    pub fn read(&self) -> ParsedRequest {
        let is_version = |name: &str| name.eq_ignore_ascii_case(VERSION_HEADER);
        let in_query = self.query.iter().find(|(name, _)| is_version(name));
        let version = self.version.or(in_query.map(|(_, value)| value.as_str()));
        let query = self.query.iter().filter(|(name, _)| !is_version(name));
        match (self.path, self.method) {
            ("/", "POST") => ParsedRequest::of_rpc(self.body, version),
            ("/", _) => ParsedRequest {
                binding: Binding::Http,
                operation: Err(unknown()),
            },
            _ => ParsedRequest {
                binding: Binding::Http,
                operation: operation(self.method, self.path, query, self.body, version),
            },
        }
    }
}

/// The numbers and truths among the parameters of a query; the rest are texts.
const NUMBERS: [&str; 2] = ["historyLength", "pageSize"];
const TRUTHS: [&str; 1] = ["includeArtifacts"];

fn operation<'a>(
    method: &str,
    path: &str,
    query: impl Iterator<Item = &'a (String, String)>,
    body: &[u8],
    version: Option<&str>,
) -> Result<Operation, A2aError> {
    check_http_version(version)?;
    let path: Vec<&str> = path.trim_matches('/').split('/').collect();
    let with = |params: Value, fields: &[(&str, &str)]| {
        let Value::Object(mut params) = params else {
            return Err(A2aError::invalid("The body must be a JSON object"));
        };
        for (name, value) in fields {
            params.insert((*name).to_owned(), Value::from(*value));
        }
        Ok(Value::Object(params))
    };
    let of_query = asked(query)?;
    Ok(match (method, path.as_slice()) {
        ("POST", ["message:send"]) => Operation::SendMessage(fitting(read(body)?)?),
        ("POST", ["message:stream"]) => Operation::SendStreamingMessage(fitting(read(body)?)?),
        ("GET", ["tasks"]) => Operation::ListTasks(fitting(of_query)?),
        ("GET" | "POST", ["tasks", task]) => match (method, task.rsplit_once(':')) {
            ("POST", Some((id, "cancel"))) => {
                Operation::CancelTask(fitting(with(read_or_empty(body)?, &[("id", id)])?)?)
            }
            (_, Some((id, "subscribe"))) => {
                Operation::SubscribeToTask(fitting(with(read_or_empty(body)?, &[("id", id)])?)?)
            }
            ("GET", _) => Operation::GetTask(fitting(with(of_query, &[("id", task)])?)?),
            _ => return Err(unknown()),
        },
        ("POST", ["tasks", task, "pushNotificationConfigs"]) => {
            Operation::CreatePushConfig(fitting(with(read(body)?, &[("taskId", task)])?)?)
        }
        ("GET", ["tasks", task, "pushNotificationConfigs"]) => {
            Operation::ListPushConfigs(fitting(with(of_query, &[("taskId", task)])?)?)
        }
        ("GET" | "DELETE", ["tasks", task, "pushNotificationConfigs", config]) => {
            let request = fitting(with(of_query, &[("taskId", task), ("id", config)])?)?;
            match method {
                "GET" => Operation::GetPushConfig(request),
                _ => Operation::DeletePushConfig(request),
            }
        }
        ("GET", ["extendedAgentCard"]) => Operation::GetExtendedAgentCard,
        _ => return Err(unknown()),
    })
}

fn unknown() -> A2aError {
    A2aError::new(ErrorKind::MethodNotFound, "There is no such operation")
}

fn read(body: &[u8]) -> Result<Value, A2aError> {
    serde_json::from_slice(body).map_err(|error| {
        A2aError::new(
            ErrorKind::ParseError,
            format!("The body is no JSON that is read here: {error}"),
        )
    })
}

fn read_or_empty(body: &[u8]) -> Result<Value, A2aError> {
    match body.is_empty() {
        true => Ok(Value::Object(Map::new())),
        false => read(body),
    }
}

fn asked<'a>(query: impl Iterator<Item = &'a (String, String)>) -> Result<Value, A2aError> {
    let mut asked = Map::new();
    for (name, text) in query {
        let wrong = || A2aError::invalid(format!("{name} does not fit"));
        let value = if NUMBERS.contains(&name.as_str()) {
            Value::from(text.parse::<i64>().map_err(|_| wrong())?)
        } else if TRUTHS.contains(&name.as_str()) {
            Value::from(text.parse::<bool>().map_err(|_| wrong())?)
        } else {
            Value::from(text.as_str())
        };
        asked.insert(name.clone(), value);
    }
    Ok(Value::Object(asked))
}
