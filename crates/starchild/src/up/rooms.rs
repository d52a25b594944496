//! The rooms: made where they are missing, their rules and visibility as the file has them, and the
//! people in them.

use super::{UpError, file::RoomEntry, project::Provisioned};
use client::{Client, ClientError};
use protocol::{AdapterType, CreateInvite, ErrorCode, Join, Role, RoomId, UpdateRoom};
use std::collections::BTreeMap;

/// Makes what is missing. A room of this name that the owner has already is taken.
pub async fn reconcile(
    owner: &Client,
    rooms: &BTreeMap<String, RoomEntry>,
    provisioned: &mut Provisioned,
    mut told: impl FnMut(String),
) -> Result<(), UpError> {
    let mine = owner.rooms().await?.rooms;
    for (name, entry) in rooms {
        let is_known = |id: &RoomId| {
            mine.iter()
                .any(|room| room.room_id == *id && !room.archived)
        };
        let known = provisioned
            .rooms
            .get(name)
            .filter(|id| is_known(id))
            .cloned();
        let same_name = || {
            let mut mine = mine.iter();
            let found =
                mine.find(|room| room.name == *name && room.role == Role::Owner && !room.archived);
            found.map(|room| room.room_id.clone())
        };
        let (id, is_new) = match known.or_else(same_name) {
            Some(id) => (id, false),
            None => {
                let room = owner.create_room(name, entry.visibility).await?;
                told(format!("made the room {name} ({})", room.room_id));
                (room.room_id, true)
            }
        };
        provisioned.rooms.insert(name.clone(), id.clone());
        if let Some(rules) = &entry.rules
            && owner.rules(&id).await?.content.trim() != rules.trim()
        {
            owner.set_rules(&id, rules.trim()).await?;
            told(format!("set the rules of {name}"));
        }
        if !is_new
            && let Some(visibility) = entry.visibility
            && owner.room(&id).await?.visibility != visibility
        {
            let change = UpdateRoom {
                visibility: Some(visibility),
                ..UpdateRoom::default()
            };
            owner.update_room(&id, &change).await?;
            told(format!("changed who may read {name}"));
        }
    }
    Ok(())
}

/// Brings a person into the team's rooms.
pub async fn admit(
    owner: &Client,
    person: &Client,
    provisioned: &Provisioned,
) -> Result<Vec<String>, UpError> {
    let theirs = person.rooms().await?.rooms;
    let mut entered = Vec::new();
    for (name, room) in &provisioned.rooms {
        if theirs.iter().any(|one| one.room_id == *room) {
            continue;
        }
        let invite = CreateInvite::default();
        let join = Join {
            invite_code: Some(owner.create_invite(room, &invite).await?.invite_code),
            adapter_type: Some(AdapterType::Pull),
            ..Join::default()
        };
        match person.join(room, &join, None).await {
            Ok(_) => entered.push(name.clone()),
            Err(error) if is_in(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(entered)
}

fn is_in(error: &ClientError) -> bool {
    error.code() == Some(ErrorCode::AlreadyMember)
}
