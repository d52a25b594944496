//! What a model may send, as tools: one for each payload of each peer, and one
//! for each answer, with the arguments' schema made from the payload's.

use agentserver::{Offer, Reply};
use openstarry::segment::{ContentSegment, Message, ProviderResponse, Role, ToolCall, ToolResult};
use openstarry::tool::{Risk, ToolSpec, ToolView};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The tools of one question, by name.
pub struct Tools<'a>(BTreeMap<String, &'a Offer>);

impl<'a> Tools<'a> {
    pub fn new(offers: &'a [Offer]) -> Self {
        let mut tools = BTreeMap::new();
        for offer in offers {
            let name = match &offer.to {
                Some(peer) => format!("send_{peer}_{}", offer.schema.name),
                None => format!("answer_{}", offer.schema.name),
            };
            let mut name = usable(&name);
            while tools.contains_key(&name) {
                name.truncate(NAME - 1);
                name.push('_');
                if name.ends_with("____") {
                    break;
                }
            }
            tools.entry(name).or_insert(offer);
        }
        Self(tools)
    }

    /// As a provider takes them.
    pub fn view(&self) -> ToolView {
        let specs = self.0.iter().map(|(name, offer)| {
            let schema = &offer.schema;
            let what = match &offer.to {
                Some(peer) => format!("Sends <{}> to {peer}.", schema.name),
                None => format!("Answers your caller with <{}>.", schema.name),
            };
            let about = format!("{what} {} {}", offer.description, schema.description);
            let parameters = schema.json_schema();
            Arc::new(ToolSpec::new(name, about.trim(), Risk::Safe, parameters))
        });
        ToolView::new(0, specs)
    }

    /// The messages that the calls of a reply ask for, and the result of each
    /// call for the history.
    pub fn sent(&self, reply: &ProviderResponse) -> (Reply, Option<Message>) {
        let (mut text, mut wrong, mut results) = (String::new(), Vec::new(), Vec::new());
        for call in reply.calls() {
            let (told, is_error) = match self.message(call) {
                Ok(message) => {
                    text.push_str(&message);
                    (
                        "It was sent. What comes of it is a message of its own.",
                        false,
                    )
                }
                Err(reason) => {
                    wrong.push(format!("{}: {reason}", call.name));
                    ("It was not sent.", true)
                }
            };
            results.push(ContentSegment::ToolResult {
                tool_result: ToolResult {
                    id: call.id().to_owned(),
                    name: call.name.clone(),
                    content: vec![ContentSegment::text(told)],
                    is_error,
                },
            });
        }
        // All or nothing: a model that is told of an error writes all again.
        let said = match wrong.is_empty() {
            true => Reply::Text(text.into_bytes()),
            false => Reply::NotUnderstood {
                attempt: reply.text().into_bytes(),
                reason: format!("{} Nothing was sent.", wrong.join(" ")),
            },
        };
        let results = Message {
            role: Role::Tool,
            segments: results,
        };
        (said, Some(results))
    }

    fn message(&self, call: &ToolCall) -> Result<String, String> {
        if let Some(broken) = &call.broken {
            return Err(format!("The arguments are no JSON: {}.", broken.error));
        }
        let Some(offer) = self.0.get(&call.name) else {
            let known: Vec<_> = self.0.keys().map(String::as_str).collect();
            return Err(format!(
                "There is no such tool; there are: {}.",
                known.join(", ")
            ));
        };
        let payload = offer
            .schema
            .json_to_xml(&call.args)
            .map_err(|error| format!("{error}."))?;
        let to = offer.to.as_deref().unwrap_or(agentserver::system::CALLER);
        Ok(format!(
            "<message><meta><to>{to}</to></meta>{payload}</message>"
        ))
    }
}

/// As long as every API takes.
const NAME: usize = 64;

/// A name of the characters that every API takes.
fn usable(name: &str) -> String {
    let usable = name.chars().map(|c| match c.is_ascii_alphanumeric() {
        true => c,
        false => '_',
    });
    usable.take(NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentserver::payload::{FieldModel, Schema, Shape};
    use serde_json::json;

    fn offer(to: Option<&str>) -> Offer {
        Offer {
            to: to.map(str::to_owned),
            description: "Pays.".to_owned(),
            schema: Schema {
                name: "Pay".into(),
                namespace: String::new(),
                description: "A payment.".into(),
                content: Shape::Record(vec![
                    FieldModel::of::<i64>("sum", "How much.", None),
                    FieldModel::of::<Vec<String>>("note", "", None),
                ]),
            },
        }
    }

    fn called(name: &str, args: serde_json::Value) -> ProviderResponse {
        ProviderResponse {
            segments: vec![ContentSegment::ToolCall {
                tool_call: ToolCall::new("1", name, args),
            }],
            ..ProviderResponse::default()
        }
    }

    #[test]
    fn a_payload_is_a_tool_and_a_call_of_it_a_message() {
        let offers = [offer(Some("the.bank")), offer(None)];
        let tools = Tools::new(&offers);
        let names: Vec<_> = tools.0.keys().cloned().collect();
        assert_eq!(names, ["answer_Pay", "send_the_bank_Pay"]);
        let reply = called(
            "send_the_bank_Pay",
            json!({ "sum": 10, "note": ["a", "<b>"] }),
        );
        let (said, results) = tools.sent(&reply);
        let Reply::Text(text) = said else {
            panic!("{said:?}")
        };
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "<message><meta><to>the.bank</to></meta><Pay><sum>10</sum><note>a</note>\
             <note>&lt;b&gt;</note></Pay></message>"
        );
        assert_eq!(
            results.unwrap().segments.len(),
            1,
            "every call has a result"
        );
    }

    #[test]
    fn a_call_that_does_not_fit_sends_nothing_and_says_why() {
        let offers = [offer(None)];
        let tools = Tools::new(&offers);
        for (name, args, words) in [
            (
                "answer_Pay",
                json!({ "sum": 1, "iban": "x" }),
                "has no field iban",
            ),
            ("pay", json!({}), "there are: answer_Pay"),
        ] {
            let Reply::NotUnderstood { reason, .. } = tools.sent(&called(name, args)).0 else {
                panic!("was sent");
            };
            assert!(reason.contains(words), "{reason}");
        }
    }
}
