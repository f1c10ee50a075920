use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::call::Call;
use super::error::{Error, Result};
use super::proto;

/// The largest JSON text of parameters or a result.
pub(crate) const MAX_PAYLOAD: usize = 64 << 20;

const PROTOCOL: i32 = 1;

pub(crate) type Instance = Arc<dyn Any + Send + Sync>;
type Handler = Box<dyn Fn(Vec<u8>, Call) -> BoxFuture<'static, Result<Vec<u8>>> + Send + Sync>;
type Open = Box<dyn Fn(Settings) -> BoxFuture<'static, Result<Instance>> + Send + Sync>;

/// One action: an async function with parameters and a result. Their types are
/// its schemas.
pub struct Action {
    info: proto::Action,
    handler: Handler,
}

impl Action {
    /// Declares an action. name is "namespace.verb", summary one sentence.
    pub fn new<P, R, F, Fut>(name: &str, summary: &str, handler: F) -> Action
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize + JsonSchema + 'static,
        F: Fn(P, Call) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R>> + Send + 'static,
    {
        let (params_of, result_of) = (format!("parameters of {name}"), format!("result of {name}"));
        Action {
            info: proto::Action {
                name: name.into(),
                summary: summary.into(),
                params_schema_json: schema_of::<P>(SchemaSettings::draft2020_12()),
                result_schema_json: schema_of::<R>(SchemaSettings::draft2020_12().for_serialize()),
                ..Default::default()
            },
            handler: Box::new(move |raw, call| {
                let result_of = result_of.clone();
                match decode(&raw, &params_of) {
                    Err(error) => async { Err(error) }.boxed(),
                    Ok(params) => handler(params, call)
                        .map(move |result| encode(&result?, &result_of))
                        .boxed(),
                }
            }),
        }
    }

    /// Declares that the action emits tokens or progress.
    pub fn streaming(mut self) -> Action {
        self.info.streaming = true;
        self
    }

    /// Declares that tea can repeat a call after a crash.
    pub fn idempotent(mut self) -> Action {
        self.info.idempotent = true;
        self
    }

    /// Declares that the effect of a call must happen at most once.
    pub fn once(mut self) -> Action {
        self.info.once = true;
        self
    }

    /// Declares that the action changes nothing outside the run, so that dry
    /// runs call it.
    pub fn reads(mut self) -> Action {
        self.info.reads = true;
        self
    }
}

/// The actions of a plugin, with what tea has to know about them.
pub struct Bundle {
    pub(crate) manifest: proto::Manifest,
    handlers: HashMap<String, Handler>,
    open: Open,
    handover: Option<Handover>,
}

/// How the state of an instance moves to a new version of the plugin.
struct Handover {
    export: Box<dyn Fn(&Instance) -> Result<Vec<u8>> + Send + Sync>,
    import: Box<dyn Fn(&Instance, Vec<u8>) -> Result<()> + Send + Sync>,
}

impl Bundle {
    /// Returns a bundle without actions. name is that of the file without
    /// "tea-plugin-".
    pub fn new(name: &str, version: &str) -> Bundle {
        let manifest = proto::Manifest {
            name: name.into(),
            version: version.into(),
            protocol: PROTOCOL,
            ..Default::default()
        };
        let open: Open = Box::new(|_| async { Ok(Arc::new(()) as Instance) }.boxed());
        Bundle {
            manifest,
            handlers: HashMap::new(),
            open,
            handover: None,
        }
    }

    pub fn description(mut self, text: &str) -> Bundle {
        self.manifest.description = text.into();
        self
    }

    pub fn action(mut self, action: Action) -> Bundle {
        self.handlers
            .insert(action.info.name.clone(), action.handler);
        self.manifest.actions.push(action.info);
        self
    }

    /// Declares a top-level setting that the plugin reads.
    pub fn setting<T: JsonSchema>(mut self, key: &str) -> Bundle {
        self.manifest
            .settings_schema_json
            .insert(key.into(), schema_of::<T>(SchemaSettings::draft2020_12()));
        self
    }

    /// Declares how the instance for a set of settings is opened. Actions find
    /// it with [`Call::instance`]; it is dropped when the host releases it.
    pub fn open<T, F, Fut>(mut self, open: F) -> Bundle
    where
        T: Send + Sync + 'static,
        F: Fn(Settings) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T>> + Send + 'static,
    {
        self.open = Box::new(move |settings| {
            open(settings)
                .map(|opened| Ok(Arc::new(opened?) as Instance))
                .boxed()
        });
        self
    }

