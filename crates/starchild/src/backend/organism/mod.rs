//! An organism of ours, from its `organism.yaml`: its room gateway turns messages into payloads and
//! answers into posts. Each thread of the room is a conversation of its own.

mod answers;
mod payload;
mod progress;
mod remarks;

use super::{Backend, BackendError, Call, Inbound, Remark, Reply, config::BackendConfig};
use crate::organism::{
    config::{File, load},
    gateway::{Connected, GatewayKind, room::RoomGatewayFile},
};
use agentserver::{Conversation, Delivered, Pump, SendError, system};
use answers::StoredAnswers;
use futures_util::future::BoxFuture;
use progress::Calls;
use remarks::{Remarks, ToRooms};
use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::OnceCell;

/// What the organism keeps of its rooms, in the agent's folder.
const STATE: &str = "organism";
/// Threads of rooms that are open at once; the one that was silent longest is closed first.
const MAX_OPEN: usize = 1000;
/// How long to wait until one that could not be started is started again.
const START_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// An organism with a conversation for each thread.
pub struct Organism {
    file: PathBuf,
    state: PathBuf,
    timeout: Duration,
    /// Whether it says something by itself.
    has_schedule: bool,
    started: OnceCell<Started>,
}

/// The organism as it runs.
struct Started {
    pump: Pump,
    gateway: String,
    room: RoomGatewayFile,
    calls: Calls,
    /// The latest used last.
    open: Mutex<VecDeque<Arc<Conversation>>>,
    remarks: Remarks,
    _schedules: Connected,
}

impl Organism {
    /// Reads `organism:` of the configuration, and checks what can be checked without starting it.
    pub fn new(config: &BackendConfig, folder: &Path) -> Result<Self, BackendError> {
        let file = config.organism.as_deref();
        let file = folder.join(file.unwrap_or(Path::new("organism.yaml")));
        let missing = |what: String| BackendError::Missing {
            what,
            hint: "mend organism.yaml; starchild organism check FILE says more".into(),
        };
        let loaded = load(&file);
        let (read, organism) = loaded.map_err(|error| missing(error.to_string()))?;
        let (gateway, room) = room_gateway(&read).map_err(missing)?;
        payload::check(&organism.offers(&gateway), &room).map_err(missing)?;
        let is_schedule = |kind: &GatewayKind| matches!(kind, GatewayKind::Schedule(_));
        Ok(Self {
            file,
            state: folder.join(STATE),
            timeout: config.timeout(),
            has_schedule: read.gateways.iter().any(|one| is_schedule(&one.kind)),
            started: OnceCell::new(),
        })
    }

    async fn start(&self) -> Result<Started, BackendError> {
        let failed = |error: &dyn std::fmt::Display| BackendError::Unavailable(error.to_string());
        let loaded = load(&self.file);
        let (file, organism) = loaded.map_err(|error| failed(&error))?;
        let (gateway, room) = room_gateway(&file).map_err(|error| failed(&error))?;
        let journal = self.state.join("journal");
        let calls = Calls::default();
        let mut settings = file.settings();
        settings.trace = Some(calls.listen());
        let limits = settings.xml;
        let pump = Pump::start_durable(organism, settings, &journal);
        let pump = pump.map_err(|error| failed(&error))?;
        let remarks = Remarks::open(&self.state).map_err(|error| failed(&error))?;
        let to_rooms = ToRooms {
            pump: pump.clone(),
            remarks: remarks.clone(),
        };
        let schedules = Connected::schedules(&file, &pump, limits, to_rooms);
        let open = pump.recovered(&gateway).into_iter().map(Arc::new);
        Ok(Started {
            open: Mutex::new(open.collect()),
            pump,
            gateway,
            room,
            calls,
            remarks,
            _schedules: schedules.map_err(|error| failed(&error))?,
        })
    }

    /// What it says by itself in a room.
    async fn remark(&self, room_name: &str) -> Remark {
        if !self.has_schedule {
            return std::future::pending().await;
        }
        loop {
            match self.started.get_or_try_init(|| self.start()).await {
                Ok(started) => return started.remarks.next(room_name).await,
                Err(error) => tracing::error!(%error, "the organism does not start"),
            }
            tokio::time::sleep(START_AGAIN_AFTER).await;
        }
    }

