use super::*;

const NOW: i64 = 1_800_000_000;

fn keys() -> (tempfile::TempDir, Keys) {
    let folder = tempfile::tempdir().unwrap();
    let keys = Keys::open(folder.path().join("keys.json")).unwrap();
    (folder, keys)
}

fn wanted(scope: &str, per_minute: u32) -> Wanted {
    Wanted {
        scope: scope.to_owned().try_into().unwrap(),
        ttl_seconds: 900,
        label: "a room".into(),
        rate_limit: RateLimit { per_minute },
        capabilities: None,
    }
}

#[test]
fn a_key_opens_its_thread_alone() {
    let (_folder, keys) = keys();
    let room = keys
        .create(wanted("chat:thread:chatroom-rm_a", 30), NOW)
        .unwrap();
    let bridge = keys.create(wanted("chat:bridge:cli", 30), NOW).unwrap();
    let admit = |made: &NewKey, thread: &str| keys.admit(&made.secret, thread, NOW).map(drop);
    assert_eq!(admit(&room, "chatroom-rm_a"), Ok(()));
    for other in ["chatroom-rm_ab", "chatroom-rm_", "CHATROOM-rm_a", ""] {
        assert_eq!(admit(&room, other), Err(Refused::Scope), "{other}");
        assert_eq!(admit(&bridge, other), Ok(()), "{other}");
    }
    assert_eq!(keys.admit("sk_guess", "x", NOW), Err(Refused::Unknown));
    assert_eq!(
        keys.admit(&room.secret, "chatroom-rm_a", NOW + 900),
        Err(Refused::Unknown)
    );
}

#[test]
fn keys_survive_a_restart_and_their_file_opens_nothing() {
    let (folder, keys) = keys();
    let made = keys.create(wanted("chat:bridge:cli", 30), NOW).unwrap();
    let path = folder.path().join("keys.json");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains(&made.secret));
    let random = made.secret.rsplit('_').next().unwrap();
    assert!(!text.contains(random));
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = Keys::open(path).unwrap();
    assert_eq!(again.admit(&made.secret, "any", NOW), Ok(made.key.prefix));
}

#[test]
fn a_rate_holds_for_each_key() {
    let (_folder, keys) = keys();
    let one = keys.create(wanted("chat:bridge:cli", 2), NOW).unwrap();
    let other = keys.create(wanted("chat:bridge:cli", 2), NOW).unwrap();
    let admit = |made: &NewKey| keys.admit(&made.secret, "t", NOW).map(drop);
    assert_eq!([admit(&one), admit(&one)], [Ok(()), Ok(())]);
    assert!(matches!(admit(&one), Err(Refused::Rate { after }) if !after.is_zero()));
    assert_eq!(admit(&other), Ok(()));
}

#[test]
fn a_rotated_key_is_dead_at_once() {
    let (_folder, keys) = keys();
    let old = keys.create(wanted("chat:bridge:cli", 30), NOW).unwrap();
    let new = keys.rotate(&old.key.prefix, NOW + 5).unwrap();
    assert_eq!(keys.admit(&old.secret, "t", NOW + 5), Err(Refused::Unknown));
    assert!(keys.admit(&new.secret, "t", NOW + 5).is_ok());
    assert_eq!(new.key.expires_at, NOW + 905);
    assert!(keys.rotate(&old.key.prefix, NOW + 5).is_err());
    assert_eq!(keys.list(true, NOW + 5).len(), 1);
}

#[test]
fn a_touch_prolongs_only_past_two_thirds_and_never_the_dead() {
    let (_folder, keys) = keys();
    let made = keys.create(wanted("chat:bridge:cli", 30), NOW).unwrap();
    let touch = |at: i64| {
        keys.touch(&made.key.prefix, NOW + at)
            .map(|key| key.expires_at)
    };
    assert_eq!(touch(599).unwrap(), NOW + 900);
    assert_eq!(touch(600).unwrap(), NOW + 1500);
    assert_eq!(touch(1100).unwrap(), NOW + 1500);
    assert_eq!(touch(1200).unwrap(), NOW + 2100);
    assert!(touch(2100).is_err());
    assert!(keys.list(false, NOW + 2100).is_empty());
    assert_eq!(keys.list(true, NOW + 2100).len(), 1);
}

#[test]
fn what_is_no_scope_is_refused() {
    for text in [
        "",
        "chat",
        "chat:thread:",
        "chat:bridge:web",
        "chat:thread:a b",
        "admin",
    ] {
        assert!(Scope::try_from(text.to_owned()).is_err(), "{text}");
    }
}
