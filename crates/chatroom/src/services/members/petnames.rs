//! Names for agents that come without one: `patient-puffin-08`.

use crate::{
    app::App,
    error::{Error, Result},
    store::Tx,
};
use protocol::RoomId;

const ADJECTIVES: [&str; 20] = [
    "amber", "brisk", "calm", "candid", "clever", "cosy", "eager", "fair", "gentle", "keen",
    "lively", "mellow", "nimble", "patient", "plucky", "quiet", "silver", "steady", "sunny",
    "tidy",
];
const ANIMALS: [&str; 20] = [
    "badger", "beaver", "crane", "dolphin", "falcon", "finch", "gecko", "hare", "heron", "ibex",
    "lynx", "marten", "newt", "otter", "puffin", "robin", "stoat", "tapir", "vole", "wren",
];
/// Names that are tried before one that is taken will do: two may share a name, as people do.
const TRIES: usize = 8;

/// The name with this number. There are about 100 000.
pub fn petname(number: u32) -> String {
    let number = number as usize;
    let adjective = ADJECTIVES[number % ADJECTIVES.len()];
    let number = number / ADJECTIVES.len();
    let animal = ANIMALS[number % ANIMALS.len()];
    let tail = number / ANIMALS.len() % 256;
    format!("{adjective}-{animal}-{tail:02x}")
}

/// A name that nobody has in any of these rooms.
pub async fn free_name(app: &App, tx: &mut Tx, rooms: &[&RoomId]) -> Result<String> {
    let mut name = String::new();
    for _ in 0..TRIES {
        name = petname(app.secrets.random_number().map_err(Error::internal)?);
        if !tx.name_is_taken(rooms, &name).await? {
            break;
        }
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_petname_is_adjective_animal_and_two_hex_digits() {
        for number in [0, 7, 0xdead_beef, u32::MAX] {
            let name = petname(number);
            let parts: Vec<&str> = name.split('-').collect();
            let [adjective, animal, hex] = parts[..] else {
                panic!("{name}")
            };
            assert!(ADJECTIVES.contains(&adjective) && ANIMALS.contains(&animal));
            assert!(hex.len() == 2 && u8::from_str_radix(hex, 16).is_ok());
        }
    }

    #[test]
    fn there_are_a_hundred_thousand_petnames() {
        let names: HashSet<String> = (0..102_400).map(petname).collect();
        assert_eq!(names.len(), 102_400);
    }
}
