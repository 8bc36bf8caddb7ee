//! A server on another machine is reached by TLS, with a certificate for its name from a root that is trusted, or not at all. The other machine
//! is this one under another name, with a certificate that the test makes.

use crate::faults::scene::Scene;
use crate::faults::server::Server;
use std::path::PathBuf;
use std::process::Command;

/// A certificate that signs itself, and its key.
fn certificate(scene: &Scene, name: &str) -> (PathBuf, PathBuf) {
    let (certificate, key) = (scene.path(&format!("{name}.pem")), scene.path(&format!("{name}.key")));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3", "-subj", "/CN=db.example"])
        .args(["-addext", "subjectAltName=DNS:db.example,IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-out")
        .arg(&certificate)
        .arg("-keyout")
        .arg(&key)
        .output()
        .expect("openssl is installed, as it is with every Debian server of PostgreSQL");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    (certificate, key)
}

/// Exit code of making a ledger there, and what was said. The system trusts what the file holds.
fn make(scene: &Scene, address: &str, system: &str) -> (Option<i32>, String) {
    let schema = scene.path("s.toml").display().to_string();
    let line = ["ledger", "create", address, "--schema", &schema, "--epsilon", "5", "--delta", "0"];
    let done = scene.command(&line).env("SSL_CERT_FILE", scene.path(system)).output().unwrap();
    (done.status.code(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn other_machines_are_reached_by_tls_alone() {
    let scene = Scene::new("tls");
    let (ours, key) = certificate(&scene, "ours");
    certificate(&scene, "other");
    let server = Server::start_encrypted(&scene.path("server"), &ours, &key);
    let plain = Server::start(&scene.path("plain"));
    let at = |server: &Server, host: &str, query: &str, name: &str| {
        format!("postgresql://owner:hidden@{host}:{}/postgres?hostaddr=127.0.0.1{query}#{name}", server.port())
    };
    let roots = format!("&sslrootcert={}", ours.display());
    for (number, (host, query, system)) in [
        ("db.example", roots.as_str(), "other.pem"),
        ("db.example", &format!("{roots}&sslmode=verify-full"), "other.pem"),
        ("db.example", "", "ours.pem"),
        ("db.example", "&sslmode=require&sslrootcert=system", "ours.pem"),
        ("127.0.0.1", "&sslmode=require", "ours.pem"),
    ]
    .into_iter()
    .enumerate()
    {
        let (code, said) = make(&scene, &at(&server, host, query, &format!("good-{number}")), system);
        assert_eq!(code, Some(0), "{host} {query}: {said}");
    }
    // Connections of ours, and those of them that were encrypted.
    let connections = |server: &Server| {
        let log = server.log();
        let ours: Vec<&str> = log.lines().filter(|l| l.contains("connection authorized") && l.contains("=privfit")).collect();
        (ours.len(), ours.iter().filter(|l| l.contains("SSL enabled (protocol=TLSv1.3")).count())
    };
    assert_eq!(connections(&server), (5, 5));
    // A job, from its reservation to its release.
    let place = at(&server, "db.example", &roots, "good-0");
    let done = scene.fit(&place, "one", "m.json").output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(scene.run(&["ledger", "verify", &place, "--model", scene.path("m.json").to_str().unwrap()]).status.success());
    for (what, server, host, query, system, code, says) in [
        ("no root", &server, "db.example", "", "other.pem", 1, "can't be reached by TLS"),
        ("another root", &server, "db.example", "&sslrootcert=other.pem", "ours.pem", 1, "can't be reached by TLS"),
        ("another name", &server, "db.exampel", roots.as_str(), "ours.pem", 1, "can't be reached by TLS"),
        ("no TLS there", &plain, "db.example", roots.as_str(), "ours.pem", 1, "can't be reached by TLS"),
        ("no TLS wanted", &server, "db.example", "&sslmode=disable", "ours.pem", 2, "in the clear"),
        ("no file of roots", &server, "db.example", "&sslrootcert=none.pem", "ours.pem", 2, "cannot read the roots"),
        ("no roots in the file", &server, "db.example", "&sslrootcert=s.toml", "ours.pem", 2, "no root certificate"),
        ("roots without an end", &server, "db.example", "&sslrootcert=/dev/zero", "ours.pem", 2, "not a regular file"),
    ] {
        let (found, said) = make(&scene, &at(server, host, query, "bad"), system);
        assert!(found == Some(code) && said.contains(says), "{what}: {found:?} {said}");
        assert!(!said.contains("hidden"), "{what}: {said}");
    }
    // Nothing went out in the clear, not even to be refused.
    let (all, encrypted) = connections(&server);
    assert!(all > 5 && all == encrypted, "{}", server.log());
    assert_eq!(connections(&plain), (0, 0), "{}", plain.log());
    // This machine needs no TLS.
    assert_eq!(make(&scene, &plain.ledger("here"), "other.pem").0, Some(0));
}
