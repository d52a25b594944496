//! Whom the operator keeps out, and whose user tokens are over. Small, so that every node has it in
//! memory; a node that changes it knows at once, the others look every second.

use super::user::User;
use crate::{
    error::{Error, Result},
    store::{Conn, Db, DbError},
};
use ipnet::{IpNet, Ipv6Net};
use protocol::{ErrorCode, UserId};
use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    sync::{Arc, RwLock},
};

/// Where the database keeps which state of the list it holds.
pub const VERSION: &str = "denylist_version";
/// What operators are told while a stored ban cannot be read.
pub const UNREADABLE: &str =
    "A stored ban cannot be read, so whom it is of is not kept out; the log says which";

/// Whom a ban is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    User(UserId),
    Network(IpNet),
}

impl Subject {
    /// An address, a network or a user's id. An IPv6 address stands for its /64: whoever has one
    /// has them all.
    pub fn parse(text: &str) -> Result<Self> {
        if let Ok(net) = text.parse::<IpNet>() {
            return Ok(Self::Network(net.trunc()));
        }
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Ok(Self::Network(match ip.to_canonical() {
                IpAddr::V4(ip) => IpNet::from(IpAddr::V4(ip)),
                IpAddr::V6(ip) => match Ipv6Net::new(ip, 64) {
                    Ok(net) => IpNet::V6(net.trunc()),
                    Err(_) => IpNet::from(IpAddr::V6(ip)),
                },
            }));
        }
        text.parse().map(Self::User).map_err(|_| {
            Error::bad_request(
                "subject must be a user's id, an address, or a network such as 203.0.113.0/24",
            )
        })
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::User(user) => user.fmt(f),
            Self::Network(net) => net.fmt(f),
        }
    }
}

#[derive(Debug, Default)]
struct Entries {
    version: Option<String>,
    users: HashSet<UserId>,
    networks: Vec<IpNet>,
    /// What stands where a ban's subject should.
    unreadable: Vec<String>,
    /// User tokens that were issued before are over.
    cutoffs: HashMap<UserId, i64>,
}

/// The list as this node knows it.
#[derive(Debug, Default)]
pub struct Denylist(RwLock<Arc<Entries>>);

impl Denylist {
    /// Reads the list anew. A ban that cannot be read is told of, and does not keep the others from
    /// being in force: nobody could be banned any more otherwise.
    pub async fn reload(&self, conn: &mut Conn) -> Result<(), DbError> {
        let mut entries = Entries {
            version: conn.meta(VERSION).await?,
            ..Entries::default()
        };
        for row in conn.token_cutoffs().await? {
            entries.cutoffs.insert(row.user_id, row.not_before);
        }
        for ban in conn.bans().await? {
            match Subject::parse(&ban.subject) {
                Ok(Subject::User(user)) => {
                    entries.users.insert(user);
                }
                Ok(Subject::Network(net)) => entries.networks.push(net),
                Err(error) => {
                    tracing::error!(%error, subject = ban.subject, "a ban cannot be read, so it is not in force");
                    entries.unreadable.push(ban.subject);
                }
            }
        }
        *self
            .0
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner()) = Arc::new(entries);
        Ok(())
    }

    /// Reads the list anew where another node has changed it; whether it had.
    pub async fn keep_up(&self, db: &Db) -> Result<bool, DbError> {
        let mut conn = db.read().await?;
        if conn.meta(VERSION).await? == self.entries().version {
            return Ok(false);
        }
        self.reload(&mut conn).await?;
        Ok(true)
    }

    /// What stands where the first unreadable ban's subject should, if there is one.
    pub fn unreadable(&self) -> Option<String> {
        self.entries().unreadable.first().cloned()
    }

    /// Whether the user is banned.
    pub fn bans_user(&self, user: &UserId) -> bool {
        self.entries().users.contains(user)
    }

    /// Whether the address is in a banned network.
    pub fn bans_address(&self, ip: IpAddr) -> bool {
        self.entries().networks.iter().any(|net| net.contains(&ip))
    }

    /// Whether the user token is over, though its time is not.
    pub fn ended(&self, user: &UserId, issued_at: Option<i64>) -> bool {
        let entries = self.entries();
        let cutoff = entries.cutoffs.get(user);
        cutoff.is_some_and(|cutoff| issued_at.unwrap_or(0) < *cutoff)
    }

    /// Refuses whoever is banned.
    pub fn refuse_banned(&self, user: &UserId) -> Result<()> {
        match self.bans_user(user) {
            true => Err(Error::forbidden(
                "The operator of this server has banned this user",
            )),
            false => Ok(()),
        }
    }

    /// Refuses a user token whose user is banned, or has ended their sessions since.
    pub fn check_user(&self, user: &User) -> Result<()> {
        self.refuse_banned(&user.id)?;
        match self.ended(&user.id, user.issued_at) {
            true => Err(Error::new(
                ErrorCode::TokenInvalid,
                "This user token is from before all sessions were ended; sign in again",
            )),
            false => Ok(()),
        }
    }

    fn entries(&self) -> Arc<Entries> {
        self.0
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_an_id_an_address_or_a_network() {
        for (text, is) in [
            ("u_alice", "u_alice"),
            ("ext_curious_otter-3a9f1c20", "ext_curious_otter-3a9f1c20"),
            ("203.0.113.9", "203.0.113.9/32"),
            ("203.0.113.9/24", "203.0.113.0/24"),
            ("2001:db8::7", "2001:db8::/64"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("::ffff:203.0.113.9", "203.0.113.9/32"),
        ] {
            assert_eq!(Subject::parse(text).unwrap().to_string(), is);
        }
        for bad in ["", "a b", "203.0.113.0/99"] {
            assert!(Subject::parse(bad).is_err(), "{bad}");
        }
    }
}
