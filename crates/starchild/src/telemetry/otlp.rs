//! Spans to a collector: OTLP over HTTP, as protobuf, with this program's own HTTP
//! client.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use prost::Message;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use std::time::Duration;
use tokio::runtime::Handle;

/// How long a collector may take unless `OTEL_EXPORTER_OTLP_TIMEOUT` says.
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Exporter {
    client: Client,
    endpoint: Url,
    headers: HeaderMap,
    timeout: Duration,
    /// Exports come from a thread that has no runtime of its own.
    runtime: Handle,
    resource: ResourceAttributesWithSchema,
}

impl Exporter {
    /// For the collector that the standard variables name, if they name one.
    pub fn from_env() -> Result<Option<Self>, String> {
        let Some((name, endpoint)) = endpoint() else {
            return Ok(None);
        };
        let endpoint = Url::parse(&endpoint).map_err(|error| format!("{name}: {error}"))?;
        let timeout = setting("TIMEOUT").and_then(|(_, value)| value.trim().parse().ok());
        Ok(Some(Self {
            client: Client::new(),
            endpoint,
            headers: headers()?,
            timeout: timeout.map_or(TIMEOUT, Duration::from_millis),
            runtime: Handle::try_current().map_err(|error| error.to_string())?,
            resource: ResourceAttributesWithSchema::default(),
        }))
    }
}

/// A variable for spans, or the one for all signals, where it says something.
fn setting(name: &str) -> Option<(String, String)> {
    let names = ["TRACES_", ""].map(|signal| format!("OTEL_EXPORTER_OTLP_{signal}{name}"));
    names.into_iter().find_map(|name| {
        let value = std::env::var(&name).ok()?;
        (!value.trim().is_empty()).then_some((name, value))
    })
}

/// Where spans go, and the variable that says so.
fn endpoint() -> Option<(String, String)> {
    let (name, value) = setting("ENDPOINT")?;
    let value = match name.contains("_TRACES_") {
        true => value,
        false => format!("{}/v1/traces", value.trim().trim_end_matches('/')),
    };
    Some((name, value))
}

/// `name=value` pairs with commas between them, values percent-encoded.
fn headers() -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let Some((variable, pairs)) = setting("HEADERS") else {
        return Ok(headers);
    };
    // The value is a secret, as a rule: it is not told.
    let wrong = |what: &str| format!("{variable}: {what}; write name=value,name=value");
    for pair in pairs.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| wrong("a pair has no ="))?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| wrong("no header's name"))?;
        let value = decoded(value.trim()).ok_or_else(|| wrong("a value's % means nothing"))?;
        let value = HeaderValue::from_bytes(&value).map_err(|_| wrong("no header's value"))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        decoded.push(match byte {
            b'%' => digit(bytes.next()?)? << 4 | digit(bytes.next()?)?,
            byte => byte,
        });
    }
    Some(decoded)
}

impl SpanExporter for Exporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len();
        let request = ExportTraceServiceRequest {
            resource_spans: group_spans_by_resource_and_scope(batch, &self.resource),
        };
        let request = self
            .client
            .post(self.endpoint.clone())
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, "application/x-protobuf")
            .timeout(self.timeout)
            .body(request.encode_to_vec());
        let sent = self.runtime.spawn(async {
            let answered = request.send().await;
            answered.and_then(|response| response.error_for_status())
        });
        let failed = match sent.await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => error.without_url().to_string(),
            Err(error) => error.to_string(),
        };
        tracing::warn!(error = failed, count, "spans did not reach the collector");
        Err(OTelSdkError::InternalFailure(failed))
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.resource = resource.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_percent_decoded_or_refused() {
        assert_eq!(decoded("Bearer%20a+b").unwrap(), b"Bearer a+b");
        for wrong in ["%", "%2", "%zz", "a%+1"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}
