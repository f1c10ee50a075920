//! Reads by key that bypass the engine's planner: it takes longer to plan such a
//! query than to run it. The keys are those that the engine writes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use cozo::{DataValue, Storage, StoreTx};
use miette::{IntoDiagnostic, Result};
use serde_json::Value;

use crate::failure::Failure;
use crate::row::decode_some;
use crate::store::{Store, Tx};

/// GROUP is the number of bytes of a text before each marker in a key.
const GROUP: usize = 8;
const TEXT_TAG: u8 = 0x06;
const LAST_TAG: u8 = 0xff;
/// MAX_EXAMINED bounds the entities that a search for several words looks at.
const MAX_EXAMINED: usize = 100_000;

/// Lookup selects the rows of a relation whose keys begin with one of some texts.
pub struct Lookup<'a> {
    pub relation: &'a str,
    pub prefixes: Vec<Vec<&'a str>>,
    /// The columns to return.
    pub columns: Vec<usize>,
    pub limit: usize,
    /// Selects rows that are valid at an instant.
    pub valid: Option<Valid>,
}

/// Valid has the columns with the bounds of a row's validity.
pub struct Valid {
    pub from: usize,
    pub to: usize,
    pub at: i64,
}

/// Words selects the entities that have all of some words.
pub struct Words<'a> {
    pub namespace: &'a str,
    pub words: Vec<&'a str>,
    /// The types of the entities; empty = all.
    pub types: Vec<&'a str>,
    pub limit: usize,
}

/// Catalog has the numbers of relations, with the entry of the engine's catalog
/// that they were read from.
#[derive(Default)]
pub struct Catalog(Mutex<HashMap<String, (Vec<u8>, u64)>>);

impl Catalog {
    /// prefix returns what the keys of a relation begin with.
    fn prefix(&self, tx: &Tx, relation: &str) -> Result<Vec<u8>> {
        let mut key = vec![0; 8];
        put_text(&mut key, relation);
        let entry = tx.get(&key, false)?.ok_or_else(|| Failure::Corrupt(format!("the relation {relation} is missing")))?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, id)) = known.get(relation).filter(|(of, _)| *of == entry) {
            return Ok(id.to_be_bytes().to_vec());
        }
        let handle: Value = rmp_serde::from_slice(&entry).into_diagnostic()?;
        let id = handle["id"].as_u64().ok_or_else(|| Failure::Corrupt(format!("the relation {relation} has no number")))?;
        known.insert(relation.to_string(), (entry, id));
        Ok(id.to_be_bytes().to_vec())
    }
}

/// put_text adds a text to a key: groups of bytes, each followed by a marker that
/// counts how many are used, so that keys are in the order of the texts.
fn put_text(key: &mut Vec<u8>, text: &str) {
    key.push(TEXT_TAG);
    let bytes = text.as_bytes();
    for at in (0..=bytes.len()).step_by(GROUP) {
        let group = &bytes[at..bytes.len().min(at + GROUP)];
        let padding = GROUP - group.len();
        key.extend_from_slice(group);
        key.extend_from_slice(&[0; GROUP][..padding]);
        // A group that is full and the last one is followed by an empty one.
        key.push(LAST_TAG - padding as u8);
    }
}

fn integer(value: &DataValue) -> i64 {
    value.get_int().unwrap_or_default()
}

/// rows calls f with the columns of each row, and returns their number.
pub fn rows(store: &Store, catalog: &Catalog, l: &Lookup, mut f: impl FnMut(&[&DataValue])) -> Result<usize> {
    let tx = store.transact(false)?;
    let start = catalog.prefix(&tx, l.relation)?;
    let bounds = l.valid.as_ref().map_or([0; 2], |v| [v.from, v.to]);
    let wanted = |column| l.columns.contains(&column) || bounds.contains(&column);
    let mut count = 0;
    for prefix in &l.prefixes {
        let mut lower = start.clone();
        prefix.iter().for_each(|text| put_text(&mut lower, text));
        let mut upper = lower.clone();
        upper.push(LAST_TAG);
        for row in tx.rows(&lower, &upper, |k, v| decode_some(k, v, wanted)) {
            let row = row?;
            if l.valid.as_ref().is_some_and(|v| integer(&row[v.from]) > v.at || integer(&row[v.to]) <= v.at) {
                continue;
            }
            if count == l.limit {
                return Ok(count);
            }
            let columns: Vec<&DataValue> = l.columns.iter().map(|&c| &row[c]).collect();
            f(&columns);
            count += 1;
        }
    }
    Ok(count)
}

/// having calls f with the ids of entities, in order.
pub fn having(store: &Store, catalog: &Catalog, w: &Words, mut f: impl FnMut(&str)) -> Result<usize> {
    let tx = store.transact(false)?;
    let (words, entities) = (catalog.prefix(&tx, "word")?, catalog.prefix(&tx, "entity")?);
    let key = |start: &[u8], texts: &[&str]| {
        let mut key = start.to_vec();
        texts.iter().for_each(|text| put_text(&mut key, text));
        key
    };
    let Some((first, others)) = w.words.split_first() else { return Ok(0) };
    let lower = key(&words, &[w.namespace, first]);
    let mut upper = lower.clone();
    upper.push(LAST_TAG);
    let (mut count, mut examined) = (0, 0);
    for row in tx.range_scan_tuple(&lower, &upper) {
        let row = row?;
        examined += 1;
        if count == w.limit || examined > MAX_EXAMINED && !others.is_empty() {
            break;
        }
        let Some(id) = row[2].get_str() else { continue };
        let mut matches = true;
        for word in others {
            matches = matches && tx.exists(&key(&words, &[w.namespace, word, id]), false)?;
        }
        if matches && !w.types.is_empty() {
            let entity = key(&entities, &[w.namespace, id]);
            matches = match tx.get(&entity, false)? {
                Some(value) => {
                    let row = decode_some(&entity, &value, |column| column == 2)?;
                    row[2].get_str().is_some_and(|kind| w.types.contains(&kind))
                }
                None => false,
            };
        }
        if matches {
            f(id);
            count += 1;
        }
    }
    Ok(count)
}
