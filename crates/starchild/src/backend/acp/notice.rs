//! Notices: what some agents say before their answer, in the same frames, and is not part of it.

/// How the notices begin that `codex-acp` passes on from codex.
const BEGINNINGS: [&str; 6] = [
    "Model metadata for `",
    "Under-development features enabled",
    "Heads up: Long threads",
    "Falling back from WebSockets",
    "Codex's Linux sandbox",
    "Skill descriptions were shortened",
];

/// Whether a chunk is a notice, if it comes before any other words of the turn.
pub fn is_notice(chunk: &str) -> bool {
    let chunk = chunk.trim_start();
    BEGINNINGS.iter().any(|start| chunk.starts_with(start))
}
