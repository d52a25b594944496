//! Whether an agent answers in the room that its owner brings it into: said, and asked.

use crate::{
    backend::{answer_in::AnswerIn, config::BackendConfig},
    cli::{byoa::yaml, confirm::confirm, failure::Failure, show},
    home::{AgentHome, RoomAddress, files},
};

/// Whether the agent shall answer in the room. Whoever writes there has the backend run on this
/// machine, so the owner is asked; joining counts as a yes where nobody is there to be asked.
pub fn ask_owner(config: &BackendConfig, room: &RoomAddress) -> Result<bool, Failure> {
    let backend = config.backend;
    match config.answer_in() {
        AnswerIn::All => Ok(true),
        AnswerIn::Joined => {
            let question = format!(
                "Whoever mentions the agent in {room} has {backend} answer on this machine. Shall it answer there?"
            );
            Ok(confirm(&question, true)?.unwrap_or(true))
        }
        AnswerIn::Rooms(rooms) if rooms.contains(&room.room) => Ok(true),
        AnswerIn::Rooms(_) => {
            let question = format!(
                "answer_in: in handler.yaml names other rooms than {room}. Shall it answer there too?"
            );
            Ok(confirm(&question, true)?.unwrap_or(false))
        }
    }
}

/// Keeps what the owner said, and tells where the agent answers now.
pub fn save_choice(
    agent: &AgentHome,
    config: &BackendConfig,
    room: &RoomAddress,
    answer: bool,
) -> Result<(), Failure> {
    if let Some(file) = agent.room(room)?
        && file.answer != Some(answer)
    {
        let mut file = file;
        file.answer = Some(answer);
        agent.save_room(&file)?;
    }
    let mut answer_in = config.answer_in();
    if let AnswerIn::Rooms(rooms) = &mut answer_in
        && answer
        && rooms.insert(room.room.clone())
    {
        let path = agent.config_file();
        let text = std::fs::read_to_string(&path)?;
        let text = yaml::edit(&text, &[yaml::answer_in(&answer_in)]).map_err(Failure::permanent)?;
        files::write(&path, text.as_bytes())?;
        crate::cli::byoa::hint_restart(agent);
    }
    print_choice(agent, &answer_in, room, answer);
    Ok(())
}

fn print_choice(agent: &AgentHome, answer_in: &AnswerIn, room: &RoomAddress, answer: bool) {
    let id = agent.id();
    let (room, change) = (
        &room.room,
        format!("starchild agents edit {id} --answer-in"),
    );
    show::note(&match (answer_in, answer) {
        (AnswerIn::All, _) => {
            format!("It answers in every room that it is in. To change that: {change} joined")
        }
        (AnswerIn::Joined, true) => format!(
            "It answers in {room}, and stays silent in rooms that you did not join. To change that: {change} ROOM,ROOM"
        ),
        (AnswerIn::Rooms(_), true) => format!("It answers in {room}."),
        (_, false) => format!("It stays silent in {room}. To change that: {change} {room}"),
    });
}
