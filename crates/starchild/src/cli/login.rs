//! `starchild login` and `whoami`: the key to the owner's hosted agent.

use super::show;
use crate::{
    bridge::login::{Login, LoginError, MAX_BUNDLE_BYTES, now},
    home::Home,
};
use clap::Args;
use std::{
    io::{self, Read},
    process::ExitCode,
};

/// What `login` takes.
#[derive(Args, Debug)]
pub struct LoginArgs {
    /// The bundle that your agent gave you; `-` reads it from standard input.
    bundle: String,
}

/// What `whoami` takes.
#[derive(Args, Debug)]
pub struct WhoamiArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// `starchild login`.
pub fn login(args: LoginArgs) -> ExitCode {
    told(read_bundle(args.bundle).and_then(|bundle| {
        let login = Login::parse(&bundle, now())?;
        login.save(&Home::find()?)?;
        Ok(format!(
            "Logged in to {}. The key is good {}.",
            login.server,
            login.left()
        ))
    }))
}

/// `starchild whoami`.
pub fn whoami(args: WhoamiArgs) -> ExitCode {
    told(Home::find().map_err(LoginError::from).and_then(|home| {
        let login = Login::load(&home)?;
        Ok(match args.json {
            true => login.shown().to_string(),
            false => format!(
                "{} at {}\nThe key is good {}.",
                login.label.as_deref().unwrap_or("Your agent"),
                login.server,
                login.left()
            ),
        })
    }))
}

fn read_bundle(bundle: String) -> Result<String, LoginError> {
    if bundle != "-" {
        return Ok(bundle);
    }
    let mut text = String::new();
    let read = io::stdin()
        .take(MAX_BUNDLE_BYTES as u64 + 1)
        .read_to_string(&mut text);
    match read {
        Ok(_) => Ok(text),
        Err(error) => Err(LoginError::NoBundle(error.to_string())),
    }
}

fn told(done: Result<String, LoginError>) -> ExitCode {
    match done {
        Ok(text) => show::print_and_end(&format!("{text}\n")),
        Err(error) => {
            show::failure(&error);
            ExitCode::FAILURE
        }
    }
}
