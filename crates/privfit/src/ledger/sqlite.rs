//! A ledger in one file, by SQLite: a write-ahead log that is synchronised at every commit, and transactions that are alone from their
//! first word. Before anything is published, the log is copied into the file and emptied: what a log holds can be cut off by one damaged bit
//! without anybody noticing, what the file holds can't (the count and the digest of the last record are kept on another
//! page than the records).

use super::chain::{Entry, ROOT};
use super::store::{Append, Decide, LARGEST_BODY, LARGEST_RELEASE, Store, check_append, check_head, damaged, push};
use crate::error::{Error, Result};
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior};
use std::path::Path;
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
    connection: Connection,
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
        _ if busy(&e) => Error::Refused(BUSY.into()),
        Some(DiskFull | SystemIoFailure | ReadOnly | CannotOpen | PermissionDenied | OutOfMemory) => {
            // No text of the library: it may hold a path.
            Error::Damaged(format!(
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
        // The file itself decides who was first.
        std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(|e| Error::misuse(format!("cannot make the ledger {}: {e}; give another path", path.display())))?;
        let mut connection = connect(path, PATIENCE, None)?;
        let made = failed("made");
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive).map_err(&made)?;
        TABLES.iter().try_for_each(|sql| transaction.execute_batch(sql)).map_err(&made)?;
        transaction.execute("INSERT INTO head VALUES (0, 0, ?1)", [ROOT]).map_err(&made)?;
        transaction.pragma_update(None, "application_id", APPLICATION).map_err(&made)?;
        transaction.commit().map_err(&made)?;
        let mut made = Sqlite { connection, patience: PATIENCE };
        made.settle()?;
        sync_directory(path)?;
        Ok(made)
    }

    /// A file that exists.
    pub fn open(path: &Path, patience: Duration) -> Result<Sqlite> {
        if !path.is_file() {
            return Err(Error::misuse(format!("there is no ledger {}: make one with `privfit ledger create`", path.display())));
        }
        local(path)?;
        let connection = connect(path, patience, Some(APPLICATION))?;
        let found: Vec<Option<String>> = connection
            .prepare("SELECT sql FROM sqlite_schema ORDER BY rowid LIMIT 10")
            .and_then(|mut s| s.query_map([], |r| r.get(0)).and_then(|rows| rows.collect()))
            .map_err(failed("read"))?;
        // No trigger, no view, no other column.
        if found.iter().flatten().ne(TABLES) || found.len() != TABLES.len() {
            return Err(damaged("its tables are not ours"));
        }
        Ok(Sqlite { connection, patience })
    }

    /// Copies the log into the file, synchronises both and empties the log: frames that stay in it would win over the file after a crash, and
    /// one damaged bit would end them early. Two can't do it at once, and the library does not wait by itself.
    fn settle(&mut self) -> Result<()> {
        let wait = Duration::from_millis(3);
        for _ in 0..=self.patience.as_millis() / wait.as_millis() {
            let all = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |r| {
                Ok((r.get::<_, i64>(0)?, r.get::<_, i64>(1)?, r.get::<_, i64>(2)?))
            });
            match all {
                Ok((0, 0, 0)) => return Ok(()),
                Err(e) if !busy(&e) => return Err(failed("written")(e)),
                _ => std::thread::sleep(wait),
            }
        }
        Err(Error::Refused(BUSY.into()))
    }
}

/// Opens a file that says that it is this application's. No other descriptor of the file is ever opened and closed here: that would let go
/// of the locks that another connection of this process holds on it.
fn connect(path: &Path, patience: Duration, application: Option<i32>) -> Result<Connection> {
    let opened = failed("opened");
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    // A link to a file would have a log of its own name.
    let path = path.canonicalize().map_err(|_| Error::misuse("the path of the ledger can't be followed: give another one"))?;
    let connection = Connection::open_with_flags(path, flags).map_err(&opened)?;
    connection.busy_timeout(patience).map_err(&opened)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, 2 * LARGEST_BODY as i32).map_err(&opened)?;
    connection.pragma_update(None, "trusted_schema", false).map_err(&opened)?;
    connection.pragma_update(None, "cell_size_check", true).map_err(&opened)?;
    // Before anything is written: a foreign file stays as it is.
    let found: i32 = connection.pragma_query_value(None, "application_id", |r| r.get(0)).map_err(&opened)?;
    if application.is_some_and(|id| id != found) {
        return Err(damaged("its file does not begin as ours do"));
    }
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |r| r.get(0)).map_err(&opened)?;
    if mode != "wal" {
        return Err(Error::misuse("this disk has no write-ahead log: keep the ledger on a local disk"));
    }
    // Durable when it returns: the log is synchronised at every commit.
    connection.pragma_update(None, "synchronous", "FULL").map_err(&opened)?;
    Ok(connection)
}

