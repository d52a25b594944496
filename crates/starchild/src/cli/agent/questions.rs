//! Puts the questions of an agent to the person at the terminal.

use super::gate::TerminalQuestion;
use super::lines::{Lines, Read};
use super::screen::{Screen, cut_call};
use super::{Failure, form};
use openstarry::approval::{Answer, Consent, Form};
use serde_json::{Map, Value};

/// The person pressed Ctrl-C: the turn is over.
pub struct Interrupted;

/// Asks, and passes the answer on. Without a person at the terminal it is no.
pub async fn put(
    question: TerminalQuestion,
    lines: &mut Lines,
    screen: &mut Screen,
) -> Result<Option<Interrupted>, Failure> {
    if !lines.at_terminal {
        // Dropping a question means no.
        return Ok(None);
    }
    match question {
        TerminalQuestion::Consent { consent, answer } => {
            let Some(said) = consent_of(&consent, lines, screen).await? else {
                return Ok(Some(Interrupted));
            };
            if answer.send(said).is_err() {
                screen
                    .aside("  your answer came late: it was answered elsewhere, or not in time")?;
            }
        }
        TerminalQuestion::Form { form, answer } => {
            let Some(filled) = fill_in(&form, lines, screen).await? else {
                return Ok(Some(Interrupted));
            };
            let _ = answer.send(filled);
        }
    }
    Ok(None)
}

/// `None` when the person pressed Ctrl-C.
async fn consent_of(
    consent: &Consent,
    lines: &mut Lines,
    screen: &mut Screen,
) -> Result<Option<Answer>, Failure> {
    // Nobody should say yes to what they have not seen.
    match &consent.preview {
        Some(diff) => screen.diff(diff)?,
        None => match cut_call(&consent.call) {
            Some(whole) => screen.aside(&whole)?,
            None => screen.call(&consent.call)?,
        },
    }
    let risk = format!("{:?}", consent.risk).to_lowercase();
    let prompt = format!("  {risk}: run it? [y]es [s]ession [a]lways [N]o, or why not: ");
    loop {
        let line = match lines.read(&prompt).await? {
            Read::Interrupted => return Ok(None),
            Read::End => String::new(),
            Read::Line(line) => line,
        };
        return Ok(Some(match line.trim() {
            "y" | "Y" | "yes" => Answer::Once,
            "s" | "session" => Answer::Session,
            "a" | "always" => {
                let rule = &consent.always;
                screen.aside(&format!("  from now on, without a question: {rule}"))?;
                Answer::Always
            }
            "" | "n" | "N" | "no" => Answer::Deny { reason: None },
            // A slip of the finger is no reason.
            word if word.chars().count() < 4 => continue,
            reason => Answer::Deny {
                reason: Some(reason.into()),
            },
        }));
    }
}

/// Asks for each field. An empty line leaves a field out; the form is not sent
/// when a required one is empty.
async fn fill_in(
    asked: &Form,
    lines: &mut Lines,
    screen: &mut Screen,
) -> Result<Option<Option<Value>>, Failure> {
    screen.aside(&format!("{} asks: {}", asked.server, asked.message))?;
    let mut values = Map::new();
    let fields = asked.schema.get("properties").and_then(Value::as_object);
    let required = asked.schema.get("required").and_then(Value::as_array);
    for (name, field) in fields.into_iter().flatten() {
        screen.aside(&format!("  {}", form::about(name, field)))?;
        let needed = required.is_some_and(|names| names.iter().any(|n| n == name.as_str()));
        loop {
            let line = match lines.read(&format!("  {name}: ")).await? {
                Read::Interrupted => return Ok(None),
                Read::End => String::new(),
                Read::Line(line) => line,
            };
            match line.trim() {
                "" if needed => {
                    screen.aside("  not sent")?;
                    return Ok(Some(None));
                }
                "" => break,
                text => match form::value(text, field) {
                    Err(why) => screen.aside(&format!("  {why}"))?,
                    Ok(value) => {
                        values.insert(name.clone(), value);
                        break;
                    }
                },
            }
        }
    }
    Ok(Some(Some(values.into())))
}
