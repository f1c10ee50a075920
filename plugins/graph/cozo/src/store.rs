//! The engine's storage: one SQLite table of keys and values, in WAL mode. Unlike
//! the engine's own SQLite storage it lets readers work during a write, each on a
//! snapshot, refuses files of others, and can be read-only.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cozo::{try_decode_tuple_from_kv, DataValue, Storage, StoreTx, Validity, ValidityTs};
use miette::Result;

use crate::failure::Failure;
use crate::row;
use crate::sqlite::{Connection, Statement, Step};

/// APPLICATION marks the file in SQLite's header ("teac"); FORMAT is its version.
const APPLICATION: i32 = 0x7465_6163;
const FORMAT: i32 = 1;

/// POOL is the number of idle connections that are kept.
const POOL: usize = 8;

const SETUP: &str = "pragma journal_mode=wal; pragma synchronous=full; pragma busy_timeout=5000;
	pragma cache_size=-4000; pragma mmap_size=67108864; pragma temp_store=memory; pragma journal_size_limit=67108864;
	pragma trusted_schema=off;";

const GET: &str = "select v from cozo where k = ?";
const PUT: &str = "insert into cozo(k, v) values (?, ?) on conflict(k) do update set v = excluded.v";
const DELETE: &str = "delete from cozo where k = ?";
const DELETE_RANGE: &str = "delete from cozo where k >= ? and k < ?";
const RANGE: &str = "select k, v from cozo where k >= ? and k < ? order by k";
const COUNT: &str = "select count(*) from cozo where k >= ? and k < ?";
const ALL: &str = "select k, v from cozo order by k";

pub type Tuple = Vec<DataValue>;
type Pair = (Vec<u8>, Vec<u8>);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Store is the database file. Clones share it.
#[derive(Clone)]
pub struct Store {
    file: Arc<File>,
    /// Set for a read-only view once the engine has initialized itself.
    sealed: Option<Arc<AtomicBool>>,
}

struct File {
    path: String,
    idle: Mutex<Vec<Connection>>,
    writer: Mutex<()>,
}

impl Store {
    /// open opens or creates the file. A file that is not ours is not changed.
    pub fn open(path: &str) -> Result<Store> {
        let mut conn = Connection::open(path)?;
        let application = conn.integer("pragma application_id")?;
        let found = conn.integer("pragma user_version")?;
        // A database that was not created to its end has no tables.
        let fresh = application == 0 && conn.integer("select count(*) from sqlite_schema")? == 0;
        if !fresh && application != APPLICATION {
            return Err(Failure::Foreign(format!("{path} is a database of another program")).into());
        }
        if found > FORMAT {
            return Err(Failure::Newer { found, supported: FORMAT }.into());
        }
        conn.execute(SETUP)?;
        if fresh {
            conn.execute(&format!(
                "begin; create table if not exists cozo(k blob primary key, v blob) without rowid;
                pragma application_id={APPLICATION}; pragma user_version={FORMAT}; commit"
            ))?;
        }
        let file = File { path: path.into(), idle: Mutex::new(vec![conn]), writer: Mutex::new(()) };
        Ok(Store { file: Arc::new(file), sealed: None })
    }

    /// view returns a store of the same file. After seal it is read-only.
    pub fn view(&self) -> Store {
        Store { file: self.file.clone(), sealed: Some(Arc::default()) }
    }

    pub fn seal(&self) {
        if let Some(sealed) = &self.sealed {
            sealed.store(true, Ordering::SeqCst);
        }
    }

    /// backup writes a consistent copy to a new file; readers and writers go on.
    pub fn backup(&self, path: &str) -> Result<()> {
        let mut conn = self.connection()?;
        let done = conn.backup(path);
        self.release(conn);
        Ok(done?)
    }

    fn connection(&self) -> Result<Connection, Failure> {
        if let Some(conn) = locked(&self.file.idle).pop() {
            return Ok(conn);
        }
        let mut conn = Connection::open(&self.file.path)?;
        conn.execute(SETUP)?;
        Ok(conn)
    }

