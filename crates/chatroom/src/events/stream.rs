//! One reader's stream: the log up to now, then what is published, with signs of life.

use super::{
    at_work::AtWork,
    frame::{Form, FrameBuffer, Frames, HEARTBEAT, ephemeral},
    hub::{Audience, ConnectionCut, Ephemeral, Hub, Subscription},
    replay::{self, Start},
    ring::RingRead,
    users::{UserEvent, UserEvents},
};
use crate::{
    auth::{self, ReadRight, denylist::Denylist},
    clock::Now,
    error::{Error, Result},
    store::Db,
};
use bytes::Bytes;
use futures_util::{Stream, stream};
use protocol::{Cursor, EventKind, InboxMoved, RoomId};
use std::{net::IpAddr, pin::Pin, sync::Arc, time::Duration};
use tokio::{
    sync::broadcast::{
        self,
        error::{RecvError, TryRecvError},
    },
    time::{Instant, Sleep},
};

/// Who reads, and by what right.
#[derive(Debug, Clone)]
pub struct Reader {
    pub right: ReadRight,
    /// When the room key ends, where it is one, in unix seconds.
    pub expires_at: Option<i64>,
    pub ip: IpAddr,
    pub denylist: Arc<Denylist>,
    /// Whether this is the user itself, and not whoever was given a key of theirs.
    pub is_oneself: bool,
}

impl Reader {
    /// Whether the reader may still read.
    async fn still_allowed(&self, db: &Db) -> Result<bool> {
        if self.denylist.bans_address(self.ip) {
            return Ok(false);
        }
        let mut conn = db.read().await?;
        let right = &self.right;
        Ok(right
            .still_holds(&self.denylist, &mut conn, Now::get())
            .await?)
    }

    fn expired(&self) -> bool {
        self.expires_at
            .is_some_and(|end| end <= Now::get().seconds())
    }
}

/// How streams behave.
#[derive(Debug, Clone, Copy)]
pub struct StreamSettings {
    pub heartbeat: Duration,
    pub replay_limit: i64,
    /// Whether the reader wants to see how agents' answers grow.
    pub deltas: bool,
    /// In which form the reader wants the messages.
    pub form: Form,
}

struct State {
    reader: Reader,
    db: Db,
    subscription: Subscription,
    cursor: Cursor,
    /// The log is read up to here before the channel is looked at.
    log_until: Cursor,
    /// Whether the stream has caught up once: from then on it keeps up or is cut off.
    live: bool,
    form: Form,
    heartbeat: Duration,
    alarm: Pin<Box<Sleep>>,
    spoke_at: Instant,
    ephemerals: broadcast::Receiver<Ephemeral>,
    deltas: bool,
    /// What the user did elsewhere, and what happens in their other rooms.
    own: Option<UserEvents>,
    /// Sent before anything else.
    opening: Option<Frames>,
}

/// Opens a stream for a reader, from its cursor or from now.
pub async fn open(
    hub: &Arc<Hub>,
    at_work: &AtWork,
    db: &Db,
    reader: Reader,
    cursor: Option<Cursor>,
    settings: StreamSettings,
    cut: ConnectionCut,
) -> Result<impl Stream<Item = Frames> + Send + use<>> {
    // Subscribed before the room is read, so that no commit falls between the two.
    let subscription = hub.subscribe(&reader.right.room_id, &reader.right.user_id, cut);
    // And before the right to read is proven, so that no revocation does.
    if !reader.still_allowed(db).await? {
        return Err(auth::key_ended());
    }
    let room = db
        .read()
        .await?
        .room(&reader.right.room_id)
        .await?
        .ok_or_else(Error::room_not_found)?;
    // Before it is asked who is at work, so that nothing of that is missed.
    let ephemerals = subscription.listen();
    let own =
        (settings.deltas && reader.is_oneself).then(|| hub.users().listen(&reader.right.user_id));
    let mut opening = FrameBuffer::default();
    let cursor = match cursor.map(|cursor| replay::start(&room, cursor, settings.replay_limit)) {
        None => {
            opening.ready(room.head());
            room.head()
        }
        Some(Start::Resume(cursor)) => {
            opening.ready(cursor);
            cursor
        }
        Some(Start::Resync(frames, head)) => {
            opening.append(&frames, settings.form);
            head
        }
    };
    let working = at_work.snapshot(&reader.right.room_id, settings.deltas);
    opening.append(&working.into(), Form::Plain);
    let state = State {
        reader,
        db: db.clone(),
        subscription,
        cursor,
        log_until: room.head(),
        live: false,
        form: settings.form,
        heartbeat: settings.heartbeat,
        alarm: Box::pin(tokio::time::sleep(settings.heartbeat)),
        spoke_at: Instant::now(),
        ephemerals,
        deltas: settings.deltas,
        own,
        opening: Some(opening.finish()),
    };
    Ok(stream::unfold(state, |mut state| async move {
        let frames = state.next().await?;
        Some((frames, state))
    }))
}

