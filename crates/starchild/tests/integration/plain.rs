//! An agent without a model is useful, and has a name.

use crate::backends::Scene;
use crate::harness::{Room, eventually};

#[tokio::test]
async fn an_agent_without_a_model_is_a_pleasure_and_keeps_its_word_over_a_restart() {
    let mut scene = Scene::new(&[], async |_| {}).await;
    let members = scene.room.alice.members(&scene.room.id).await.unwrap();
    let agent = scene.user();
    let member = members.members.iter().find(|it| it.user_id == agent);
    assert_eq!(member.unwrap().user_name.as_deref(), Some("Curious Otter"));

    let help = scene.room.ask("@Curious Otter help").await;
    assert!(
        help.contains("who is here") && help.contains("remind me"),
        "{help}"
    );
    let here = scene.ask("who is here?").await;
    assert!(
        here.contains("Alice") && here.contains("Curious Otter"),
        "{here}"
    );
    scene.room.say("the ship leaves at nine").await;
    let today = scene.ask("what happened today?").await;
    assert!(today.contains("the ship leaves at nine"), "{today}");
    assert_eq!(scene.ask("roll 2d1").await, "🎲 1 + 1 = 2");

    let asked = scene
        .room
        .say("@Curious Otter remind me in 3 seconds to stretch")
        .await;
    let promise = scene.room.answer(asked).await.content;
    assert!(promise.contains("stretch"), "{promise}");
    scene.daemon.kill9();
    scene.daemon = scene.owner.runs().await;
    eventually("the reminder comes", async || {
        let answers = scene.room.answers(asked).await;
        answers.iter().find(|it| it.content.contains("⏰")).cloned()
    })
    .await;
    scene.daemon.kill9();
    scene.daemon = scene.owner.runs().await;
    assert_eq!(scene.ask("flip a coin").await.len(), "Heads.".len());
    assert_eq!(scene.room.answers(asked).await.len(), 2, "it comes once");
}

#[tokio::test]
async fn an_owner_chooses_the_name_but_not_somebody_elses() {
    let scene = Scene::new(&["--name", "Dr. Falcon"], async |_| {}).await;
    let help = scene.room.ask("@dr. falcon help").await;
    assert!(help.starts_with("I am Dr. Falcon."), "{help}");
    let other = Room::new(&scene.room.alice).await;
    let edit = ["byoa", "edit", &scene.owner.agent, "--name", "Alice"];
    scene.owner.types(&edit).await;
    let code = other.invite().await.short_code;
    let out = scene.owner.tries(&["room", "join", &code]).await;
    let told = String::from_utf8(out.stderr).unwrap();
    assert!(
        !out.status.success() && told.contains("looks like"),
        "{told}"
    );
}
