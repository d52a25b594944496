//! The file as it is written.

use super::{ConfigError, Problem};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_saphyr::Spanned;

/// The file. `K` is what a listener's `kind` may be, `M` what stands under `models`,
/// `G` what a gateway's `kind` may be.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    deny_unknown_fields,
    bound = "K: DeserializeOwned + Default, M: DeserializeOwned, G: DeserializeOwned + Default"
)]
pub struct OrganismFile<K = Compiled, M = serde::de::IgnoredAny, G = Compiled> {
    /// The organism's name.
    #[serde(default = "unnamed")]
    pub organism: String,
    /// Payload types that have no Rust struct.
    #[serde(default)]
    pub payloads: Vec<PayloadFile>,
    /// The listeners.
    pub listeners: Vec<ListenerFile<K>>,
    /// Who may begin conversations from outside.
    #[serde(default)]
    pub gateways: Vec<GatewayFile<G>>,
    /// Bounds; what is not said stays as it is.
    #[serde(default)]
    pub limits: LimitsFile,
    /// What work may use.
    #[serde(default)]
    pub budget: BudgetsFile,
    /// Whether it survives a crash, and where its journal is.
    #[serde(default)]
    pub durable: Option<Durable>,
    /// The embedding program's settings for models.
    #[serde(default)]
    pub models: Option<M>,
}

fn unnamed() -> String {
    "organism".to_owned()
}

/// Whether an organism survives a crash.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Durable {
    /// As its program sees fit, or not at all.
    Is(bool),
    /// With a journal in this folder, beside the file.
    In(std::path::PathBuf),
}

/// The only kind when the program has no others: a handler in its own code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compiled {
    /// Compiled in.
    #[default]
    Rust,
}

/// A payload type.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PayloadFile {
    /// The root element.
    pub name: Spanned<String>,
    /// The root element's namespace.
    #[serde(default)]
    pub namespace: String,
    /// What it is for; agents read it.
    #[serde(default)]
    pub description: String,
    /// What the root element holds.
    #[serde(default, rename = "type")]
    pub kind: PayloadKind,
    /// The fields of a `record`, in order, or the elements of a `choice`.
    #[serde(default)]
    pub fields: Vec<FieldFile>,
}

/// What a payload's root element holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PayloadKind {
    /// Fields.
    #[default]
    Record,
    /// Exactly one of several elements.
    Choice,
}

/// A field of a payload type.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldFile {
    /// The element or attribute.
    pub name: String,
    /// What it holds.
    #[serde(default, rename = "type")]
    pub kind: FieldType,
    /// What it means; agents read it.
    #[serde(default)]
    pub description: String,
    /// Whether it may be left out.
    #[serde(default)]
    pub optional: bool,
    /// Whether it may occur any number of times.
    #[serde(default)]
    pub many: bool,
    /// Whether it stands in an attribute.
    #[serde(default)]
    pub attribute: bool,
    /// What it holds when it is left out.
    #[serde(default)]
    pub default: Option<String>,
    /// A value for the example.
    #[serde(default)]
    pub example: Option<String>,
    /// The words of an `enum`.
    #[serde(default)]
    pub values: Vec<String>,
    /// What the values of a `map` are.
    #[serde(default)]
    pub of: Option<FieldType>,
    /// The fields of a `record` or the elements of a `choice`, be it the value
    /// of a `map`.
    #[serde(default)]
    pub fields: Vec<FieldFile>,
}

/// What a field holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldType {
    /// Any text.
    #[default]
    Text,
    /// `true` or `false`.
    Boolean,
    /// A whole number of 64 bits.
    #[serde(alias = "int64")]
    Integer,
    /// One of 8 bits.
    Int8,
    /// One of 16 bits.
    Int16,
    /// One of 32 bits.
    Int32,
    /// A whole number of 64 bits, 0 or more.
    #[serde(alias = "uint64")]
    Unsigned,
    /// One of 8 bits.
    Uint8,
    /// One of 16 bits.
    Uint16,
    /// One of 32 bits.
    Uint32,
    /// A number with a fraction.
    Number,
    /// One of several words.
    Enum,
    /// Fields of its own.
    Record,
    /// Exactly one of several elements.
    Choice,
    /// Values by key.
    Map,
}

