//! `organism replay`: what an organism did, from its journal, and how two runs
//! differ.

use crate::terminal::printable;
use agentserver::journal::{Overview, Replayed, replay};
use agentserver::trace::{Hop, HopKind};
use agentserver::{HopId, ThreadId};
use clap::Args;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// What to tell again.
#[derive(Args)]
pub struct ReplayArguments {
    /// The folder of the journal: what `durable` or `--state` names.
    folder: PathBuf,
    /// Tell until this hop and no further, and what waited, ran and was open then.
    #[arg(long, value_name = "HOP", value_parser = hop_id)]
    until: Option<HopId>,
    /// Tell only where the run in this folder went another way.
    #[arg(long, value_name = "FOLDER")]
    diff: Option<PathBuf>,
}

fn hop_id(text: &str) -> Result<HopId, String> {
    HopId::parse(text).ok_or_else(|| "a hop is a number".to_owned())
}

pub fn run(arguments: &ReplayArguments) -> Result<(), String> {
    let (hops, state) = read(&arguments.folder, arguments.until)?;
    let lines = match &arguments.diff {
        None => {
            let told = hops.iter().map(line);
            let state = arguments.until.map(|_| state_lines(&state));
            told.chain(state.into_iter().flatten()).collect()
        }
        Some(other) => differences(&hops, &read(other, arguments.until)?.0),
    };
    let mut out = std::io::stdout().lock();
    for line in &lines {
        // Whoever reads may have had enough.
        if writeln!(out, "{}", printable(line)).is_err() {
            return Ok(());
        }
    }
    match (&arguments.diff, lines.is_empty()) {
        (Some(_), false) => Err(format!("the runs differ in {} hops", lines.len())),
        _ => Ok(()),
    }
}

