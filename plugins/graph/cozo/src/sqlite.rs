//! The part of SQLite's C API that the storage needs, with statements that are
//! prepared once per connection.

use std::ffi::{c_int, CStr, CString};
use std::ptr;

use libsqlite3_sys as ffi;

use crate::failure::Failure;

/// Connection is one connection. It may move between threads; SQLite serializes
/// the calls of threads that share it.
pub struct Connection {
    db: *mut ffi::sqlite3,
    idle: Vec<Statement>,
}

unsafe impl Send for Connection {}

/// Step is the outcome of a step of a statement.
pub enum Step {
    Row,
    Done,
}

fn failure(db: *mut ffi::sqlite3, code: c_int) -> Failure {
    let text = if db.is_null() {
        format!("SQLite error {code}")
    } else {
        unsafe { CStr::from_ptr(ffi::sqlite3_errmsg(db)) }.to_string_lossy().into_owned()
    };
    match code & 0xff {
        ffi::SQLITE_CORRUPT | ffi::SQLITE_FORMAT => Failure::Corrupt(text),
        ffi::SQLITE_NOTADB => Failure::Foreign(text),
        ffi::SQLITE_FULL => Failure::Full(text),
        // The index of the log does not grow.
        _ if code == ffi::SQLITE_IOERR_SHMSIZE => Failure::Full(text),
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => Failure::Busy(text),
        ffi::SQLITE_NOMEM => Failure::Memory,
        _ => Failure::Io(text),
    }
}

impl Connection {
    pub fn open(path: &str) -> Result<Connection, Failure> {
        let name = CString::new(path).map_err(|_| Failure::Call("the path has a null byte".into()))?;
        let flags = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE | ffi::SQLITE_OPEN_FULLMUTEX;
        let mut conn = Connection { db: ptr::null_mut(), idle: Vec::new() };
        let code = unsafe { ffi::sqlite3_open_v2(name.as_ptr(), &mut conn.db, flags, ptr::null()) };
        conn.check(code)?;
        unsafe { ffi::sqlite3_extended_result_codes(conn.db, 1) };
        Ok(conn)
    }

    fn check(&self, code: c_int) -> Result<(), Failure> {
        match code {
            ffi::SQLITE_OK => Ok(()),
            code => Err(failure(self.db, code)),
        }
    }

    /// execute runs statements without results or parameters.
    pub fn execute(&mut self, sql: &str) -> Result<(), Failure> {
        let sql = CString::new(sql).expect("a constant");
        self.check(unsafe { ffi::sqlite3_exec(self.db, sql.as_ptr(), None, ptr::null_mut(), ptr::null_mut()) })
    }

    /// take returns a prepared statement, which put_back returns.
    pub fn take(&mut self, sql: &'static str) -> Result<Statement, Failure> {
        if let Some(i) = self.idle.iter().position(|s| ptr::eq(s.sql, sql)) {
            return Ok(self.idle.swap_remove(i));
        }
        let mut raw = ptr::null_mut();
        let (text, length) = (sql.as_ptr().cast(), sql.len() as c_int);
        let flags = ffi::SQLITE_PREPARE_PERSISTENT as u32;
        self.check(unsafe { ffi::sqlite3_prepare_v3(self.db, text, length, flags, &mut raw, ptr::null_mut()) })?;
        Ok(Statement { raw, sql })
    }

    pub fn put_back(&mut self, statement: Statement) {
        unsafe { ffi::sqlite3_reset(statement.raw) };
        self.idle.push(statement);
    }

    /// with runs use with a prepared statement.
    pub fn with<T>(
        &mut self,
        sql: &'static str,
        run: impl FnOnce(&mut Statement) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut statement = self.take(sql)?;
        let result = run(&mut statement);
        self.put_back(statement);
        result
    }

    /// run runs one statement without parameters, prepared once.
    pub fn run(&mut self, sql: &'static str) -> Result<(), Failure> {
        self.with(sql, |s| s.step().map(drop))
    }

    /// integer returns the first column of the first row.
    pub fn integer(&mut self, sql: &'static str) -> Result<i32, Failure> {
        self.with(sql, |s| {
            s.step()?;
            Ok(s.integer(0) as i32)
        })
    }

    /// backup writes a copy of the database, as of now, to a new file.
    pub fn backup(&mut self, path: &str) -> Result<(), Failure> {
        self.with("vacuum into ?", |s| {
            s.bind_text(1, path)?;
            s.step().map(drop)
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.idle.clear();
        unsafe { ffi::sqlite3_close(self.db) };
    }
}

/// Statement is a prepared statement of a connection.
pub struct Statement {
    raw: *mut ffi::sqlite3_stmt,
    sql: &'static str,
}

unsafe impl Send for Statement {}
unsafe impl Sync for Statement {}

impl Statement {
    fn check(&self, code: c_int) -> Result<(), Failure> {
        match code {
            ffi::SQLITE_OK => Ok(()),
            code => Err(failure(unsafe { ffi::sqlite3_db_handle(self.raw) }, code)),
        }
    }

    pub fn bind(&mut self, column: c_int, value: &[u8]) -> Result<(), Failure> {
        // A null pointer would bind null instead of an empty value.
        let data = if value.is_empty() { c"".as_ptr().cast() } else { value.as_ptr().cast() };
        self.check(unsafe {
            ffi::sqlite3_bind_blob64(self.raw, column, data, value.len() as u64, ffi::SQLITE_TRANSIENT())
        })
    }

    pub fn bind_text(&mut self, column: c_int, value: &str) -> Result<(), Failure> {
        let (data, length) = (value.as_ptr().cast(), value.len() as c_int);
        self.check(unsafe { ffi::sqlite3_bind_text(self.raw, column, data, length, ffi::SQLITE_TRANSIENT()) })
    }

    pub fn step(&mut self) -> Result<Step, Failure> {
        match unsafe { ffi::sqlite3_step(self.raw) } {
            ffi::SQLITE_ROW => Ok(Step::Row),
            ffi::SQLITE_DONE => Ok(Step::Done),
            code => Err(failure(unsafe { ffi::sqlite3_db_handle(self.raw) }, code)),
        }
    }

    /// blob returns a column of the current row, until the next step.
    pub fn blob(&self, column: c_int) -> &[u8] {
        unsafe {
            let data = ffi::sqlite3_column_blob(self.raw, column);
            let length = ffi::sqlite3_column_bytes(self.raw, column) as usize;
            if data.is_null() || length == 0 {
                return &[];
            }
            std::slice::from_raw_parts(data.cast(), length)
        }
    }

    pub fn integer(&self, column: c_int) -> i64 {
        unsafe { ffi::sqlite3_column_int64(self.raw, column) }
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        unsafe { ffi::sqlite3_finalize(self.raw) };
    }
}
