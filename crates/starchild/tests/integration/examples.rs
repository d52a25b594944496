//! Every folder of `examples/`, taken up as its README says, with its scripted model. `story` tells
//! the one of `support`.

use crate::harness::eventually;
use crate::up::Team;
use client::PostMessage;
use protocol::{Consent, ConsentDecision, DecideConsent, Message, RoomId};

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

/// Who answers a message.
async fn answer_to(team: &Team, room: &RoomId, seq: i64) -> Message {
    eventually("somebody answers", async || {
        let said = team.messages(room).await;
        said.into_iter()
            .find(|message| message.reply_to_seq == Some(seq))
    })
    .await
}

async fn says(team: &Team, room: &RoomId, person: &str, content: &str) -> i64 {
    let user = format!("u_{}", person.to_lowercase());
    let message = PostMessage {
        content: content.into(),
        ..Default::default()
    };
    let posted = team.person(&user, person);
    let posted = posted.post_message(room, &message, None).await;
    posted.unwrap().seq
}

/// Decides the question that is open, and gives it.
async fn decides(team: &Team, room: &RoomId, decision: ConsentDecision) -> Consent {
    let alice = team.person("u_alice", "Alice");
    let asked = eventually("she is asked", async || {
        alice.consents(room, true).await.unwrap().consents.pop()
    })
    .await;
    let reason = None;
    let decision = DecideConsent { decision, reason };
    let decided = alice.decide_consent(room, &asked.consent_id, &decision);
    decided.await.unwrap();
    asked
}

#[tokio::test]
async fn in_the_review_a_file_is_changed_after_a_yes_and_read_by_the_other_agent() {
    let mut team = Team::of_example("review");
    team.up().await;
    let room = team.room("review");
    let file = team.folder.join("project/greet.py");
    let before = std::fs::read_to_string(&file).unwrap();
    let wish = "@Coder the greeting should use the name, please fix that";
    let seq = says(&team, &room, "Alice", wish).await;
    decides(&team, &room, ConsentDecision::Deny).await;
    let left = answer_to(&team, &room, seq).await;
    assert_eq!(left.content, "I leave it as it is.");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);

    let seq = says(&team, &room, "Alice", wish).await;
    let asked = decides(&team, &room, ConsentDecision::Allow).await;
    let change = asked.detail.unwrap();
    let diff = ["-    return \"Hello!\"", "+    return f\"Hello, {name}!\""];
    assert!(diff.iter().all(|line| change.contains(line)), "{change}");
    let done = answer_to(&team, &room, seq).await;
    assert!(done.content.contains("@Reviewer"), "{}", done.content);
    let review = answer_to(&team, &room, done.seq).await;
    assert_eq!(review.sender_user_name.as_deref(), Some("Reviewer"));
    assert!(review.content.starts_with("The change is right"));
    let greeted = std::process::Command::new("python3")
        .arg(&file)
        .arg("Ada")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&greeted.stdout), "Hello, Ada!\n");
    team.interrupt().await;
}

#[tokio::test]
async fn the_night_desk_reports_when_it_is_time_and_when_it_is_asked() {
    let mut team = Team::of_example("nightly");
    let organism = std::fs::read_to_string(team.folder.join("organism.yaml")).unwrap();
    assert!(organism.contains("'0 6 * * *'"), "{organism}");
    let file = std::fs::read_to_string(team.folder.join("starchild.yaml")).unwrap();
    let at_once = "server: {settings: {limits.agent_cooldown_seconds: 0}, ";
    team.write("starchild.yaml", &file.replace("server: {", at_once));
    // Every second, in place of every morning.
    let often = organism.replace("'0 6 * * *'", "'* * * * * *'");
    team.write("organism.yaml", &often);
    team.up().await;
    let room = team.room("shop");
    let report = "2026-11-16: 4 × teapot, 4 × cup, 2 × strainer; 122.00 euros in 4 orders.";
    let posted = eventually("it reports by itself", async || {
        let said = team.messages(&room).await;
        let mut reports = said.into_iter().filter(|one| one.content.contains(report));
        reports.find(|one| one.reply_to_seq.is_none())
    })
    .await;
    assert_eq!(posted.sender_user_name.as_deref(), Some("Night Desk"));
    team.write("organism.yaml", &organism);
    team.says("night_desk is started anew").await;
    let answer = team.ask(&room, "@Night Desk the report, please").await;
    assert!(answer.content.contains(report), "{}", answer.content);
    team.interrupt().await;
}

#[tokio::test]
async fn the_moderator_reads_along_and_speaks_where_a_rule_is_broken() {
    let mut team = Team::of_example("moderated");
    team.up().await;
    let room = team.room("garden");
    says(&team, &room, "Bob", "Tomatoes want water in the morning.").await;
    let rude = says(&team, &room, "Bob", "Only an idiot waters at noon").await;
    let reminded = answer_to(&team, &room, rude).await;
    assert!(reminded.content.contains("rule 1"), "{}", reminded.content);
    let advert = "Cheap tomato seeds at https://seed-shop.example, buy now";
    let advert = says(&team, &room, "Bob", advert).await;
    let handed_over = answer_to(&team, &room, advert).await;
    assert!(
        handed_over.content.starts_with("@Alice "),
        "{}",
        handed_over.content
    );
    // In their order, so what came first was passed over.
    let said = team.messages(&room).await;
    let moderator = |one: &&Message| one.sender_user_name.as_deref() == Some("Moderator");
    assert_eq!(said.iter().filter(moderator).count(), 2, "{said:?}");
    team.interrupt().await;
}
