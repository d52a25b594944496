//! Text to weighted features. Pure.

/// Words that say nothing about a tool.
const STOP: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "by", "can",
    "could", "did", "do", "does", "for", "from", "give", "given", "had", "has", "have", "hey",
    "how", "i", "if", "in", "into", "is", "it", "its", "just", "let", "like", "me", "my", "need",
    "new", "of", "on", "one", "or", "our", "out", "please", "s", "so", "some", "than", "that",
    "the", "their", "them", "then", "there", "these", "this", "those", "to", "up", "us", "use",
    "used", "want", "was", "we", "were", "what", "when", "where", "which", "who", "will", "with",
    "would", "you", "your",
];

/// Words of one meaning, as stems. The first stands for all.
const MEANINGS: &[&[&str]] = &[
    &[
        "creat", "add", "make", "insert", "generat", "build", "put", "open", "write", "regist",
        "set", "start", "draft", "compos",
    ],
    &[
        "delet", "remov", "eras", "drop", "destroy", "clear", "purg", "rid", "trash", "discard",
        "wipe",
    ],
    &[
        "updat",
        "edit",
        "chang",
        "modif",
        "rename",
        "replac",
        "alter",
        "adjust",
        "correct",
        "fix",
        "amend",
        "move",
        "reschedul",
    ],
    &[
        "get", "read", "fetch", "show", "view", "see", "look", "display", "retriev", "check",
        "tell", "detail", "inspect", "describ",
    ],
    &["list", "enumerat", "every", "which", "browse", "overview"],
    &[
        "search", "find", "query", "lookup", "locat", "seek", "where",
    ],
    &[
        "send", "post", "deliv", "forward", "submit", "publish", "share", "notif", "dispatch",
    ],
    &[
        "cancel", "stop", "abort", "halt", "terminat", "end", "kill", "revok", "quit",
    ],
    &["run", "execut", "launch", "trigg", "perform", "invok"],
    &["email", "mail", "inbox", "gmail"],
    &["messag", "chat", "dm", "text"],
    &["calendar", "appointment", "meet", "event", "schedul"],
    &["file", "document", "doc", "folder", "directory"],
    &["photo", "pictur", "image", "pic", "snapshot"],
    &["video", "movie", "film", "clip"],
    &["song", "music", "track", "tune", "playlist"],
    &["money", "pay", "payment", "cash", "fund", "transf"],
    &["invoic", "bill", "charg"],
    &["buy", "purchas", "ord", "checkout"],
    &["price", "cost", "quot", "rate"],
    &["weath", "forecast", "temperatur", "rain", "sunny", "climat"],
    &["map", "direction", "rout", "navigat", "way"],
    &["flight", "plane", "airline", "fly"],
    &["hotel", "room", "accommodation", "stay", "lodg"],
    &["ticket", "issu", "bug"],
    &["task", "todo", "remind", "chore"],
    &["repo", "repositor", "git", "github"],
    &[
        "custom", "client", "account", "user", "person", "people", "contact", "member",
    ],
    &["employ", "staff", "worker", "colleagu"],
    &["database", "db", "sql", "tabl"],
    &["serv", "machin", "host", "instanc", "vm"],
    &["translat", "languag"],
    &["summar", "summary", "digest"],
    &["car", "vehicl", "auto"],
    &["phon", "call", "dial", "ring"],
    &["lamp", "light", "bulb"],
    &["heat", "thermostat", "warm"],
    &["doctor", "physician", "medical", "health"],
    &["medicin", "drug", "prescription", "pill"],
    &["recip", "cook", "dish", "meal"],
    &["restaurant", "din", "eat"],
    &["stock", "share", "equit"],
    &["parcel", "shipment", "packag", "shipp", "deliv"],
    &["convert", "conversion", "transform", "turn"],
    &["password", "secret", "credential"],
    &["holiday", "vacation", "leav", "absenc"],
    &["salar", "payroll", "wag"],
    &["logs", "log", "journal"],
    &["chart", "graph", "plot"],
    &["webpag", "website", "site", "page", "web", "url"],
    &["deploy", "releas", "rollout", "ship"],
    &["approv", "accept", "confirm", "allow"],
    &["reject", "declin", "deny", "refus"],
    &["upload", "attach"],
    &["download", "export", "save"],
    &["lock", "secur", "block"],
    &["alarm", "alert", "wak"],
    &["note", "memo"],
    &["book", "reserv", "reservation"],
    &["refund", "reimburs", "return"],
    &["count", "number", "many", "total"],
    &["merg", "combin", "join"],
    &["copy", "duplicat", "clon"],
];

/// How much a feature counts beside a whole word.
const STEM: f32 = 1.0;
const MEANING: f32 = 0.6;
const PART: f32 = 0.25;

/// The features of `text` with their weights, a hash for each.
pub(super) fn features(text: &str) -> Vec<(u64, f32)> {
    let mut features = Vec::new();
    for word in split(text) {
        if STOP.contains(&word.as_str()) {
            continue;
        }
        let stem = stem(&word);
        features.push((hash("w", stem), STEM));
        for (meaning, words) in MEANINGS.iter().enumerate() {
            if words.contains(&stem) || words.contains(&word.as_str()) {
                features.push((hash("m", words[0]) ^ meaning as u64, MEANING));
            }
        }
        let padded: Vec<char> = std::iter::once('<')
            .chain(word.chars())
            .chain(['>'])
            .collect();
        let parts: Vec<_> = padded.windows(4).collect();
        for part in &parts {
            let part: String = part.iter().collect();
            features.push((hash("p", &part), PART / (parts.len() as f32).sqrt()));
        }
    }
    features
}

/// Lower-case words, `camelCase` and `snake_case` taken apart. Scripts without
/// blanks give pairs of characters.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut last: Option<char> = None;
    for c in text.chars() {
        let dense = matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}');
        let hump = c.is_uppercase() && last.is_some_and(char::is_lowercase);
        if (!c.is_alphanumeric() || hump || dense) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if dense {
            words.push(
                last.into_iter()
                    .filter(|l| !l.is_ascii())
                    .chain([c])
                    .collect(),
            );
        } else if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        last = c.is_alphanumeric().then_some(c);
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// A light English stemmer: the ends that change with grammar go.
fn stem(word: &str) -> &str {
    let mut stem = word;
    for end in [
        "'s", "ations", "ation", "ings", "ing", "ies", "ied", "ers", "er", "ed", "es", "s", "e",
        "y",
    ] {
        if let Some(rest) = stem.strip_suffix(end)
            && rest.chars().count() >= 3
            && !(end == "s" && rest.ends_with('s'))
        {
            stem = rest;
            break;
        }
    }
    // "running" and "run" meet.
    let bytes = stem.as_bytes();
    if let [.., a, b] = bytes
        && a == b
        && stem.len() > 3
        && !matches!(b, b'l' | b's')
        && stem.is_ascii()
    {
        return &stem[..stem.len() - 1];
    }
    stem
}

/// The kind keeps a word apart from a part of a word.
fn hash(kind: &str, text: &str) -> u64 {
    crate::hash::fnv([kind, text])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        assert_eq!(split("fs.readFile_now"), ["fs", "read", "file", "now"]);
        assert_eq!(split("查天氣 now"), ["查", "查天", "天氣", "now"]);
    }

    #[test]
    fn forms_of_a_word_meet() {
        for (one, other) in [
            ("running", "run"),
            ("files", "file"),
            ("deleted", "delete"),
            ("calling", "call"),
        ] {
            assert_eq!(stem(one), stem(other));
        }
    }
}
