//! Callers of every kind, and the replies they get.

use super::{DEADLINE, Events, TestServer};
use reqwest::{Method, header::HeaderMap, redirect};
use serde_json::{Value, json};
use std::{
    future::IntoFuture,
    pin::Pin,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

/// Whoever calls the server: a token or none, from inside or outside.
#[derive(Clone)]
pub struct Caller {
    http: reqwest::Client,
    base_url: String,
    token: Option<String>,
    from: Option<String>,
    id: String,
}

impl Caller {
    pub(super) fn new(base_url: &str) -> Self {
        let http = reqwest::Client::builder()
            .no_proxy()
            // Nothing here is encrypted, and reading the machine's certificates takes a while.
            .tls_certs_only([])
            .redirect(redirect::Policy::none())
            .build();
        Self {
            http: http.unwrap(),
            base_url: base_url.to_owned(),
            token: None,
            from: None,
            id: String::new(),
        }
    }

    /// The same caller with another token.
    pub fn with_token(&self, token: &str) -> Self {
        Self {
            token: Some(token.to_owned()),
            ..self.clone()
        }
    }

    /// The same caller from this address.
    pub fn from(&self, address: &str) -> Self {
        Self {
            from: Some(address.to_owned()),
            ..self.clone()
        }
    }

    /// The same caller from the public internet.
    pub fn seen_from_outside(&self) -> Self {
        self.from("203.0.113.9")
    }

    /// The same caller, talking to the server where it listens now.
    pub fn at(&self, server: &TestServer) -> Self {
        Self {
            base_url: server.base_url().to_owned(),
            ..self.clone()
        }
    }

    pub(super) fn known_as(mut self, id: &str) -> Self {
        self.id = id.to_owned();
        self
    }

    /// Who this is.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The token, if there is one.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    pub fn get(&self, path: impl AsRef<str>) -> Request {
        self.request(Method::GET, path.as_ref())
    }

    pub fn delete(&self, path: impl AsRef<str>) -> Request {
        self.request(Method::DELETE, path.as_ref())
    }

    /// A POST without a body.
    pub fn post_nothing(&self, path: impl AsRef<str>) -> Request {
        self.request(Method::POST, path.as_ref())
    }

    pub fn post(&self, path: impl AsRef<str>, body: Value) -> Request {
        self.request(Method::POST, path.as_ref()).json(&body)
    }

    pub fn put(&self, path: impl AsRef<str>, body: Value) -> Request {
        self.request(Method::PUT, path.as_ref()).json(&body)
    }

    pub fn patch(&self, path: impl AsRef<str>, body: Value) -> Request {
        self.request(Method::PATCH, path.as_ref()).json(&body)
    }

    /// Any request at all.
    pub fn request(&self, method: Method, path: &str) -> Request {
        let mut request = self
            .http
            .request(method, format!("{}{path}", self.base_url));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(from) = &self.from {
            request = request.header("x-forwarded-for", from);
        }
        Request(request)
    }

    // What tests arrange most.

    /// A private room of this user's; its id.
    pub async fn creates_a_room(&self) -> String {
        self.creates_a_room_with(json!({"name": "strategy-sync"}))
            .await
    }

    /// A public room of this user's; its id.
    pub async fn creates_a_public_room(&self) -> String {
        self.creates_a_room_with(json!({"name": "open-startups", "visibility": "public"}))
            .await
    }

    async fn creates_a_room_with(&self, body: Value) -> String {
        let room = self.post("/rooms", body).await.created();
        room["room_id"].as_str().unwrap().to_owned()
    }

    /// An invite to this owner's room; its code.
    pub async fn invites(&self, room: &str) -> String {
        self.invites_with(room, json!({})).await
    }

    /// An invite with these particulars; its code.
    pub async fn invites_with(&self, room: &str, body: Value) -> String {
        let invite = self.post(format!("/rooms/{room}/invites"), body).await;
        invite.created()["invite_code"].as_str().unwrap().to_owned()
    }

    /// An external agent joins this owner's room.
    pub async fn lets_in(&self, room: &str, agent: &str) -> Agent {
        let code = self.invites(room).await;
        self.anonymous().joins(room, &code, agent).await
    }

    /// A person joins this owner's room with an invite alone.
    pub async fn lets_in_a_person(&self, room: &str, user: &str) -> Agent {
        let code = self.invites(room).await;
        let body = json!({"invite_code": code, "adapter_type": "pull", "client_kind": "human",
                          "user_id": user});
        Agent::new(
            self,
            self.anonymous().post(join(room), body).await.created(),
        )
    }

    /// A Starchild user joins this owner's room as a person.
    pub async fn lets_in_user(&self, room: &str, user: &Caller) {
        let code = self.invites(room).await;
        let body = json!({"invite_code": code, "adapter_type": "pull"});
        user.post(join(room), body).await.created();
    }

    /// Joins as an external agent that reads for itself.
    pub async fn joins(&self, room: &str, invite_code: &str, agent: &str) -> Agent {
        let body = json!({"invite_code": invite_code, "adapter_type": "pull", "user_id": agent});
        Agent::new(self, self.post(join(room), body).await.created())
    }

    /// The holder of a fresh room key of this user's.
    pub async fn viewer(&self, room: &str) -> Caller {
        self.viewer_with(room, "view+post").await
    }

    /// The holder of a fresh room key of this user's with this scope.
    pub async fn viewer_with(&self, room: &str, scope: &str) -> Caller {
        let body = json!({"for_user_id": self.id, "scope": scope});
        let key = self.post(format!("/rooms/{room}/room-keys"), body).await;
        self.with_token(key.created()["token"].as_str().unwrap())
    }

    /// Posts this text; its seq.
    pub async fn says(&self, room: &str, content: &str) -> i64 {
        self.says_this(room, json!({"content": content})).await
    }

    /// Posts this; its seq.
    pub async fn says_this(&self, room: &str, message: Value) -> i64 {
        let posted = self.post(format!("/rooms/{room}/messages"), message).await;
        posted.created()["seq"].as_i64().unwrap()
    }

    /// One message, as this caller sees it.
    pub async fn reads(&self, room: &str, seq: i64) -> Value {
        let since = seq - 1;
        let path = format!("/rooms/{room}/messages?since={since}&limit=1");
        let mut page = self.get(path).await.ok();
        let message = page["messages"][0].take();
        assert_eq!(message["seq"], seq);
        message
    }

    /// Everything said in the room after `since`, system messages left out.
    pub async fn hears(&self, room: &str, since: i64) -> Vec<String> {
        let path = format!("/rooms/{room}/messages?since={since}&limit=200");
        let page = self.get(path).await.ok();
        let messages = page["messages"].as_array().unwrap().iter();
        messages
            .filter(|message| message["type"] == "chat")
            .map(|message| message["content"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The room's newest seq.
    pub async fn latest_seq(&self, room: &str) -> i64 {
        let page = self.get(format!("/rooms/{room}/messages?limit=1")).await;
        page.ok()["latest_seq"].as_i64().unwrap()
    }

    /// One member, as this caller sees it.
    pub async fn sees_member(&self, room: &str, user: &str) -> Option<Value> {
        let list = self.get(format!("/rooms/{room}/members")).await.ok();
        let mut members = list["members"].as_array().unwrap().iter();
        members.find(|member| member["user_id"] == user).cloned()
    }

    /// What the owner's audit log holds: actor, action and target of each line.
    pub async fn audits(&self, room: &str) -> Vec<(String, String, Value)> {
        let log = self.get(format!("/rooms/{room}/audit")).await.ok();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let entries = log["entries"].as_array().unwrap().iter();
        entries
            .map(|e| (text(&e["actor"]), text(&e["action"]), e["target"].clone()))
            .collect()
    }

    /// Opens the room's stream from now on; waits until it is open.
    pub async fn listens(&self, room: &str) -> Events {
        self.listens_with(room, "").await
    }

    /// The same with a query.
    pub async fn listens_with(&self, room: &str, query: &str) -> Events {
        let request = self.get(format!("/rooms/{room}/stream{query}"));
        let mut events = Events::open(request).await;
        let first = events.next().await;
        let cursor = json!({"cursor": first.id}).to_string();
        let opened = (first.event.as_deref(), first.data.as_deref());
        assert_eq!(opened, (Some("ready"), Some(cursor.as_str())));
        events
    }

    /// Opens the room's stream from a cursor on.
    pub async fn resumes(&self, room: &str, cursor: &str) -> Events {
        let request = self.get(format!("/rooms/{room}/stream"));
        Events::open(request.header("last-event-id", cursor)).await
    }

    fn anonymous(&self) -> Self {
        Self {
            token: None,
            id: String::new(),
            ..self.clone()
        }
    }
}

/// An id for an external agent of this name that no other test has.
pub fn agent_id(name: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{name}-{:08x}", COUNT.fetch_add(1, Ordering::Relaxed))
}

fn join(room: &str) -> String {
    format!("/rooms/{room}/join")
}

/// A member who came with an invite alone.
#[derive(Clone)]
pub struct Agent {
    /// Calls with the member token, if there is one.
    pub caller: Caller,
    /// What the server answered to the join.
    pub joined: Value,
}

impl Agent {
    fn new(like: &Caller, joined: Value) -> Self {
        let user = joined["user_id"].as_str().unwrap();
        let mut caller = like.anonymous().known_as(user);
        caller.token = joined["member_token"].as_str().map(str::to_owned);
        Self { caller, joined }
    }

    /// Who this is from now on.
    pub fn id(&self) -> &str {
        self.caller.id()
    }

    /// The same agent with its identity token.
    pub fn identity(&self) -> Caller {
        self.caller
            .with_token(self.joined["identity_token"].as_str().unwrap())
    }
}

impl std::ops::Deref for Agent {
    type Target = Caller;
    fn deref(&self) -> &Caller {
        &self.caller
    }
}

/// A request that is sent when it is awaited.
pub struct Request(pub(super) reqwest::RequestBuilder);

impl Request {
    pub fn header(self, name: &str, value: &str) -> Self {
        Self(self.0.header(name, value))
    }

    pub fn json(self, body: &Value) -> Self {
        Self(self.0.json(body))
    }

    /// A body as it is, without a content type.
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self(self.0.body(body.into()))
    }

    /// Sends it and waits for the head of the answer alone: a stream has no end to wait for.
    pub async fn opens(self) -> Result<(), Reply> {
        let reply = tokio::time::timeout(DEADLINE, self.0.send());
        let reply = reply.await.expect("an answer in time").unwrap();
        match reply.status().as_u16() {
            200 => Ok(()),
            _ => Err(Reply::read(reply).await.unwrap()),
        }
    }

    /// Sends it and gives whatever comes, a broken connection included.
    pub async fn attempt(self) -> Result<Reply, reqwest::Error> {
        Reply::read(self.0.timeout(DEADLINE).send().await?).await
    }
}

impl IntoFuture for Request {
    type Output = Reply;
    type IntoFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async { self.attempt().await.unwrap() })
    }
}