/// The hops until one, or all, and the state that they led to.
fn read(folder: &Path, until: Option<HopId>) -> Result<(Vec<Replayed>, Overview), String> {
    let (mut hops, mut is_over) = (Vec::new(), false);
    let state = replay(folder, |replayed| {
        is_over = until.is_some() && replayed.hop.id == until;
        hops.push(replayed);
        match is_over {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    let state = state.map_err(|error| error.to_string())?;
    match until {
        Some(until) if !is_over => Err(format!("the journal knows of no hop {until}")),
        _ => Ok((hops, state)),
    }
}

/// One hop on a line, with what it carried; that is told once.
fn line(replayed: &Replayed) -> String {
    let Replayed { at, hop } = replayed;
    let line = format!("{:>10.3}s  {hop}", at.as_secs_f64());
    match hop.kind {
        HopKind::Handled(_) => line,
        _ => format!("{line}  {}", hop.payload.xml().replace('\n', "&#10;")),
    }
}

/// What waits, runs and is open.
fn state_lines(state: &Overview) -> Vec<String> {
    let mut lines = vec!["the state then:".to_owned()];
    let messages = [("waits", &state.waiting), ("runs", &state.running)];
    for (what, messages) in messages {
        lines.extend(messages.iter().map(|message| {
            let (id, from, to) = (message.id, &message.from, &message.to);
            let of = short(message.conversation);
            format!(
                "  {what}: {of}  #{id}  {from} -> {to}  <{}>",
                message.payload
            )
        }));
    }
    lines.extend(state.threads.iter().map(|thread| {
        let (id, owner, busy) = (short(thread.id), &thread.owner, thread.busy);
        let indent = "  ".repeat(thread.depth);
        format!("  thread: {indent}{id}  {owner}  {busy} messages")
    }));
    lines.extend(state.todos.iter().map(|todo| {
        let whose = todo.owner.as_deref().unwrap_or("?");
        let from = match todo.from_listener.trim() {
            "" => "anybody",
            name => name,
        };
        let came = match todo.is_raised {
            true => "has come",
            false => "has not come",
        };
        let (awaited, about) = (&todo.wait_for, &todo.description);
        format!("  to-do: {whose} waits for <{awaited}> from {from}, which {came}: {about}")
    }));
    lines.extend(state.budgets.iter().map(|spent| {
        let of = |used: u64, most: Option<u64>| match most {
            Some(most) => format!("{used} of {most}"),
            None => used.to_string(),
        };
        let budget = spent.budget;
        let over = if spent.is_over { "; used up" } else { "" };
        format!(
            "  budget: {}  {} messages, {} model calls, {} tokens, {} millionths of money{over}",
            spent.of,
            of(spent.messages, budget.messages),
            of(spent.model_calls, budget.model_calls),
            of(spent.tokens, budget.tokens),
            of(spent.money, budget.money),
        )
    }));
    lines
}

fn short(id: ThreadId) -> String {
    id.to_string().chars().take(8).collect()
}

/// The hops of each conversation that one run has and the other has not. Ids and
/// times differ always, and do not count.
fn differences(ours: &[Replayed], theirs: &[Replayed]) -> Vec<String> {
    let (ours, theirs) = (by_conversation(ours), by_conversation(theirs));
    let mut lines = Vec::new();
    for index in 0..ours.len().max(theirs.len()) {
        let [ours, theirs] =
            [&ours, &theirs].map(|run| run.get(index).map_or(&[][..], Vec::as_slice));
        let changed = changes(ours, theirs);
        lines
            .extend(changed.map(|(sign, hop)| format!("{sign} conversation {}: {hop}", index + 1)));
    }
    lines
}

/// The hops of each conversation, in the order in which the conversations began.
fn by_conversation(hops: &[Replayed]) -> Vec<Vec<String>> {
    let (mut places, mut conversations) = (HashMap::<ThreadId, usize>::new(), Vec::new());
    // What a hop took differs always.
    let moved = |replayed: &&Replayed| !matches!(replayed.hop.kind, HopKind::Handled(_));
    for Replayed { hop, .. } in hops.iter().filter(moved) {
        let place = *places.entry(hop.conversation).or_insert_with(|| {
            conversations.push(Vec::new());
            conversations.len() - 1
        });
        conversations[place].push(hop);
    }
    conversations
        .iter()
        .map(|hops| in_causal_order(hops))
        .collect()
}

/// Each hop after the one that it followed from, whatever else happened meanwhile.
fn in_causal_order(hops: &[&Hop]) -> Vec<String> {
    let known: HashSet<_> = hops.iter().filter_map(|hop| hop.id).collect();
    let mut following = BTreeMap::<Option<HopId>, Vec<&Hop>>::new();
    for hop in hops {
        following.entry(hop.parent).or_default().push(hop);
    }
    let from_outside = |parent: &Option<HopId>| parent.is_none_or(|id| !known.contains(&id));
    let begun = following.keys().rev().copied().filter(from_outside);
    let begun: Vec<_> = begun.collect();
    let mut open: Vec<&Hop> = Vec::new();
    for parent in begun {
        open.extend(following.remove(&parent).into_iter().flatten().rev());
    }
    let mut lines = Vec::new();
    while let Some(hop) = open.pop() {
        let (from, to, xml) = (&hop.from, &hop.to, hop.payload.xml());
        lines.push(format!("{from} -> {to}  {}  {xml}", hop.kind));
        if hop.id.is_some() {
            open.extend(following.remove(&hop.id).into_iter().flatten().rev());
        }
    }
    lines
}

/// What is only in `ours` (`-`) and only in `theirs` (`+`): from the first place
/// where they part to the last.
fn changes<'a>(
    ours: &'a [String],
    theirs: &'a [String],
) -> impl Iterator<Item = (char, &'a String)> {
    let pairs = ours.iter().zip(theirs);
    let begin = pairs.take_while(|(one, other)| one == other).count();
    let (ours, theirs) = (&ours[begin..], &theirs[begin..]);
    let pairs = ours.iter().rev().zip(theirs.iter().rev());
    let end = pairs.take_while(|(one, other)| one == other).count();
    let gone = ours[..ours.len() - end].iter().map(|hop| ('-', hop));
    let come = theirs[..theirs.len() - end].iter().map(|hop| ('+', hop));
    gone.chain(come)
}
