//! Decodes rows. The engine's own decoder formats the whole key for an error that
//! it hardly ever returns, which takes longer than the rest, and decodes columns
//! that a lookup does not need, such as embeddings.

use std::fmt;

use cozo::{try_decode_tuple_from_kv, DataValue};
use miette::Result;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, SeqAccess, Visitor};

use crate::store::Tuple;

/// HEADER is the number of bytes before the columns of a value.
const HEADER: usize = 8;

/// decode returns all columns of an entry.
pub fn decode(key: &[u8], value: &[u8]) -> Result<Tuple> {
    decode_some(key, value, |_| true)
}

/// decode_some returns the columns of an entry that are wanted. Others that are
/// not part of the key are null.
pub fn decode_some(key: &[u8], value: &[u8], wanted: impl Fn(usize) -> bool) -> Result<Tuple> {
    let mut row = try_decode_tuple_from_kv(key, &[], None)?;
    if value.is_empty() {
        return Ok(row);
    }
    let decoded = value.get(HEADER..).and_then(|columns| {
        let mut decoder = rmp_serde::Deserializer::from_read_ref(columns);
        Columns { row: &mut row, wanted }.deserialize(&mut decoder).ok()
    });
    match decoded {
        Some(()) => Ok(row),
        None => try_decode_tuple_from_kv(key, value, None), // for its error
    }
}

/// Columns adds the columns of a value to a row.
struct Columns<'a, W> {
    row: &'a mut Tuple,
    wanted: W,
}

impl<'de, W: Fn(usize) -> bool> DeserializeSeed<'de> for Columns<'_, W> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de, W: Fn(usize) -> bool> Visitor<'de> for Columns<'_, W> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a list of columns")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut columns: A) -> Result<(), A::Error> {
        loop {
            let column = if (self.wanted)(self.row.len()) {
                columns.next_element()?
            } else {
                columns.next_element::<IgnoredAny>()?.map(|_| DataValue::Null)
            };
            match column {
                Some(column) => self.row.push(column),
                None => return Ok(()),
            }
        }
    }
}
