//! Shows that every query has an index behind it.

use super::{
    Db, DbResult, Json, Tx,
    a2a::PushRow,
    audit::AuditRow,
    bans::RoomBanRow,
    cli_keys::CliKeyRow,
    consents::ConsentRow,
    deliveries::Held,
    group::NewMessage,
    identities::IdentityRow,
    inbox::MentionCursor,
    invites::InviteRow,
    keys::{KeyRow, ShareCodeRow},
    leaderboard::Ranking,
    limits::WindowRow,
    members::{Endpoint, NewMember, PushKey},
    messages::Page,
    migrate::migrate,
    oauth::GrantRow,
    posting::Addressed,
    reputation::ScoreScope,
    rooms::Text,
    search::{Expression, Phrase, SearchPage, SearchableMessage, Terms, Where},
    spending::SpendingRow,
    turns::StopRow,
    webhooks::{SentEvent, WebhookDeliveryRow, WebhookRow},
};
use protocol::{
    AdapterType, ConsentState, Cursor, DeliveryState, EventKind, MemberKind, MessageType, PolicyOf,
    Role, RoomId, Scope, Usage, UserId, Via, Visibility, WakePolicy, WebhookEvent, WebhookKind,
    WelcomeCheck,
};
use sqlx::Row;
use std::{collections::BTreeSet, sync::Mutex, time::Duration};

static SEEN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Remembers a query's text.
pub fn record_query(sql: &'static str) {
    SEEN.lock().unwrap().insert(sql);
}

/// Queries that look at a whole table on purpose, each a table that stays small or an operator's
/// question.
const WHOLE_TABLE: [&str; 13] = [
    // A row for each node.
    "DELETE FROM health_checks",
    // The query of a test, which ends at its deadline.
    "WITH RECURSIVE endless",
    // A partial index, empty but for what an older server wrote.
    "WHERE name_folded IS NULL AND user_name IS NOT NULL",
    // Once, at the first start after an update.
    "FROM room_members m WHERE NOT EXISTS (SELECT 1 FROM member_looks",
    // Once, at start, as long as nobody has signed in.
    "SELECT CAST((EXISTS (SELECT 1 FROM identities",
    // Which rooms have something new: their heads are not indexed, so that posting stays cheap.
    "FROM rooms r LEFT JOIN reputation_rooms s",
    "FROM rooms r LEFT JOIN search_rooms s",
    "SELECT COUNT(*) FROM rooms",
    "FROM bans ORDER BY subject",
    "SELECT user_id, not_before FROM token_cutoffs",
    "SELECT room_id FROM events GROUP BY room_id",
    "FROM rooms r ORDER BY r.created_at DESC",
    "SELECT CAST(COALESCE(SUM(messages), 0) AS BIGINT) FROM traffic",
];

#[tokio::test]
async fn every_query_has_an_index_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_sqlite(&dir.path().join("chatroom.db"), Duration::from_secs(10))
        .await
        .unwrap();
    migrate(&db).await.unwrap();
    ask_everything(&db).await.unwrap();

    let queries = SEEN.lock().unwrap().clone();
    assert!(
        queries.len() > 60,
        "only {} queries were seen",
        queries.len()
    );
    let Db::Sqlite { writer, .. } = &db else {
        unreachable!()
    };
    let mut scans = Vec::new();
    for sql in queries {
        if WHOLE_TABLE.iter().any(|allowed| sql.contains(allowed)) || sql.starts_with("CREATE") {
            continue;
        }
        let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
        for row in sqlx::query(explain).fetch_all(&writer.pool).await.unwrap() {
            let step: String = row.get("detail");
            let scan = step.starts_with("SCAN");
            let harmless = [
                "json_each",
                "j ",
                "VIRTUAL TABLE",
                "CONSTANT ROW",
                "SCAN chain",
                "SCAN c",
                "SCAN block",
                "SCAN walk",
                "SCAN mine",
                "SCAN later",
            ];
            if scan && !harmless.iter().any(|word| step.contains(word)) {
                scans.push(format!("{step}: {sql}"));
            }
            assert!(
                !step.contains("TEMP B-TREE FOR ORDER BY")
                    || ["room_members", "FROM reputation_totals"]
                        .iter()
                        .any(|sorted| sql.contains(sorted)),
                "{step}: {sql}"
            );
        }
    }
    assert!(scans.is_empty(), "{}", scans.join("\n"));
}

