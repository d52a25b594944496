//! Every folder of `examples/`, taken up as its README says, with its scripted model.

use crate::harness::eventually;
use crate::up::Team;
use client::{Client, PostMessage};
use protocol::{Message, RoomId};
use std::{process::Command, time::Duration};

#[tokio::test]
async fn the_shell_bot_answers_and_runs_nothing_of_what_is_said() {
    let mut team = Team::of_example("shell-bot");
    team.up().await;
    let room = team.room("workshop");
    assert!(
        team.ask(&room, "!help")
            .await
            .content
            .contains("`!echo WORDS`")
    );
    assert!(team.ask(&room, "!time").await.content.ends_with("UTC."));
    let hostile = "!echo $(touch pwned) `touch pwned`; touch pwned";
    let answer = team.ask(&room, hostile).await.content;
    assert_eq!(answer, hostile.trim_start_matches("!echo "));
    assert!(!team.folder.join("pwned").exists());
    team.interrupt().await;
}

#[tokio::test]
async fn in_the_support_room_a_question_finds_who_knows() {
    let mut team = Team::of_example("support");
    team.up().await;
    let room = team.room("support");
    let passed_on = team.ask(&room, "@Triage where is order 1042?").await;
    assert_eq!(passed_on.content, "@Orders where is order 1042?");
    let answer = answer_to(&team, &room, passed_on.seq).await;
    assert!(
        answer.content.contains("a teapot, sent on Monday"),
        "{}",
        answer.content
    );
    assert_eq!(answer.sender_user_name.as_deref(), Some("Orders"));
    let passed_on = team.ask(&room, "@Triage how do I pay the invoice?").await;
    assert!(
        passed_on.content.starts_with("@Billing "),
        "{}",
        passed_on.content
    );
    team.interrupt().await;
}

/// Who answers a message that was passed on.
async fn answer_to(team: &Team, room: &RoomId, seq: i64) -> Message {
    eventually("the specialist answers", async || {
        let said = team.messages(room).await;
        said.into_iter()
            .find(|message| message.reply_to_seq == Some(seq))
    })
    .await
}

#[tokio::test]
async fn the_support_room_loses_and_doubles_nothing_while_its_programs_are_killed() {
    let mut team = Team::of_example("support");
    team.up().await;
    let room = team.room("support");
    let mut asked = Vec::new();
    for (turn, program) in ["orders", "server", "triage", "server"]
        .into_iter()
        .enumerate()
    {
        let alice = team.person("u_alice", "Alice");
        let question = PostMessage {
            content: format!(
                "@Triage where is order 104{}? (asked as number {turn})",
                2 + turn % 2
            ),
            ..Default::default()
        };
        let key = format!("question-{turn}");
        asked.push(
            alice
                .post_message(&room, &question, Some(&key))
                .await
                .unwrap()
                .seq,
        );
        let pid = team.pid(program).unwrap().to_string();
        let killed = Command::new("kill").args(["-9", &pid]).status();
        assert!(killed.unwrap().success());
        let runs_again = async || team.pid(program).filter(|new| new.to_string() != pid);
        eventually("it runs again", runs_again).await;
        let client = Client::new(&team.url).unwrap();
        eventually("the server serves", async || client.health().await.ok()).await;
    }
    for seq in &asked {
        let passed_on = answer_to(&team, &room, *seq).await;
        assert!(
            passed_on.content.starts_with("@Orders "),
            "{}",
            passed_on.content
        );
        let answer = answer_to(&team, &room, passed_on.seq).await;
        assert!(
            answer.content.starts_with("I have looked it up."),
            "{}",
            answer.content
        );
    }
    // Each question is passed on once and answered once, and then nobody says anything more.
    let quiet = async || {
        let before = team.messages(&room).await.len();
        tokio::time::sleep(Duration::from_secs(3)).await;
        let after = team.messages(&room).await;
        (after.len() == before).then_some(after)
    };
    let said = eventually("the room falls silent", quiet).await;
    let answers = |seq: i64| {
        said.iter()
            .filter(|one| one.reply_to_seq == Some(seq))
            .count()
    };
    for seq in &asked {
        assert_eq!(answers(*seq), 1, "{said:?}");
        let passed_on = said
            .iter()
            .find(|one| one.reply_to_seq == Some(*seq))
            .unwrap();
        assert_eq!(answers(passed_on.seq), 1, "{said:?}");
    }
    let seqs: Vec<i64> = said.iter().map(|message| message.seq).collect();
    assert_eq!(
        seqs,
        (1..=seqs.len() as i64).collect::<Vec<_>>(),
        "no gap and no double"
    );
}
