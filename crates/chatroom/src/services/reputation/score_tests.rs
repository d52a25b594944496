//! Properties of the rules, for any order of events.

use super::*;
use proptest::prelude::*;

const NOW: i64 = 1_800_000_000;

fn room() -> RoomId {
    "rm_a".parse().unwrap()
}

fn user_id(n: u8) -> UserId {
    format!("u{n}").parse().unwrap()
}

fn event(kind: ScoreKind, user: u8, source: u8, at: i64) -> ScoreEvent {
    ScoreEvent {
        room_id: room(),
        user_id: user_id(user),
        kind,
        source_user_id: user_id(source),
        source_seq: 1,
        source_emoji: None,
        at,
    }
}

fn any_event() -> impl Strategy<Value = ScoreEvent> {
    let kind = prop::sample::select(KINDS.to_vec());
    (kind, 0..4u8, 0..4u8, 0..40 * DAY).prop_map(|(kind, user, source, age)| {
        let source = if kind == ScoreKind::PostAuthored {
            user
        } else {
            source
        };
        event(kind, user, source, NOW - age)
    })
}

fn posts() -> impl Strategy<Value = Vec<ChatPost>> {
    let post = (
        0..3u8,
        prop::option::of(1..20i64),
        prop::collection::vec(0..3u8, 0..3),
    );
    prop::collection::vec(post, 0..60).prop_map(|posts| {
        let numbered = (1..).zip(posts);
        numbered
            .map(|(seq, (author, reply, mentions))| ChatPost {
                seq,
                author: user_id(author),
                reply_to_seq: reply.filter(|to| *to < seq),
                at: NOW + seq,
                mentions: mentions.iter().map(|user| user_id(*user)).collect(),
            })
            .collect()
    })
}

proptest! {
    /// Whatever days events come on, and in whatever order they are found.
    #[test]
    fn totals_less_what_they_were_when_a_day_began_are_what_came_since(
        found in prop::collection::vec((0..70i64, -100..100i32), 1..40)
    ) {
        let mut totals = Totals::default();
        let mut starts: BTreeMap<i64, Sums> = BTreeMap::new();
        let sums = |quarters: i32| Sums {
            events: 1,
            points: f64::from(quarters) / 4.0,
            moment: f64::from(quarters) * 1e6,
        };
        for (day, quarters) in &found {
            let (days, more) = totals.add(*day, sums(*quarters));
            days.for_each(|day| *starts.entry(day).or_default() += more);
        }
        let last = totals.last_day.unwrap();
        prop_assert_eq!(Some(last), found.iter().map(|(day, _)| *day).max());
        for first in last - DECAY_DAYS + 1..=last {
            let mut since = starts.get(&first).copied().unwrap_or_default();
            for (_, quarters) in found.iter().filter(|(day, _)| *day >= first) {
                since += sums(*quarters);
            }
            prop_assert_eq!(since, totals.sums, "since day {}", first);
        }
    }

    #[test]
    fn no_cap_is_ever_exceeded(events in prop::collection::vec(any_event(), 0..400)) {
        let counted = Ledger::default().apply_caps(events);
        let mut counts: HashMap<Pair, i64> = HashMap::new();
        for scored in &counted {
            *counts.entry(scored.event.pair()).or_default() += 1;
        }
        for ((_, kind, _, _), count) in counts {
            prop_assert!(daily_cap(kind).is_none_or(|cap| count <= cap));
        }
    }

    #[test]
    fn nobody_credits_or_punishes_themselves(events in prop::collection::vec(any_event(), 0..200)) {
        for scored in Ledger::default().apply_caps(events) {
            let own = scored.event.user_id == scored.event.source_user_id;
            prop_assert!(!own || scored.event.kind == ScoreKind::PostAuthored);
        }
    }

    #[test]
    fn batches_of_any_size_admit_the_same(
        events in prop::collection::vec(any_event(), 0..200), cut in 0..200usize,
    ) {
        let whole = Ledger::default().apply_caps(events.clone());
        let mut ledger = Ledger::default();
        let cut = cut.min(events.len());
        let mut parts = ledger.apply_caps(events[..cut].to_vec());
        parts.extend(ledger.apply_caps(events[cut..].to_vec()));
        prop_assert_eq!(whole, parts);
    }

    #[test]
    fn messages_in_batches_of_any_size_give_the_same_candidates(posts in posts(), cut in 0..60usize) {
        let roots: HashMap<i64, UserId> = posts.iter()
            .filter(|post| post.reply_to_seq.is_none())
            .map(|post| (post.seq, post.author.clone()))
            .collect();
        let whole = candidates(&room(), &posts, &roots, &mut BTreeMap::new());
        let mut replies = BTreeMap::new();
        let cut = cut.min(posts.len());
        let mut parts = candidates(&room(), &posts[..cut], &roots, &mut replies);
        parts.extend(candidates(&room(), &posts[cut..], &roots, &mut replies));
        prop_assert_eq!(&whole, &parts);
        for (root, author) in &roots {
            let awards = whole.iter()
                .filter(|e| e.kind == ScoreKind::ThreadStartedReplies && e.source_seq == *root);
            let others = posts.iter()
                .filter(|p| p.reply_to_seq == Some(*root) && p.author != *author);
            prop_assert_eq!(awards.count(), usize::from(others.count() >= 3));
        }
    }

    #[test]
    fn sums_by_day_score_like_the_events_one_by_one(
        events in prop::collection::vec(any_event(), 0..200), days in 1..=30i64,
    ) {
        let window = Window::new(days, NOW);
        let counted = Ledger::default().apply_caps(events);
        let counted: Vec<_> = counted.iter()
            .filter(|scored| day_of(scored.event.at) >= window.first_day)
            .collect();
        let one_by_one: f64 = counted.iter()
            .map(|scored| scored.points * scored.boost * decay(NOW - scored.event.at))
            .sum();
        let mut by_day: BTreeMap<i64, Sums> = BTreeMap::new();
        for scored in counted {
            by_day.entry(day_of(scored.event.at)).or_default().add(scored);
        }
        let mut sums = Sums::default();
        for of_day in by_day.into_values() {
            sums += of_day;
        }
        prop_assert!((window.score(sums) - one_by_one).abs() < 0.006);
    }

    #[test]
    fn points_only_ever_fade(age in 0..60 * DAY, later in 0..DAY) {
        prop_assert!(decay(age) >= decay(age + later));
        prop_assert!((0.0..=1.0).contains(&decay(age)));
    }
}