/// Calls every function of the store once.
async fn ask_everything(db: &Db) -> DbResult<()> {
    let (id, a, b) = (&room_id(), &user("u_a"), &user("u_b"));
    let mut tx = db.begin().await?;
    tx.meta("x").await?;
    tx.set_meta_once("x", "y").await?;
    tx.set_meta("x", "z").await?;
    tx.forget_meta("x").await?;
    tx.insert_room(id, "a", a, Visibility::Public, 1).await?;
    let room = tx.lock_room(id).await?.unwrap();
    tx.update_room(&room).await?;
    tx.save_exchanges(&room).await?;
    tx.room(id).await?;
    tx.heads(&[id]).await?;
    tx.lock_free_rooms(&[id]).await?;
    tx.insert_revocation(id).await?;
    let seconds = tx.database_seconds().await?;
    tx.revocations_since(seconds - 60).await?;
    tx.forget_revocations(seconds).await?;
    tx.write_health_check("node-a", 1).await?;
    tx.forget_health_checks(1).await?;
    tx.rooms_of(a).await?;
    tx.public_rooms(10, 0).await?;
    tx.all_rooms(10, 0).await?;
    for text in [Text::Rules, Text::Data] {
        tx.text(id, text).await?;
        tx.set_text(id, text, "x", a, 1).await?;
    }
    tx.insert_member(NewMember {
        room_id: id,
        user_id: a,
        user_name: Some("A"),
        member_kind: &MemberKind::StarchildUser,
        role: Role::Owner,
        adapter_type: AdapterType::Pull,
        joined_at: 1,
        agent_endpoint: None,
        endpoint_trusted: false,
        akm: None,
        container_id: None,
        agent_card_url: None,
        lineage: None,
        invite_jti: None,
    })
    .await?;
    tx.invite_of_member(id, a).await?;
    let ban = RoomBanRow {
        user_id: user("u_b"),
        user_name: None,
        reason: None,
        banned_by: user("u_a"),
        banned_at: 1,
    };
    tx.insert_room_ban(id, &ban).await?;
    tx.is_banned_from(id, b).await?;
    tx.room_bans(id).await?;
    tx.delete_room_ban(id, b).await?;
    tx.insert_ban("u_b", None, 1).await?;
    tx.bans().await?;
    tx.delete_ban("u_b").await?;
    tx.set_token_cutoff(b, 1).await?;
    tx.token_cutoffs().await?;
    tx.detach_user(b).await?;
    tx.sessions_of(a, 1, 5).await?;
    tx.revoke_cli_keys_of(b).await?;
    tx.users_after("", 5).await?;
    tx.rooms_and_name_of(a).await?;
    tx.member(id, a).await?;
    tx.members(id, 5, 0).await?;
    tx.kinds_of_members(id).await?;
    tx.kinds_among(id, &[a]).await?;
    tx.member_count(id).await?;
    tx.set_member_name(id, a, "B").await?;
    tx.set_agent_card(id, a, None).await?;
    let endpoint = Endpoint {
        agent_endpoint: None,
        container_id: None,
        akm: PushKey::Keep,
        trusted: None,
    };
    tx.set_endpoint(id, a, endpoint).await?;
    tx.set_lineage(id, a, "l").await?;
    tx.user_is_known(a).await?;
    tx.name_is_taken(&[id], "A").await?;
    tx.set_skeletons(id, a, &["a".to_owned()]).await?;
    tx.skeleton_is_taken(&[id], &["a".to_owned()], b).await?;
    tx.members_without_skeletons(5).await?;
    tx.set_message_event(id, 1, "{}").await?;

    tx.disable_delivery(id, a).await?;
    tx.delivery_position(id, a).await?;
    tx.enable_delivery(id, a, 1, 1).await?;
    tx.lanes_after(None, 5).await?;
    tx.schedule_ms().await?;
    tx.lanes_behind(&[id], 1, 9).await?;
    tx.claim_lanes(&[(id, a, None)], "n").await?;
    tx.renew_node("n", 1).await?;
    tx.lane(id, a, "n").await?;
    tx.save_positions(&[(id, a, 2)], "n").await?;
    let held = Held {
        room: id,
        user: a,
        generation: 0,
        node: "n",
    };
    tx.fail_message(held, 2, 1, 1, "x").await?;
    tx.pass_message(held, 2).await?;
    tx.answer_message(held, 3, 1).await?;
    let stop = StopRow {
        reply_to_seq: None,
        by_user_id: user("u_b"),
        at: 1,
    };
    tx.save_stop(id, a, &stop).await?;
    tx.stop_of(id, a).await?;
    tx.forget_stop(id, a).await?;
    tx.forget_stops_before(9).await?;
    tx.delivery(id, a).await?;
    tx.stop_delivery(id, a, 1).await?;
    tx.request_answer_anew(id, a, 1).await?;
    tx.finish_answer_anew(held, 1, 1).await?;
    tx.mentioned_by(id, 1).await?;
    tx.inviter_of(id, a).await?;
    ask_agents_at_work(&mut tx).await?;
    ask_a2a(&mut tx).await?;
    tx.set_stale(id, a).await?;
    tx.delivery_errors(id).await?;
    tx.mention_before(id, a, 9).await?;
    tx.forget_node("n").await?;
    tx.forget_dead_nodes(9).await?;
    let cli_key = CliKeyRow {
        sealed_code: "c".into(),
        sealed_key: "k".into(),
        user_id: user("u_a"),
        container_id: "1".into(),
        agent_endpoint: None,
        endpoint_trusted: false,
        label: None,
        created_at: 1,
        expires_at: 9,
        revoked: false,
        use_count: 0,
        last_used_at: None,
    };
    tx.insert_cli_key("h", &cli_key).await?;
    tx.cli_key("h").await?;
    tx.cli_keys_of(a).await?;
    tx.count_cli_key_use("h", 1).await?;
    tx.fix_cli_key_endpoint("h", "e", true).await?;
    tx.revoke_cli_key("h").await?;
    tx.endpoint_of_container(a, "1").await?;

    tx.lock_rooms(&[id]).await?;
    tx.posters(&[(id, a)]).await?;
    tx.members_called(id, &["a".to_owned()], 1).await?;
    tx.fold_names(1).await?;
    tx.posting_keys(&["k"]).await?;
    tx.parents(&[(id, 1)]).await?;
    tx.prior_posts(&[(id, a, "k")]).await?;
    tx.insert_message(&message(1)).await?;
    tx.insert_mentions(&[(id, a, 1)]).await?;
    let addressed = Addressed {
        room: id,
        user: a,
        by: None,
    };
    tx.note_addressed(&[addressed]).await?;
    tx.last_message_of(id, a).await?;
    tx.set_head(id, Cursor { seq: 1, sub: 1 }).await?;
    for before in [None, Some(9)] {
        for sender in [None, Some(a)] {
            for mentions in [None, Some(a)] {
                tx.messages(
                    id,
                    &Page {
                        since: 0,
                        before,
                        sender,
                        mentions,
                        limit: 5,
                    },
                )
                .await?;
            }
        }
    }
    tx.message(id, 1).await?;
    tx.thread(id, 1, 10).await?;
    tx.reactions(id, &[1], Some(a)).await?;
    tx.mentions_between(id, a, 1, 2).await?;
    tx.answers_to(id, &[(1, 1)], Some(a)).await?;
    tx.answered_messages(id, &[1], 5).await?;
    tx.thread_positions(id, a).await?;
    tx.thread_position(id, a, 1).await?;
    tx.advance_thread_position(id, a, 1, 2).await?;
    tx.forget_thread(id, a, 1).await?;
    tx.forget_threads(id, a).await?;
    tx.mentions_after(id, a, 0).await?;
    tx.read_position(id, a).await?;
    tx.advance_read_position(id, a, 1).await?;
    tx.inbox_rooms(a, 10, 100).await?;
    let before = MentionCursor {
        at: 9,
        room: room_id(),
        seq: 9,
    };
    tx.inbox_mentions(a, Some(&before), 10).await?;
    tx.memberships(std::slice::from_ref(id), std::slice::from_ref(a))
        .await?;
    ask_search(&mut tx).await?;
    ask_people(&mut tx).await?;
    ask_reputation(&mut tx).await?;
    tx.edit_message(id, 1, "y", 2).await?;
    tx.add_reaction(id, 1, "x", a, 1).await?;
    tx.reaction_count(id, 1, a).await?;
    tx.remove_reaction(id, 1, "x", a).await?;
    tx.redact_message(id, 1).await?;
    for sub in [1, 2] {
        let (at, kind) = (Cursor { seq: 1, sub }, EventKind::MessageDeleted);
        tx.insert_event(id, at, kind, None, "{}").await?;
    }
    tx.events_between(id, Cursor::at(0), Cursor::at(9), 5)
        .await?;
    tx.prune_events(id, 1).await?;
    tx.rooms_to_prune(1).await?;

    let key = KeyRow {
        jti: "k".into(),
        room_id: room_id(),
        user_id: user("u_a"),
        scope: Scope::View,
        posts_as: Via::Web,
        shared: true,
        lineage: None,
        derived_from: None,
        issued_at: 1,
        expires_at: 9,
        revoked: false,
    };
    tx.insert_key(&key).await?;
    tx.key("k").await?;
    tx.shared_keys(id, a, 1).await?;
    tx.keys_of_member(id, a).await?;
    tx.lock_key("k").await?;
    tx.revoke_key_chain(&["k"], "").await?;
    let share = ShareCodeRow {
        room_id: room_id(),
        jti: "k".into(),
        created_by: user("u_a"),
        expires_at: 9,
        revoked: false,
    };
    tx.insert_share_code("h", &share).await?;
    tx.share_code("h").await?;
    tx.revoke_share_code("h").await?;
    let invite = InviteRow {
        jti: "i".into(),
        room_id: room_id(),
        created_by: user("u_a"),
        display_name: None,
        max_uses: 1,
        uses: 0,
        issued_at: 1,
        expires_at: 9,
        revoked: false,
        recovers: None,
    };
    tx.insert_invite(&invite, "h").await?;
    tx.invite("i").await?;
    tx.invite_by_code("h").await?;
    tx.active_invites(id, 1).await?;
    tx.use_invite("i", id, 1).await?;
    tx.revoke_invite(id, "i").await?;
    tx.revoke_invites_by(id, a).await?;
    let identity = IdentityRow {
        jti: "d".into(),
        user_id: user("u_a"),
        lineage: None,
        derived_from: None,
        issued_at: 1,
        expires_at: 9,
        revoked: false,
    };
    tx.insert_identity(&identity).await?;
    tx.identity("d").await?;
    tx.lock_identity("d").await?;
    tx.revoke_identity_chain(&["d"], "").await?;
    let grant = GrantRow {
        id: "g".into(),
        user_id: user("u_a"),
        user_name: None,
        client_hash: "c".into(),
        client_name: "c".into(),
        secret_hash: "s".into(),
        prior_hash: None,
        challenge: None,
        redirect_uri: None,
        jti: None,
        expires_at: 9,
    };
    ask_webhooks(&mut tx, id, a).await?;
    tx.insert_grant(&grant).await?;
    tx.lock_grant("s").await?;
    tx.robbed_grant("s").await?;
    tx.rotate_grant("g", "t", "d", 9).await?;
    tx.clients_of(a).await?;
    tx.forget_codes_of(a).await?;
    tx.forget_grants(9).await?;
    tx.claim_id(a, "l").await?;
    tx.first_lineage(a).await?;
    let window = WindowRow {
        bucket: "b".into(),
        started_ms: 1,
        count: 1,
        ends_ms: 2,
    };
    tx.save_windows(&[&window]).await?;
    tx.open_windows(&["b"]).await?;
    tx.windows(&["b"]).await?;
    tx.forget_windows(9).await?;
    tx.reserve_reply("r", "c", "q", 1).await?;
    tx.keep_reply("r", "x").await?;
    tx.kept_reply("r").await?;
    tx.forget_replies_beyond("c", 5).await?;
    tx.forget_replies(9).await?;
    tx.audit_head(id).await?;
    let line = AuditRow {
        n: 1,
        at: 1,
        actor: user("u_a"),
        action: "x".into(),
        target: None,
        detail: Json(serde_json::json!({})),
        hash: String::new(),
    };
    tx.insert_audit(id, &line).await?;
    tx.audit_after(id, 0, 5).await?;
    tx.add_traffic(1, "n", 1).await?;
    tx.traffic_since(0).await?;
    tx.forget_traffic(0).await?;
    tx.active_rooms().await?;
    tx.room_count().await?;
    tx.delete_member(id, a).await?;
    tx.commit().await
}

