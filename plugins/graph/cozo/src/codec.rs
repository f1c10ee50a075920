//! The encoding of parameters and results: little-endian, a tag byte before each
//! value. It keeps integers, floats and null apart, and is faster to decode than
//! JSON. internal/cozo/codec.go is the other side.

use std::collections::BTreeMap;

use cozo::{DataValue, JsonData, NamedRows, Num, Vector};
use ndarray::Array1;
use serde_json::Value;

use crate::failure::Failure;
use crate::lookup::{Lookup, Valid, Words};

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INT: u8 = 3;
const FLOAT: u8 = 4;
const STRING: u8 = 5;
const LIST: u8 = 6;
const JSON: u8 = 7;
const BYTES: u8 = 8;
const VECTOR: u8 = 9;

/// Reader decodes parameters.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], Failure> {
        if self.0.len() < n {
            return Err(Failure::Call("the parameters end early".into()));
        }
        let (head, tail) = self.0.split_at(n);
        self.0 = tail;
        Ok(head)
    }

    fn count(&mut self) -> Result<usize, Failure> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().unwrap()) as usize)
    }

    fn word(&mut self) -> Result<[u8; 8], Failure> {
        Ok(self.take(8)?.try_into().unwrap())
    }

    fn text(&mut self) -> Result<&'a str, Failure> {
        let n = self.count()?;
        std::str::from_utf8(self.take(n)?).map_err(|e| Failure::Call(format!("parameter: {e}")))
    }

    fn value(&mut self) -> Result<DataValue, Failure> {
        Ok(match self.take(1)?[0] {
            NULL => DataValue::Null,
            FALSE => DataValue::Bool(false),
            TRUE => DataValue::Bool(true),
            INT => DataValue::from(i64::from_le_bytes(self.word()?)),
            FLOAT => DataValue::from(f64::from_le_bytes(self.word()?)),
            STRING => DataValue::from(self.text()?),
            LIST => {
                let n = self.count()?;
                let mut list = Vec::with_capacity(n.min(self.0.len()));
                for _ in 0..n {
                    list.push(self.value()?);
                }
                DataValue::List(list)
            }
            JSON => {
                let value: Value = serde_json::from_str(self.text()?)
                    .map_err(|e| Failure::Call(format!("parameter: {e}")))?;
                DataValue::Json(JsonData(value))
            }
            BYTES => {
                let n = self.count()?;
                DataValue::Bytes(self.take(n)?.to_vec())
            }
            VECTOR => {
                let n = self.count()?;
                let mut list = Vec::with_capacity(n.min(self.0.len()));
                for _ in 0..n {
                    list.push(f32::from_le_bytes(self.take(4)?.try_into().unwrap()));
                }
                DataValue::Vec(Vector::F32(Array1::from_vec(list)))
            }
            tag => return Err(Failure::Call(format!("parameter: unknown tag {tag}"))),
        })
    }
}

/// read_params decodes the parameters of a script.
pub fn read_params(bytes: &[u8]) -> Result<BTreeMap<String, DataValue>, Failure> {
    let mut params = BTreeMap::new();
    if bytes.is_empty() {
        return Ok(params);
    }
    let mut r = Reader(bytes);
    for _ in 0..r.count()? {
        let name = r.text()?.to_string();
        params.insert(name, r.value()?);
    }
    Ok(params)
}

/// read_batch decodes rows to write, by relation; a name with a leading - has
/// the keys of rows to delete.
pub fn read_batch(bytes: &[u8]) -> Result<BTreeMap<String, NamedRows>, Failure> {
    let mut r = Reader(bytes);
    let mut batch = BTreeMap::new();
    for _ in 0..r.count()? {
        let name = r.text()?.to_string();
        let mut headers = Vec::new();
        for _ in 0..r.count()? {
            headers.push(r.text()?.to_string());
        }
        let n = r.count()?;
        let mut rows = Vec::with_capacity(n.min(r.0.len()));
        for _ in 0..n {
            let mut row = Vec::with_capacity(headers.len());
            for _ in 0..headers.len() {
                row.push(r.value()?);
            }
            rows.push(row);
        }
        batch.insert(name, NamedRows::new(headers, rows));
    }
    Ok(batch)
}

