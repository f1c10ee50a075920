//! The probe actions of tea's conformance suite. They test every part of the
//! protocol in src/tea:
//!
//!     cargo build --examples && tea plugin test target/debug/examples/probe

use std::process::ExitCode;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plugin::tea::{Action, Bundle, Call, Error, Level, Result, Settings, serve};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

fn main() -> ExitCode {
    serve(
        Bundle::new("probe", "1.0.0")
            .description("Exercises every part of the plugin protocol.")
            .setting::<Value>("probe")
            .open(open)
            .handover(
                |probe: &Probe| Ok(probe.kept.lock().unwrap().to_string().into_bytes()),
                import,
            )
            .action(Action::new("probe.echo", "Returns its parameters.", echo).idempotent())
            .action(Action::new("probe.greet", "Needs a name.", greet))
            .action(Action::new(
                "probe.fail",
                "Fails with the given error.",
                fail,
            ))
            .action(Action::new("probe.panic", "Panics.", panics))
            .action(
                Action::new(
                    "probe.wait",
                    "Emits a token and waits until it is canceled.",
                    wait,
                )
                .streaming(),
            )
            .action(Action::new(
                "probe.waiting",
                "Counts the running calls of probe.wait.",
                waiting,
            ))
            .action(Action::new(
                "probe.big",
                "Returns a JSON text of the given size in bytes.",
                big,
            ))
            .action(
                Action::new(
                    "probe.stream",
                    "Emits tokens, progress and a log record.",
                    stream,
                )
                .streaming(),
            )
            .action(Action::new("probe.invoke", "Calls another action.", invoke))
            .action(Action::new(
                "probe.describe",
                "Describes another action.",
                describe,
            ))
            .action(Action::new(
                "probe.note",
                "Reads a note and stores another under its key.",
                note,
            ))
            .action(Action::new(
                "probe.usage",
                "Reports usage, then returns the error of the report.",
                usage,
            ))
            .action(Action::new("probe.call", "Returns the caller.", caller))
            .action(Action::new(
                "probe.keep",
                "Keeps a value in memory and returns the one before.",
                keep,
            ))
            .action(Action::new(
                "probe.settings",
                "Returns the settings.",
                settings,
            )),
    )
}

struct Probe {
    settings: Map<String, Value>,
    waiting: Arc<AtomicI64>,
    kept: Mutex<Value>,
}

async fn open(settings: Settings) -> Result<Probe> {
    let probe: Option<Value> = settings.get("probe")?;
    if probe == Some("refuse".into()) {
        return Err(Error::new(
            "validation_error",
            "settings.probe: refused, as asked",
        ));
    }
    let settings = probe
        .into_iter()
        .map(|value| ("probe".to_string(), value))
        .collect();
    Ok(Probe {
        settings,
        waiting: Arc::default(),
        kept: Mutex::default(),
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

async fn echo(params: Value, _: Call) -> Result<Value> {
    Ok(params)
}

fn once() -> usize {
    1
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Greet {
    name: String,
    #[serde(default = "once")]
    times: usize,
}

async fn greet(params: Greet, _: Call) -> Result<Value> {
    Ok(json!({"text": format!("Hello {}!", params.name).repeat(params.times)}))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Fail {
    r#type: String,
    message: String,
    #[serde(default)]
    retryable: bool,
    #[serde(default)]
    retry_after_ms: u64,
    #[serde(default)]
    source: String,
    details: Option<Value>,
}

async fn fail(params: Fail, _: Call) -> Result<Value> {
    Err(Error {
        retryable: params.retryable,
        retry_after: Duration::from_millis(params.retry_after_ms),
        source: params.source,
        details: params.details.map(Box::new),
        ..Error::new(params.r#type, params.message)
    })
}

async fn panics(_: Nothing, _: Call) -> Result<Value> {
    panic!("as asked")
}

/// Counts a call until it is dropped.
struct Waiting(Arc<AtomicI64>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn wait(_: Nothing, call: Call) -> Result<Value> {
    let waiting = call.instance::<Probe>().waiting.clone();
    waiting.fetch_add(1, Ordering::SeqCst);
    let _waiting = Waiting(waiting);
    call.token("waiting").await;
    std::future::pending().await
}

async fn waiting(_: Nothing, call: Call) -> Result<Value> {
    Ok(json!({"count": call.instance::<Probe>().waiting.load(Ordering::SeqCst)}))
}

async fn big(params: Value, _: Call) -> Result<Value> {
    let size = params["bytes"].as_u64().unwrap_or_default() as usize;
    Ok(json!({"text": "x".repeat(size - r#"{"text":""}"#.len())}))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Stream {
    tokens: usize,
}

async fn stream(params: Stream, call: Call) -> Result<Value> {
    for i in 0..params.tokens {
        call.token(i).await;
        call.progress((i + 1) as f64 / params.tokens as f64, format!("token {i}"))
            .await;
    }
    call.log(
        Level::Warn,
        "streamed",
        json!({"tokens": params.tokens, "none": null}),
    )
    .await;
    Ok(json!({"count": params.tokens}))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Invoke {
    action: String,
    #[serde(default)]
    params: Value,
}

async fn invoke(params: Invoke, call: Call) -> Result<Value> {
    let result: Value = call.invoke(&params.action, &params.params).await?;
    Ok(json!({"result": result}))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Describe {
    action: String,
}

async fn describe(params: Describe, call: Call) -> Result<Value> {
    let action = call.describe(&params.action).await?;
    let mut described = json!({"name": action.name, "summary": action.summary});
    for (flag, set) in [
        ("streaming", action.streaming),
        ("idempotent", action.idempotent),
    ] {
        if set {
            described[flag] = true.into();
        }
    }
    for (key, schema) in [
        ("params", action.params_schema_json),
        ("result", action.result_schema_json),
    ] {
        if !schema.is_empty() {
            described[key] = serde_json::from_slice(&schema)?;
        }
    }
    Ok(described)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Note {
    key: String,
    note: Value,
}

async fn note(params: Note, call: Call) -> Result<Value> {
    let old: Option<Value> = call.note(&params.key).await?;
    call.set_note(&params.key, &params.note).await?;
    Ok(json!({"found": old.is_some(), "note": old}))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Usage {
    tokens: i64,
    usd: f64,
}

async fn usage(params: Usage, call: Call) -> Result<Value> {
    let error = call.usage(params.tokens, params.usd).await.err();
    Ok(json!({"error_type": error.map(|error| error.kind).unwrap_or_default()}))
}

async fn caller(_: Value, call: Call) -> Result<Value> {
    let request = &call.request;
    Ok(json!({
        "run_id": request.run_id, "node": request.node, "attempt": request.attempt, "idempotency_key": request.idempotency_key,
        "traceparent": request.traceparent, "tracestate": request.tracestate,
    }))
}

async fn keep(params: Value, call: Call) -> Result<Value> {
    let mut kept = call.instance::<Probe>().kept.lock().unwrap();
    Ok(json!({"before": std::mem::replace(&mut *kept, params["value"].clone())}))
}

fn import(probe: &Probe, state: Vec<u8>) -> Result<()> {
    *probe.kept.lock().unwrap() = serde_json::from_slice(&state)?;
    Ok(())
}

async fn settings(_: Value, call: Call) -> Result<Value> {
    Ok(Value::Object(call.instance::<Probe>().settings.clone()))
}
