//! A database and its scripts. Scripts of the plugin run on the main engine.
//! Each query of a user runs in a thread of its own, on an engine of its own over
//! the same file: so it can be stopped alone, and its storage is read-only.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cozo::parse::{parse_script, CozoScript};
use cozo::{CustomAggrRegistries, DataValue, Db, NamedRows, ScriptMutability, ValidityTs};
use miette::{IntoDiagnostic, Result};

use crate::check::{check, check_size, STACK};
use crate::codec::Table;
use crate::failure::Failure;
use crate::lookup::{self, Catalog, Lookup, Words};
use crate::memory;
use crate::store::Store;

pub type Params = BTreeMap<String, DataValue>;
type Engine = Db<Store>;

/// PARSER_STEPS bounds the time of the parser, whose grammar backtracks.
const PARSER_STEPS: usize = 3_000_000;
/// POLL is how often a waiting query looks at its cancellation.
const POLL: Duration = Duration::from_millis(10);
/// GRACE is how long a query that was told to stop may go on.
const GRACE: Duration = Duration::from_millis(700);
/// MAX_STUCK is the number of queries that did not stop, beyond which no others start.
const MAX_STUCK: usize = 4;
/// VIEWS is the number of idle read-only engines that are kept.
const VIEWS: usize = 4;

// States of a query's thread.
const RUNNING: u8 = 0;
const ABANDONED: u8 = 1;
const ENDED: u8 = 2;

pub struct Database {
    store: Store,
    catalog: Catalog,
    main: Engine,
    /// Held by scripts of the plugin; exclusively by a query that writes, which
    /// runs on the main engine and is then its only script.
    gate: RwLock<()>,
    views: Mutex<Vec<Arc<Engine>>>,
    cancelled: Mutex<BTreeMap<u64, Arc<AtomicBool>>>,
    stuck: Arc<AtomicUsize>,
}

/// Query is a script of a user with its limits.
pub struct Query {
    pub token: u64,
    pub script: String,
    pub params: Params,
    pub write: bool,
    pub rows: usize,
    pub timeout: Duration,
    pub memory: usize,
}

fn engine(store: Store) -> Result<Engine> {
    let engine = Db::new(store)?;
    engine.initialize()?;
    Ok(engine)
}

fn now() -> Result<ValidityTs> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).into_diagnostic()?;
    Ok(ValidityTs(Reverse(since.as_micros() as i64)))
}

impl Database {
    pub fn open(path: &str) -> Result<Arc<Database>> {
        pest::set_call_limit(NonZeroUsize::new(PARSER_STEPS));
        let store = Store::open(path)?;
        Ok(Arc::new(Database {
            main: engine(store.clone())?,
            store,
            catalog: Catalog::default(),
            gate: RwLock::new(()),
            views: Mutex::default(),
            cancelled: Mutex::default(),
            stuck: Arc::default(),
        }))
    }

    /// run runs a script of the plugin in the calling thread, without limits.
    pub fn run(&self, script: &str, params: Params) -> Result<NamedRows> {
        let _gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        self.main.run_script(script, params, ScriptMutability::Mutable)
    }

    /// lookup returns rows as a table without names of columns.
    pub fn lookup(&self, lookup: &Lookup) -> Result<Vec<u8>> {
        let _gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        let mut table = Table::default();
        let rows = lookup::rows(&self.store, &self.catalog, lookup, |row| row.iter().for_each(|v| table.put(v)))?;
        Ok(table.done(rows))
    }

    /// having returns ids as a table of one column.
    pub fn having(&self, words: &Words) -> Result<Vec<u8>> {
        let _gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        let mut table = Table::default();
        let rows = lookup::having(&self.store, &self.catalog, words, |id| table.put(&DataValue::from(id)))?;
        Ok(table.done(rows))
    }

    /// apply writes rows and deletes others, in one transaction. Names in batch
    /// that begin with - come first.
    pub fn apply(&self, batch: BTreeMap<String, NamedRows>) -> Result<()> {
        let _gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        self.main.import_relations(batch)
    }

    pub fn backup(&self, path: &str) -> Result<()> {
        self.store.backup(path)
    }

