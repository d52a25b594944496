//! `http.get`. An address is checked when it is connected to, on every redirect,
//! so that a name which resolves to the inside of a network does not get there.

use super::fs::cut;
use super::media_or_text;
use crate::provider::read_bounded;
use crate::segment::ContentSegment;
use crate::tool::{Risk, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, parse};
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Url};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use url::Host;

const MAX_BODY: usize = 4 << 20;
const MAX_TEXT: usize = 256 << 10;
const MAX_REDIRECTS: usize = 5;

/// Reads from the web.
pub struct HttpGet {
    spec: ToolSpec,
    client: Client,
    allow_private: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// An http or https address.
    url: String,
}

impl HttpGet {
    /// The tool; private addresses are out of reach unless allowed.
    pub fn new(allow_private: bool, timeout: Duration) -> Result<Self, ToolError> {
        let mut spec = ToolSpec::of::<Args>("http.get", "Read a web address.", Risk::Moderate);
        spec.independent = true;
        let mut client = Client::builder()
            .no_proxy()
            .timeout(timeout)
            .user_agent("openstarry")
            .redirect(Policy::custom(move |next| follow(next, allow_private)));
        if !allow_private {
            client = client.dns_resolver(Arc::new(PublicNames));
        }
        Ok(Self {
            spec,
            client: client.build().map_err(ToolError::new)?,
            allow_private,
        })
    }

    async fn get(&self, args: Args) -> ToolOutput {
        let url = Url::parse(args.url.trim()).map_err(ToolError::new)?;
        check(&url, self.allow_private).map_err(ToolError)?;
        let sent = self.client.get(url).send().await;
        let response = sent.map_err(|error| ToolError(innermost(&error)))?;
        let status = response.status();
        let (bytes, whole) = read_bounded(response, MAX_BODY)
            .await
            .map_err(ToolError::new)?;
        let segment = media_or_text(bytes, whole)
            .ok_or_else(|| ToolError("the answer is neither text nor a picture".into()))?;
        let segment = match segment {
            ContentSegment::Text { text } => ContentSegment::text(cut(text, MAX_TEXT)),
            other => other,
        };
        match (status.is_success(), segment) {
            (true, segment) => Ok(vec![segment]),
            (false, ContentSegment::Text { text }) => Err(ToolError(format!(
                "{status}: {}",
                crate::pain::excerpt(&text, 2000)
            ))),
            (false, _) => Err(ToolError(status.to_string())),
        }
    }
}

impl Tool for HttpGet {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, args: Value, _: &'a ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { self.get(parse(args)?).await })
    }
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn follow(next: Attempt<'_>, allow_private: bool) -> reqwest::redirect::Action {
    if next.previous().len() > MAX_REDIRECTS {
        return next.error("too many redirects");
    }
    match check(next.url(), allow_private) {
        Ok(()) => next.follow(),
        Err(why) => next.error(why),
    }
}

/// Addresses written as numbers never reach the resolver, so they are checked here.
fn check(url: &Url, allow_private: bool) -> Result<(), String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err("want an http or https address".into());
    }
    let ip: IpAddr = match url.host() {
        Some(Host::Ipv4(ip)) => ip.into(),
        Some(Host::Ipv6(ip)) => ip.into(),
        Some(Host::Domain(_)) => return Ok(()),
        None => return Err("the address names no host".into()),
    };
    match allow_private || is_public(ip) {
        true => Ok(()),
        false => Err(format!("{ip} is a private address")),
    }
}

/// Resolves names to public addresses alone.
struct PublicNames;

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|place| is_public(place.ip())).collect();
            if public.is_empty() {
                return Err(format!("{} is at no public address", name.as_str()).into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Whether an address is on the public internet.
fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let special = ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_documentation()
        || a == 0
        || a >= 224
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19));
    !special
}

/// Of IPv6 only the global range is public, without the parts of it that carry
/// another address inside.
fn is_public_v6(ip: Ipv6Addr) -> bool {
    if let Some(v4) = ip.to_ipv4_mapped() {
        return is_public_v4(v4);
    }
    let [a, b, ..] = ip.segments();
    let global = a & 0xe000 == 0x2000;
    let special = a == 0x2002 || (a == 0x2001 && (b < 0x0200 || b == 0x0db8)) || a == 0x3fff;
    global && !special
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