    fn release(&self, conn: Connection) {
        let mut idle = locked(&self.file.idle);
        if idle.len() < POOL {
            idle.push(conn);
        }
    }
}

impl<'s> Storage<'s> for Store {
    type Tx = Tx<'s>;

    fn storage_kind(&self) -> &'static str {
        "sqlite"
    }

    fn transact(&'s self, write: bool) -> Result<Tx<'s>> {
        let sealed = self.sealed.as_ref().is_some_and(|s| s.load(Ordering::SeqCst));
        if write && sealed {
            return Err(Failure::ReadOnly.into());
        }
        let writer = write.then(|| locked(&self.file.writer));
        let mut conn = self.connection()?;
        conn.run(if write { "begin immediate" } else { "begin" })?;
        Ok(Tx { store: self, conn: Some(Mutex::new(conn)), writer, committed: false })
    }

    fn range_compact(&'s self, _lower: &[u8], _upper: &[u8]) -> Result<()> {
        locked(&self.file.idle).clear();
        Ok(())
    }

    fn batch_put<'a>(&'a self, data: Box<dyn Iterator<Item = Result<Pair>> + 'a>) -> Result<()> {
        let mut tx = self.transact(true)?;
        for pair in data {
            let (key, value) = pair?;
            tx.put(&key, &value)?;
        }
        tx.commit()
    }
}

/// Tx is a transaction: a snapshot for reading, or the one writer.
pub struct Tx<'s> {
    store: &'s Store,
    conn: Option<Mutex<Connection>>,
    writer: Option<MutexGuard<'s, ()>>,
    committed: bool,
}

impl Tx<'_> {
    fn conn(&self) -> MutexGuard<'_, Connection> {
        locked(self.conn.as_ref().expect("a transaction has a connection until it is dropped"))
    }

    fn range(&self, lower: &[u8], upper: &[u8]) -> Result<Range<'_>> {
        let mut statement = self.conn().take(RANGE)?;
        statement.bind(1, lower)?;
        statement.bind(2, upper)?;
        Ok(Range { tx: self, statement: Some(statement) })
    }

    /// rows decodes the entries from lower until before upper.
    pub fn rows<'a, T: 'a>(
        &'a self,
        lower: &[u8],
        upper: &[u8],
        decode: impl Fn(&[u8], &[u8]) -> Result<T> + 'a,
    ) -> Box<dyn Iterator<Item = Result<T>> + 'a> {
        match self.range(lower, upper) {
            Ok(range) => Box::new(Rows { range, decode }),
            Err(e) => Box::new(std::iter::once(Err(e))),
        }
    }
}

impl Drop for Tx<'_> {
    fn drop(&mut self) {
        let Some(conn) = self.conn.take() else { return };
        let mut conn = conn.into_inner().unwrap_or_else(PoisonError::into_inner);
        let ended = match (&self.writer, self.committed) {
            (Some(_), true) => Ok(()),
            (Some(_), false) => conn.run("rollback"),
            (None, _) => conn.run("commit"),
        };
        if ended.is_ok() {
            self.store.release(conn);
        }
    }
}

