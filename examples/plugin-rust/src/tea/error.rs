use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::proto;

pub type Result<T> = std::result::Result<T, Error>;

/// The failure of an action. Workflows match on its type: validation_error,
/// not_found, permission_denied, dependency_missing, timeout,
/// connection_error, query_error, rate_limited, resource_exhausted, canceled,
/// internal_error, or a type of your own.
///
/// Any other error becomes an `internal_error` with the operator `?`.
#[derive(Clone, Debug)]
pub struct Error {
    pub kind: String,
    pub message: String,
    /// The same call can succeed later.
    pub retryable: bool,
    /// The least time to wait before the next attempt.
    pub retry_after: Duration,
    /// The origin of the error, such as the name of a server.
    pub source: String,
    /// A JSON object with further fields for the workflow.
    pub details: Option<Box<Value>>,
}

impl Error {
    /// Returns an error. Types that usually pass are retryable.
    pub fn new(kind: impl Into<String>, message: impl fmt::Display) -> Error {
        let kind = kind.into();
        let retryable = matches!(
            kind.as_str(),
            "timeout" | "connection_error" | "rate_limited" | "plugin_crashed"
        );
        Error {
            kind,
            message: message.to_string(),
            retryable,
            retry_after: Duration::ZERO,
            source: String::new(),
            details: None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

// For this conversion, Error itself does not implement std::error::Error.
impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Error {
        Error::new("internal_error", error)
    }
}

impl Error {
    pub(crate) fn to_proto(&self) -> proto::Error {
        proto::Error {
            r#type: self.kind.clone(),
            message: self.message.clone(),
            retryable: self.retryable,
            retry_after_ms: self.retry_after.as_millis() as i64,
            source: self.source.clone(),
            details_json: self
                .details
                .as_ref()
                .map(|d| d.to_string().into_bytes())
                .unwrap_or_default(),
        }
    }

    pub(crate) fn from_proto(error: proto::Error) -> Error {
        Error {
            kind: if error.r#type.is_empty() {
                "internal_error".into()
            } else {
                error.r#type
            },
            message: error.message,
            retryable: error.retryable,
            retry_after: Duration::from_millis(error.retry_after_ms.max(0) as u64),
            source: error.source,
            details: serde_json::from_slice(&error.details_json).ok(),
        }
    }
}
