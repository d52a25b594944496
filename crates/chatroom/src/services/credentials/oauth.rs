//! OAuth 2.1 for MCP clients of people, as the MCP specification wants it: a client registers, a person who has
//! signed in allows it, and a code becomes a token for `/mcp` alone and a refresh token.
//!
//! A client's id is what it registered, signed: nothing is stored of clients that nobody allows anything.

use super::{
    identity::{self, Basis, Lineage},
    revocation,
};
use crate::{
    app::App,
    auth::{
        Caller, Identity, TokenType,
        secrets::sha256_hex,
        tokens::{ClientClaims, Person},
    },
    clock::Now,
    error::{Error, Result},
    services::{change::RoomTx, checks},
    store::{DbError, oauth::GrantRow},
};
use aws_lc_rs::digest;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use protocol::UserId;
use serde::{Deserialize, Serialize};

/// How long a code is good, in seconds.
const CODE_SECONDS: i64 = 60;
/// How long a token is, in seconds; then the client refreshes it.
const TOKEN_SECONDS: i64 = 3600;
const MAX_REDIRECTS: usize = 8;
const MAX_REDIRECT_BYTES: usize = 512;
/// Schemes that a browser runs or reads instead of handing them to a program.
const NO_REDIRECTS: [&str; 9] = [
    "javascript",
    "data",
    "file",
    "blob",
    "about",
    "vbscript",
    "ftp",
    "ws",
    "wss",
];

