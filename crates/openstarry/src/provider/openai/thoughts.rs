//! Thoughts that come in pieces, in a list (`reasoning_details` of OpenRouter and gateways like it).
//! A signature is for the whole thought, so its pieces are put together before they go back.

use serde_json::{Map, Value};

/// The field with the list.
pub(super) const DETAILS: &str = "reasoning_details";
/// What grows from piece to piece; other fields say the same again, or come once.
const GROWING: [&str; 2] = ["text", "summary"];

/// Puts the pieces of each thought together.
pub(super) fn assemble(message: &mut Map<String, Value>) {
    let Some(Value::Array(pieces)) = message.get_mut(DETAILS) else {
        return;
    };
    let mut whole: Vec<Value> = Vec::new();
    for piece in pieces.drain(..) {
        let mut known = whole.iter_mut().rev();
        match known.find(|thought| is_of(&piece, thought)) {
            Some(thought) => add(thought, piece),
            None => whole.push(piece),
        }
    }
    *pieces = whole;
}

/// Whether a piece belongs to a thought. What is encrypted came whole.
fn is_of(piece: &Value, thought: &Value) -> bool {
    let same = |key: &str| piece.get(key) == thought.get(key);
    let absent_or_same = |key: &str| piece.get(key).is_none_or(Value::is_null) || same(key);
    let numbered = piece.get("index").is_some_and(Value::is_u64);
    let encrypted = piece.get("data").is_some() || thought.get("data").is_some();
    numbered && !encrypted && same("index") && same("type") && absent_or_same("id")
}

fn add(thought: &mut Value, piece: Value) {
    let (Value::Object(thought), Value::Object(piece)) = (thought, piece) else {
        return;
    };
    for (key, value) in piece {
        match (thought.get_mut(&key), value) {
            (_, Value::Null) => {}
            (Some(Value::String(old)), Value::String(more)) if GROWING.contains(&key.as_str()) => {
                old.push_str(&more);
            }
            (_, value) => {
                thought.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn assembled(pieces: Value) -> Value {
        let mut message = Map::from_iter([(DETAILS.to_owned(), pieces)]);
        assemble(&mut message);
        message.remove(DETAILS).unwrap()
    }

    #[test]
    fn the_pieces_of_a_thought_become_one_and_thoughts_stay_apart() {
        let piece = |index: u64, fields: Value| {
            let mut piece = json!({ "type": "reasoning.text", "format": "f", "index": index });
            for (key, value) in fields.as_object().unwrap() {
                piece[key] = value.clone();
            }
            piece
        };
        let whole = assembled(json!([
            piece(0, json!({ "text": "ha" })),
            piece(0, json!({ "text": "ha", "signature": null })),
            piece(0, json!({ "signature": "S" })),
            piece(1, json!({ "text": "b" })),
            { "type": "reasoning.encrypted", "data": "x", "index": 0 },
            { "type": "reasoning.encrypted", "data": "y", "index": 0 },
        ]));
        assert_eq!(
            whole,
            json!([
                piece(0, json!({ "text": "haha", "signature": "S" })),
                piece(1, json!({ "text": "b" })),
                { "type": "reasoning.encrypted", "data": "x", "index": 0 },
                { "type": "reasoning.encrypted", "data": "y", "index": 0 },
            ])
        );
    }

    #[test]
    fn what_has_no_number_or_no_shape_stays_as_it_came() {
        let odd = json!([{ "text": "a" }, { "text": "b" }, 7, null]);
        assert_eq!(assembled(odd.clone()), odd);
    }
}