/// The next ephemeral event, as soon as there is one.
async fn heard(ephemerals: &mut broadcast::Receiver<Ephemeral>) -> Ephemeral {
    loop {
        match ephemerals.recv().await {
            Ok(ephemeral) => return ephemeral,
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}

/// What the user is told next, for a reader who is told.
async fn own_event(own: &mut Option<UserEvents>) -> UserEvent {
    match own {
        Some(own) => own.next().await,
        None => std::future::pending().await,
    }
}

impl State {
    /// The next frames, or nothing once the stream is to end.
    async fn next(&mut self) -> Option<Frames> {
        if let Some(opening) = self.opening.take() {
            return Some(opening);
        }
        loop {
            if self.subscription.is_shutting_down()
                || self.reader.expired()
                || (self.subscription.must_recheck() && !self.recheck().await)
            {
                return None;
            }
            if self.cursor < self.log_until {
                return self.read_log().await;
            }
            match self.subscription.frames_after(self.cursor, self.form) {
                RingRead::Frames(frames, head) => {
                    self.spoke_at = Instant::now();
                    self.keep_up();
                    self.cursor = head;
                    return Some(self.after_ephemerals(frames));
                }
                RingRead::CutOff if self.live => return None,
                RingRead::ReadLog | RingRead::CutOff => return self.read_log().await,
                RingRead::UpToDate => self.keep_up(),
            }
            tokio::select! {
                biased;
                () = self.subscription.woken() => {}
                ephemeral = heard(&mut self.ephemerals) => {
                    if self.is_for_this_reader(&ephemeral) {
                        return Some(ephemeral.frame.into());
                    }
                }
                event = own_event(&mut self.own) => {
                    if let Some(frame) = self.frame_of(event) {
                        return Some(frame.into());
                    }
                }
                () = self.alarm.as_mut() => {
                    // Setting it anew with each frame would cost more than this.
                    let silent_for = self.spoke_at.elapsed();
                    let due = silent_for >= self.heartbeat;
                    let next = if due { self.heartbeat } else { self.heartbeat - silent_for };
                    self.alarm.as_mut().reset(Instant::now() + next);
                    if due && !self.reader.expired() {
                        self.spoke_at = Instant::now();
                        return Some(Bytes::from_static(HEARTBEAT).into());
                    }
                }
            }
        }
    }

    /// Ephemeral events from before these frames go before them: an answer is never followed by
    /// its own beginnings.
    fn after_ephemerals(&mut self, frames: Frames) -> Frames {
        let mut all = FrameBuffer::default();
        loop {
            match self.ephemerals.try_recv() {
                Ok(ephemeral) if self.is_for_this_reader(&ephemeral) => {
                    all.append(&ephemeral.frame.into(), Form::Plain);
                }
                Ok(_) | Err(TryRecvError::Lagged(_)) => {}
                Err(_) => break,
            }
        }
        if all.is_empty() {
            return frames;
        }
        all.append(&frames, self.form);
        all.finish()
    }

    fn is_for_this_reader(&self, ephemeral: &Ephemeral) -> bool {
        match &ephemeral.to {
            Audience::Readers => true,
            Audience::DeltaReaders => self.deltas,
            Audience::Member(user) => *user == self.reader.right.user_id,
        }
    }

    /// What the reader is told of it. The room that it reads tells for itself.
    fn frame_of(&self, event: UserEvent) -> Option<Bytes> {
        let rooms = match event {
            UserEvent::Frame(frame) => return Some(frame),
            UserEvent::Moved(rooms) => rooms,
        };
        let others = rooms
            .iter()
            .filter(|room| **room != self.reader.right.room_id);
        let room_ids: Vec<RoomId> = others.cloned().collect();
        let moved = InboxMoved { room_ids };
        (!moved.room_ids.is_empty()).then(|| ephemeral(EventKind::Inbox, &moved))
    }

    fn keep_up(&mut self) {
        if !self.live {
            self.live = true;
            self.subscription.live();
        }
    }

    // Both are rare, and their futures large: boxed, they cost an idle stream nothing.

    fn read_log(&mut self) -> Pin<Box<dyn Future<Output = Option<Frames>> + Send + '_>> {
        Box::pin(async {
            let mut conn = self.db.read().await.ok()?;
            let page = replay::page(&mut conn, &self.reader.right.room_id, self.cursor)
                .await
                .ok()?;
            let (frames, head) = page?;
            self.cursor = head;
            Some(frames)
        })
    }

    fn recheck(&mut self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async { self.reader.still_allowed(&self.db).await.unwrap_or(false) })
    }
}