    async fn ask(&self, inbound: &Inbound, call: &Call) -> Result<Reply, BackendError> {
        let started = self.started.get_or_try_init(|| self.start()).await?;
        let name = thread_name(inbound).await?;
        let conversation = started.conversation(&name).map_err(unsent)?;
        let _followed = started.calls.follow(conversation.thread(), call);
        let offers = started.pump.organism().offers(&started.gateway);
        let sent = payload::of_message(&offers, &started.room, inbound);
        let (to, xml) = sent.map_err(BackendError::Failed)?;
        let seq = inbound.message.seq;
        // Asked again after a crash, the organism works on it once.
        let key = format!("{seq}");
        let accepted = conversation.send_once(&key, to.as_deref(), &xml).await;
        accepted.map_err(unsent)?;
        let mut answers = StoredAnswers::open(&self.state.join("answers"), &name, seq);
        let reading = async {
            while let Some(answer) = conversation.next().await {
                // On the disk before the organism may forget it.
                answers.add(answer.id.to_string(), started.words(&answer))?;
                call.report_whole_text(&answers.text());
            }
            Ok::<_, crate::home::FileError>(())
        };
        let read = tokio::time::timeout(self.timeout, reading).await;
        let read = read.map_err(|_| BackendError::TimedOut(self.timeout))?;
        read.map_err(|error| BackendError::Unavailable(error.to_string()))?;
        answers.reply()
    }
}

impl Backend for Organism {
    fn answer<'a>(
        &'a self,
        inbound: &'a Inbound,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Reply, BackendError>> {
        Box::pin(self.ask(inbound, call))
    }

    fn next_remark<'a>(&'a self, room_name: &'a str) -> BoxFuture<'a, Remark> {
        Box::pin(self.remark(room_name))
    }

    fn remark_is_dealt_with(&self, room_name: &str, remark: &Remark) {
        if let Some(started) = self.started.get()
            && let Err(error) = started.remarks.remove(room_name, &remark.id)
        {
            tracing::error!(%error, "what was said is still kept");
        }
    }
}

impl Started {
    /// The conversation with this name, open already or new.
    fn conversation(&self, name: &str) -> Result<Arc<Conversation>, SendError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let known = open.iter().position(|one| one.name() == Some(name));
        let conversation = match known.and_then(|at| open.remove(at)) {
            Some(conversation) => conversation,
            None => Arc::new(self.pump.open_named(&self.gateway, name)?),
        };
        if open.len() >= MAX_OPEN {
            open.pop_front();
        }
        open.push_back(conversation.clone());
        Ok(conversation)
    }

    /// What an answer says to people, or what went wrong.
    fn words(&self, answer: &Delivered) -> Result<String, String> {
        let is_fault = *answer.from == *system::NAME;
        let words = payload::words(&self.pump.organism(), &answer.payload);
        if is_fault { Err(words) } else { Ok(words) }
    }
}

/// The one gateway that is a room.
fn room_gateway(file: &File) -> Result<(String, RoomGatewayFile), String> {
    let mut rooms = file
        .gateways
        .iter()
        .filter_map(|gateway| match &gateway.kind {
            GatewayKind::Room(room) => Some((gateway.name.value.clone(), room.clone())),
            _ => None,
        });
    match (rooms.next(), rooms.next()) {
        (Some(room), None) => Ok(room),
        (None, _) => Err("it has no gateway of the kind room, e.g. \
             {name: room, peers: [triage], kind: {room: {payload: Question}}}"
            .into()),
        _ => Err("it has more than one gateway of the kind room".into()),
    }
}

/// A thread of a room: its first message tells it from others.
async fn thread_name(inbound: &Inbound) -> Result<String, BackendError> {
    let message = &inbound.message;
    let mut root = message.seq;
    if message.reply_to_seq.is_some() {
        let thread = inbound.client.thread(&inbound.room_id, message.seq).await;
        let thread = thread.map_err(|error| BackendError::Unavailable(error.to_string()))?;
        root = thread.thread.first().map_or(root, |first| first.seq);
    }
    Ok(format!("{}-{root}", inbound.room_name))
}

fn unsent(error: SendError) -> BackendError {
    match error {
        SendError::Refused(payload) => BackendError::Failed(payload.xml().to_owned()),
        error => BackendError::Unavailable(error.to_string()),
    }
}
