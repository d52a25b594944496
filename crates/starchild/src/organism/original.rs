//! The `organism.yaml` of the project whose contract this one keeps names Python
//! classes and functions. It cannot run here; what it would be here is shown.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The parts that tell such a file, and that carry over.
#[derive(Deserialize)]
struct Original {
    organism: Name,
    listeners: Vec<Listener>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Name {
    Mapping { name: String },
    Plain(String),
}

#[derive(Deserialize)]
struct Listener {
    name: String,
    payload_class: String,
    handler: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    agent: bool,
    #[serde(default)]
    peers: Vec<String>,
    #[serde(default)]
    broadcast: bool,
    #[serde(default)]
    prompt: String,
}

/// What to say of a file that is the original project's; nothing of any other.
pub fn refusal(text: &str) -> Option<String> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! { max_depth: 64, max_nodes: 100_000, max_aliases: 64, max_anchors: 64 },
    };
    let original: Original = serde_saphyr::from_str_with_options(text, options).ok()?;
    Some(format!(
        "this file is of the Python AgentServer: it names classes (`payload_class`) and functions \
         (`handler`), which cannot run here. Here a file declares its payloads, and each listener \
         says what stands behind it. The same organism, to be completed where a comment says so:\n\n{}",
        original.rewritten()
    ))
}

impl Original {
    fn rewritten(&self) -> String {
        let mut out = String::new();
        let name = match &self.organism {
            Name::Mapping { name } | Name::Plain(name) => name,
        };
        put(
            &mut out,
            format_args!("organism: {}\npayloads:\n", quoted(name)),
        );
        let classes: BTreeSet<_> = self.listeners.iter().map(|l| &*l.payload_class).collect();
        for class in classes {
            let name = quoted(last(class));
            put(
                &mut out,
                format_args!(
                    "  - name: {name}\n    fields: [{{name: text}}]  # those of {class:?}\n"
                ),
            );
        }
        out.push_str("listeners:\n");
        self.listeners
            .iter()
            .for_each(|listener| listener.rewrite(&mut out));
        let names: Vec<_> = self.listeners.iter().map(|l| quoted(&l.name)).collect();
        let names = names.join(", ");
        put(
            &mut out,
            format_args!(
                "gateways:\n  - name: console\n    peers: [{names}]  # those that people may send to\n"
            ),
        );
        if self.listeners.iter().any(Listener::is_model) {
            out.push_str(
                "models:\n  backends:\n    - base_url: https://models.example.org/v1  # those of `llm`\n      \
                 model: some-model\n      key_env: MODELS_KEY\n",
            );
        }
        out
    }
}

impl Listener {
    fn is_model(&self) -> bool {
        self.agent && !self.prompt.is_empty()
    }

    fn rewrite(&self, out: &mut String) {
        put(out, format_args!("  - name: {}\n", quoted(&self.name)));
        if !self.description.is_empty() {
            let description = quoted(self.description.trim());
            put(out, format_args!("    description: {description}\n"));
        }
        if self.agent {
            out.push_str("    agent: true\n");
        }
        if self.broadcast {
            out.push_str("    broadcast: true\n");
        }
        if !self.peers.is_empty() {
            let peers: Vec<_> = self.peers.iter().map(|peer| quoted(peer)).collect();
            put(out, format_args!("    peers: [{}]\n", peers.join(", ")));
        }
        let accepts = quoted(last(&self.payload_class));
        put(out, format_args!("    accepts: [{accepts}]\n"));
        match self.is_model() {
            true => {
                let prompt = quoted(&self.prompt);
                put(
                    out,
                    format_args!("    prompt: {prompt}\n    kind: {{llm: {{}}}}\n"),
                );
            }
            false => put(
                out,
                format_args!(
                    "    kind: {{process: {{command: [python3, handler.py], format: json}}}}  # calls {:?}\n",
                    self.handler
                ),
            ),
        }
    }
}

/// A class's own name.
fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// A plain word as it is, anything else in quotes as JSON has them, which is
/// YAML too.
fn quoted(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        && !["true", "false", "null", "yes", "no", "on", "off"].contains(&&*text.to_lowercase());
    match is_plain {
        true => text.to_owned(),
        false => Value::from(text).to_string(),
    }
}

/// Writing to a `String` cannot fail.
fn put(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(arguments);
}

#[cfg(test)]
mod tests {
    use super::super::config::File;
    use super::*;

    const ORIGINAL: &str = "\
organism:
  name: hello-world
  port: 8765
max_concurrent_pipelines: 50
thread_scheduling: breadth-first
llm:
  strategy: failover
  backends:
    - {provider: xai, api_key_env: XAI_API_KEY}
listeners:
  - name: greeter
    payload_class: handlers.hello.Greeting
    handler: handlers.hello.handle_greeting
    description: 'Greets: \"politely\"'
    agent: true
    peers: [shouter]
    prompt: |
      You greet.
      Always.
  - name: shouter
    payload_class: handlers.hello.GreetingResponse
    handler: handlers.hello.handle_shout
    agent: false
    broadcast: true
";

    #[test]
    fn an_original_file_is_refused_with_the_one_it_would_be_here() {
        assert!(File::parse(ORIGINAL).is_err());
        let words = refusal(ORIGINAL).unwrap();
        let (about, rewritten) = words.split_once("\n\n").unwrap();
        assert!(about.contains("payload_class") && about.contains("declares its payloads"));
        let file = File::parse(rewritten).unwrap_or_else(|error| panic!("{error}\n{rewritten}"));
        assert_eq!(file.organism, "hello-world");
        let names: Vec<_> = file.payloads.iter().map(|p| &*p.name.value).collect();
        assert_eq!(names, ["Greeting", "GreetingResponse"]);
        let greeter = &file.listeners[0];
        assert_eq!(greeter.description, "Greets: \"politely\"");
        assert_eq!(greeter.prompt, "You greet.\nAlways.\n");
        assert!(greeter.agent && !file.listeners[1].agent && file.listeners[1].broadcast);
        let folder = std::path::Path::new(".");
        super::super::kinds::build(&file, folder).unwrap_or_else(|error| panic!("{error}"));
    }

    #[test]
    fn any_other_file_is_not_taken_for_an_original_one() {
        for text in [
            "",
            "listeners: []",
            "organism: x\nlisteners: [{name: a}]",
            "a: [*b]",
        ] {
            assert_eq!(refusal(text), None, "{text}");
        }
    }
}