    /// Declares that the state of an instance moves to a new version of the
    /// plugin under a running host. T is the type that open returns.
    pub fn handover<T: 'static>(
        mut self,
        export: impl Fn(&T) -> Result<Vec<u8>> + Send + Sync + 'static,
        import: impl Fn(&T, Vec<u8>) -> Result<()> + Send + Sync + 'static,
    ) -> Bundle {
        let wrong = || Error::new("internal_error", "the instance has another type");
        self.handover = Some(Handover {
            export: Box::new(move |instance| export(instance.downcast_ref().ok_or_else(wrong)?)),
            import: Box::new(move |instance, state| {
                import(instance.downcast_ref().ok_or_else(wrong)?, state)
            }),
        });
        self
    }

    /// Declares the environment variables that the plugin reads.
    pub fn env(mut self, names: &[&str]) -> Bundle {
        self.manifest.env = names.iter().map(|name| name.to_string()).collect();
        self
    }

    /// Declares the time that the plugin can need to start, if that is more
    /// than 10 s.
    pub fn start_timeout(mut self, limit: Duration) -> Bundle {
        self.manifest.start_timeout_ms = limit.as_millis() as i64;
        self
    }

    /// Declares the memory that the plugin needs.
    pub fn memory_bytes(mut self, bytes: i64) -> Bundle {
        self.manifest.memory_bytes = bytes;
        self
    }

    /// Declares paths in the settings, such as "memory.path", that name what
    /// only one process can use.
    pub fn exclusive(mut self, paths: &[&str]) -> Bundle {
        self.manifest.exclusive = paths.iter().map(|path| path.to_string()).collect();
        self
    }

    pub(crate) fn capabilities(&self) -> Vec<String> {
        let handover = self.handover.as_ref().map(|_| "handover".to_string());
        ["stream", "host"]
            .map(String::from)
            .into_iter()
            .chain(handover)
            .collect()
    }

    pub(crate) fn import_state(&self, instance: &Instance, path: &str) -> Result<()> {
        self.handover.as_ref().map_or(Ok(()), |handover| {
            (handover.import)(instance, std::fs::read(path)?)
        })
    }

    pub(crate) fn export_state(&self, instance: &Instance, path: &str) -> Result<()> {
        self.handover.as_ref().map_or(Ok(()), |handover| {
            Ok(std::fs::write(path, (handover.export)(instance)?)?)
        })
    }

    pub(crate) async fn open_instance(
        &self,
        settings: HashMap<String, Vec<u8>>,
    ) -> Result<Instance> {
        (self.open)(Settings(settings)).await
    }

    /// Runs an action and returns the JSON text of its result. A panic of the
    /// action is an error.
    pub(crate) async fn run(&self, name: &str, params: Vec<u8>, call: Call) -> Result<Vec<u8>> {
        let Some(handler) = self.handlers.get(name) else {
            return Err(Error::new(
                "not_found",
                format!("bundle {} has no action {name}", self.manifest.name),
            ));
        };
        let running = std::panic::AssertUnwindSafe(async { handler(params, call).await });
        running.catch_unwind().await.unwrap_or_else(|panic| {
            let text = panic
                .downcast_ref::<&str>()
                .copied()
                .or(panic.downcast_ref::<String>().map(String::as_str));
            Err(Error::new(
                "internal_error",
                format!("panic in {name}: {}", text.unwrap_or("unknown")),
            ))
        })
    }
}

/// The settings of an instance by their top-level key.
pub struct Settings(HashMap<String, Vec<u8>>);

impl Settings {
    /// Returns a setting, or None if the workflow does not have it.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        self.0
            .get(key)
            .map(|raw| decode(raw, &format!("settings.{key}")))
            .transpose()
    }
}

fn schema_of<T: JsonSchema>(settings: SchemaSettings) -> Vec<u8> {
    settings
        .into_generator()
        .into_root_schema_for::<T>()
        .as_value()
        .to_string()
        .into_bytes()
}

/// Decodes JSON text. tea regards 2.0 as an integer, serde does not.
fn decode<T: DeserializeOwned>(raw: &[u8], what: &str) -> Result<T> {
    let raw = if raw.is_empty() { b"{}" } else { raw };
    serde_json::from_slice(raw).or_else(|error| {
        let failure = Error::new("validation_error", format!("{what}: {error}"));
        let mut value: Value = serde_json::from_slice(raw).map_err(|_| failure.clone())?;
        round(&mut value);
        serde_json::from_value(value).map_err(|_| failure)
    })
}

/// Replaces whole floats by integers.
fn round(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(round),
        Value::Object(members) => members.values_mut().for_each(round),
        Value::Number(number) if !number.is_i64() => {
            if let Some(whole) = number
                .as_f64()
                .filter(|f| f.fract() == 0.0 && f.abs() < (1u64 << 53) as f64)
            {
                *number = (whole as i64).into();
            }
        }
        _ => {}
    }
}

/// Returns a value as JSON text; what names it in errors.
pub(crate) fn encode(value: &impl Serialize, what: &str) -> Result<Vec<u8>> {
    let text = serde_json::to_vec(value)
        .map_err(|error| Error::new("internal_error", format!("{what}: {error}")))?;
    if text.len() > MAX_PAYLOAD {
        let message = format!(
            "{what}: {} bytes exceed the limit of {MAX_PAYLOAD} (64 MiB)",
            text.len()
        );
        return Err(Error::new("validation_error", message));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use crate::actions::bundle;

    #[test]
    fn the_manifest_says_what_an_action_promises() {
        let declared: Vec<_> = bundle()
            .manifest
            .actions
            .iter()
            .map(|a| (a.name.clone(), a.idempotent, a.once, a.reads))
            .collect();
        assert_eq!(declared[0], ("greeter.hello".into(), true, false, true));
        assert_eq!(declared[2], ("greeter.relay".into(), false, false, false));
    }
}