async fn ask_people(tx: &mut Tx) -> DbResult<()> {
    let (id, a) = (&room_id(), &user("u_a"));
    assert!(tx.has_people().await?);
    tx.set_account_name(a, "seed", "A", 1).await?;
    tx.set_picture(a, "seed", Some((vec![1], "image/png")), 1)
        .await?;
    assert!(tx.account(a).await?.unwrap().has_picture);
    assert_eq!(tx.picture("seed").await?.unwrap().picture, [1]);
    tx.members_with_pictures(id).await?;
    tx.forget_account(a).await?;
    tx.set_meta("m", "v").await?;
    assert!(!tx.take_meta("m", "w").await? && tx.take_meta("m", "v").await?);
    tx.member_names(id, 5).await?;
    tx.pin(id, 1, a, 1).await?;
    tx.pins(id).await?;
    tx.pinned_messages(id).await?;
    tx.pin_count(id).await?;
    tx.unpin(id, 1).await?;
    let text = tx.text(id, Text::Rules).await?.unwrap();
    tx.keep_text(id, Text::Rules, &text, 50).await?;
    assert_eq!(tx.older_texts(id, Text::Rules).await?.len(), 1);
    Ok(())
}

async fn ask_search(tx: &mut Tx) -> DbResult<()> {
    let (id, a) = (&room_id(), &user("u_a"));
    tx.rooms_to_index(5).await?;
    tx.lock_indexed_seq(id).await?;
    let searchable = SearchableMessage {
        room_id: room_id(),
        seq: 1,
        created_at: 1,
        terms: Terms {
            words: vec!["007".into()],
            marks: vec!["/in_rm_a".into()],
        },
    };
    tx.index_messages(&[searchable]).await?;
    tx.set_indexed_seq(id, 1).await?;
    let wanted = Expression {
        phrases: vec![Phrase {
            words: vec!["007".into()],
            is_prefix: true,
        }],
        marks: vec!["/in_rm_a".into()],
        any_of: Vec::new(),
    };
    let page = SearchPage {
        below: i64::MAX,
        since: 0,
        has_reaction: false,
        is_rare: false,
        limit: 5,
    };
    for place in [Where::Room(id), Where::RoomsOf(a)] {
        for is_rare in [false, true] {
            let page = SearchPage { is_rare, ..page };
            assert_eq!(tx.found_messages(&wanted, place, page).await?.len(), 1);
        }
        let newest = tx.newest_messages(&wanted, place, 0, 5000, 1).await?;
        assert_eq!(newest.map(|found| found.len()), Some(1));
    }
    tx.unindex_message(id, 1).await?;
    let gone = tx.found_messages(&wanted, Where::Room(id), page).await?;
    assert!(gone.is_empty());
    Ok(())
}

