//! What a server may ask of us while it works: the model, the person, the
//! folders we work in. All of it goes through the approval policy.

#![allow(
    deprecated,
    reason = "sampling and roots leave the protocol one day, and servers use them today"
)]

use crate::approval::{Approval, Decision, Form, Ruling, SessionGrants};
use crate::provider::{Context, Provider};
use crate::segment::{ContentSegment, Media, Message, Role, StopReason, ToolCall};
use crate::tool::args::Checker;
use crate::tool::{Progress, Risk, ToolSpec};
use rmcp::ErrorData;
use rmcp::RoleClient;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, Implementation, ListRootsResult,
    ProgressNotificationParam, Root, SamplingMessage, SamplingMessageContentBlock,
};
use rmcp::service::{NotificationContext, RequestContext};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How often a call that waits says so.
const STILL_WAITING: Duration = Duration::from_secs(1);
const MAX_MESSAGES: usize = 200;
const MAX_FORM: usize = 64 << 10;
/// How often a person is asked for a form whose values do not fit.
const FORM_TRIES: usize = 3;

/// What servers are given.
#[derive(Clone, Default)]
pub struct McpHost {
    /// Who decides about what they ask for.
    pub approval: Approval,
    /// The model they may ask; none when it is left out.
    pub provider: Option<Arc<dyn Provider>>,
    /// The folders that the agent works in.
    pub roots: Vec<PathBuf>,
}

/// The calls of a server that are under way.
#[derive(Clone, Default)]
pub(super) struct InFlight(Arc<Mutex<Vec<InFlightCall>>>);

struct InFlightCall {
    number: u64,
    session: String,
    progress: Progress,
}

/// A call that is under way until this is dropped.
pub(super) struct InFlightGuard {
    calls: InFlight,
    number: u64,
}

impl InFlight {
    pub(super) fn begin(&self, session: &str, progress: &Progress) -> InFlightGuard {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = calls.last().map_or(0, |last| last.number + 1);
        calls.push(InFlightCall {
            number,
            session: session.into(),
            progress: progress.clone(),
        });
        InFlightGuard {
            calls: self.clone(),
            number,
        }
    }

    /// The library gives each request its token without telling, so that a sign
    /// of life counts for all calls of the server.
    fn tell(&self, text: &str) {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.iter().for_each(|call| call.progress.tell(text));
    }

    fn session(&self) -> String {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = calls.last().map(|call| call.session.clone());
        last.unwrap_or_else(|| "mcp".into())
    }

    /// Waits for a person, and says so meanwhile.
    async fn waiting<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        while_waiting(work, || self.tell(what)).await
    }
}

/// Waits for something that has a limit of its own, with signs of life.
pub(super) async fn while_waiting<T>(work: impl Future<Output = T>, tell: impl Fn()) -> T {
    tokio::pin!(work);
    loop {
        match tokio::time::timeout(STILL_WAITING, &mut work).await {
            Ok(done) => return done,
            Err(_) => tell(),
        }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let mut calls = self.calls.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|call| call.number != self.number);
    }
}

/// Answers one server.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) server: String,
    pub(super) host: McpHost,
    pub(super) calls: InFlight,
    /// The server's tools changed.
    pub(super) changed: Arc<Notify>,
    pub(super) grants: SessionGrants,
}

impl Handler {
    /// Whether the server may do this. The rules know it as a tool of the server.
    async fn may(&self, what: &str, args: Value) -> Result<(), ErrorData> {
        let name = format!("mcp__{}__{what}", self.server);
        let spec = ToolSpec::new(&name, "", Risk::Destructive, json!({}));
        let call = ToolCall::new(uuid::Uuid::new_v4(), &name, args);
        let approval = &self.host.approval;
        let session = self.calls.session();
        let decided = approval.decide_without_tool(&session, &call, &spec, &self.grants);
        match self.calls.waiting("waiting for your answer", decided).await {
            Decision::Run => Ok(()),
            Decision::Deny(why) => Err(ErrorData::invalid_request(why, None)),
        }
    }

    /// What the rules say before anyone is asked; a form is a question itself.
    fn may_ask(&self) -> bool {
        let name = format!("mcp__{}__elicitation", self.server);
        let spec = ToolSpec::new(&name, "", Risk::Destructive, json!({}));
        let ruling = self.host.approval.policy.ruling(&spec, &json!({}), &[]);
        !matches!(ruling, Ruling::Deny(_))
    }

