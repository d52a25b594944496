//! What a person can type: the payloads that a gateway takes, each with an
//! example.

use crate::terminal::printable;
use agentserver::Pump;
use agentserver::xml::{self, Limits, XmlError};
use std::cell::Cell;

/// Payloads that are shown; more are counted.
const SHOWN: usize = 12;
/// What is quoted of words that are no element.
const QUOTED: usize = 40;

/// Words for whoever types on standard input.
pub struct Hint {
    pump: Pump,
    gateway: String,
    /// Once is enough.
    was_given: Cell<bool>,
}

impl Hint {
    pub fn new(pump: Pump, gateway: String) -> Self {
        Self {
            pump,
            gateway,
            was_given: Cell::new(false),
        }
    }

    /// Each payload that may be sent: an example, whom it goes to, and what for.
    fn examples(&self) -> Vec<(String, String)> {
        let offers = self.pump.organism().offers(&self.gateway).into_iter();
        let examples = offers.map(|offer| {
            let to = offer.to.unwrap_or_default();
            let about = match offer.description.trim() {
                "" => to,
                description => format!("{to}: {description}"),
            };
            (offer.schema.example(), about)
        });
        examples.collect()
    }

    /// What is wrong with a text that is no element, and what would be one.
    pub fn on(&self, text: &str, limits: &Limits) -> String {
        let text = text.trim();
        let name = text.strip_prefix('<').map(|text| {
            let is_in_name = |c: char| c.is_alphanumeric() || "_-.:".contains(c);
            let end = text.find(|c| !is_in_name(c)).unwrap_or(text.len());
            &text[..end]
        });
        let wrong = match (name, xml::canonicalize(text, limits)) {
            (Some(name), _) if !name.is_empty() => {
                format!("The input ended before <{name}> was closed.")
            }
            (_, Err(error @ (XmlError::Doctype | XmlError::Instruction))) => format!("{error}."),
            _ => format!(
                "Expected an XML element, found the words {:?}.",
                quoted(text)
            ),
        };
        let mut examples = self.examples().into_iter();
        match examples.next() {
            Some((example, _)) => format!("{wrong} Write for example: {example}"),
            None => {
                format!("{wrong} Nothing can be sent here: no peer of the gateway takes anything.")
            }
        }
    }

    /// Says once, on standard error, what can be typed.
    pub fn give(&self) {
        if self.was_given.replace(true) {
            return;
        }
        let examples = self.examples();
        let mut words = format!(
            "{}: type one XML element for each message, on one line or over several. It takes:\n",
            self.gateway
        );
        for (example, about) in examples.iter().take(SHOWN) {
            words.push_str(&format!("  {example}\n      to {about}\n"));
        }
        if examples.len() > SHOWN {
            words.push_str(&format!("  and {} more\n", examples.len() - SHOWN));
        }
        eprint!("{}", printable(&words));
    }
}

fn quoted(text: &str) -> String {
    let mut quoted: String = text.chars().take(QUOTED).collect();
    if quoted.len() < text.len() {
        quoted.push('…');
    }
    quoted
}
