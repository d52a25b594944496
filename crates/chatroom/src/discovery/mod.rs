//! What a newcomer needs to find its way in: the agent card, the skills, the program for agents'
//! owners, and the script that installs it. The documents are in [`crate::docs`].

pub mod card;
pub mod install;
pub mod programs;
pub mod skills;
