//! `organism replay`: what an organism did, from its journal, and how two runs
//! differ.

use crate::terminal::printable;
use agentserver::journal::{Replayed, replay};
use agentserver::trace::Hop;
use agentserver::{HopId, ThreadId};
use clap::Args;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

/// What to tell again.
#[derive(Args)]
pub struct ReplayArguments {
    /// The folder of the journal: what `durable` or `--state` names.
    folder: PathBuf,
    /// Tell until this hop and no further.
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
    let hops = read(&arguments.folder, arguments.until)?;
    let lines = match &arguments.diff {
        None => hops.iter().map(line).collect(),
        Some(other) => differences(&hops, &read(other, arguments.until)?),
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

fn read(folder: &Path, until: Option<HopId>) -> Result<Vec<Replayed>, String> {
    let (mut hops, mut is_over) = (Vec::new(), false);
    let told = replay(folder, |replayed| {
        if is_over {
            return;
        }
        is_over = until.is_some() && replayed.hop.id == until;
        hops.push(replayed);
    });
    told.map_err(|error| error.to_string())?;
    match until {
        Some(until) if !is_over => Err(format!("the journal knows of no hop {until}")),
        _ => Ok(hops),
    }
}

/// One hop on a line, with what it carried.
fn line(replayed: &Replayed) -> String {
    let Replayed { at, hop } = replayed;
    let id = hop.id.map_or_else(String::new, |id| id.to_string());
    let xml = hop.payload.xml().replace('\n', "&#10;");
    format!("{:>10.3}s {id:>7}  {hop}  {xml}", at.as_secs_f64())
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
    for Replayed { hop, .. } in hops {
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