    /// cancel stops the query with the token.
    pub fn cancel(&self, token: u64) {
        let cancelled = self.cancelled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flag) = cancelled.get(&token) {
            flag.store(true, Ordering::SeqCst);
        }
    }

    /// query runs a query of a user within its limits. A query that writes is
    /// waited for until it stops; another one is left to itself if it does not.
    pub fn query(self: &Arc<Self>, query: Query) -> Result<NamedRows> {
        let stuck = self.stuck.load(Ordering::SeqCst);
        if stuck >= MAX_STUCK {
            return Err(Failure::Stuck(stuck).into());
        }
        let token = query.token;
        let cancelled = Arc::new(AtomicBool::new(false));
        let register = || self.cancelled.lock().unwrap_or_else(PoisonError::into_inner);
        register().insert(token, cancelled.clone());
        let result = if query.write { self.query_main(query, &cancelled) } else { self.query_view(query, &cancelled) };
        register().remove(&token);
        result
    }

    fn query_main(self: &Arc<Self>, query: Query, cancelled: &AtomicBool) -> Result<NamedRows> {
        let _gate = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        let database = self.clone();
        let result = supervise(&self.main, query, cancelled, None, move |q| execute(&database.main, q));
        self.main.set_default_query_timeout(None);
        self.main.set_default_query_mem_limit(None);
        result
    }

    fn query_view(self: &Arc<Self>, query: Query, cancelled: &AtomicBool) -> Result<NamedRows> {
        let idle = self.views.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let view = match idle {
            Some(view) => view,
            None => {
                let store = self.store.view();
                let view = engine(store.clone())?;
                store.seal();
                Arc::new(view)
            }
        };
        let (used, database) = (view.clone(), self.clone());
        supervise(&view, query, cancelled, Some(&self.stuck), move |q| {
            let result = execute(&used, q);
            let mut views = database.views.lock().unwrap_or_else(PoisonError::into_inner);
            if views.len() < VIEWS {
                views.push(used);
            }
            result
        })
    }
}

/// execute parses, checks and runs a query in the calling thread.
fn execute(engine: &Engine, query: &Query) -> Result<NamedRows> {
    check_size(&query.script)?;
    engine.set_default_query_timeout(Some(query.timeout.as_secs_f64()));
    engine.set_default_query_mem_limit(Some(query.memory));
    let at = now()?;
    let (meet, bounded) = (engine.get_custom_aggrs(), engine.get_custom_bounded_meets());
    let registries = CustomAggrRegistries { meet: &meet, bounded: &bounded };
    let mut script: CozoScript = parse_script(&query.script, &query.params, &engine.get_fixed_rules(), registries, at)?;
    check(&mut script, query.rows)?;
    engine.run_script_ast(script, at, ScriptMutability::Mutable)
}

/// supervise runs a query in a thread and stops it when it is cancelled or late.
/// With a counter it gives up after GRACE and counts the thread until it ends.
fn supervise(
    engine: &Engine,
    query: Query,
    cancelled: &AtomicBool,
    stuck: Option<&Arc<AtomicUsize>>,
    run: impl FnOnce(&Query) -> Result<NamedRows> + Send + 'static,
) -> Result<NamedRows> {
    let (sender, receiver) = mpsc::channel();
    let started = Instant::now();
    let timeout = query.timeout;
    let state = Arc::new(AtomicU8::new(RUNNING));
    let (thread_state, thread_stuck) = (state.clone(), stuck.cloned());
    let body = move || {
        memory::limit(query.memory);
        let result = catch_unwind(AssertUnwindSafe(|| run(&query)));
        let exceeded = memory::exceeded();
        let _ = sender.send(match result {
            _ if exceeded => Err(Failure::Memory.into()),
            Ok(result) => result,
            Err(panic) => Err(ended(&*panic).into()),
        });
        if let (ABANDONED, Some(stuck)) = (thread_state.swap(ENDED, Ordering::SeqCst), thread_stuck) {
            stuck.fetch_sub(1, Ordering::SeqCst);
        }
    };
    thread::Builder::new().name("query".into()).stack_size(STACK).spawn(body).into_diagnostic()?;
    let mut stopping: Option<Instant> = None;
    loop {
        match receiver.recv_timeout(POLL) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Disconnected) => return Err(Failure::Panic("the query's thread ended".into()).into()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let cancel = cancelled.load(Ordering::SeqCst);
        if !cancel && started.elapsed() < timeout {
            continue;
        }
        let since = *stopping.get_or_insert_with(Instant::now);
        if cancel {
            kill(engine)?;
        }
        if let Some(stuck) = stuck.filter(|_| since.elapsed() > GRACE) {
            stuck.fetch_add(1, Ordering::SeqCst);
            if state.compare_exchange(RUNNING, ABANDONED, Ordering::SeqCst, Ordering::SeqCst).is_err() {
                stuck.fetch_sub(1, Ordering::SeqCst);
            }
            return Err(if cancel { Failure::Cancelled } else { Failure::Timeout }.into());
        }
    }
}

/// ended describes a panic of a query, which can be that of another thread. The engine
/// is compiled with checks of its integers.
fn ended(panic: &(dyn Any + Send)) -> Failure {
    match panic.downcast_ref::<&str>() {
        Some(message) if message.ends_with("with overflow") => Failure::Overflow,
        _ => Failure::Panic(crate::panic_message()),
    }
}

/// kill stops all queries of an engine.
fn kill(engine: &Engine) -> Result<()> {
    let running = engine.run_script("::running", Params::new(), ScriptMutability::Immutable)?;
    for row in running {
        if let Some(id) = row.into_iter().next() {
            let params = Params::from([("id".to_string(), id)]);
            engine.run_script("::kill $id", params, ScriptMutability::Immutable)?;
        }
    }
    Ok(())
}
