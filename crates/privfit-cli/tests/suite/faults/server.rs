//! A PostgreSQL server of our own: made in a directory of its own, reached by a socket there or by a free port of this machine, gone at
//! the end. Its programs refuse to run as root, so that they then run as another user.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that runs.
pub(crate) struct Server {
    child: Child,
    directory: PathBuf,
    port: u16,
}

/// Where the programs of the newest installed version are.
fn programs() -> Option<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version = path.file_name()?.to_str()?.parse().ok()?;
            Some((version, path.join("bin")))
        })
        .filter(|(_, bin)| bin.join("initdb").is_file())
        .collect();
    found.sort();
    found.pop().map(|(_, bin)| bin)
}

/// User and group for the server: ourselves, unless we are root.
fn user() -> (u32, u32) {
    // SAFETY: plain numbers; the entry of the user table is read at once.
    unsafe {
        if libc::geteuid() != 0 {
            return (libc::geteuid(), libc::getegid());
        }
        let entry = libc::getpwnam(c"postgres".as_ptr());
        if entry.is_null() { (65534, 65534) } else { ((*entry).pw_uid, (*entry).pw_gid) }
    }
}

fn command(program: &Path, directory: &Path) -> Command {
    let (user, group) = user();
    let mut command = Command::new(program);
    command.uid(user).gid(group).current_dir(directory).env_clear().env("LC_ALL", "C").env("PATH", "/usr/bin:/bin");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

impl Server {
    /// Makes and starts one.
    pub(crate) fn start(directory: &Path) -> Server {
        Server::start_with(directory, &[])
    }

    /// The same, with a certificate and its key.
    pub(crate) fn start_encrypted(directory: &Path, certificate: &Path, key: &Path) -> Server {
        std::fs::create_dir_all(directory).unwrap();
        let (user, group) = user();
        let own = |from: &Path, name: &str| {
            let to = directory.join(name);
            std::fs::copy(from, &to).unwrap();
            std::os::unix::fs::chown(&to, Some(user), Some(group)).unwrap();
            std::fs::set_permissions(&to, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
            to.display().to_string()
        };
        let certificate = format!("ssl_cert_file={}", own(certificate, "server.pem"));
        let key = format!("ssl_key_file={}", own(key, "server.key"));
        Server::start_with(directory, &["ssl=on", &certificate, &key])
    }

    fn start_with(directory: &Path, more: &[&str]) -> Server {
        let bin = programs().expect("a PostgreSQL server is installed (package postgresql)");
        std::fs::create_dir_all(directory).unwrap();
        let (user, group) = user();
        std::os::unix::fs::chown(directory, Some(user), Some(group)).unwrap();
        let data = directory.join("data");
        let made = command(&bin.join("initdb"), directory)
            .args(["--no-sync", "--auth=trust", "--username=owner", "--encoding=UTF8", "--locale=C", "--pgdata"])
            .arg(&data)
            .status()
            .unwrap();
        assert!(made.success(), "initdb failed in {}", directory.display());
        // The port is free when it is asked for; should somebody take it meanwhile, the server does not come up and says so.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut start = command(&bin.join("postgres"), directory);
        start.arg("-D").arg(&data).arg("-k").arg(directory).arg("-p").arg(port.to_string());
        // Enough connections for 64 processes at once.
        for setting in
            ["listen_addresses=127.0.0.1", "max_connections=120", "shared_buffers=16MB", "log_connections=on"].iter().chain(more)
        {
            start.arg("-c").arg(setting);
        }
        start.stderr(std::fs::File::create(directory.join("log")).unwrap());
        // SAFETY: one call between fork and exec. The server must not outlive a test that was ended from outside.
        unsafe {
            start.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGQUIT);
                Ok(())
            })
        };
        let child = start.spawn().unwrap();
        let server = Server { child, directory: directory.into(), port };
        let begun = Instant::now();
        while !server.ready(&bin) {
            assert!(begun.elapsed() < Duration::from_secs(60), "the server does not come up: {}", server.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    fn ready(&self, bin: &Path) -> bool {
        let mut asked = command(&bin.join("pg_isready"), &self.directory);
        asked.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]).status().unwrap().success()
    }

    /// What the server wrote down.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// The port of this machine.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Address of a ledger of this name.
    pub(crate) fn ledger(&self, name: &str) -> String {
        format!("{}#{name}", self.address())
    }

    fn address(&self) -> String {
        format!("postgresql://owner@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: our own child, which has not been waited for.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGQUIT) };
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
