//! What an organism has answered to a message so far. An organism gives an answer once and may then
//! forget it; the daemon may be killed before it has posted it. So it is on the disk in between.

use crate::{
    backend::{BackendError, Reply},
    home::{FileError, files},
};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The answers to one message of a conversation.
pub struct StoredAnswers {
    path: PathBuf,
    kept: AnswersFile,
}

#[derive(Serialize, Deserialize)]
struct AnswersFile {
    seq: i64,
    /// With their ids, so that one which is given again counts once.
    answers: Vec<(String, Result<String, String>)>,
}

impl StoredAnswers {
    /// Those to the message `seq` of a conversation, which has one at a time.
    pub fn open(folder: &Path, conversation: &str, seq: i64) -> Self {
        let path = folder.join(format!("{}.json", file_name(conversation)));
        let kept = files::read_json::<AnswersFile>(&path).ok().flatten();
        let kept = kept.filter(|kept| kept.seq == seq);
        Self {
            path,
            kept: kept.unwrap_or(AnswersFile {
                seq,
                answers: Vec::new(),
            }),
        }
    }

    /// Keeps one.
    pub fn add(&mut self, id: String, words: Result<String, String>) -> Result<(), FileError> {
        if self.kept.answers.iter().any(|(known, _)| *known == id) {
            return Ok(());
        }
        self.kept.answers.push((id, words));
        if let Some(folder) = self.path.parent() {
            files::make_folder(folder)?;
        }
        files::write_json(&self.path, &self.kept)
    }

    /// What was said so far.
    pub fn text(&self) -> String {
        let said = self.kept.answers.iter();
        let said: Vec<&str> = said
            .filter_map(|(_, words)| words.as_deref().ok())
            .collect();
        said.join("\n\n")
    }

    /// All of them in one text. What went wrong is the answer where there is no other.
    pub fn reply(self) -> Result<Reply, BackendError> {
        let (mut said, mut failed) = (Vec::new(), Vec::new());
        for (_, words) in self.kept.answers {
            match words {
                Ok(words) => said.push(words),
                Err(words) => failed.push(words),
            }
        }
        if said.is_empty() && !failed.is_empty() {
            return Err(BackendError::Failed(failed.join("; ")));
        }
        for words in failed {
            tracing::warn!("a part of the organism failed: {words}");
        }
        Ok(Reply::from_output(&said.join("\n\n")))
    }
}

/// Room names hold nothing but what file names can; a server's port has a colon.
fn file_name(conversation: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    let shown = |c: char| if fits(c) { c } else { '~' };
    conversation.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_given_again_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let open = |seq| StoredAnswers::open(folder.path(), "rm_a@host:80-1", seq);
        let mut answers = open(1);
        answers.add("1.1".into(), Ok("one".into())).unwrap();
        let mut answers = open(1);
        answers.add("1.1".into(), Ok("one".into())).unwrap();
        answers.add("1.2".into(), Err("no".into())).unwrap();
        answers.add("1.3".into(), Ok("two".into())).unwrap();
        assert_eq!(open(1).reply().unwrap(), Reply::Text("one\n\ntwo".into()));
        assert_eq!(open(2).reply().unwrap(), Reply::Silent);
    }
}
