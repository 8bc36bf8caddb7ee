//! A ledger in a PostgreSQL database, for a team: `postgres://user@host/database#name`. Transactions are serialisable, one at a time by
//! a lock of the session (which ends with it, whatever happens to the program), and synchronised before they count as done.

use super::address::Address;
use super::chain::{Entry, ROOT};
use super::store::{Append, Decide, Store, check_append, check_head, damaged, push};
use super::tls::Tls;
use postgres::{Client, IsolationLevel, NoTls};
use privfit_data::error::{Error, Result};
use std::time::Duration;

/// A ledger in a database.
pub struct Postgres {
    client: Client,
    name: String,
    lock: i64,
}

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS privfit_head (ledger text PRIMARY KEY, count bigint NOT NULL, hash text NOT NULL);
    CREATE TABLE IF NOT EXISTS privfit_record (ledger text REFERENCES privfit_head, sequence bigint, body text NOT NULL, hash text NOT NULL,
        PRIMARY KEY (ledger, sequence));
    CREATE TABLE IF NOT EXISTS privfit_release (ledger text REFERENCES privfit_head, request text, bytes bytea NOT NULL,
        PRIMARY KEY (ledger, request));";

/// Guards the making of tables, so that two do not make them at once.
const MAKING: i64 = 0x7072_6674_6d61_6b65;

fn failed(what: &str) -> impl Fn(postgres::Error) -> Error + '_ {
    move |e| match e.code().map(|c| c.code()) {
        Some("55P03" | "40001" | "40P01" | "57014") => {
            Error::refused("the ledger is busy: another job holds it; try again when that has ended")
        }
        Some("42501" | "28000" | "28P01") => Error::misuse(format!("the ledger can't be {what}: the server refuses this user")),
        // No text of the server: it may hold an address or a password.
        _ => Error::refused(format!("the ledger can't be {what}: check that the server runs and has room, then try again")),
    }
}

impl Postgres {
    fn connect(address: &str, patience: Duration) -> Result<Postgres> {
        let Address { mut config, name, roots } = Address::parse(address)?;
        config.connect_timeout(patience).application_name("privfit");
        let mut client = match roots {
            None => config.connect(NoTls).map_err(failed("reached")),
            Some(roots) => config.connect(Tls::new(&roots, patience)?).map_err(|e| match e.code() {
                Some(_) => failed("reached")(e),
                // No text of the server: it may hold an address or a password.
                None => Error::refused(
                    "the server can't be reached by TLS: check that it runs with ssl = on, that its certificate is for the name in the address, \
                     and that its root is one of this system or of ?sslrootcert=FILE in the address"),
            }),
        }?;
        let millis = patience.as_millis();
        let set = format!(
            "SET lock_timeout = {millis}; SET statement_timeout = 0; SET synchronous_commit = on; SET search_path = public, pg_temp"
        );
        client.batch_execute(&set).map_err(failed("opened"))?;
        for setting in ["fsync", "full_page_writes"] {
            let row = client.query_one("SELECT current_setting($1)", &[&setting]).map_err(failed("opened"))?;
            if row.try_get::<_, String>(0).map_err(failed("opened"))? != "on" {
                return Err(Error::misuse(format!("the server runs with {setting} = off and forgets at a crash: set it to on")));
            }
        }
        let digest = super::digest(&[b"privfit-ledger", name.as_bytes()]);
        let lock = u64::from_str_radix(&digest[..16], 16).unwrap_or_default() as i64;
        Ok(Postgres { client, name, lock })
    }

