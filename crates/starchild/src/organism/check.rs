//! `organism check`: what is wrong in a file, and what in it cannot work though
//! nothing is wrong.

use super::config::{File, folder_of, lines, load};
use super::kinds::{Kind, Sends};
use agentserver::config::{ConfigError, ListenerFile, Problem};
use serde_saphyr::Spanned;
use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

pub fn run(path: &Path) -> Result<(), String> {
    let (file, _) = load(path).map_err(|error| error.to_string())?;
    let mut problems = missing_programs(&file, folder_of(path));
    problems.extend(unreachable(&file));
    problems.extend(deaf_peers(&file));
    if !problems.is_empty() {
        problems.sort_by_key(|problem| (problem.line, problem.column));
        return Err(lines(path, &ConfigError(problems)));
    }
    println!(
        "{}: {} is well: {} listeners, {} gateways, {} payload types",
        path.display(),
        file.organism,
        file.listeners.len(),
        file.gateways.len(),
        file.payloads.len(),
    );
    Ok(())
}

/// Commands that are not on this machine.
fn missing_programs(file: &File, folder: &Path) -> Vec<Problem> {
    let is_program = |path: &Path| {
        std::fs::metadata(path)
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let is_there = |program: &str| match program.contains('/') {
        true => is_program(&folder.join(program)),
        false => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|folder| is_program(&folder.join(program)))
        }
    };
    let listeners = file.listeners.iter();
    let missing = listeners.filter_map(|listener| {
        let program = listener
            .kind
            .program()
            .filter(|program| !is_there(program))?;
        let place = match program.contains('/') {
            true => format!("in {}", folder.display()),
            false => "in any folder of PATH".to_owned(),
        };
        let name = &listener.name.value;
        let message = format!("{name}: there is no program {program:?} {place}");
        Some(at(&listener.name, message))
    });
    missing.collect()
}

/// Listeners that no message can come to.
fn unreachable(file: &File) -> Vec<Problem> {
    let mut waiting: Vec<String> = vec![agentserver::system::BOOT.to_owned()];
    let gateways = file.gateways.iter().flat_map(|gateway| &gateway.peers);
    waiting.extend(gateways.map(key));
    let mut reached = HashSet::new();
    while let Some(name) = waiting.pop() {
        if !reached.insert(name.clone()) {
            continue;
        }
        let found = file.listeners.iter().find(|l| key(&l.name) == name);
        let peers = found.iter().flat_map(|listener| &listener.peers);
        waiting.extend(peers.map(key));
    }
    let lost = file
        .listeners
        .iter()
        .filter(|l| !reached.contains(&key(&l.name)));
    let told = lost.map(|listener| {
        let name = &listener.name.value;
        let message = format!(
            "nobody can reach {name}: it is no peer of a gateway, nor of a listener that one reaches"
        );
        at(&listener.name, message)
    });
    told.collect()
}

/// Peers that accept nothing of what they could be sent.
fn deaf_peers(file: &File) -> Vec<Problem> {
    let mut problems = Vec::new();
    for listener in &file.listeners {
        let Some(sent) = sends(listener) else {
            continue;
        };
        for peer in &listener.peers {
            let found = file.listeners.iter().find(|l| key(&l.name) == key(peer));
            let Some(found) = found else { continue };
            if found
                .accepts
                .iter()
                .any(|name| sent.contains(&&*name.value))
            {
                continue;
            }
            let what = match &sent[..] {
                [] => "nothing".to_owned(),
                sent => sent.join(", "),
            };
            let message = format!(
                "{} accepts nothing that {} sends (which is {what})",
                peer.value, listener.name.value
            );
            problems.push(at(peer, message));
        }
    }
    problems
}

/// The payload types that a listener sends, where that is known.
pub fn sends(listener: &ListenerFile<Kind>) -> Option<Vec<&str>> {
    match (&listener.sends, listener.kind.sends()) {
        (Some(said), _) => Some(said.iter().map(|name| &*name.value).collect()),
        (None, Sends::Nothing) => Some(Vec::new()),
        (None, Sends::WhatItAccepts) => {
            Some(listener.accepts.iter().map(|name| &*name.value).collect())
        }
        (None, Sends::Anything) => None,
    }
}

fn key(name: &Spanned<String>) -> String {
    name.value.to_lowercase()
}

fn at<T>(place: &Spanned<T>, message: String) -> Problem {
    Problem {
        line: place.referenced.line(),
        column: place.referenced.column(),
        message,
    }
}
