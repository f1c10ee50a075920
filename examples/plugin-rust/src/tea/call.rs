use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;
use tonic::{Request, Status};

use super::bundle::{Instance, encode};
use super::error::{Error, Result};
use super::proto::host_server::Host;
use super::proto::invoke_event::Event;
use super::proto::invoke_response::Outcome;
use super::proto::{self, describe_action_response};

/// One call of an action, with its way to the host.
#[derive(Clone)]
pub struct Call {
    /// The protocol's message: run_id, node, attempt, idempotency_key and so
    /// on. Its params are empty.
    pub request: proto::InvokeRequest,
    pub(crate) instance: Instance,
    pub(crate) host: Option<Arc<dyn Host>>,
    /// Events of a streamed call are sent in its stream, which keeps their
    /// order.
    pub(crate) events: Option<mpsc::Sender<Event>>,
}

/// The level of a log record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

impl Call {
    /// Returns what the bundle's open has returned. It panics if that has
    /// another type.
    pub fn instance<T: 'static>(&self) -> &T {
        self.instance
            .downcast_ref()
            .expect("the bundle opens instances of this type")
    }

    /// Emits a piece of text. The action must be declared with streaming.
    pub async fn token(&self, text: impl ToString) {
        let token = proto::Token {
            text: text.to_string(),
            ..Default::default()
        };
        match (&self.events, &self.host) {
            (Some(events), _) => _ = events.send(Event::Token(token)).await,
            (_, Some(host)) => {
                _ = host
                    .token(Request::new(proto::TokenRequest {
                        call_id: self.id(),
                        token: Some(token),
                    }))
                    .await
            }
            _ => {}
        }
    }

    /// Reports progress; fraction is from 0 to 1.
    pub async fn progress(&self, fraction: f64, message: impl ToString) {
        let progress = proto::Progress {
            fraction,
            message: message.to_string(),
        };
        match (&self.events, &self.host) {
            (Some(events), _) => _ = events.send(Event::Progress(progress)).await,
            (_, Some(host)) => {
                let request = proto::ProgressRequest {
                    call_id: self.id(),
                    progress: Some(progress),
                };
                _ = host.progress(Request::new(request)).await;
            }
            _ => {}
        }
    }

    /// Writes a record to the run's log. fields is a JSON object or null.
    pub async fn log(&self, level: Level, message: impl ToString, fields: Value) {
        let fields_json = if fields.is_null() {
            vec![]
        } else {
            fields.to_string().into_bytes()
        };
        let log = proto::Log {
            level: format!("{level:?}").to_lowercase(),
            message: message.to_string(),
            fields_json,
        };
        match (&self.events, &self.host) {
            (Some(events), _) => _ = events.send(Event::Log(log)).await,
            (_, Some(host)) => {
                _ = host
                    .log(Request::new(proto::LogRequest {
                        call_id: self.id(),
                        log: Some(log),
                    }))
                    .await
            }
            _ => {}
        }
    }

    /// Calls another action of the workflow and returns its result.
    pub async fn invoke<R: DeserializeOwned>(
        &self,
        action: &str,
        params: &impl Serialize,
    ) -> Result<R> {
        let params = encode(params, &format!("parameters of {action}"))?;
        let request = proto::InvokeActionRequest {
            call_id: self.id(),
            action: action.into(),
            params,
            ..Default::default()
        };
        let answer = self
            .host()?
            .invoke_action(Request::new(request))
            .await
            .map_err(no_answer)?;
        match answer.into_inner().outcome {
            Some(Outcome::Error(error)) => Err(Error::from_proto(error)),
            Some(Outcome::Result(raw)) => Ok(serde_json::from_slice(&raw)?),
            None => Err(Error::new(
                "connection_error",
                format!("{action}: the host's answer is empty"),
            )),
        }
    }

    /// Returns the protocol's description of an action.
    pub async fn describe(&self, action: &str) -> Result<proto::Action> {
        let request = proto::DescribeActionRequest {
            call_id: self.id(),
            action: action.into(),
        };
        let answer = self
            .host()?
            .describe_action(Request::new(request))
            .await
            .map_err(no_answer)?;
        match answer.into_inner().outcome {
            Some(describe_action_response::Outcome::Error(error)) => Err(Error::from_proto(error)),
            Some(describe_action_response::Outcome::Action(action)) => Ok(action),
            None => Err(Error::new(
                "connection_error",
                format!("{action}: the host's answer is empty"),
            )),
        }
    }

    /// Returns a durable note of the calling node, or None.
    pub async fn note<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        let request = proto::GetNoteRequest {
            call_id: self.id(),
            key: key.into(),
        };
        let answer = self
            .host()?
            .get_note(Request::new(request))
            .await
            .map_err(no_answer)?
            .into_inner();
        check(answer.error)?;
        Ok(if answer.found {
            Some(serde_json::from_slice(&answer.note)?)
        } else {
            None
        })
    }

    /// Stores a note. It survives a crash of plugin and host.
    pub async fn set_note(&self, key: &str, note: &impl Serialize) -> Result<()> {
        let request = proto::SetNoteRequest {
            call_id: self.id(),
            key: key.into(),
            note: encode(note, &format!("note {key}"))?,
        };
        check(
            self.host()?
                .set_note(Request::new(request))
                .await
                .map_err(no_answer)?
                .into_inner()
                .error,
        )
    }

    /// Counts the usage of one request to a model against the run's budget. The
    /// error budget_exceeded means that the budget is spent.
    pub async fn usage(&self, tokens: i64, usd: f64) -> Result<()> {
        let request = proto::ReportUsageRequest {
            call_id: self.id(),
            tokens,
            usd,
        };
        check(
            self.host()?
                .report_usage(Request::new(request))
                .await
                .map_err(no_answer)?
                .into_inner()
                .error,
        )
    }

    fn id(&self) -> String {
        self.request.call_id.clone()
    }

    fn host(&self) -> Result<&Arc<dyn Host>> {
        self.host
            .as_ref()
            .ok_or_else(|| Error::new("dependency_missing", "this host offers no callbacks"))
    }
}

fn no_answer(status: Status) -> Error {
    Error::new(
        "connection_error",
        format!("the host did not answer: {status}"),
    )
}

fn check(error: Option<proto::Error>) -> Result<()> {
    error.map_or(Ok(()), |error| Err(Error::from_proto(error)))
}