async fn ask_a2a(tx: &mut Tx) -> DbResult<()> {
    let (id, a) = (&room_id(), &user("u_a"));
    tx.insert_a2a_cancel(id, 1, a, 5).await?;
    tx.insert_a2a_cancel(id, 1, a, 6).await?;
    assert_eq!(tx.a2a_canceled_at(id, 1).await?, Some(5));
    let push = PushRow {
        room_id: room_id(),
        seq: 1,
        user_id: user("u_a"),
        jti: None,
        issued_at: None,
        id: "p".into(),
        sealed: "s".into(),
        trusted: true,
        older: false,
        told: String::new(),
        attempt: 0,
        due_ms: 7,
        expires_at: 9,
    };
    tx.save_a2a_push(&push).await?;
    tx.save_a2a_push(&push).await?;
    assert_eq!(
        tx.a2a_pushes_of(id, 1, a).await?,
        std::slice::from_ref(&push)
    );
    assert_eq!(tx.due_a2a_pushes(7, 5).await?.len(), 1);
    assert!(tx.lease_a2a_push(&push, 8).await?);
    assert!(!tx.lease_a2a_push(&push, 8).await?);
    tx.settle_a2a_push(&push, 8, "x", 1, 9).await?;
    assert_eq!(tx.a2a_pushes_of(id, 1, a).await?[0].due_ms, 9);
    assert!(tx.delete_a2a_push(id, 1, a, "p").await?);
    tx.forget_a2a_pushes(9).await
}