/// Locks of network disks do not hold everywhere, so those are refused.
#[cfg(target_os = "linux")]
fn local(path: &Path) -> Result<()> {
    use std::os::unix::ffi::OsStrExt;
    const REMOTE: [i64; 7] = [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x6573_5546, 0x564c, 0x0102_1997];
    let text = std::ffi::CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::misuse("the path of the ledger has a zero byte: give another one"))?;
    // SAFETY: a valid path, and a struct that the call fills.
    let kind = unsafe {
        let mut stat: libc::statfs = std::mem::zeroed();
        (libc::statfs(text.as_ptr(), &mut stat) == 0).then_some(stat.f_type as i64)
    };
    match kind {
        Some(kind) if REMOTE.contains(&(kind & 0xffff_ffff)) => Err(Error::misuse(
            "the ledger is on a network disk, whose locks can't be relied on: keep it on a local disk, or use PostgreSQL",
        )),
        _ => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn local(_: &Path) -> Result<()> {
    Ok(())
}

/// The name of a new file survives a crash only when its directory was synchronised.
pub(crate) fn sync_directory(path: &Path) -> Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let synced = std::fs::File::open(parent).and_then(|d| d.sync_all());
    synced.map_err(|_| Error::Damaged(format!("the directory {} can't be synchronised: use another disk", parent.display())))
}

impl Store for Sqlite {
    fn transact(&mut self, decide: Decide<'_>) -> Result<Vec<Entry>> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed("locked"))?;
        let read = failed("read");
        let (mut entries, mut size) = (Vec::new(), 0);
        {
            let mut statement =
                transaction.prepare_cached("SELECT sequence, body, hash FROM record ORDER BY sequence").map_err(&read)?;
            let mut rows = statement.query([]).map_err(&read)?;
            while let Some(row) = rows.next().map_err(&read)? {
                let sequence: i64 = row.get(0).map_err(&read)?;
                let (body, hash) = (row.get(1).map_err(&read)?, row.get(2).map_err(&read)?);
                push(&mut entries, &mut size, Entry { sequence: sequence as u64, body, hash })?;
            }
            let mut statement = transaction.prepare_cached("SELECT only, count, hash FROM head").map_err(&read)?;
            let rows = statement.query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?))).map_err(&read)?;
            let head: Vec<(i64, i64, String)> = rows.take(2).collect::<rusqlite::Result<_>>().map_err(&read)?;
            let [(0, count, hash)] = head.as_slice() else { return Err(damaged("its head is missing")) };
            check_head(&entries, *count as u64, hash)?;
        }
        let Some(append) = decide(&entries)? else { return Ok(entries) };
        check_append(&entries, &append)?;
        let Append { entry, release } = append;
        let written = failed("written");
        let number = entry.sequence as i64;
        transaction.execute("INSERT INTO record VALUES (?1, ?2, ?3)", (number, &entry.body, &entry.hash)).map_err(&written)?;
        transaction.execute("UPDATE head SET count = ?1, hash = ?2", (number + 1, &entry.hash)).map_err(&written)?;
        let releases = release.is_some();
        if let Some((request, bytes)) = release {
            let limit = (bytes.len() + LARGEST_BODY) as i32;
            transaction.set_limit(Limit::SQLITE_LIMIT_LENGTH, limit).map_err(&written)?;
            transaction.execute("INSERT INTO release VALUES (?1, ?2)", (request, bytes)).map_err(&written)?;
        }
        transaction.commit().map_err(&written)?;
        if releases {
            self.settle()?;
        }
        entries.push(entry);
        Ok(entries)
    }

    fn release(&mut self, request: &str) -> Result<Option<Vec<u8>>> {
        // Whoever wrote it may not have lived to copy it, and it is about to be published.
        self.settle()?;
        let read = failed("read");
        self.connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LARGEST_RELEASE as i32 + 1024).map_err(&read)?;
        let bytes = self.connection.query_row("SELECT bytes FROM release WHERE request = ?1", [request], |r| r.get(0));
        bytes.optional().map_err(&read)
    }
}
