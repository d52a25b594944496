use super::*;

fn name(name: &str) -> Arc<str> {
    name.into()
}

#[test]
fn calling_extends_and_answering_prunes() {
    let mut threads = Threads::default();
    let root = threads.open(name("console"));
    let router = threads.call(root, &name("router"), true, 9).unwrap();
    let greeter = threads.call(router, &name("greeter"), true, 9).unwrap();
    let shouter = threads.call(greeter, &name("shouter"), true, 9).unwrap();
    assert_eq!(threads.counts().0, 4);

    let mut ended = Vec::new();
    assert_eq!(threads.answer(router, &mut ended), Some(root));
    assert!(threads.is_alive(router), "the answerer may be called again");
    assert!(!threads.is_alive(greeter) && !threads.is_alive(shouter));
    assert_eq!(ended.len(), 2);
}

#[test]
fn the_same_peer_is_found_in_the_same_thread_until_the_caller_answers() {
    let mut threads = Threads::default();
    let root = threads.open(name("console"));
    let agent = threads.call(root, &name("agent"), true, 9).unwrap();
    let first = threads.call(agent, &name("calculator"), true, 9).unwrap();
    assert_eq!(threads.answer(first, &mut Vec::new()), Some(agent));
    assert_eq!(
        threads.call(agent, &name("calculator"), true, 9),
        Some(first)
    );
    threads.answer(agent, &mut Vec::new());
    assert_ne!(
        threads.call(agent, &name("calculator"), true, 9),
        Some(first)
    );
}

#[test]
fn two_conversations_on_one_path_share_nothing() {
    let mut threads = Threads::default();
    let (one, two) = (threads.open(name("console")), threads.open(name("console")));
    let in_one = threads.call(one, &name("a.b"), true, 9).unwrap();
    let in_two = threads.call(two, &name("a.b"), true, 9).unwrap();
    assert_ne!(in_one, in_two);
    assert_eq!(threads.parent(in_one), Some(one));
    assert_eq!(threads.parent(in_two), Some(two));
}

#[test]
fn dots_in_names_do_not_make_chains_collide() {
    let mut threads = Threads::default();
    let root = threads.open(name("console"));
    let dotted = threads.call(root, &name("a.b"), true, 9).unwrap();
    let a = threads.call(root, &name("a"), true, 9).unwrap();
    let below = threads.call(a, &name("b"), true, 9).unwrap();
    assert_ne!(dotted, below);
}

#[test]
fn a_self_call_stays_in_its_thread() {
    let mut threads = Threads::default();
    let root = threads.open(name("console"));
    let agent = threads.call(root, &name("agent"), true, 9).unwrap();
    assert_eq!(threads.call(agent, &name("agent"), true, 9), Some(agent));
    assert_eq!(threads.parent(agent), Some(root));
}

#[test]
fn a_closed_conversation_is_freed_when_its_last_message_is() {
    let mut threads = Threads::default();
    let mut ended = Vec::new();
    let root = threads.open(name("console"));
    let tool = threads.call(root, &name("tool"), true, 9).unwrap();
    threads.enter(tool);
    threads.close(root, &mut ended);
    assert!(threads.is_alive(tool));
    threads.leave(tool, root, &mut ended);
    assert_eq!(threads.counts(), (0, 0));
    assert_eq!(ended.len(), 2);
}

#[test]
fn chains_have_a_depth_limit() {
    let mut threads = Threads::default();
    let root = threads.open(name("console"));
    let a = threads.call(root, &name("a"), true, 2).unwrap();
    let b = threads.call(a, &name("b"), true, 2).unwrap();
    assert_eq!(threads.call(b, &name("c"), true, 2), None);
}