/// What the server answered.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    body: Vec<u8>,
    parsed: OnceLock<Value>,
}

impl Reply {
    async fn read(reply: reqwest::Response) -> Result<Self, reqwest::Error> {
        Ok(Self {
            status: reply.status().as_u16(),
            headers: reply.headers().clone(),
            body: reply.bytes().await?.to_vec(),
            parsed: OnceLock::new(),
        })
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The body as it is.
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> &Value {
        self.parsed.get_or_init(|| {
            let kind = self.header("content-type");
            let kinds = ["application/json", "application/a2a+json"];
            assert!(kind.is_some_and(|kind| kinds.contains(&kind)), "{self:?}");
            serde_json::from_slice(&self.body).unwrap()
        })
    }

    /// The body of a 200.
    #[track_caller]
    pub fn ok(self) -> Value {
        self.expect(200)
    }

    /// The body of a 201.
    #[track_caller]
    pub fn created(self) -> Value {
        self.expect(201)
    }

    #[track_caller]
    fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json().clone()
    }

    /// Checks that it is this error and well formed; gives its message.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> String {
        let (is, error) = (self.status, self.error());
        assert_eq!((is, error), (status, code), "{}", self.text());
        self.json()["message"].as_str().unwrap().to_owned()
    }

    /// The code of an error, after checking that its body is as every error's is.
    #[track_caller]
    pub fn error(&self) -> &str {
        let body = self.json().as_object().unwrap();
        let mut fields: Vec<&str> = body.keys().map(String::as_str).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["error", "message"], "{}", self.text());
        assert!(!body["message"].as_str().unwrap().is_empty());
        if self.status == 429 {
            let seconds = self.header("retry-after").expect("Retry-After");
            assert!(seconds.parse::<u64>().unwrap() > 0, "{seconds}");
        }
        body["error"].as_str().unwrap()
    }
}