impl<'s> StoreTx<'s> for Tx<'s> {
    fn get(&self, key: &[u8], _for_update: bool) -> Result<Option<Vec<u8>>> {
        Ok(self.conn().with(GET, |s| {
            s.bind(1, key)?;
            Ok(match s.step()? {
                Step::Row => Some(s.blob(0).to_vec()),
                Step::Done => None,
            })
        })?)
    }

    fn put(&mut self, key: &[u8], val: &[u8]) -> Result<()> {
        self.par_put(key, val)
    }

    fn supports_par_put(&self) -> bool {
        true
    }

    fn par_put(&self, key: &[u8], val: &[u8]) -> Result<()> {
        Ok(self.conn().with(PUT, |s| {
            s.bind(1, key)?;
            s.bind(2, val)?;
            s.step().map(drop)
        })?)
    }

    fn del(&mut self, key: &[u8]) -> Result<()> {
        self.par_del(key)
    }

    fn par_del(&self, key: &[u8]) -> Result<()> {
        Ok(self.conn().with(DELETE, |s| {
            s.bind(1, key)?;
            s.step().map(drop)
        })?)
    }

    fn del_range_from_persisted(&mut self, lower: &[u8], upper: &[u8]) -> Result<()> {
        Ok(self.conn().with(DELETE_RANGE, |s| {
            s.bind(1, lower)?;
            s.bind(2, upper)?;
            s.step().map(drop)
        })?)
    }

    fn exists(&self, key: &[u8], for_update: bool) -> Result<bool> {
        Ok(self.get(key, for_update)?.is_some())
    }

    fn commit(&mut self) -> Result<()> {
        if self.writer.is_some() && !self.committed {
            self.conn().run("commit")?;
            self.committed = true;
        }
        Ok(())
    }

    fn range_scan_tuple<'a>(&'a self, lower: &[u8], upper: &[u8]) -> Box<dyn Iterator<Item = Result<Tuple>> + 'a>
    where
        's: 'a,
    {
        self.rows(lower, upper, row::decode)
    }

    fn range_skip_scan_tuple<'a>(
        &'a self,
        lower: &[u8],
        upper: &[u8],
        valid_at: ValidityTs,
    ) -> Box<dyn Iterator<Item = Result<Tuple>> + 'a> {
        let rows = self.rows(lower, upper, |k, v| Ok((try_decode_tuple_from_kv(k, &[], None)?, v.to_vec(), k.to_vec())));
        let mut done: Option<Tuple> = None;
        Box::new(rows.filter_map(move |row| {
            let (mut key, value, raw) = match row {
                Ok(row) => row,
                Err(e) => return Some(Err(e)),
            };
            let Some(DataValue::Validity(at)) = key.pop() else { return None };
            if is_current(&at, valid_at) && done.as_ref() != Some(&key) {
                done = Some(key);
                return at.is_assert.0.then(|| row::decode(&raw, &value));
            }
            None
        }))
    }

    fn range_scan<'a>(&'a self, lower: &[u8], upper: &[u8]) -> Box<dyn Iterator<Item = Result<Pair>> + 'a>
    where
        's: 'a,
    {
        self.rows(lower, upper, |k, v| Ok((k.to_vec(), v.to_vec())))
    }

    fn range_count<'a>(&'a self, lower: &[u8], upper: &[u8]) -> Result<usize>
    where
        's: 'a,
    {
        Ok(self.conn().with(COUNT, |s| {
            s.bind(1, lower)?;
            s.bind(2, upper)?;
            s.step()?;
            Ok(s.integer(0) as usize)
        })?)
    }

    fn total_scan<'a>(&'a self) -> Box<dyn Iterator<Item = Result<Pair>> + 'a>
    where
        's: 'a,
    {
        let statement = self.conn().take(ALL);
        match statement {
            Ok(statement) => Box::new(Rows {
                range: Range { tx: self, statement: Some(statement) },
                decode: |k: &[u8], v: &[u8]| Ok((k.to_vec(), v.to_vec())),
            }),
            Err(e) => Box::new(std::iter::once(Err(e.into()))),
        }
    }
}

/// is_current reports whether a fact was recorded by the time that is asked for.
/// Timestamps are sorted in descending order.
fn is_current(at: &Validity, valid_at: ValidityTs) -> bool {
    at.timestamp >= valid_at
}

/// Range is an open scan. Several can be open in one transaction.
struct Range<'a> {
    tx: &'a Tx<'a>,
    statement: Option<Statement>,
}

impl Drop for Range<'_> {
    fn drop(&mut self) {
        if let Some(statement) = self.statement.take() {
            self.tx.conn().put_back(statement);
        }
    }
}

struct Rows<'a, F> {
    range: Range<'a>,
    decode: F,
}

impl<T, F: Fn(&[u8], &[u8]) -> Result<T>> Iterator for Rows<'_, F> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let statement = self.range.statement.as_mut()?;
        match statement.step() {
            Ok(Step::Done) => None,
            Ok(Step::Row) => Some((self.decode)(statement.blob(0), statement.blob(1))),
            Err(e) => Some(Err(e.into())),
        }
    }
}