    async fn sample(
        &self,
        params: CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, ErrorData> {
        let Some(provider) = &self.host.provider else {
            return Err(ErrorData::invalid_request("there is no model here", None));
        };
        if params.messages.len() > MAX_MESSAGES {
            let why = format!("over {MAX_MESSAGES} messages");
            return Err(ErrorData::invalid_params(why, None));
        }
        let messages = params.messages.into_iter().map(message);
        let messages = messages.collect::<Result<Vec<Message>, _>>()?;
        let context = Context {
            system: params.system_prompt.unwrap_or_default(),
            messages,
            max_output: Some(u64::from(params.max_tokens)).filter(|most| *most > 0),
            ..Context::default()
        };
        let shown: Vec<Value> = context
            .messages
            .iter()
            .map(|message| json!({ "role": message.role, "text": crate::segment::joined_text(&message.segments) }))
            .collect();
        let args = json!({ "system": context.system, "messages": shown });
        self.may("sampling", args).await?;
        let asked = provider.generate("", &context);
        let reply = self.calls.waiting("the server asks the model", asked).await;
        let reply = reply.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let stop = match reply.metadata.stop_reason {
            Some(StopReason::MaxTokens | StopReason::ContextFull) => {
                CreateMessageResult::STOP_REASON_END_MAX_TOKEN
            }
            Some(
                stop
                @ (StopReason::Refusal | StopReason::ContentFilter | StopReason::BlockedPrompt),
            ) => {
                let why = format!("the model gave no answer: {stop}");
                return Err(ErrorData::internal_error(why, None));
            }
            _ => CreateMessageResult::STOP_REASON_END_TURN,
        };
        let model = reply.metadata.model.clone();
        let said = SamplingMessage::assistant_text(reply.text());
        let model = model.unwrap_or_else(|| provider.name().to_owned());
        Ok(CreateMessageResult::new(said, model).with_stop_reason(stop))
    }

    async fn elicit(&self, request: ElicitRequestParams) -> ElicitResult {
        let declined = ElicitResult::new(ElicitationAction::Decline);
        let ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } = request
        else {
            return declined;
        };
        let Ok(schema) = serde_json::to_value(&requested_schema) else {
            return declined;
        };
        if !self.may_ask() || schema.to_string().len() > MAX_FORM {
            return declined;
        }
        let Ok(checker) = Checker::new(&schema) else {
            return declined;
        };
        let message = crate::pain::excerpt(&message, 4096);
        let mut form = Form {
            server: self.server.clone(),
            message: message.into(),
            schema,
        };
        for _ in 0..FORM_TRIES {
            let filled = self.host.approval.gate.fill_in(&form);
            let filled = self.calls.waiting("waiting for your answer", filled).await;
            let Some(values) = filled else {
                return declined;
            };
            match checker.check(&values) {
                Ok(()) => return ElicitResult::new(ElicitationAction::Accept).with_content(values),
                // What was typed is not lost without a word.
                Err(why) => form.message = format!("{message}\nOnce more, please: {why}"),
            }
        }
        ElicitResult::new(ElicitationAction::Cancel)
    }
}

fn message(message: SamplingMessage) -> Result<Message, ErrorData> {
    let role = match message.role {
        rmcp::model::Role::User => Role::User,
        rmcp::model::Role::Assistant => Role::Assistant,
    };
    let segment = |block| match block {
        SamplingMessageContentBlock::Text(text) => Ok(ContentSegment::text(text.text)),
        SamplingMessageContentBlock::Image(image) => Ok(ContentSegment::Image(Media::base64(
            image.mime_type,
            image.data,
        ))),
        SamplingMessageContentBlock::Audio(audio) => Ok(ContentSegment::Audio(Media::base64(
            audio.mime_type,
            audio.data,
        ))),
        _ => Err(ErrorData::invalid_params("tools are not offered", None)),
    };
    let blocks = message.content.into_vec().into_iter();
    Ok(Message {
        role,
        segments: blocks.map(segment).collect::<Result<_, _>>()?,
    })
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut can = ClientCapabilities::default();
        can.roots = Some(Default::default());
        can.elicitation = Some(Default::default());
        can.sampling = self.host.provider.as_ref().map(|_| Default::default());
        let me = Implementation::new("openstarry", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(can, me)
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.sample(params).await
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.elicit(request).await)
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let roots = self.host.roots.iter();
        let uris =
            roots.filter_map(|root| url::Url::from_file_path(root.canonicalize().ok()?).ok());
        let roots = uris.map(|uri| Root::new(uri.to_string()).with_name("workspace"));
        Ok(ListRootsResult::new(roots.collect()))
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let so_far = match progress.total {
            Some(total) => format!("{} of {total}", progress.progress),
            None => progress.progress.to_string(),
        };
        let words = progress.message.as_deref().unwrap_or_default();
        let words = crate::pain::excerpt(words, 200);
        self.calls.tell(format!("{so_far} {words}").trim());
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}