async fn ask_agents_at_work(tx: &mut Tx) -> DbResult<()> {
    let (id, a) = (&room_id(), &user("u_a"));
    let consent = ConsentRow {
        consent_id: "cs_a".into(),
        room_id: room_id(),
        user_id: user("u_a"),
        state: ConsentState::Open,
        tool: "t".into(),
        summary: "s".into(),
        detail: None,
        reply_to_seq: None,
        created_at: 1,
        expires_at: 9,
        closed_at: None,
        decided_by: None,
        reason: None,
    };
    tx.insert_consent(&consent).await?;
    tx.consent("cs_a").await?;
    tx.consents(id, 5).await?;
    tx.open_consents(id, 1).await?;
    tx.open_consent_count(id, a, 1).await?;
    tx.open_consents_of(id, a).await?;
    tx.consents_to_expire(9, 5).await?;
    tx.close_consent("cs_a", &ConsentState::Denied, 2, Some(a), None)
        .await?;
    let spent = SpendingRow {
        room_id: room_id(),
        user_id: user("u_a"),
        day: 1,
        turns: 1,
        input_tokens: 1,
        output_tokens: 1,
        cost_usd: 0.5,
        seconds: 1.0,
        told: false,
    };
    tx.add_spending(&spent).await?;
    tx.add_spending(&spent).await?;
    assert_eq!(tx.spending(&[(id, a)], 1).await?[0].turns, 2);
    tx.spending_in(id, 0, 5).await?;
    tx.spending_in_rooms_of(a, 0, 5).await?;
    tx.spending_of(a, 0, 5).await?;
    for party in [&PolicyOf::Own, &PolicyOf::Room] {
        tx.save_wake_policy(id, a, party, &WakePolicy::default())
            .await?;
    }
    tx.wake_policies(&[(id, a)]).await?;
    tx.wake_policies_in(id).await?;
    Ok(())
}

