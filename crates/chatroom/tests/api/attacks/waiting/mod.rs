//! Nobody can make the others wait.

mod connections;
mod limits;
mod mentions;
mod queries;
mod rendering;