#[test]
fn decay_goes_from_one_to_nothing_in_thirty_days() {
    assert_eq!(decay(0), 1.0);
    assert_eq!(decay(15 * DAY), 0.5);
    assert_eq!(decay(30 * DAY), 0.0);
    assert_eq!(decay(31 * DAY), 0.0);
}

#[test]
fn a_newcomers_first_seven_days_count_half_as_much_again() {
    let kind = ScoreKind::ReactionReceived;
    assert_eq!(boost(kind, NOW, NOW), 1.5);
    assert_eq!(boost(kind, NOW + 7 * DAY - 1, NOW), 1.5);
    assert_eq!(boost(kind, NOW + 7 * DAY, NOW), 1.0);
    assert_eq!(boost(ScoreKind::PenaltyKick, NOW, NOW), 1.0);
}

#[test]
fn the_caps_begin_anew_at_midnight_utc() {
    let midnight = day_of(NOW) * DAY + DAY;
    let post = |at| event(ScoreKind::PostAuthored, 0, 0, at);
    let today = (1..=30).map(|n| post(midnight - n));
    let tomorrow = (0..30).map(|n| post(midnight + n));
    let counted = Ledger::default().apply_caps(today.chain(tomorrow).collect());
    assert_eq!(counted.len(), 40);
}

#[test]
fn the_window_is_whole_days_with_today() {
    assert_eq!(Window::new(1, NOW).first_day, day_of(NOW));
    assert_eq!(Window::new(30, NOW).first_day, day_of(NOW) - 29);
    assert_eq!(Window::new(90, NOW).first_day, day_of(NOW) - 29);
}

#[test]
fn the_weights_are_the_documents() {
    let rules = rules();
    let weight = |kind: ScoreKind| rules.weights[&kind];
    assert_eq!(weight(ScoreKind::ReactionReceived), 3.0);
    assert_eq!(weight(ScoreKind::MentionReceived), 2.0);
    assert_eq!(weight(ScoreKind::ThreadStartedReplies), 5.0);
    assert_eq!(weight(ScoreKind::PostAuthored), 0.5);
    assert_eq!(weight(ScoreKind::PenaltyMessageDeletedByOwner), -10.0);
    assert_eq!(weight(ScoreKind::PenaltyKick), -25.0);
}
