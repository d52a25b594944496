//! What agents spent, summed up.

use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::Result,
    services::{
        access::{self, RoomLock},
        checks, spending,
    },
    store::spending::SpendingRow,
};
use protocol::{RoomId, UsageReport, UsageRow};

const DEFAULT_DAYS: i64 = 30;
const MAX_DAYS: i64 = 366;
/// Rows that are told at once.
const MOST_ROWS: i64 = 10_000;

/// What agents spent in a room, by day and agent.
pub async fn of_room(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    days: Option<i64>,
) -> Result<UsageReport> {
    let (days, since) = period(days)?;
    let mut conn = app.db.read().await?;
    access::member(&mut conn, caller, room, RoomLock::Unlocked).await?;
    let rows = conn.spending_in(room, since, MOST_ROWS).await?;
    Ok(report(rows, days))
}

/// What agents spent in the caller's rooms, and what the caller's own agent spent anywhere.
pub async fn of_caller(app: &App, caller: &Caller, days: Option<i64>) -> Result<UsageReport> {
    let (days, since) = period(days)?;
    let me = &access::user(caller)?.id;
    let mut conn = app.db.read().await?;
    let mut rows = conn.spending_in_rooms_of(me, since, MOST_ROWS).await?;
    rows.extend(conn.spending_of(me, since, MOST_ROWS).await?);
    Ok(report(rows, days))
}

fn period(days: Option<i64>) -> Result<(i64, i64)> {
    let days = checks::in_range("days", days.unwrap_or(DEFAULT_DAYS), 1..=MAX_DAYS)?;
    Ok((days, spending::day(Now::get()) - days + 1))
}

fn report(mut rows: Vec<SpendingRow>, days: i64) -> UsageReport {
    rows.sort_by(|a, b| (b.day, &a.room_id, &a.user_id).cmp(&(a.day, &b.room_id, &b.user_id)));
    rows.dedup_by(|a, b| (a.day, &a.room_id, &a.user_id) == (b.day, &b.room_id, &b.user_id));
    // A row without a turn only remembers that the room was told of a budget.
    let counted = rows.into_iter().filter(|row| row.turns > 0);
    UsageReport {
        usage: counted.map(wire).collect(),
        days,
    }
}

fn wire(row: SpendingRow) -> UsageRow {
    UsageRow {
        room_id: row.room_id,
        user_id: row.user_id,
        day: date(row.day),
        turns: row.turns,
        input_tokens: row.input_tokens,
        output_tokens: row.output_tokens,
        cost_usd: row.cost_usd,
        seconds: row.seconds,
    }
}

/// A day as the calendar has it. Years begin in March here, so that a leap day is a year's last.
fn date(day: i64) -> String {
    let days = day + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + next)
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days_are_told_as_the_calendar_has_them() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(59), "1970-03-01");
        assert_eq!(date(11_016), "2000-02-29");
        assert_eq!(date(20_774), "2026-11-17");
        assert_eq!(date(20_818), "2026-12-31");
    }
}
