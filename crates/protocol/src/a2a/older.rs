//! Version 0.3 over JSON-RPC: its names for methods, states and parts. Objects are rewritten as JSON,
//! one way and the other; [`super::model`] knows 1.0 alone.

use super::{
    A2aError, ErrorKind, Operation, OperationResult, PushConfig, SendMessage, StreamResponse,
};
use serde_json::{Map, Value, json};

/// The states, as 1.0 and as 0.3 spell them.
const STATES: [(&str, &str); 9] = [
    ("TASK_STATE_SUBMITTED", "submitted"),
    ("TASK_STATE_WORKING", "working"),
    ("TASK_STATE_COMPLETED", "completed"),
    ("TASK_STATE_FAILED", "failed"),
    ("TASK_STATE_CANCELED", "canceled"),
    ("TASK_STATE_INPUT_REQUIRED", "input-required"),
    ("TASK_STATE_REJECTED", "rejected"),
    ("TASK_STATE_AUTH_REQUIRED", "auth-required"),
    ("TASK_STATE_UNSPECIFIED", "unknown"),
];

/// Reads a request of 0.3.
pub fn operation(method: &str, params: Value) -> Result<Operation, A2aError> {
    let Value::Object(mut params) = params else {
        return Err(A2aError::invalid("params must be an object"));
    };
    let name = match method {
        "message/send" | "message/stream" => {
            send_params(&mut params);
            match method {
                "message/send" => "SendMessage",
                _ => "SendStreamingMessage",
            }
        }
        "tasks/get" => "GetTask",
        "tasks/cancel" => "CancelTask",
        "tasks/resubscribe" => "SubscribeToTask",
        "tasks/pushNotificationConfig/set" => {
            let config = params.remove("pushNotificationConfig");
            let mut config = push_config_from(config.unwrap_or_default());
            if let (Value::Object(config), Some(task)) = (&mut config, params.remove("taskId")) {
                config.insert("taskId".to_owned(), task);
            }
            return Operation::read("CreateTaskPushNotificationConfig", config);
        }
        "tasks/pushNotificationConfig/get" => {
            // Without a name it is the task's only one.
            let config = params.remove("pushNotificationConfigId");
            rename(&mut params, "id", "taskId");
            params.insert("id".to_owned(), config.unwrap_or_else(|| json!("")));
            "GetTaskPushNotificationConfig"
        }
        "tasks/pushNotificationConfig/list" => {
            rename(&mut params, "id", "taskId");
            "ListTaskPushNotificationConfigs"
        }
        "tasks/pushNotificationConfig/delete" => {
            rename(&mut params, "id", "taskId");
            rename(&mut params, "pushNotificationConfigId", "id");
            "DeleteTaskPushNotificationConfig"
        }
        "agent/getAuthenticatedExtendedCard" => "GetExtendedAgentCard",
        _ => {
            return Err(A2aError::new(
                ErrorKind::MethodNotFound,
                "There is no such method",
            ));
        }
    };
    Operation::read(name, Value::Object(params))
}

fn send_params(params: &mut Map<String, Value>) {
    if let Some(message) = params.get_mut("message") {
        *message = message_from(message.take());
    }
    let Some(Value::Object(wanted)) = params.get_mut("configuration") else {
        // Who says nothing waits for the answer, in both versions.
        return;
    };
    if let Some(blocking) = wanted.remove("blocking") {
        let at_once = blocking == Value::Bool(false);
        wanted.insert("returnImmediately".to_owned(), Value::Bool(at_once));
    }
    if let Some(config) = wanted.remove("pushNotificationConfig") {
        let config = push_config_from(config);
        wanted.insert("taskPushNotificationConfig".to_owned(), config);
    }
    wanted.retain(|_, value| !value.is_null());
}

/// The parameters of `message/send`, for an agent that speaks 0.3.
pub fn send_message(request: &SendMessage) -> Value {
    let mut params = Map::new();
    params.insert(
        "message".to_owned(),
        message_to(json!(request.message.clone())),
    );
    if let Some(wanted) = &request.configuration {
        params.insert(
            "configuration".to_owned(),
            json!({
                "blocking": !wanted.return_immediately,
                "acceptedOutputModes": wanted.accepted_output_modes,
            }),
        );
    }
    Value::Object(params)
}

/// What came of a request, for a client that speaks 0.3.
pub fn write_result(outcome: &OperationResult) -> Value {
    match outcome {
        OperationResult::Sent(sent) => event(sent),
        OperationResult::Task(task) => task_to(json!(task)),
        // 0.3 has no list of tasks over JSON-RPC.
        OperationResult::Tasks(tasks) => json!(tasks),
        OperationResult::PushConfig(config) => push_config_to(config),
        OperationResult::PushConfigs(configs) => configs.iter().map(push_config_to).collect(),
        OperationResult::Done => Value::Null,
    }
}

/// An event, for a client that speaks 0.3.
pub fn event(event: &StreamResponse) -> Value {
    match event {
        StreamResponse::Task(task) => task_to(json!(task)),
        StreamResponse::Message(message) => message_to(json!(message)),
        StreamResponse::StatusUpdate(update) => {
            let state = update.status.state;
            let mut object = json!(update);
            object["kind"] = json!("status-update");
            object["final"] = json!(state.is_terminal() || state.is_interrupted());
            object["status"] = status_to(object["status"].take());
            object
        }
        StreamResponse::ArtifactUpdate(update) => {
            let mut object = json!(update);
            object["kind"] = json!("artifact-update");
            object["artifact"] = parts_to(object["artifact"].take());
            object
        }
    }
}

