//! Which calls may run, which are asked about and which never run. Pure.

use crate::tool::{Risk, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// What a rule says of the calls it fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// They run.
    Allow,
    /// Someone is asked first.
    Ask,
    /// They never run.
    Deny,
}

/// A text in which `*` stands for anything and `\` takes the next character as
/// it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// A pattern.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The pattern that fits this text alone.
    pub fn exactly(text: &str) -> Self {
        Self(text.replace('\\', "\\\\").replace('*', "\\*"))
    }

    /// The pattern that fits all that is below this folder.
    pub fn below(folder: &str) -> Self {
        Self(format!("{}/*", Self::exactly(folder)))
    }

    /// Whether it fits the whole of `text`.
    pub fn fits(&self, text: &str) -> bool {
        let pattern = self.tokens();
        let text: Vec<char> = text.chars().collect();
        let (mut p, mut t) = (0, 0);
        // Where to go on when what follows the last `*` does not fit.
        let mut retry: Option<(usize, usize)> = None;
        while t < text.len() {
            match pattern.get(p) {
                Some(Token::Anything) => {
                    retry = Some((p + 1, t + 1));
                    p += 1;
                }
                Some(Token::Char(c)) if *c == text[t] => (p, t) = (p + 1, t + 1),
                _ => match &mut retry {
                    Some((after, from)) => {
                        (p, t) = (*after, *from);
                        *from += 1;
                    }
                    None => return false,
                },
            }
        }
        pattern[p..].iter().all(|token| *token == Token::Anything)
    }

    fn tokens(&self) -> Vec<Token> {
        let mut tokens = Vec::new();
        let mut chars = self.0.chars();
        while let Some(c) = chars.next() {
            tokens.push(match c {
                '*' => Token::Anything,
                '\\' => Token::Char(chars.next().unwrap_or('\\')),
                c => Token::Char(c),
            });
        }
        tokens
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(PartialEq)]
enum Token {
    Char(char),
    Anything,
}

/// What holds for some calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// What becomes of them.
    pub effect: Effect,
    /// The names of their tools.
    pub tool: Pattern,
    /// What their arguments must be, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub args: BTreeMap<String, Pattern>,
    /// What a model is told when they are denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Rule {
    /// A rule for all calls of these tools.
    pub fn new(effect: Effect, tool: Pattern) -> Self {
        Self {
            effect,
            tool,
            args: BTreeMap::new(),
            reason: None,
        }
    }

    fn fits(&self, tool: &str, args: &Value) -> bool {
        let fits = |(name, pattern): (&String, &Pattern)| match args.get(name) {
            None => false,
            Some(Value::String(text)) => pattern.fits(text),
            Some(other) => pattern.fits(&other.to_string()),
        };
        self.tool.fits(tool) && self.args.iter().all(fits)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.tool)?;
        for (name, pattern) in &self.args {
            write!(f, " {name}={pattern}")?;
        }
        Ok(())
    }
}

/// What becomes of one call.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// It runs.
    Allow,
    /// Someone is asked.
    Ask,
    /// It does not run, and this is why.
    Deny(String),
}

/// The owner's rules, and what holds for calls that none of them fits.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The rules. Of those that fit a call, `deny` comes before `ask`, and `ask`
    /// before `allow`; their order does not matter.
    pub rules: Vec<Rule>,
    /// Calls of this risk and above are asked about where no rule fits.
    pub ask_from: Risk,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            ask_from: Risk::Destructive,
        }
    }
}

impl Policy {
    /// What becomes of a call. `granted` is what a person has allowed since:
    /// it comes before `ask`, never before `deny`.
    pub fn ruling(&self, spec: &ToolSpec, args: &Value, granted: &[Rule]) -> Ruling {
        let find = |effect: Effect| {
            let rules = self.rules.iter();
            rules
                .filter(|rule| rule.effect == effect)
                .find(|rule| rule.fits(&spec.name, args))
        };
        if let Some(rule) = find(Effect::Deny) {
            let reason = rule.reason.clone();
            return Ruling::Deny(reason.unwrap_or_else(|| "the owner's rules forbid it".into()));
        }
        let allowed = |rule: &Rule| rule.effect == Effect::Allow && rule.fits(&spec.name, args);
        if granted.iter().any(allowed) {
            return Ruling::Allow;
        }
        match find(Effect::Ask).is_none()
            && (find(Effect::Allow).is_some() || spec.risk < self.ask_from)
        {
            true => Ruling::Allow,
            false => Ruling::Ask,
        }
    }

