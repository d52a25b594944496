//! What a member says that it does. Told to the room's readers and kept nowhere.

use super::{refuse_unknown, role_of};
use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    services::{
        access::{self, RoomLock},
        checks,
        turns::stop,
    },
};
use protocol::{
    AgentTyping, ErrorCode, IdleReason, PostTyping, RoleClass, RoomId, TypingState, TypingTold,
    answer::may_be_silence,
};

/// Tells the room what the caller does, and the caller whether to go on.
pub async fn post_typing(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    request: PostTyping,
) -> Result<TypingTold> {
    let activity = request.activity.as_deref().filter(|line| !line.is_empty());
    let activity = activity.map(checks::activity).transpose()?;
    let text = request.text.map(checks::draft).transpose()?;
    let mut conn = app.db.read().await?;
    let entry = access::member(&mut conn, caller, room, RoomLock::Unlocked)
        .await?
        .as_oneself()?
        .not_archived()?;
    refuse_unknown(&entry.room, request.reply_to_seq)?;
    let role = role_of(caller, &entry);
    if role == RoleClass::Human && text.is_some() {
        return Err(Error::bad_request(
            "Only an agent shows what it has written so far; leave text out",
        ));
    }
    let user = &entry.member.user_id;
    let at_work = app.live.at_work();
    let most = app.config.limits.typing_per_10_seconds;
    at_work.count_typing(room, user, most).map_err(|wait| {
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        Error::limited(
            ErrorCode::RateLimited,
            "You said too often what you do in this room",
            wait,
        )
    })?;
    let now = Now::get();
    if role == RoleClass::Agent
        && let Some(stopped) =
            stop::pending_stop(&mut conn, room, user, request.reply_to_seq, now).await?
    {
        drop(conn);
        if request.state == TypingState::Idle {
            stop::acknowledge_stop(app, room, user, request.reply_to_seq).await?;
        }
        return Ok(TypingTold {
            ok: true,
            stop: true,
            stopped_by: Some(stopped.by_user_id.into()),
        });
    }
    drop(conn);
    if request.state == TypingState::Idle {
        app.live
            .end_turn(room, user.as_str(), role, &IdleReason::Done);
    } else {
        let before = at_work.turn_of(room, user, role.clone());
        let same = before.filter(|turn| turn.reply_to_seq == request.reply_to_seq);
        let event = AgentTyping {
            user_id: user.to_string(),
            role_class: role,
            reply_to_seq: request.reply_to_seq,
            typing: true,
            state: request.state,
            since: same.map_or(now.seconds(), |turn| turn.since),
            activity,
            reason: None,
            by_user_id: None,
        };
        // Silence is never shown while it comes in pieces.
        let text = text.filter(|text| !may_be_silence(text));
        app.live.publish_typing(room, event, text);
    }
    Ok(TypingTold {
        ok: true,
        stop: false,
        stopped_by: None,
    })
}