async fn ask_reputation(tx: &mut Tx) -> DbResult<()> {
    let (id, a, b) = (&room_id(), &user("u_a"), &user("u_b"));
    tx.welcome_probe(id, a).await?;
    tx.stamp_checks(a, &[WelcomeCheck::React], 1).await?;
    tx.welcome_progress(a).await?;
    tx.welcome_progress_of(&[a]).await?;
    tx.scored_seq(id).await?;
    tx.lock_scored_seq(id).await?;
    tx.rooms_to_score().await?;
    tx.posts_after(id, 0, 5).await?;
    tx.posts(id, &[1]).await?;
    tx.first_mentions(id, 0, 9).await?;
    tx.thread_replies(id, &[1]).await?;
    tx.save_thread_replies(id, &[(1, 2)]).await?;
    tx.set_scored_seq(id, 1).await?;
    tx.lock_scored_users(&[a]).await?;
    tx.save_first_events(&[(a, 1)]).await?;
    tx.first_event_at(a).await?;
    tx.event_counts(&[(a, "post_authored", a, 0)]).await?;
    tx.reaction_was_counted(id, 1, b, "x").await?;
    let event = (id, a, "post_authored", 0.5, 1.5, a, 1, None, 0, 1);
    tx.insert_score_events(&[event]).await?;
    let scope = &ScoreScope::Room(room_id());
    tx.score_totals(&[scope], &[a]).await?;
    tx.add_to_starts(&[(scope, 0, a, 1, 0.75, 0.0)]).await?;
    tx.save_score_totals(&[(scope, a, 1, 0.75, 0.0, 0)]).await?;
    let ranking = Ranking {
        since: 0,
        of_points: 1.0,
        of_moment: 0.0,
        limit: 5,
    };
    tx.ranked_everywhere(ranking).await?;
    tx.ranked_in(id, ranking).await?;
    tx.public_members(&[a]).await?;
    tx.own_agents(a, &[a]).await?;
    tx.score_by_kind(id, a, 0).await?;
    tx.recent_score_events(id, a, 5).await?;
    tx.has_starts_before(0).await?;
    tx.forget_starts_before(0).await?;
    Ok(())
}

