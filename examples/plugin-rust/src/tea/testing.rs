//! Calls actions inside a test, without a process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::sync::mpsc;
use tonic::{Request, Response, Status};

use super::bundle::{Bundle, encode};
use super::call::Call;
use super::error::{Error, Result};
use super::proto::host_server::Host as HostService;
use super::proto::invoke_event::Event;
use super::proto::invoke_response::Outcome;
use super::proto::*;

type Answer<T> = std::result::Result<Response<T>, Status>;
type Respond = Box<dyn Fn(Value) -> Result<Value> + Send + Sync>;

/// The host of a test.
#[derive(Default)]
pub struct Host {
    actions: HashMap<String, Respond>,
    notes: Mutex<HashMap<String, Vec<u8>>>,
}

/// What an action has emitted.
#[derive(Debug, Default)]
pub struct Emitted {
    pub tokens: Vec<String>,
    pub progress: Vec<Progress>,
    pub logs: Vec<Log>,
}

impl Host {
    /// Adds an action that the tested one can call.
    pub fn action(
        mut self,
        name: &str,
        respond: impl Fn(Value) -> Result<Value> + Send + Sync + 'static,
    ) -> Host {
        self.actions.insert(name.into(), Box::new(respond));
        self
    }
}

/// Calls an action without settings and returns its result and what it has
/// emitted.
pub async fn call(
    bundle: &Bundle,
    action: &str,
    params: Value,
    host: Host,
) -> Result<(Value, Emitted)> {
    let instance = bundle.open_instance(HashMap::new()).await?;
    let (sender, mut events) = mpsc::channel(16);
    let request = InvokeRequest {
        call_id: "test".into(),
        action: action.into(),
        attempt: 1,
        ..Default::default()
    };
    let call = Call {
        request,
        instance,
        host: Some(Arc::new(host)),
        events: Some(sender),
    };
    let record = async {
        let mut emitted = Emitted::default();
        while let Some(event) = events.recv().await {
            match event {
                Event::Token(token) => emitted.tokens.push(token.text),
                Event::Progress(progress) => emitted.progress.push(progress),
                Event::Log(log) => emitted.logs.push(log),
                Event::Result(_) | Event::Error(_) => {}
            }
        }
        emitted
    };
    let (result, emitted) = tokio::join!(
        bundle.run(action, params.to_string().into_bytes(), call),
        record
    );
    Ok((serde_json::from_slice(&result?)?, emitted))
}

#[tonic::async_trait]
impl HostService for Host {
    async fn invoke_action(&self, request: Request<InvokeActionRequest>) -> Answer<InvokeResponse> {
        let InvokeActionRequest { action, params, .. } = request.into_inner();
        let result = match self.actions.get(&action) {
            Some(respond) => respond(serde_json::from_slice(&params).unwrap_or_default())
                .and_then(|value| encode(&value, &action)),
            None => Err(Error::new(
                "not_found",
                format!("the test has no action {action}"),
            )),
        };
        let outcome = match result {
            Ok(result) => Outcome::Result(result),
            Err(error) => Outcome::Error(error.to_proto()),
        };
        Ok(Response::new(InvokeResponse {
            outcome: Some(outcome),
        }))
    }

    async fn describe_action(
        &self,
        _: Request<DescribeActionRequest>,
    ) -> Answer<DescribeActionResponse> {
        Err(Status::unimplemented("the test has no descriptions"))
    }

    async fn log(&self, _: Request<LogRequest>) -> Answer<LogResponse> {
        Ok(Response::new(LogResponse {}))
    }

    async fn progress(&self, _: Request<ProgressRequest>) -> Answer<ProgressResponse> {
        Ok(Response::new(ProgressResponse {}))
    }

    async fn token(&self, _: Request<TokenRequest>) -> Answer<TokenResponse> {
        Ok(Response::new(TokenResponse {}))
    }

    async fn get_note(&self, request: Request<GetNoteRequest>) -> Answer<GetNoteResponse> {
        let note = self
            .notes
            .lock()
            .unwrap()
            .get(&request.get_ref().key)
            .cloned();
        Ok(Response::new(GetNoteResponse {
            found: note.is_some(),
            note: note.unwrap_or_default(),
            error: None,
        }))
    }

    async fn set_note(&self, request: Request<SetNoteRequest>) -> Answer<SetNoteResponse> {
        let SetNoteRequest { key, note, .. } = request.into_inner();
        self.notes.lock().unwrap().insert(key, note);
        Ok(Response::new(SetNoteResponse::default()))
    }

    async fn report_usage(&self, _: Request<ReportUsageRequest>) -> Answer<ReportUsageResponse> {
        Ok(Response::new(ReportUsageResponse::default()))
    }
}
