//! What goes wrong, as JSON: {"code", "message", "help", "offset", "length"}.
//! Codes are the engine's (`parser::pest`, `eval::timeout`) and those below.

use miette::{Diagnostic, Report};
use serde_json::json;
use thiserror::Error;

/// Failures of the storage and refusals of a script.
#[derive(Debug, Error, Diagnostic)]
pub enum Failure {
    #[error("{0}")]
    #[diagnostic(code(storage::corrupt))]
    Corrupt(String),
    #[error("{0}")]
    #[diagnostic(code(storage::foreign))]
    Foreign(String),
    #[error("the database has format {found}, this build supports formats up to {supported}")]
    #[diagnostic(code(storage::newer))]
    Newer { found: i32, supported: i32 },
    #[error("{0}")]
    #[diagnostic(code(storage::full))]
    Full(String),
    #[error("the query is read-only")]
    #[diagnostic(code(storage::read_only))]
    ReadOnly,
    #[error("{0}")]
    #[diagnostic(code(storage::busy))]
    Busy(String),
    #[error("{0}")]
    #[diagnostic(code(storage::io))]
    Io(String),
    #[error("{what} is not allowed in a query")]
    #[diagnostic(code(query::refused))]
    Refused { what: &'static str },
    #[error("{0}")]
    #[diagnostic(code(query::too_complex))]
    TooComplex(String),
    #[error("the query was cancelled")]
    #[diagnostic(code(eval::killed))]
    Cancelled,
    #[error("the query exceeded its time limit")]
    #[diagnostic(code(eval::timeout))]
    Timeout,
    #[error("a number of the query is beyond 64 bits")]
    #[diagnostic(code(eval::overflow), help("floats have a larger range: to_float(x)"))]
    Overflow,
    #[error("the query exceeded its memory limit")]
    #[diagnostic(code(eval::mem_budget_exceeded))]
    Memory,
    #[error("{0} queries that could not be stopped are still running")]
    #[diagnostic(code(query::stuck))]
    Stuck(usize),
    #[error("{0}")]
    #[diagnostic(code(engine::panic))]
    Panic(String),
    #[error("{0}")]
    #[diagnostic(code(engine::call))]
    Call(String),
}

/// to_json encodes an error for the caller.
pub fn to_json(report: &Report) -> Vec<u8> {
    let label = report.labels().and_then(|mut labels| labels.next());
    json!({
        "code": report.code().map(|c| c.to_string()),
        "message": report.chain().map(|cause| cause.to_string()).collect::<Vec<_>>().join(": "),
        "help": report.help().map(|h| h.to_string()),
        "offset": label.as_ref().map(|l| l.offset()),
        "length": label.as_ref().map(|l| l.len()),
    })
    .to_string()
    .into_bytes()
}
