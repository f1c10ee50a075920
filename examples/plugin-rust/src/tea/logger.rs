use log::kv::{self, Key, VisitSource};
use log::{LevelFilter, Log, Metadata, Record};
use serde_json::{Map, Value};

/// Writes records to stderr, where the host reads each line as a record. The
/// log of a run is [`super::Call::log`].
struct Logger;

/// Makes the macros of `log` write for the host.
pub(crate) fn install() {
    let debug =
        std::env::var("TEA_LOG_LEVEL").is_ok_and(|level| level.eq_ignore_ascii_case("debug"));
    log::set_max_level(if debug {
        LevelFilter::Debug
    } else {
        LevelFilter::Info
    });
    _ = log::set_logger(&Logger); // another logger can be in use
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let mut fields = Fields(Map::new());
        _ = record.key_values().visit(&mut fields);
        fields.0.insert(
            "@level".into(),
            record.level().as_str().to_lowercase().into(),
        );
        fields
            .0
            .insert("@message".into(), record.args().to_string().into());
        eprintln!("{}", Value::Object(fields.0));
    }

    fn flush(&self) {}
}

struct Fields(Map<String, Value>);

impl<'kvs> VisitSource<'kvs> for Fields {
    fn visit_pair(&mut self, key: Key<'kvs>, value: kv::Value<'kvs>) -> Result<(), kv::Error> {
        self.0.insert(key.to_string(), value.to_string().into());
        Ok(())
    }
}