    /// Whether a rule keeps this path from a tool, unless someone says yes. A search does not ask
    /// for every file that it meets, so that it leaves such files out.
    pub fn keeps_back(&self, tool: &str, path: &str) -> bool {
        let by_path = |rule: &&Rule| rule.args.len() == 1 && rule.tool.fits(tool);
        let rules = self
            .rules
            .iter()
            .filter(|rule| rule.effect != Effect::Allow);
        let mut paths = rules
            .filter(by_path)
            .filter_map(|rule| rule.args.get("path"));
        paths.any(|pattern| pattern.fits(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pattern_fits_the_whole_text() {
        for (pattern, text, fits) in [
            ("fs.write", "fs.write", true),
            ("fs.write", "fs.writes", false),
            ("fs.*", "fs.write", true),
            ("*", "", true),
            ("", "", true),
            ("", "x", false),
            ("git *", "git push origin", true),
            ("*.rs", "src/a.rs/b.rs", true),
            ("a*b*c", "a--b--b--c", true),
            ("a*b*c", "a--b--b--d", false),
            ("\\*", "*", true),
            ("\\*", "x", false),
        ] {
            assert_eq!(Pattern::new(pattern).fits(text), fits, "{pattern} {text}");
        }
        for text in ["*", "a\\*b", "\\", "rm -rf *"] {
            assert!(Pattern::exactly(text).fits(text), "{text}");
            assert!(!Pattern::exactly(text).fits("rm -rf x"), "{text}");
        }
    }

    #[test]
    fn a_pattern_that_backtracks_still_ends() {
        let pattern = Pattern::new("*a".repeat(50));
        assert!(!pattern.fits(&"a".repeat(49)));
        assert!(!pattern.fits(&format!("{}b", "a".repeat(20_000))));
    }

    fn rule(effect: Effect, tool: &str, args: &[(&str, &str)]) -> Rule {
        let args = args.iter();
        Rule {
            args: args
                .map(|(name, pattern)| ((*name).into(), Pattern::new(*pattern)))
                .collect(),
            ..Rule::new(effect, Pattern::new(tool))
        }
    }

    #[test]
    fn deny_comes_before_a_grant_a_grant_before_ask_and_ask_before_allow() {
        let policy = Policy {
            rules: vec![
                rule(Effect::Allow, "fs.*", &[]),
                rule(Effect::Ask, "fs.write", &[("path", "src/*")]),
                rule(Effect::Deny, "fs.write", &[("path", "*.key")]),
            ],
            ..Policy::default()
        };
        let spec = ToolSpec::new("fs.write", "", Risk::Destructive, json!({}));
        let granted = [rule(Effect::Allow, "fs.write", &[])];
        let ruling =
            |path: &str, granted: &[Rule]| policy.ruling(&spec, &json!({ "path": path }), granted);
        assert_eq!(ruling("a.txt", &[]), Ruling::Allow);
        assert_eq!(ruling("src/a.rs", &[]), Ruling::Ask);
        assert_eq!(ruling("src/a.rs", &granted), Ruling::Allow);
        assert!(matches!(ruling("src/a.key", &granted), Ruling::Deny(_)));
    }

    #[test]
    fn without_a_rule_the_risk_decides() {
        let policy = Policy::default();
        let spec = |risk| ToolSpec::new("t", "", risk, json!({}));
        let ruling = |risk| policy.ruling(&spec(risk), &json!({}), &[]);
        assert_eq!(ruling(Risk::Moderate), Ruling::Allow);
        assert_eq!(ruling(Risk::Destructive), Ruling::Ask);
    }

    #[test]
    fn an_argument_that_is_missing_fits_no_pattern() {
        let rule = rule(Effect::Allow, "t", &[("n", "7")]);
        assert!(rule.fits("t", &json!({ "n": 7 })));
        assert!(!rule.fits("t", &json!({})));
    }
}