/// Why a token is refused: a code of the OAuth specification, and words.
#[derive(Debug)]
pub enum OAuthError {
    /// Of the specification's own.
    Refused(&'static str, String),
    /// The server's.
    Server(Error),
}

impl From<Error> for OAuthError {
    fn from(error: Error) -> Self {
        Self::Server(error)
    }
}

impl From<DbError> for OAuthError {
    fn from(error: DbError) -> Self {
        Self::Server(error.into())
    }
}

fn refused<T>(code: &'static str, words: &str) -> Result<T, OAuthError> {
    Err(OAuthError::Refused(code, words.to_owned()))
}

/// What a client registers.
#[derive(Debug, Deserialize)]
pub struct Registration {
    #[serde(default)]
    pub client_name: Option<String>,
    #[serde(default)]
    pub redirect_uris: Vec<String>,
}

/// A client that was registered.
#[derive(Debug, Serialize)]
pub struct Registered {
    client_id: String,
    client_id_issued_at: i64,
    client_name: String,
    redirect_uris: Vec<String>,
    grant_types: [&'static str; 2],
    response_types: [&'static str; 1],
    token_endpoint_auth_method: &'static str,
}

/// Registers a client. Nothing is stored.
pub fn register(app: &App, wanted: Registration) -> Result<Registered, OAuthError> {
    let name = wanted.client_name.as_deref().unwrap_or("An MCP client");
    let Ok(name) = checks::member_name("client_name", name) else {
        return refused(
            "invalid_client_metadata",
            "client_name must be one line of at most 64 characters",
        );
    };
    if !(1..=MAX_REDIRECTS).contains(&wanted.redirect_uris.len()) {
        return refused("invalid_redirect_uri", "give 1 to 8 redirect_uris");
    }
    if !wanted.redirect_uris.iter().all(|uri| may_redirect(uri)) {
        return refused(
            "invalid_redirect_uri",
            "a redirect URI is https, http on this machine, or a scheme of your program's own; at most 512 bytes, \
             without a fragment",
        );
    }
    let now = Now::get();
    let client = ClientClaims::new(name.clone(), wanted.redirect_uris.clone(), now);
    Ok(Registered {
        client_id: app.tokens.client(&client),
        client_id_issued_at: now.seconds(),
        client_name: name,
        redirect_uris: wanted.redirect_uris,
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        token_endpoint_auth_method: "none",
    })
}

fn is_loopback(url: &reqwest::Url) -> bool {
    url.scheme() == "http" && matches!(url.host_str(), Some("127.0.0.1" | "[::1]" | "localhost"))
}

fn may_redirect(text: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(text) else {
        return false;
    };
    let fits =
        text.len() <= MAX_REDIRECT_BYTES && url.fragment().is_none() && url.username().is_empty();
    fits && match url.scheme() {
        "https" => url.host_str().is_some(),
        "http" => is_loopback(&url),
        own => !NO_REDIRECTS.contains(&own),
    }
}

/// Whether a client may be sent there: exactly where it said, though on this machine on any port.
fn is_registered(client: &ClientClaims, wanted: &str) -> bool {
    let any_port = |text: &str| {
        let mut url = reqwest::Url::parse(text).ok().filter(is_loopback)?;
        url.set_port(None).ok()?;
        Some(url)
    };
    client.redirect_uris.iter().any(|registered| {
        registered == wanted
            || any_port(registered).is_some_and(|registered| any_port(wanted) == Some(registered))
    })
}

/// What a client asks a person for.
#[derive(Debug, Deserialize)]
pub struct Asked {
    pub client_id: String,
    pub redirect_uri: String,
    pub response_type: String,
    pub code_challenge: String,
    pub code_challenge_method: String,
    #[serde(default)]
    pub state: Option<String>,
    #[serde(default)]
    pub resource: Option<String>,
}

/// Who asks, for the person to see.
#[derive(Debug, Serialize)]
pub struct Client {
    pub client_name: String,
    /// Where the answer goes.
    pub redirect_host: String,
}

/// Checks what a client asks for. Where this fails, the client is not answered: who knows who it is.
pub fn check(app: &App, asked: &Asked) -> Result<Client> {
    let bad = |words: &'static str| Error::bad_request(words);
    let client = app.tokens.check_client(&asked.client_id);
    let client =
        client.ok_or_else(|| bad("This client is not registered here; let it register anew"))?;
    if !is_registered(&client, &asked.redirect_uri) {
        return Err(bad(
            "The client wants the answer to go where it has not registered",
        ));
    }
    if asked.response_type != "code" {
        return Err(bad("response_type must be code"));
    }
    let is_s256 = asked.code_challenge_method == "S256" && asked.code_challenge.len() == 43;
    if !is_s256 {
        return Err(bad(
            "The client must send a code_challenge of the method S256",
        ));
    }
    if asked.state.as_ref().is_some_and(|state| state.len() > 2048) {
        return Err(bad("state is too long"));
    }
    if !is_ours(app, asked.resource.as_deref()) {
        return Err(bad("The client asks for another server"));
    }
    let url =
        reqwest::Url::parse(&asked.redirect_uri).map_err(|_| bad("redirect_uri is no address"))?;
    Ok(Client {
        client_name: client.name,
        redirect_host: match url.scheme() {
            "https" | "http" => url.host_str().unwrap_or_default().to_owned(),
            own => format!("{own}://"),
        },
    })
}

fn is_ours(app: &App, resource: Option<&str>) -> bool {
    resource.is_none_or(|resource| {
        let resource = resource.trim_end_matches('/');
        resource == app.public_url || resource == format!("{}/mcp", app.public_url)
    })
}

/// The person says yes: gives where to go with the code.
pub async fn allow(app: &App, caller: &Caller, asked: &Asked) -> Result<String> {
    let client = check(app, asked)?;
    let (user, name) = person(caller)?;
    let code = app
        .secrets
        .random_code("mcp_code_", 32)
        .map_err(Error::internal)?;
    let now = Now::get().seconds();
    let grant = GrantRow {
        id: app.secrets.random_code("", 20).map_err(Error::internal)?,
        user_id: user.clone(),
        user_name: name,
        client_hash: sha256_hex(asked.client_id.as_bytes()),
        client_name: client.client_name,
        secret_hash: app.secrets.hash_code(&code),
        prior_hash: None,
        challenge: Some(asked.code_challenge.clone()),
        redirect_uri: Some(asked.redirect_uri.clone()),
        jti: None,
        expires_at: now + CODE_SECONDS,
    };
    let mut tx = app.db.begin().await?;
    tx.forget_grants(now - CODE_SECONDS).await?;
    tx.insert_grant(&grant).await?;
    tx.commit().await?;
    Ok(answer(app, asked, ("code", &code)))
}

/// The person says no: gives where to go with that.
pub fn deny(app: &App, asked: &Asked) -> Result<String> {
    check(app, asked)?;
    Ok(answer(app, asked, ("error", "access_denied")))
}

fn answer(app: &App, asked: &Asked, said: (&str, &str)) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair(said.0, said.1);
    if let Some(state) = &asked.state {
        query.append_pair("state", state);
    }
    query.append_pair("iss", &app.public_url);
    let separator = if asked.redirect_uri.contains('?') {
        '&'
    } else {
        '?'
    };
    format!("{}{separator}{}", asked.redirect_uri, query.finish())
}

/// A person who has signed in; what acts for somebody cannot allow anything.
fn person(caller: &Caller) -> Result<(&UserId, Option<String>)> {
    match caller {
        Caller::Anonymous => Err(Error::missing_bearer()),
        Caller::User(user) if user.token_type == TokenType::Access => {
            Ok((&user.id, user.name.clone()))
        }
        Caller::Identity(Identity {
            row,
            person: Some(person),
        }) => Ok((&row.user_id, person.name.clone())),
        Caller::User(_) | Caller::RoomKey(_) | Caller::Identity(_) => Err(Error::forbidden(
            "Only a person who has signed in can allow a client something",
        )),
    }
}

/// What a client sends for a token.
#[derive(Debug, Deserialize)]
pub struct TokenRequest {
    grant_type: String,
    #[serde(default)]
    client_id: String,
    #[serde(default)]
    code: String,
    #[serde(default)]
    code_verifier: String,
    #[serde(default)]
    redirect_uri: String,
    #[serde(default)]
    refresh_token: String,
    #[serde(default)]
    resource: Option<String>,
}

/// A token for `/mcp`, in clear this once.
#[derive(Debug, Serialize)]
pub struct TokenResponse {
    access_token: String,
    token_type: &'static str,
    expires_in: i64,
    refresh_token: String,
    scope: &'static str,
}

/// Gives a token for a code or for a refresh token, each of which is good once.
pub async fn token(app: &App, request: TokenRequest) -> Result<TokenResponse, OAuthError> {
    let secret = match request.grant_type.as_str() {
        "authorization_code" => &request.code,
        "refresh_token" => &request.refresh_token,
        _ => {
            return refused(
                "unsupported_grant_type",
                "grant_type is authorization_code or refresh_token",
            );
        }
    };
    if !is_ours(app, request.resource.as_deref()) {
        return refused(
            "invalid_target",
            "this server gives tokens for its own /mcp",
        );
    }
    let now = Now::get();
    let hash = app.secrets.hash_code(secret);
    let mut tx = RoomTx::begin(app).await?;
    let Some(grant) = tx.lock_grant(&hash).await? else {
        if let Some(jti) = tx.robbed_grant(&hash).await? {
            tracing::warn!(
                "a code or refresh token of an MCP client was used twice; its tokens are ended"
            );
            revocation::revoke(&mut tx, &[&jti], None).await?;
            tx.commit().await?;
        }
        return refused(
            "invalid_grant",
            "this code or refresh token is unknown, or was used already; sign in anew",
        );
    };
    if grant.expires_at <= now.seconds() {
        return refused(
            "invalid_grant",
            "this code or refresh token has expired; sign in anew",
        );
    }
    if grant.client_hash != sha256_hex(request.client_id.as_bytes()) {
        return refused(
            "invalid_grant",
            "this code or refresh token is another client's",
        );
    }
    let is_code = request.grant_type == "authorization_code";
    if is_code != grant.challenge.is_some() {
        return refused("invalid_grant", "a code is no refresh token");
    }
    if is_code {
        if grant.redirect_uri.as_deref() != Some(&request.redirect_uri) {
            return refused(
                "invalid_grant",
                "redirect_uri is not the one that the code was asked with",
            );
        }
        if grant.challenge.as_deref() != Some(&challenge(&request.code_verifier)) {
            return refused(
                "invalid_grant",
                "code_verifier does not fit the code_challenge",
            );
        }
    }
    let row = match &grant.jti {
        Some(jti) => match tx.identity(jti).await? {
            Some(row) if !row.revoked && row.expires_at > now.seconds() => row,
            _ => {
                return refused(
                    "invalid_grant",
                    "the person has ended this session; sign in anew",
                );
            }
        },
        None => {
            let basis = Basis {
                lineage: Lineage::of_user(&grant.user_id),
                source: None,
            };
            let row = identity::new_identity(app, &grant.user_id, &basis, now)?;
            tx.insert_identity(&row).await?;
            row
        }
    };
    let refresh = app
        .secrets
        .random_code("mcp_refresh_", 40)
        .map_err(Error::internal)?;
    let refresh_hash = app.secrets.hash_code(&refresh);
    tx.rotate_grant(&grant.id, &refresh_hash, &row.jti, row.expires_at)
        .await?;
    tx.commit().await?;
    let expires_at = row.expires_at.min(now.seconds() + TOKEN_SECONDS);
    let person = Person {
        name: grant.user_name,
    };
    Ok(TokenResponse {
        access_token: app.tokens.mcp(&row, &person, now, expires_at),
        token_type: "Bearer",
        expires_in: expires_at - now.seconds(),
        refresh_token: refresh,
        scope: "rooms",
    })
}

/// What PKCE's S256 makes of a verifier.
fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_goes_exactly_where_the_client_said() {
        let registered = |uris: &[&str]| {
            let uris = uris.iter().map(|uri| (*uri).to_owned()).collect();
            ClientClaims::new("c".to_owned(), uris, Now(0))
        };
        let client = registered(&["https://a.example/cb", "http://127.0.0.1:33418/cb"]);
        assert!(is_registered(&client, "https://a.example/cb"));
        assert!(is_registered(&client, "http://127.0.0.1:51000/cb"));
        for other in [
            "https://a.example/cb/",
            "https://a.example/cb?x",
            "https://a.example:8443/cb",
            "https://a.example.evil.example/cb",
            "http://127.0.0.1:1/other",
            "http://localhost:1/cb",
            "http://127.0.0.1.evil.example/cb",
        ] {
            assert!(!is_registered(&client, other), "{other}");
        }
    }

    #[test]
    fn what_a_browser_would_run_is_no_redirect() {
        for good in [
            "https://a.example/cb",
            "http://localhost:1/x",
            "cursor://anysphere.cursor-mcp/oauth",
        ] {
            assert!(may_redirect(good), "{good}");
        }
        for bad in [
            "http://a.example/cb",
            "javascript:alert(1)",
            "data:text/html,x",
            "https://a.example/#x",
            "https://user@a.example/",
            "cb",
        ] {
            assert!(!may_redirect(bad), "{bad}");
        }
    }

    #[test]
    fn the_challenge_is_the_specifications() {
        // RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(
            challenge(verifier),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
    }
}