/// A listener.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, bound = "K: DeserializeOwned + Default")]
pub struct ListenerFile<K = Compiled> {
    /// Its name, compared without case.
    pub name: Spanned<String>,
    /// What it does; agents read it.
    #[serde(default)]
    pub description: String,
    /// Whether it is an agent.
    #[serde(default)]
    pub agent: bool,
    /// Whom it may send to.
    #[serde(default)]
    pub peers: Vec<Spanned<String>>,
    /// Whether it shares payloads sent without a target.
    #[serde(default)]
    pub broadcast: bool,
    /// What a model is told of its task.
    #[serde(default)]
    pub prompt: String,
    /// The payload types it accepts, from `payloads`.
    #[serde(default)]
    pub accepts: Vec<Spanned<String>>,
    /// The payload types it sends, from `payloads`, where that is known.
    #[serde(default)]
    pub sends: Option<Vec<Spanned<String>>>,
    /// How long one message may take.
    #[serde(default)]
    pub timeout_seconds: Option<f64>,
    /// How many messages it handles at once.
    #[serde(default)]
    pub concurrency: Option<usize>,
    /// Whether it handles several calls of one caller at a time, in no order.
    #[serde(default)]
    pub concurrent: bool,
    /// What one call of it, and all that follows from the call, may use.
    #[serde(default)]
    pub budget: Option<BudgetFile>,
    /// Bounds on what it is given.
    #[serde(default)]
    pub limits: ListenerLimits,
    /// What stands behind it.
    #[serde(default)]
    pub kind: K,
}

/// Bounds on what a listener is given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListenerLimits {
    /// Bytes of one payload.
    #[serde(default)]
    pub bytes: Option<usize>,
}

/// Someone outside.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, bound = "G: DeserializeOwned + Default")]
pub struct GatewayFile<G = Compiled> {
    /// Its name: what its messages are from.
    pub name: Spanned<String>,
    /// Who it is.
    #[serde(default)]
    pub description: String,
    /// Whom it may send to.
    pub peers: Vec<Spanned<String>>,
    /// How it is connected.
    #[serde(default)]
    pub kind: G,
}

/// Bounds.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsFile {
    /// Bytes of one document.
    pub bytes: Option<usize>,
    /// Elements within elements; 100 at most.
    pub levels: Option<u32>,
    /// Elements, texts and comments of one document.
    pub nodes: Option<usize>,
    /// Listeners in one call chain.
    pub chain: Option<usize>,
    /// Messages of one conversation that wait, run or are unread before sending
    /// waits.
    pub in_flight: Option<usize>,
    /// Messages of one conversation that wait or run, those between listeners
    /// included.
    pub backlog: Option<usize>,
    /// Refusals in a row before a listener is given up.
    pub refusals: Option<u32>,
    /// Seconds between two nudges of a to-do.
    pub nudge_seconds: Option<Spanned<f64>>,
    /// Nudges before a to-do is given up.
    pub nudges: Option<u32>,
    /// Messages from outside whose work is not done.
    pub admission: Option<usize>,
    /// Messages that wait for whoever began a conversation.
    pub mailbox: Option<usize>,
    /// Conversations that are open at one time.
    pub conversations: Option<usize>,
}

/// What work may use.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetsFile {
    /// One message from outside, and all that follows from it.
    pub request: Option<Spanned<BudgetFile>>,
    /// One conversation, from its first message to its last.
    pub conversation: Option<Spanned<BudgetFile>>,
}

/// A budget; what is not said stays as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetFile {
    /// Messages one after the other, each caused by the one before.
    pub hops: Option<u64>,
    /// Messages in all.
    pub messages: Option<u64>,
    /// Calls of models.
    pub model_calls: Option<u64>,
    /// Tokens that models read and wrote.
    pub tokens: Option<u64>,
    /// In the currency of the models' prices.
    pub money: Option<f64>,
    /// From the first message to the last.
    pub seconds: Option<f64>,
}

impl<K, M, G> OrganismFile<K, M, G>
where
    K: DeserializeOwned + Default,
    M: DeserializeOwned,
    G: DeserializeOwned + Default,
{
    /// Reads the file. Unknown keys are errors; so is a file of over 1 MiB.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        const BYTES: usize = 1 << 20;
        if text.len() > BYTES {
            let message = format!("the file is over {BYTES} bytes");
            return Err(ConfigError(vec![Problem {
                line: 0,
                column: 0,
                message,
            }]));
        }
        let options = serde_saphyr::options! {
            strict_booleans: true,
            with_snippet: false,
            budget: serde_saphyr::budget! { max_depth: 64, max_nodes: 100_000, max_aliases: 64, max_anchors: 64 },
        };
        serde_saphyr::from_str_with_options(text, options).map_err(|error| {
            let place = error.location();
            let problem = Problem {
                line: place.as_ref().map_or(0, |place| place.line()),
                column: place.as_ref().map_or(0, |place| place.column()),
                message: plain(&error),
            };
            ConfigError(vec![problem])
        })
    }
}

/// The message without the place, which is told apart.
fn plain(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}