fn texts<'a>(r: &mut Reader<'a>) -> Result<Vec<&'a str>, Failure> {
    (0..r.count()?).map(|_| r.text()).collect()
}

/// read_lookup decodes the request of teacozo_lookup.
pub fn read_lookup(bytes: &[u8]) -> Result<Lookup<'_>, Failure> {
    let mut r = Reader(bytes);
    Ok(Lookup {
        relation: r.text()?,
        prefixes: (0..r.count()?).map(|_| texts(&mut r)).collect::<Result<_, _>>()?,
        columns: (0..r.count()?).map(|_| r.count()).collect::<Result<_, _>>()?,
        limit: r.count()?,
        valid: match r.count()? {
            0 => None,
            from => Some(Valid { from, to: r.count()?, at: i64::from_le_bytes(r.word()?) }),
        },
    })
}

/// read_words decodes the request of teacozo_having.
pub fn read_words(bytes: &[u8]) -> Result<Words<'_>, Failure> {
    let mut r = Reader(bytes);
    Ok(Words { namespace: r.text()?, words: texts(&mut r)?, types: texts(&mut r)?, limit: r.count()? })
}

fn put_count(out: &mut Vec<u8>, n: usize) {
    out.extend_from_slice(&(n as u32).to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_count(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

fn put_value(out: &mut Vec<u8>, value: &DataValue) {
    match value {
        DataValue::Null => out.push(NULL),
        DataValue::Bool(b) => out.push(if *b { TRUE } else { FALSE }),
        DataValue::Num(Num::Int(i)) => {
            out.push(INT);
            out.extend_from_slice(&i.to_le_bytes());
        }
        DataValue::Num(Num::Float(f)) => {
            out.push(FLOAT);
            out.extend_from_slice(&f.to_le_bytes());
        }
        DataValue::Str(s) => {
            out.push(STRING);
            put_text(out, s);
        }
        DataValue::List(list) => {
            out.push(LIST);
            put_count(out, list.len());
            list.iter().for_each(|v| put_value(out, v));
        }
        DataValue::Bytes(bytes) => {
            out.push(BYTES);
            put_count(out, bytes.len());
            out.extend_from_slice(bytes);
        }
        DataValue::Vec(Vector::F32(v)) => {
            out.push(VECTOR);
            put_count(out, v.len());
            v.iter().for_each(|f| out.extend_from_slice(&f.to_le_bytes()));
        }
        other => {
            out.push(JSON);
            put_text(out, &Value::from(other).to_string());
        }
    }
}

/// Table encodes a result row by row. It has no names of columns.
pub struct Table(Vec<u8>);

impl Default for Table {
    fn default() -> Self {
        Table(vec![1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    }
}

impl Table {
    pub fn put(&mut self, value: &DataValue) {
        put_value(&mut self.0, value);
    }

    /// done returns the table with its number of rows.
    pub fn done(mut self, rows: usize) -> Vec<u8> {
        self.0[8..12].copy_from_slice(&(rows as u32).to_le_bytes());
        self.0
    }
}

/// write_rows encodes a result: its tables (a script can return several), each
/// with its headers and rows.
pub fn write_rows(rows: NamedRows) -> Vec<u8> {
    let tables = rows.flatten();
    let mut out = Vec::with_capacity(256);
    put_count(&mut out, tables.len());
    for table in &tables {
        put_count(&mut out, table.headers.len());
        table.headers.iter().for_each(|h| put_text(&mut out, h));
        put_count(&mut out, table.rows.len());
        for row in &table.rows {
            row.iter().for_each(|v| put_value(&mut out, v));
        }
    }
    out
}
