//! Addresses of ledgers in PostgreSQL, and whether the way there is private: `postgres://user@host/database?sslmode=...#name`.
//!
//! A password, and records that name every job, go to the server, so that another machine is reached by TLS alone, with a certificate that is for
//! the name in the address and comes from a root that is trusted here. What libpq calls `require` and `verify-ca` checks less; here they are
//! `verify-full`. On this machine (a socket, or the loopback address) there is nobody in between, and TLS is used when it is asked for.

use super::record::is_name;
use postgres::Config;
use postgres::config::{Host, SslMode};
use privfit_data::error::{Error, Result};
use std::path::PathBuf;

/// Whose certificates are trusted.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Roots {
    /// Those of the system.
    System,
    /// Those of a file in PEM.
    File(PathBuf),
}

/// Where a ledger is.
pub(super) struct Address {
    /// The server, as its driver takes it.
    pub(super) config: Config,
    /// Name of the ledger there.
    pub(super) name: String,
    /// Roots for TLS; none for a connection in the clear, on this machine.
    pub(super) roots: Option<Roots>,
}

const FORM: &str = "give it as postgres://user@host/database#name";

impl Address {
    pub(super) fn parse(text: &str) -> Result<Address> {
        let Some((text, name)) = text.split_once('#').filter(|(_, name)| is_name(name)) else {
            return Err(Error::misuse(format!("the address of the ledger has no name of a ledger: {FORM}")));
        };
        // These two are ours: the driver knows neither the stricter modes nor files of roots.
        let (server, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut mode, mut roots, mut rest) = (None, None, Vec::new());
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let place = match key {
                "sslmode" => &mut mode,
                "sslrootcert" => &mut roots,
                _ => {
                    rest.push(pair);
                    continue;
                }
            };
            if place.replace(decoded(value)).is_some() {
                return Err(Error::misuse(format!("the address of the ledger has {key} twice: leave one out")));
            }
        }
        let plain = if rest.is_empty() { server.to_string() } else { format!("{server}?{}", rest.join("&")) };
        let mut config: Config = plain.parse().map_err(|_| Error::misuse(format!("the address can't be read: {FORM}")))?;
        let roots = encryption(&config, mode.as_deref(), roots.as_deref())?;
        config.ssl_mode(if roots.is_some() { SslMode::Require } else { SslMode::Disable });
        Ok(Address { config, name: name.into(), roots })
    }
}

/// How a server is reached, or why not.
fn encryption(config: &Config, mode: Option<&str>, roots: Option<&str>) -> Result<Option<Roots>> {
    let here = |host: &Host| match host {
        Host::Tcp(name) => ["localhost", "127.0.0.1", "::1"].contains(&name.as_str()),
        Host::Unix(_) => true,
    };
    let hosts = config.get_hosts();
    let local = !hosts.is_empty() && hosts.iter().all(here) && config.get_hostaddrs().iter().all(|a| a.is_loopback());
    let asked = match mode {
        Some("require" | "verify-ca" | "verify-full") => true,
        None | Some("prefer") => !local || roots.is_some(),
        Some(mode @ ("disable" | "allow")) if !local => {
            return Err(Error::misuse(format!(
                "the server is on another machine and sslmode={mode} would send the password in the clear: leave sslmode out"
            )));
        }
        Some("disable" | "allow") => false,
        Some(other) => {
            return Err(Error::misuse(format!(
                "sslmode is {other:?}: give disable, allow, prefer, require, verify-ca or verify-full"
            )));
        }
    };
    // A socket of this machine has no name for a certificate, and nobody in between.
    let sockets = local && hosts.iter().all(|h| matches!(h, Host::Unix(_)));
    Ok((asked && !sockets).then(|| match roots {
        None | Some("system") => Roots::System,
        Some(path) => Roots::File(path.into()),
    }))
}

/// A part of an address with its %-signs read.
fn decoded(text: &str) -> String {
    let (bytes, mut out, mut at) = (text.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        let code =
            bytes.get(at + 1..at + 3).and_then(|d| std::str::from_utf8(d).ok()).and_then(|d| u8::from_str_radix(d, 16).ok());
        match (bytes[at], code) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(address: &str) -> Result<Option<Roots>> {
        Address::parse(address).map(|a| {
            assert_eq!(a.config.get_ssl_mode(), if a.roots.is_some() { SslMode::Require } else { SslMode::Disable });
            assert_eq!(a.name, "visits");
            a.roots
        })
    }

    #[test]
    fn other_machines_are_reached_by_tls_alone() {
        let file = |name: &str| Some(Roots::File(name.into()));
        for (server, roots) in [
            ("me@localhost/team", None),
            ("me@127.0.0.1:5433/team?connect_timeout=3", None),
            ("me@[::1]/team?sslmode=prefer", None),
            ("me@localhost/team?sslmode=disable", None),
            ("me@%2Fvar%2Frun/team?sslmode=require", None),
            ("me@localhost/team?sslmode=require", Some(Roots::System)),
            ("me@localhost/team?sslrootcert=r.pem", file("r.pem")),
            ("me@server/team", Some(Roots::System)),
            ("me@localhost.example/team", Some(Roots::System)),
            ("me:secret@10.0.0.1/team?sslmode=prefer", Some(Roots::System)),
            ("me@server/team?sslmode=verify-ca&sslrootcert=system", Some(Roots::System)),
            ("me@server/team?sslrootcert=my%20roots.pem&sslmode=verify-full&connect_timeout=3", file("my roots.pem")),
            ("me@localhost,server/team", Some(Roots::System)),
            // A name of this machine for an address of another, and the other way round.
            ("me@localhost/team?hostaddr=10.0.0.1", Some(Roots::System)),
            ("me@server/team?hostaddr=127.0.0.1", Some(Roots::System)),
            ("/team?user=me", Some(Roots::System)),
        ] {
            assert_eq!(way(&format!("postgres://{server}#visits")), Ok(roots), "{server}");
        }
        for (address, says) in [
            ("postgres://me@server/team?sslmode=disable#visits", "in the clear"),
            ("postgres://me@server/team?sslmode=allow#visits", "in the clear"),
            ("postgres://me@localhost,server/team?sslmode=disable#visits", "in the clear"),
            ("postgres://me@localhost/team?hostaddr=10.0.0.1&sslmode=disable#visits", "in the clear"),
            ("postgres://me@server/team?sslmode=none#visits", "sslmode is"),
            ("postgres://me@server/team?sslmode=require&sslmode=disable#visits", "twice"),
            ("postgres://me@server/team?ssl=1#visits", "can't be read"),
            ("postgres://me@server/team", "no name"),
            ("postgres://me@server/team#a b", "no name"),
        ] {
            assert!(matches!(way(address), Err(Error::Misuse(text)) if text.contains(says)), "{address}");
        }
    }
}
