//! CozoDB behind a C ABI, for tea's graph plugin: internal/cozo links it.
//!
//! Start with database.rs. No call panics or unwinds into the caller; each one
//! returns a Reply, which teacozo_free releases. A Reply without ok is the JSON
//! of failure.rs, one with ok is empty or a result of codec.rs.
//!
//! # Safety
//!
//! The pointers of a call are valid until it returns. A database is used by any
//! number of threads, and by none after teacozo_close.
#![feature(alloc_error_hook)]
#![allow(clippy::missing_safety_doc)]

mod check;
mod codec;
mod database;
mod failure;
mod lookup;
mod memory;
mod row;
mod sqlite;
mod store;

use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Once};
use std::time::Duration;

use miette::Result;

use database::{Database, Query};
use failure::Failure;

/// Reply is the outcome of a call. Its bytes belong to the caller.
#[repr(C)]
pub struct Reply {
    data: *mut u8,
    length: usize,
    capacity: usize,
    ok: bool,
}

/// Arguments of teacozo_query.
#[repr(C)]
pub struct QueryArguments {
    script: *const u8,
    script_length: usize,
    params: *const u8,
    params_length: usize,
    token: u64,
    timeout_ms: u64,
    memory: u64,
    rows: u64,
    write: bool,
}

thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// panic_message returns the message of the thread's last panic.
fn panic_message() -> String {
    PANIC.with_borrow(Clone::clone)
}

/// keep_panics keeps messages of panics for errors instead of printing them.
fn keep_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let message = info.to_string();
            PANIC.with_borrow_mut(|kept| *kept = message);
        }))
    });
}

unsafe fn bytes<'a>(data: *const u8, length: usize) -> &'a [u8] {
    match length {
        0 => &[],
        _ => unsafe { std::slice::from_raw_parts(data, length) },
    }
}

unsafe fn text<'a>(data: *const u8, length: usize) -> Result<&'a str> {
    let bytes = unsafe { bytes(data, length) };
    std::str::from_utf8(bytes).map_err(|e| Failure::Call(format!("the text is not UTF-8: {e}")).into())
}

fn reply(call: impl FnOnce() -> Result<Vec<u8>>) -> Reply {
    let result = catch_unwind(AssertUnwindSafe(call));
    let result = result.unwrap_or_else(|_| Err(Failure::Panic(panic_message()).into()));
    let ok = result.is_ok();
    let mut bytes = result.unwrap_or_else(|report| failure::to_json(&report));
    let reply = Reply { data: bytes.as_mut_ptr(), length: bytes.len(), capacity: bytes.capacity(), ok };
    std::mem::forget(bytes);
    reply
}

/// Releases a reply.
#[no_mangle]
pub unsafe extern "C" fn teacozo_free(reply: Reply) {
    drop(unsafe { Vec::from_raw_parts(reply.data, reply.length, reply.capacity) });
}

/// Opens or creates the database file at a path.
#[no_mangle]
pub unsafe extern "C" fn teacozo_open(path: *const u8, length: usize, database: *mut *const Database) -> Reply {
    keep_panics();
    reply(|| {
        let opened = Database::open(unsafe { text(path, length) }?)?;
        unsafe { *database = Arc::into_raw(opened) };
        Ok(Vec::new())
    })
}

/// Closes a database once its last query has ended.
#[no_mangle]
pub unsafe extern "C" fn teacozo_close(database: *const Database) -> Reply {
    reply(|| {
        drop(unsafe { Arc::from_raw(database) });
        Ok(Vec::new())
    })
}

/// Runs a script of the plugin.
#[no_mangle]
pub unsafe extern "C" fn teacozo_run(
    database: *const Database,
    script: *const u8,
    script_length: usize,
    params: *const u8,
    params_length: usize,
) -> Reply {
    reply(|| {
        let params = codec::read_params(unsafe { bytes(params, params_length) })?;
        let script = unsafe { text(script, script_length) }?;
        Ok(codec::write_rows(unsafe { &*database }.run(script, params)?))
    })
}

/// Reads rows by the beginnings of their keys.
#[no_mangle]
pub unsafe extern "C" fn teacozo_lookup(database: *const Database, request: *const u8, length: usize) -> Reply {
    reply(|| unsafe { &*database }.lookup(&codec::read_lookup(unsafe { bytes(request, length) })?))
}

/// Reads the ids of entities by words.
#[no_mangle]
pub unsafe extern "C" fn teacozo_having(database: *const Database, request: *const u8, length: usize) -> Reply {
    reply(|| unsafe { &*database }.having(&codec::read_words(unsafe { bytes(request, length) })?))
}

/// Writes and deletes rows in one transaction.
#[no_mangle]
pub unsafe extern "C" fn teacozo_apply(database: *const Database, batch: *const u8, length: usize) -> Reply {
    reply(|| {
        let batch = codec::read_batch(unsafe { bytes(batch, length) })?;
        unsafe { &*database }.apply(batch)?;
        Ok(Vec::new())
    })
}

/// Runs a query of a user within its limits.
#[no_mangle]
pub unsafe extern "C" fn teacozo_query(database: *const Database, arguments: *const QueryArguments) -> Reply {
    reply(|| {
        let a = unsafe { &*arguments };
        let query = Query {
            token: a.token,
            script: unsafe { text(a.script, a.script_length) }?.to_string(),
            params: codec::read_params(unsafe { bytes(a.params, a.params_length) })?,
            write: a.write,
            rows: a.rows as usize,
            timeout: Duration::from_millis(a.timeout_ms),
            memory: a.memory as usize,
        };
        unsafe { Arc::increment_strong_count(database) };
        let database = unsafe { Arc::from_raw(database) };
        Ok(codec::write_rows(database.query(query)?))
    })
}

/// Stops the query with a token, if it runs.
#[no_mangle]
pub unsafe extern "C" fn teacozo_cancel(database: *const Database, token: u64) {
    let _ = catch_unwind(AssertUnwindSafe(|| unsafe { &*database }.cancel(token)));
}

/// Writes a copy of the database to a new file.
#[no_mangle]
pub unsafe extern "C" fn teacozo_backup(database: *const Database, path: *const u8, length: usize) -> Reply {
    reply(|| {
        unsafe { &*database }.backup(unsafe { text(path, length) }?)?;
        Ok(Vec::new())
    })
}