    /// A new ledger; refused if there is one of this name.
    pub fn create(address: &str) -> Result<Postgres> {
        let mut made = Postgres::connect(address, super::sqlite::PATIENCE)?;
        let written = failed("made");
        let mut transaction = made.client.transaction().map_err(&written)?;
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&MAKING]).map_err(&written)?;
        transaction.batch_execute(TABLES).map_err(&written)?;
        let insert = "INSERT INTO privfit_head VALUES ($1, 0, $2) ON CONFLICT DO NOTHING";
        let new = transaction.execute(insert, &[&made.name, &ROOT]).map_err(&written)?;
        if new != 1 {
            return Err(Error::misuse(format!("there is a ledger {:?} already: give another name after #", made.name)));
        }
        transaction.commit().map_err(&written)?;
        made.check_tables()?;
        Ok(made)
    }

    /// A ledger that exists.
    pub fn open(address: &str, patience: Duration) -> Result<Postgres> {
        let mut opened = Postgres::connect(address, patience)?;
        let tables =
            opened.client.query_one("SELECT to_regclass('public.privfit_head') IS NOT NULL", &[]).map_err(failed("read"))?;
        let head = "SELECT count(*) FROM privfit_head WHERE ledger = $1";
        let known = tables.try_get::<_, bool>(0).map_err(failed("read"))?
            && opened.client.query_one(head, &[&opened.name]).and_then(|r| r.try_get::<_, i64>(0)).map_err(failed("read"))? == 1;
        if !known {
            return Err(Error::misuse(format!("there is no ledger {:?}: make one with `privfit ledger create`", opened.name)));
        }
        opened.check_tables()?;
        Ok(opened)
    }

    /// Plain tables that last and do nothing by themselves: three of them, logged, without triggers, rules or rows that are hidden.
    fn check_tables(&mut self) -> Result<()> {
        let plain = "SELECT count(*) FROM pg_class WHERE oid IN ('public.privfit_head'::regclass, 'public.privfit_record'::regclass, \
                     'public.privfit_release'::regclass) AND relkind = 'r' AND relpersistence = 'p' AND NOT relhasrules AND NOT relrowsecurity \
                     AND NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = pg_class.oid AND NOT tgisinternal)";
        let found = self.client.query_one(plain, &[]).and_then(|r| r.try_get::<_, i64>(0)).map_err(failed("read"))?;
        if found == 3 { Ok(()) } else { Err(damaged("its tables are not as we make them")) }
    }

    /// The transaction itself; the lock is held.
    fn alone(&mut self, decide: Decide<'_>) -> Result<Vec<Entry>> {
        let (read, name) = (failed("read"), &self.name);
        let transaction = self.client.build_transaction().isolation_level(IsolationLevel::Serializable).start();
        let mut transaction = transaction.map_err(failed("locked"))?;
        transaction.batch_execute("SET LOCAL synchronous_commit = on").map_err(failed("locked"))?;
        let (mut entries, mut size) = (Vec::new(), 0);
        // Sizes first, so that no hostile table fills the memory.
        let total = "SELECT coalesce(sum(octet_length(body) + 64), 0)::bigint FROM privfit_record WHERE ledger = $1";
        if transaction.query_one(total, &[name]).and_then(|r| r.try_get::<_, i64>(0)).map_err(&read)?
            > super::store::LARGEST as i64
        {
            return Err(damaged("it is larger than any of ours"));
        }
        let all = "SELECT sequence, body, hash FROM privfit_record WHERE ledger = $1 ORDER BY sequence";
        for row in transaction.query(all, &[name]).map_err(&read)? {
            let sequence: i64 = row.try_get(0).map_err(&read)?;
            let (body, hash) = (row.try_get(1).map_err(&read)?, row.try_get(2).map_err(&read)?);
            push(&mut entries, &mut size, Entry { sequence: sequence as u64, body, hash })?;
        }
        let head = transaction.query_one("SELECT count, hash FROM privfit_head WHERE ledger = $1", &[name]).map_err(&read)?;
        let (count, hash): (i64, String) = (head.try_get(0).map_err(&read)?, head.try_get(1).map_err(&read)?);
        check_head(&entries, count as u64, &hash)?;
        let Some(append) = decide(&entries)? else { return Ok(entries) };
        check_append(&entries, &append)?;
        let Append { entry, release } = append;
        let written = failed("written");
        let number = entry.sequence as i64;
        let insert = "INSERT INTO privfit_record VALUES ($1, $2, $3, $4)";
        let mut rows = transaction.execute(insert, &[name, &number, &entry.body, &entry.hash]).map_err(&written)?;
        let update = "UPDATE privfit_head SET count = $2, hash = $3 WHERE ledger = $1";
        rows += transaction.execute(update, &[name, &(number + 1), &entry.hash]).map_err(&written)?;
        if let Some((request, bytes)) = release {
            let put = "INSERT INTO privfit_release VALUES ($1, $2, $3) ON CONFLICT (ledger, request) DO UPDATE SET bytes = excluded.bytes";
            rows += transaction.execute(put, &[name, &request, &bytes]).map_err(&written)?;
            rows -= 1;
        }
        if rows != 2 {
            return Err(damaged("the server did not write what it was given"));
        }
        transaction.commit().map_err(&written)?;
        entries.push(entry);
        Ok(entries)
    }
}

impl Store for Postgres {
    fn transact(&mut self, decide: Decide<'_>) -> Result<Vec<Entry>> {
        // Before the transaction begins: its view of the records must be newer than the lock.
        self.client.execute("SELECT pg_advisory_lock($1)", &[&self.lock]).map_err(failed("locked"))?;
        let done = self.alone(decide);
        let unlocked = self.client.execute("SELECT pg_advisory_unlock($1)", &[&self.lock]).map_err(failed("unlocked"));
        let entries = done?;
        unlocked?;
        Ok(entries)
    }

    fn release(&mut self, request: &str) -> Result<Option<Vec<u8>>> {
        let kept = "SELECT bytes FROM privfit_release WHERE ledger = $1 AND request = $2";
        let row = self.client.query_opt(kept, &[&self.name, &request]).map_err(failed("read"))?;
        row.map(|r| r.try_get(0)).transpose().map_err(failed("read"))
    }
}