fn user(id: &str) -> UserId {
    id.parse().unwrap()
}

fn room_id() -> RoomId {
    "rm_a".parse().unwrap()
}

fn message(seq: i64) -> NewMessage {
    NewMessage {
        room_id: room_id(),
        seq,
        sender_user_id: user("u_a"),
        sender_user_name: None,
        via: Via::Web,
        r#type: MessageType::Chat,
        content: "007".into(),
        reply_to_seq: None,
        reply_chain_depth: 0,
        created_at: 1,
        client_key: None,
        calls_agents: true,
        usage: Some(Usage::default()),
    }
}

async fn ask_webhooks(tx: &mut Tx, room: &RoomId, by: &UserId) -> DbResult<()> {
    let hook = WebhookRow {
        hook_id: user("hook_a"),
        room_id: room_id(),
        kind: WebhookKind::Out,
        name: "n".into(),
        created_by: by.clone(),
        created_at: 1,
        sealed_secret: None,
        sealed_url: None,
        target: None,
        trusted: false,
        events: Json(Vec::new()),
        enabled: true,
        disabled_reason: None,
        failing_since: None,
    };
    let id = &hook.hook_id;
    tx.insert_webhook(&hook, Some("h")).await?;
    tx.webhooks(room).await?;
    tx.webhook(id).await?;
    tx.webhook_by_code("h").await?;
    tx.rotate_webhook(id, Some("h"), None).await?;
    tx.set_webhook_enabled(id, true, None).await?;
    tx.set_webhook_failing(id, Some(1)).await?;
    tx.enable_webhook_delivery(room, id, Cursor::at(1)).await?;
    tx.webhook_lane(room, id, "n").await?;
    tx.webhook_position(room, id).await?;
    let held = Held {
        room,
        user: id,
        generation: 0,
        node: "n",
    };
    tx.fail_event(held, Cursor::at(1), 1, 1, "e").await?;
    tx.pass_event(held, Cursor::at(2)).await?;
    let sent = |seq| WebhookDeliveryRow {
        seq,
        sub: 0,
        event: SentEvent::Told(WebhookEvent::Message),
        state: DeliveryState::Delivered,
        attempts: 1,
        status: None,
        error: None,
        first_at: 1,
        last_at: 1,
    };
    tx.log_webhook_delivery(id, &sent(1), 1).await?;
    tx.log_webhook_delivery(id, &sent(2), 1).await?;
    tx.webhook_deliveries(id, 1).await?;
    tx.begin_import(room, 1).await?;
    tx.is_importing(room).await?;
    tx.end_import(room).await?;
    tx.delete_webhook(room, id).await
}