/// An answer or an event of an agent that speaks 0.3.
pub fn read_event(event: Value) -> Result<StreamResponse, String> {
    let kind = event["kind"].as_str().unwrap_or_default().to_owned();
    let (name, event) = match kind.as_str() {
        "task" => ("task", task_from(event)),
        "message" => ("message", message_from(event)),
        "status-update" => {
            let mut event = event;
            event["status"] = status_from(event["status"].take());
            ("statusUpdate", event)
        }
        "artifact-update" => {
            let mut event = without_nulls(event);
            event["artifact"] = parts_from(event["artifact"].take());
            ("artifactUpdate", event)
        }
        _ => return Err("it is neither a task nor a message".to_owned()),
    };
    serde_json::from_value(json!({ name: event })).map_err(|error| error.to_string())
}

fn task_to(mut task: Value) -> Value {
    task["kind"] = json!("task");
    task["status"] = status_to(task["status"].take());
    each(&mut task, "artifacts", parts_to);
    each(&mut task, "history", message_to);
    task
}

fn task_from(task: Value) -> Value {
    let mut task = without_nulls(task);
    task["status"] = status_from(task["status"].take());
    each(&mut task, "artifacts", parts_from);
    each(&mut task, "history", message_from);
    task
}

fn status_to(mut status: Value) -> Value {
    respell(&mut status["state"], &STATES.map(|(new, old)| (new, old)));
    if status.get("message").is_some() {
        status["message"] = message_to(status["message"].take());
    }
    status
}

fn status_from(status: Value) -> Value {
    let mut status = without_nulls(status);
    if !status.is_object() {
        return status;
    }
    respell(&mut status["state"], &STATES.map(|(new, old)| (old, new)));
    if status.get("message").is_some() {
        status["message"] = message_from(status["message"].take());
    }
    status
}

fn message_to(message: Value) -> Value {
    let mut message = parts_to(message);
    message["kind"] = json!("message");
    respell(
        &mut message["role"],
        &[("ROLE_USER", "user"), ("ROLE_AGENT", "agent")],
    );
    message
}

fn message_from(message: Value) -> Value {
    let mut message = parts_from(without_nulls(message));
    if message.is_object() {
        respell(
            &mut message["role"],
            &[("user", "ROLE_USER"), ("agent", "ROLE_AGENT")],
        );
    }
    message
}

fn parts_to(mut holder: Value) -> Value {
    each(&mut holder, "parts", part_to);
    holder
}

fn parts_from(holder: Value) -> Value {
    let mut holder = without_nulls(holder);
    each(&mut holder, "parts", part_from);
    holder
}

fn part_to(mut part: Value) -> Value {
    let metadata = part["metadata"].take();
    let mut older = if let Some(text) = part.get("text") {
        json!({"kind": "text", "text": text})
    } else if let Some(data) = part.get("data") {
        match data.is_object() {
            true => json!({"kind": "data", "data": data}),
            false => json!({"kind": "data", "data": {"value": data}}),
        }
    } else {
        let (field, content) = match part.get("raw") {
            Some(raw) => ("bytes", raw),
            None => ("uri", &part["url"]),
        };
        let file = json!({field: content, "name": part["filename"], "mimeType": part["mediaType"]});
        json!({"kind": "file", "file": without_nulls(file)})
    };
    if !metadata.is_null() {
        older["metadata"] = metadata;
    }
    older
}

fn part_from(part: Value) -> Value {
    let mut newer = Map::new();
    let mut take = |name: &str, value: &Value| {
        if !value.is_null() {
            newer.insert(name.to_owned(), value.clone());
        }
    };
    take("metadata", &part["metadata"]);
    match part["kind"].as_str() {
        Some("text") => take("text", &part["text"]),
        Some("data") => take("data", &part["data"]),
        Some("file") => {
            let file = &part["file"];
            take("raw", &file["bytes"]);
            take("url", &file["uri"]);
            take("filename", &file["name"]);
            take("mediaType", &file["mimeType"]);
        }
        _ => {}
    }
    Value::Object(newer)
}

fn push_config_to(config: &PushConfig) -> Value {
    let authentication = config.authentication.as_ref().map(|authentication| {
        json!({"schemes": [authentication.scheme], "credentials": authentication.credentials})
    });
    let inner = json!({
        "id": config.id,
        "url": config.url,
        "token": config.token,
        "authentication": authentication,
    });
    json!({"taskId": config.task_id, "pushNotificationConfig": without_nulls(inner)})
}

fn push_config_from(config: Value) -> Value {
    let mut config = without_nulls(config);
    if let Some(authentication) = config.get_mut("authentication") {
        let schemes = authentication["schemes"].as_array();
        let scheme = schemes.and_then(|schemes| schemes.first()).cloned();
        *authentication = without_nulls(json!({
            "scheme": scheme,
            "credentials": authentication["credentials"],
        }));
    }
    config
}

fn each(holder: &mut Value, field: &str, rewrite: impl Fn(Value) -> Value) {
    if let Some(Value::Array(items)) = holder.get_mut(field) {
        for item in items {
            *item = rewrite(item.take());
        }
    }
}

fn respell(word: &mut Value, spellings: &[(&str, &str)]) {
    let known = spellings.iter().find(|(from, _)| word == from);
    if let Some((_, to)) = known {
        *word = json!(to);
    }
}

fn rename(fields: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = fields.remove(from) {
        fields.insert(to.to_owned(), value);
    }
}

/// Programs of 0.3 write what is absent as null.
fn without_nulls(mut value: Value) -> Value {
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, field| !field.is_null());
    }
    value
}
