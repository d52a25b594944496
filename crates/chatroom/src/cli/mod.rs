//! The commands of `sc-chatroom`. They are part of the library, so that the program itself has nothing
//! left to compile.

mod options;

use crate::{
    auth::TokenType,
    config::{Config, LogFormat},
    operate::{admin, backup, calls, import, table, users},
    serve::serve,
};
use clap::Parser;
use options::{
    Ban, Calls, Cli, Command, CredentialCommand, Database, Location, RunningServer, Serve, User,
};
use std::{error::Error, path::Path, process::ExitCode, time::Duration};
use tracing_subscriber::{
    filter::Targets, fmt, layer::SubscriberExt, registry, util::SubscriberInitExt,
};

/// Does what the command line says.
pub fn main() -> ExitCode {
    let Cli { command, serve } = Cli::parse();
    match run(command.unwrap_or(Command::Serve(serve))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sc-chatroom: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Box<dyn Error>> {
    match command {
        Command::Serve(options) => start(options),
        Command::Token(options) => {
            let config = load(&options.location)?;
            let name = options.name.as_deref();
            println!(
                "{}",
                users::token(
                    &config.keys_dir(),
                    &options.user,
                    name,
                    options.r#type,
                    options.ttl
                )?
            );
            Ok(())
        }
        Command::User(User::Add {
            name,
            location,
            ttl,
        }) => {
            let config = load(&location)?;
            let id = users::new_id(&config, &name)?;
            print_sign_in_link(&config, &id, Some(&name), ttl)?;
            eprintln!(
                "{name} signs in as {id} with this link; it works for {}.",
                humantime::format_duration(ttl)
            );
            Ok(())
        }
        Command::User(User::Link {
            user,
            location,
            ttl,
        }) => {
            let config = load(&location)?;
            users::refuse_unused(&config)?;
            print_sign_in_link(&config, &user, None, ttl)?;
            eprintln!(
                "{user} signs in with this link; it works for {}.",
                humantime::format_duration(ttl)
            );
            Ok(())
        }
        Command::User(User::Rename { user, name, beside }) => {
            block_on(beside.server()?.rename_user(&user, &name))??;
            eprintln!("{user} is called {name} from now on.");
            Ok(())
        }
        Command::User(User::Remove { user, beside }) => {
            let ended = block_on(beside.server()?.remove_user(&user))??;
            eprintln!("Removed {user}, and ended {ended} credentials.");
            hint_at_unknown_id(&user, ended);
            Ok(())
        }
        Command::User(User::List { beside }) => {
            let users = block_on(beside.server()?.users())??;
            table::print(&["USER", "NAME", "ROOMS", "SESSIONS", "BANNED"], &users);
            Ok(())
        }
        Command::User(User::Revoke { user, beside }) => {
            let ended = block_on(beside.server()?.revoke_user(&user))??;
            eprintln!("Ended {ended} credentials of {user}, and every user token so far.");
            hint_at_unknown_id(&user, ended);
            Ok(())
        }
        Command::Key(command) => credentials(command, false),
        Command::Identity(command) => credentials(command, true),
        Command::Ban(command) => ban(command),
        Command::Export {
            room,
            format,
            beside,
        } => {
            let server = beside.server()?;
            let mut out = std::io::stdout().lock();
            Ok(block_on(server.export(&room, format, &mut out))??)
        }
        Command::Import {
            source,
            owner,
            channel,
            beside,
        } => {
            let server = beside.server()?;
            let importing = import::import(&server, &source, &owner, &channel);
            for made in block_on(importing)?? {
                println!("{}\t{}\t{}", made.room_id, made.messages, made.name);
            }
            Ok(())
        }
        Command::Backup { file, location } => {
            let config = load(&location)?;
            if config.database_url.is_some() {
                return Err(backup::BackupError::Postgres(config.keys_dir()).into());
            }
            block_on(backup::backup(
                &config.sqlite_file(),
                &config.keys_dir(),
                &file,
            ))??;
            eprintln!(
                "Wrote {}. It holds the keys: keep it as safe as the server.",
                file.display()
            );
            Ok(())
        }
        Command::Restore { file, data } => {
            block_on(backup::restore(&file, &data))??;
            eprintln!(
                "Restored. Start it with: sc-chatroom serve --data {0}\nIt calls no agents until you run: sc-chatroom calls resume --data {0}",
                data.display()
            );
            Ok(())
        }
        Command::Calls(Calls::Pause(database)) => set_calls_paused(database, true),
        Command::Calls(Calls::Resume(database)) => set_calls_paused(database, false),
    }
}

fn print_sign_in_link(
    config: &Config,
    id: &str,
    name: Option<&str>,
    ttl: Duration,
) -> Result<(), Box<dyn Error>> {
    let token = users::token(&config.keys_dir(), id, name, TokenType::Access, ttl)?;
    // Where nobody says how the server is reached, where it listens: also if that was said at its start alone.
    let url = match &config.public_url {
        Some(url) => url.clone(),
        None => admin::running_on(config).unwrap_or_else(|_| format!("http://{}", config.listen)),
    };
    println!("{}/view#user_jwt={token}", url.trim_end_matches('/'));
    Ok(())
}

/// Whoever mistyped an id would believe that somebody is out who is not.
fn hint_at_unknown_id(user: &str, ended: i64) {
    if ended == 0 {
        eprintln!(
            "{user} held none. Is it the id that you meant? `sc-chatroom user list` shows those that are known."
        );
    }
}

fn set_calls_paused(database: Database, paused: bool) -> Result<(), Box<dyn Error>> {
    let mut config = load(&database.location)?;
    config.database_url = database.database_url.or(config.database_url);
    block_on(calls::set_paused(&config, paused))??;
    eprintln!(
        "{}",
        match paused {
            true => "Agents are not called, once the server has started anew.",
            false => "Agents are called from now on.",
        }
    );
    Ok(())
}

fn credentials(command: CredentialCommand, identities: bool) -> Result<(), Box<dyn Error>> {
    match command {
        CredentialCommand::List { user, beside } => {
            let found = block_on(beside.server()?.credentials(&user, identities))??;
            table::print(&["ID", "KIND", "ROOM", "ISSUED", "EXPIRES"], &found);
        }
        CredentialCommand::Revoke { id, beside } => {
            block_on(beside.server()?.revoke(&id))??;
            eprintln!("Revoked {id}.");
        }
    }
    Ok(())
}

fn ban(command: Ban) -> Result<(), Box<dyn Error>> {
    match command {
        Ban::Add {
            subject,
            reason,
            beside,
        } => {
            let banned = block_on(beside.server()?.ban(&subject, reason))??;
            eprintln!("Banned {banned}.");
        }
        Ban::List { beside } => {
            let bans = block_on(beside.server()?.bans())??;
            table::print(&["BANNED", "SINCE", "WHY"], &bans);
        }
        Ban::Remove { subject, beside } => {
            block_on(beside.server()?.unban(&subject))??;
            eprintln!("Lifted the ban of {subject}.");
        }
    }
    Ok(())
}

fn start(options: Serve) -> Result<(), Box<dyn Error>> {
    let mut config = load(&options.location)?;
    config.listen = options.listen.unwrap_or(config.listen);
    config.database_url = options.database_url.or(config.database_url);
    config.bus = options.bus.or(config.bus);
    config.public_url = options.public_url.or(config.public_url);
    log_to_stderr(&config)?;
    block_on(serve(config, |opened| {
        println!("Open {}/", opened.public_url);
        if let Some(link) = opened.first_link {
            println!("Sign in as the first person: {link}");
            println!("The link works once, for a day. Further people: sc-chatroom user add NAME");
        }
    }))??;
    Ok(())
}

impl RunningServer {
    fn server(&self) -> Result<admin::Server, Box<dyn Error>> {
        let config = load(&self.location)?;
        Ok(admin::Server::find(&config, self.server.as_deref())?)
    }
}

fn load(location: &Location) -> Result<Config, Box<dyn Error>> {
    let env = std::env::vars_os()
        .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
    let mut config = Config::load(location.config.as_deref().map(Path::new), env)?;
    config.data = location.data.clone().unwrap_or(config.data);
    Ok(config)
}

fn log_to_stderr(config: &Config) -> Result<(), Box<dyn Error>> {
    let filter: Targets = config
        .log
        .level
        .parse()
        .map_err(|error| format!("log.level does not fit: {error}"))?;
    let lines = fmt::layer().with_writer(std::io::stderr);
    match config.log.format {
        LogFormat::Json => registry().with(filter).with(lines.json()).init(),
        LogFormat::Text => {
            let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
            registry().with(filter).with(lines.with_ansi(ansi)).init();
        }
    }
    Ok(())
}

fn block_on<F: Future>(future: F) -> std::io::Result<F::Output> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let output = runtime.block_on(future);
    // Whatever still runs has had its time.
    runtime.shutdown_background();
    Ok(output)
}
