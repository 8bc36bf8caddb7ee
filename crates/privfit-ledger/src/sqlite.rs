//! A ledger in one file, by SQLite: a write-ahead log that is synchronised at every commit, and transactions that are alone from their
//! first word.
//!
//! A log belongs to a path and the budget to the file, so the file itself is locked, a connection lives for one transaction, and each
//! transaction ends with the log copied into the file and emptied: links, mounts and renames can't make two logs of one ledger, and a file that is
//! moved takes everything along. A log that a crash left behind must continue what the file holds; one of an earlier time is refused, and
//! one damaged bit in a log, which ends it without anybody noticing, can only lose what was not yet taken as done. The count and the digest of
//! the last record are kept on another page than the records.

mod read;

use super::chain::{Entry, ROOT};
use super::store::{Append, Decide, LARGEST_BODY, Store, check_append, damaged};
use privfit_data::error::{Error, Result};
use privfit_data::publish::sync_directory;
use read::{check_tables, distrust, plain, plain_head, read_entries, read_release, writable};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a transaction of another process is waited for.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Says in the file's header what it is.
const APPLICATION: i32 = 0x7072_6674;

/// Everything that is in the file; anything else was not made by us.
const TABLES: [&str; 3] = [
    "CREATE TABLE record (sequence INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL) STRICT",
    "CREATE TABLE head (only INTEGER PRIMARY KEY, count INTEGER NOT NULL, hash TEXT NOT NULL) STRICT",
    "CREATE TABLE release (request TEXT PRIMARY KEY, bytes BLOB NOT NULL) STRICT, WITHOUT ROWID",
];

/// A ledger file.
pub struct Sqlite {
    path: PathBuf,
    patience: Duration,
}

const BUSY: &str = "the ledger is busy: another job holds it; try again when that has ended";

fn busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, FileLockingProtocolFailed};
    // The last one: somebody stands in the middle of setting up the log.
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed))
}

fn failed(what: &str) -> impl Fn(rusqlite::Error) -> Error + '_ {
    use rusqlite::ErrorCode::*;
    move |e| match e.sqlite_error_code() {
        _ if busy(&e) => Error::refused(BUSY),
        Some(DiskFull | SystemIoFailure | ReadOnly | CannotOpen | PermissionDenied | OutOfMemory) => {
            // No text of the library: it may hold a path. A file with a flipped bit can look like any of these.
            Error::damaged(format!(
                "the ledger can't be {what}: check that its disk has room and can be written to, then try again"
            ))
        }
        _ => damaged("its file is not as we write it"),
    }
}

impl Sqlite {
    /// A new file; refused if there is one.
    pub fn create(path: &Path) -> Result<Sqlite> {
        local(path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
        use std::os::unix::fs::OpenOptionsExt;
        // The file itself decides who was first. Its log gets the permissions of the file.
        std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(|e| Error::misuse(format!("cannot make the ledger {}: {e}; give another path", path.display())))?;
        let made = Sqlite { path: real(path)?, patience: PATIENCE };
        let held = Held::hold(&made.path, PATIENCE, true)?;
        let mut connection = connect(&made.path, PATIENCE, None)?;
        let failed = failed("made");
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive).map_err(&failed)?;
        TABLES.iter().try_for_each(|sql| transaction.execute_batch(sql)).map_err(&failed)?;
        transaction.execute("INSERT INTO head VALUES (0, 0, ?1)", [ROOT]).map_err(&failed)?;
        transaction.pragma_update(None, "application_id", APPLICATION).map_err(&failed)?;
        transaction.commit().map_err(&failed)?;
        settle(connection, PATIENCE)?;
        held.release()?;
        sync_directory(&made.path)?;
        Ok(made)
    }

    /// A file that exists.
    pub fn open(path: &Path, patience: Duration) -> Result<Sqlite> {
        if !path.is_file() {
            return Err(missing(path));
        }
        local(path)?;
        Ok(Sqlite { path: real(path)?, patience })
    }

