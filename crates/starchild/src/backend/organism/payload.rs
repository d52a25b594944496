//! Between the words of a room and the payloads of an organism.

use crate::{backend::Inbound, organism::gateway::room::RoomGatewayFile};
use agentserver::{Offer, Organism, payload::Canonical};
use protocol::Via;
use serde_json::{Map, Value, json};

/// Says what is wrong where a message cannot become the payload.
pub fn check(offers: &[Offer], room: &RoomGatewayFile) -> Result<(), String> {
    let offer = offer(offers, room)?;
    if !offer
        .schema
        .fields()
        .iter()
        .any(|field| field.name == "text")
    {
        let name = &room.payload;
        return Err(format!(
            "the payload {name} has no field text for what was said"
        ));
    }
    Ok(())
}

/// Whom a message goes to, and its payload: the fields that the payload has, of those that a message
/// can fill.
pub fn of_message(
    offers: &[Offer],
    room: &RoomGatewayFile,
    inbound: &Inbound,
) -> Result<(Option<String>, String), String> {
    let offer = offer(offers, room)?;
    let message = &inbound.message;
    let kind = if message.via == Via::Web {
        "person"
    } else {
        "agent"
    };
    let known = [
        ("text", json!(printable(&message.content))),
        ("sender", json!(printable(&message.sender_user_id))),
        (
            "sender_name",
            json!(message.sender_user_name.as_deref().map(printable)),
        ),
        ("sender_kind", json!(kind)),
        ("room", json!(inbound.room_id.as_str())),
        ("seq", json!(message.seq)),
    ];
    let has = |name: &str| offer.schema.fields().iter().any(|field| field.name == name);
    let fields = known
        .into_iter()
        .filter(|(name, value)| has(name) && !value.is_null());
    let fields: Map<_, _> = fields
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    let xml = offer.schema.json_to_xml(&Value::Object(fields));
    let to = room.to.clone().or_else(|| offer.to.clone());
    Ok((to, xml.map_err(|error| error.to_string())?))
}

fn offer<'a>(offers: &'a [Offer], room: &RoomGatewayFile) -> Result<&'a Offer, String> {
    let fits = |offer: &&Offer| {
        let to = room.to.as_deref();
        offer.schema.name == room.payload && to.is_none_or(|to| offer.to.as_deref() == Some(to))
    };
    let found = offers.iter().find(fits);
    found.ok_or_else(|| format!("no peer of the room's gateway accepts {:?}", room.payload))
}

/// What XML can hold of a text.
fn printable(text: &str) -> String {
    let holds = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars()
        .filter(|c| holds(c) && !matches!(c, '\u{fffe}' | '\u{ffff}'))
        .collect()
}

/// A payload as people read it: its `text`, its only field, or a line for each.
pub fn words(organism: &Organism, payload: &Canonical) -> String {
    let known = organism.payload_type(payload.namespace(), payload.root());
    let fields = known.and_then(|known| known.xml_to_json(payload).ok());
    let Some(Value::Object(fields)) = fields else {
        return payload.xml().to_owned();
    };
    let shown = |value: &Value| match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let mut all = fields.iter();
    match (fields.get("text"), all.next(), all.next()) {
        (Some(text), ..) => shown(text),
        (None, Some((_, only)), None) => shown(only),
        _ => {
            let lines = fields
                .iter()
                .map(|(name, value)| format!("{name}: {}", shown(value)));
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}
