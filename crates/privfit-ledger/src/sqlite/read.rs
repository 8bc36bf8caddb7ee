//! What is read from a ledger file, which may hold anything: nothing is believed before it was looked at.

use super::super::chain::Entry;
use super::super::store::{LARGEST_BODY, LARGEST_RELEASE, check_head, damaged, push};
use super::{TABLES, failed};
use privfit_data::error::Result;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use std::path::Path;

/// Whether a file may be written to, as far as the system says.
pub(super) fn writable(path: &Path) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let opened = std::fs::OpenOptions::new().write(true).open(path);
    !opened.is_err_and(|e| matches!(e.kind(), PermissionDenied | ReadOnlyFilesystem)) && path.parent().is_none_or(may_write)
}

/// Whether files may be made in a directory: the log needs one.
pub(super) fn may_write(directory: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::CString::new(directory.as_os_str().as_bytes());
    // SAFETY: a path that ends with a zero byte.
    name.is_ok_and(|name| unsafe { libc::access(name.as_ptr(), libc::W_OK) } == 0)
}

/// No trigger, no view, no other column.
pub(super) fn check_tables(connection: &Connection) -> Result<()> {
    let found: Vec<Option<String>> = connection
        .prepare("SELECT sql FROM sqlite_schema ORDER BY rowid LIMIT 10")
        .and_then(|mut s| s.query_map([], |r| r.get(0)).and_then(|rows| rows.collect()))
        .map_err(failed("read"))?;
    if found.iter().flatten().ne(TABLES) || found.len() != TABLES.len() {
        return Err(damaged("its tables are not ours"));
    }
    Ok(())
}

/// The file alone, as if there were no log, and without a trace on the disk.
pub(super) fn plain(path: &Path) -> rusqlite::Result<Connection> {
    use std::os::unix::ffi::OsStrExt;
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"/._-".contains(b);
    let text: String = path
        .as_os_str()
        .as_bytes()
        .iter()
        .map(|b| if plain(b) { (*b as char).to_string() } else { format!("%{b:02X}") })
        .collect();
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(format!("file:{text}?immutable=1"), flags)
}

/// Count and digest of the last record in the file alone.
pub(super) fn plain_head(path: &Path) -> Option<(i64, String)> {
    let connection = plain(path).ok()?;
    connection.query_row("SELECT count, hash FROM head WHERE only = 0", [], |r| Ok((r.get(0)?, r.get(1)?))).ok()
}

/// Bounds for whatever a file holds, which must say that it is this application's.
pub(super) fn distrust(connection: &Connection, application: Option<i32>) -> Result<()> {
    let opened = failed("opened");
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, 2 * LARGEST_BODY as i32).map_err(&opened)?;
    connection.pragma_update(None, "trusted_schema", false).map_err(&opened)?;
    connection.pragma_update(None, "cell_size_check", true).map_err(&opened)?;
    let found: i32 = connection.pragma_query_value(None, "application_id", |r| r.get(0)).map_err(&opened)?;
    match application.is_some_and(|id| id != found) {
        true => Err(damaged("its file does not begin as ours do")),
        false => Ok(()),
    }
}

/// Records in order, and whether the head is that of the last one.
pub(super) fn read_entries(connection: &Connection) -> Result<Vec<Entry>> {
    let read = failed("read");
    let (mut entries, mut size) = (Vec::new(), 0);
    let mut statement = connection.prepare("SELECT sequence, body, hash FROM record ORDER BY sequence").map_err(&read)?;
    let mut rows = statement.query([]).map_err(&read)?;
    while let Some(row) = rows.next().map_err(&read)? {
        let sequence: i64 = row.get(0).map_err(&read)?;
        let (body, hash) = (row.get(1).map_err(&read)?, row.get(2).map_err(&read)?);
        push(&mut entries, &mut size, Entry { sequence: sequence as u64, body, hash })?;
    }
    let mut statement = connection.prepare("SELECT only, count, hash FROM head").map_err(&read)?;
    let rows = statement.query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?))).map_err(&read)?;
    let head: Vec<(i64, i64, String)> = rows.take(2).collect::<rusqlite::Result<_>>().map_err(&read)?;
    let [(0, count, hash)] = head.as_slice() else { return Err(damaged("its head is missing")) };
    check_head(&entries, *count as u64, hash)?;
    Ok(entries)
}

pub(super) fn read_release(connection: &Connection, request: &str) -> Result<Option<Vec<u8>>> {
    let read = failed("read");
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LARGEST_RELEASE as i32 + 1024).map_err(&read)?;
    let bytes = connection.query_row("SELECT bytes FROM release WHERE request = ?1", [request], |r| r.get(0));
    bytes.optional().map_err(&read)
}