    /// Alone with the file, and with nobody's old log.
    fn begin(&self) -> Result<(Held<'_>, Connection)> {
        let held = Held::hold(&self.path, self.patience, true)?;
        if beside(&self.path, "-journal").exists() {
            return Err(damaged("a journal that is not ours lies beside it"));
        }
        let left = std::fs::metadata(beside(&self.path, "-wal")).is_ok_and(|m| m.len() > 0);
        let before = if left { plain_head(&self.path) } else { None };
        let connection = connect(&self.path, self.patience, Some(APPLICATION))?;
        check_tables(&connection)?;
        if let Some((count, hash)) = before.filter(|(count, _)| *count > 0) {
            let same =
                connection.query_row("SELECT hash FROM record WHERE sequence = ?1", [count - 1], |r| r.get::<_, String>(0));
            if same.optional().map_err(failed("read"))?.as_deref() != Some(hash.as_str()) {
                return Err(Error::damaged(
                    "beside the ledger lies a log of an earlier time, which would undo what came later: move the file that ends with -wal away, \
                     nothing is released meanwhile",
                ));
            }
        }
        Ok((held, connection))
    }
}

fn missing(path: &Path) -> Error {
    Error::misuse(format!("there is no ledger {}: make one with `privfit ledger create`", path.display()))
}

fn real(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|_| missing(path))
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// The lock of a ledger file: on the file itself, whatever name it is reached by, and gone with the process.
struct Held<'a> {
    file: std::fs::File,
    path: &'a Path,
}

impl<'a> Held<'a> {
    /// Alone, or beside others who read.
    fn hold(path: &'a Path, patience: Duration, alone: bool) -> Result<Held<'a>> {
        let file = std::fs::OpenOptions::new().read(true).write(alone).open(path);
        let file = file.map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => missing(path),
            _ => {
                let what = if alone { "writing" } else { "reading" };
                Error::refused(format!("the ledger {} can't be opened for {what}: check its permissions", path.display()))
            }
        })?;
        let wait = Duration::from_millis(2);
        for _ in 0..=patience.as_millis() / wait.as_millis() {
            match if alone { file.try_lock() } else { file.try_lock_shared() } {
                Ok(()) => {
                    let held = Held { file, path };
                    held.still()?;
                    return Ok(held);
                }
                Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(wait),
                Err(std::fs::TryLockError::Error(_)) => {
                    return Err(Error::misuse("this disk has no locks: keep the ledger on a local disk, or use PostgreSQL"));
                }
            }
        }
        Err(Error::refused(BUSY))
    }

    /// Whether the path still leads to the file that is locked.
    fn still(&self) -> Result<()> {
        use std::os::unix::fs::MetadataExt;
        let same = match (self.file.metadata(), std::fs::metadata(self.path)) {
            (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
            _ => false,
        };
        if same { Ok(()) } else { Err(damaged("it was moved or replaced while a job used it")) }
    }

    fn release(self) -> Result<()> {
        self.still()
    }
}

/// Copies the log into the file, synchronises both, empties the log and closes: frames that stay in it would win over the file after a crash.
fn settle(connection: Connection, patience: Duration) -> Result<()> {
    let wait = Duration::from_millis(3);
    for _ in 0..=patience.as_millis() / wait.as_millis() {
        let all = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |r| {
            Ok((r.get::<_, i64>(0)?, r.get::<_, i64>(1)?, r.get::<_, i64>(2)?))
        });
        match all {
            // The empty log stays: a new one would have to be made, and its directory synchronised, every time.
            Ok((0, 0, 0)) => return connection.close().map_err(|(_, e)| failed("closed")(e)),
            Err(e) if !busy(&e) => return Err(failed("written")(e)),
            // Somebody who does not know our lock reads the file.
            _ => std::thread::sleep(wait),
        }
    }
    Err(Error::refused(BUSY))
}

/// Opens a file that says that it is this application's.
fn connect(path: &Path, patience: Duration, application: Option<i32>) -> Result<Connection> {
    let opened = failed("opened");
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags).map_err(&opened)?;
    // A connection that ends early must not copy a log that was found to be wrong.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(&opened)?;
    connection.busy_timeout(patience).map_err(&opened)?;
    // Before anything is written: a foreign file stays as it is.
    distrust(&connection, application)?;
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |r| r.get(0)).map_err(&opened)?;
    if mode != "wal" {
        return Err(Error::misuse("this disk has no write-ahead log: keep the ledger on a local disk"));
    }
    // Durable when it returns: the log is synchronised at every commit, and where a disk has to be told twice, twice.
    connection.pragma_update(None, "synchronous", "FULL").map_err(&opened)?;
    connection.pragma_update(None, "fullfsync", true).map_err(&opened)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true).map_err(&opened)?;
    Ok(connection)
}

