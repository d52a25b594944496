//! Whether a room server is there, and whether its clock agrees with ours.

use super::Finding;
use std::time::{Duration, SystemTime};

const TIMEOUT: Duration = Duration::from_secs(5);
/// Tokens live for days, but a clock that is off by more is off by hours tomorrow.
const SKEW: Duration = Duration::from_secs(60);

/// Looks at one server.
pub async fn look(server: &str) -> Vec<Finding> {
    match date(server).await {
        Err(why) => vec![Finding::bad(
            server,
            format!("no answer: {why}"),
            "start the server, or correct server: in handler.yaml",
        )],
        Ok(date) => {
            let mut findings = vec![Finding::good(server, "answers")];
            findings.extend(date.and_then(|date| clock(server, date, SystemTime::now())));
            findings
        }
    }
}

async fn date(server: &str) -> Result<Option<SystemTime>, String> {
    let http = reqwest::Client::builder().timeout(TIMEOUT).build();
    let asked = http.map_err(|error| error.to_string())?;
    let reply = asked
        .get(format!("{}/health", server.trim_end_matches('/')))
        .send()
        .await
        .map_err(|error| innermost(&error.without_url()))?;
    if !reply.status().is_success() {
        return Err(format!("/health says {}", reply.status()));
    }
    let date = reply.headers().get(reqwest::header::DATE);
    Ok(date.and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok()))
}

fn clock(server: &str, theirs: SystemTime, ours: SystemTime) -> Option<Finding> {
    let (apart, word) = match ours.duration_since(theirs) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    };
    (apart > SKEW).then(|| {
        Finding::bad(
            server,
            format!(
                "this machine's clock is {} s {word} the server's",
                apart.as_secs()
            ),
            "set the clock, e.g. with `timedatectl set-ntp true`: tokens end by the clock",
        )
    })
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_off_is_told_in_both_directions() {
        let now = SystemTime::now();
        let hour = Duration::from_secs(3600);
        assert!(clock("s", now, now).is_none());
        let ahead = clock("s", now - hour, now).unwrap();
        assert!(ahead.says.contains("3600 s ahead"), "{}", ahead.says);
        let behind = clock("s", now + hour, now).unwrap();
        assert!(behind.says.contains("3600 s behind"), "{}", behind.says);
    }
}