/// Disks whose locks are known to hold: those of this machine. Between machines they may not.
#[cfg(target_os = "linux")]
fn local(path: &Path) -> Result<()> {
    use std::os::unix::ffi::OsStrExt;
    // ext, xfs, btrfs, zfs, f2fs, bcachefs, jfs, tmpfs, ramfs, overlay, ntfs, fat, exfat.
    const KNOWN: [i64; 13] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0x2fc1_2fc1,
        0xf2f5_2010,
        0xca45_1a4e,
        0x3153_464a,
        0x0102_1994,
        0x8584_58f6,
        0x794c_7630,
        0x7366_746e,
        0x4d44,
        0x2011_bab0,
    ];
    let text = std::ffi::CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::misuse("the path of the ledger has a zero byte: give another one"))?;
    // SAFETY: a valid path, and a struct that the call fills.
    let kind = unsafe {
        let mut stat: libc::statfs = std::mem::zeroed();
        (libc::statfs(text.as_ptr(), &mut stat) == 0).then_some(stat.f_type as i64 & 0xffff_ffff)
    };
    match kind {
        Some(kind) if KNOWN.contains(&kind) => Ok(()),
        _ => Err(Error::misuse(
            "the ledger is on a disk whose locks are not known to hold, such as a network disk: keep it on a local disk, or use PostgreSQL",
        )),
    }
}

#[cfg(not(target_os = "linux"))]
fn local(_: &Path) -> Result<()> {
    Ok(())
}

impl Sqlite {
    /// Reads a file that can't be written to. Nobody who can may write meanwhile; a log of a job that died would have to be copied first.
    fn look<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let held = Held::hold(&self.path, self.patience, false)?;
        if beside(&self.path, "-journal").exists() {
            return Err(damaged("a journal that is not ours lies beside it"));
        }
        if std::fs::metadata(beside(&self.path, "-wal")).is_ok_and(|m| m.len() > 0) {
            return Err(Error::refused(
                "the ledger can't be written to and a job left its log beside it: open it once with permission to write",
            ));
        }
        let connection = plain(&self.path).map_err(failed("opened"))?;
        distrust(&connection, Some(APPLICATION))?;
        check_tables(&connection)?;
        let found = read(&connection)?;
        held.release()?;
        Ok(found)
    }
}

impl Store for Sqlite {
    fn transact(&mut self, decide: Decide<'_>) -> Result<Vec<Entry>> {
        let (held, mut connection) = self.begin()?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed("locked"))?;
        let mut entries = read_entries(&transaction)?;
        let append = match decide(&entries) {
            Ok(append) => append,
            Err(refused) => {
                // Nothing was written; what an earlier job left in the log goes into the file all the same.
                drop(transaction);
                settle(connection, self.patience)?;
                return Err(refused);
            }
        };
        if let Some(append) = append {
            check_append(&entries, &append)?;
            let Append { entry, release } = append;
            let written = failed("written");
            let number = entry.sequence as i64;
            transaction
                .execute("INSERT INTO record VALUES (?1, ?2, ?3)", (number, &entry.body, &entry.hash))
                .map_err(&written)?;
            transaction.execute("UPDATE head SET count = ?1, hash = ?2", (number + 1, &entry.hash)).map_err(&written)?;
            if let Some((request, bytes)) = release {
                let limit = (bytes.len() + LARGEST_BODY) as i32;
                transaction.set_limit(Limit::SQLITE_LIMIT_LENGTH, limit).map_err(&written)?;
                // A checkpoint gives way to the next one, and the last one to the release; the records decide who may write.
                let put = "INSERT INTO release VALUES (?1, ?2) ON CONFLICT (request) DO UPDATE SET bytes = excluded.bytes";
                transaction.execute(put, (request, bytes)).map_err(&written)?;
            }
            entries.push(entry);
        }
        transaction.commit().map_err(failed("written"))?;
        // Also what somebody else wrote and did not live to copy: it was taken as true here.
        settle(connection, self.patience)?;
        held.release()?;
        Ok(entries)
    }

    fn entries(&mut self) -> Result<Vec<Entry>> {
        match writable(&self.path) {
            true => self.transact(&mut |_| Ok(None)),
            false => self.look(read_entries),
        }
    }

    fn release(&mut self, request: &str) -> Result<Option<Vec<u8>>> {
        if !writable(&self.path) {
            return self.look(|connection| read_release(connection, request));
        }
        let (held, connection) = self.begin()?;
        let bytes = read_release(&connection, request)?;
        settle(connection, self.patience)?;
        held.release()?;
        Ok(bytes)
    }
}
