// JSON whose integers keep their digits: those beyond 2^53 are BigInts in
// JavaScript.

const long = /\d{16}/;

/** Parses a JSON text. */
export function parse(text) {
  if (!long.test(text)) return JSON.parse(text);
  JSON.parse(text); // reports mistakes
  return new Parser(text).value();
}

const token = /\s*(?:([{}[\],:])|(")|(-?\d+(?![\d.eE]))|(-?[\d.eE+-]+)|(true|false|null))/y;

// Parser parses a text that is valid.
class Parser {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  next() {
    token.lastIndex = this.at;
    const found = token.exec(this.text);
    this.at = token.lastIndex;
    if (found[2]) found[2] = this.string();
    return found;
  }

  // string returns the string whose first quote was read. A regular expression would
  // exceed the stack for a long one.
  string() {
    const from = this.at - 1;
    for (;;) {
      const end = this.text.indexOf('"', this.at);
      let escapes = 0;
      while (this.text[end - 1 - escapes] === '\\') escapes++;
      this.at = end + 1;
      if (escapes % 2 === 0) return this.text.slice(from, this.at);
    }
  }

  value(found = this.next()) {
    const [, mark, string, integer, number, word] = found;
    if (string !== undefined) return JSON.parse(string);
    if (integer !== undefined) {
      const n = Number(integer);
      return Number.isSafeInteger(n) ? n : BigInt(integer);
    }
    if (number !== undefined) return Number(number);
    if (word !== undefined) return JSON.parse(word);
    return mark === '[' ? this.array() : this.object();
  }

  array() {
    const list = [];
    for (let found = this.next(); found[1] !== ']'; found = this.next()) {
      list.push(this.value(found[1] === ',' ? this.next() : found));
    }
    return list;
  }

  object() {
    const entries = [];
    for (let found = this.next(); found[1] !== '}'; found = this.next()) {
      if (found[1] === ',') found = this.next();
      const key = JSON.parse(found[2]);
      this.next(); // the colon
      entries.push([key, this.value()]);
    }
    return Object.fromEntries(entries);
  }
}

const plain = new Set(['Object', 'Array', 'Error']);

/** Returns the JSON text of a value, which can contain BigInts. */
export function stringify(value) {
  const text = encode(value);
  return text === undefined ? 'null' : text;
}

function encode(v) {
  if (typeof v === 'bigint') return v.toString();
  if (v instanceof Date && Number.isNaN(v.getTime())) throw new TypeError('JSON has no invalid Date');
  if (typeof v?.toJSON === 'function') v = v.toJSON();
  if (typeof v === 'number' && !Number.isFinite(v)) throw new TypeError(`JSON has no ${v}`);
  if (Number.isInteger(v) && Math.abs(v) < 1e21) return BigInt(v).toString(); // JSON.stringify rounds it beyond 2^53
  if (typeof v === 'function' || typeof v === 'symbol') throw new TypeError(`JSON has no ${typeof v}`);
  if (v === null || typeof v !== 'object') return JSON.stringify(v);
  const kind = Object.prototype.toString.call(v).slice(8, -1);
  if (!plain.has(kind)) throw new TypeError(`JSON has no ${kind}${kind === 'Promise' ? '; await is missing' : ''}`); // it would be {}
  if (Array.isArray(v)) return `[${v.map((e) => encode(e) ?? 'null').join()}]`;
  const members = [];
  for (const [key, member] of Object.entries(v)) {
    const text = encode(member);
    if (text !== undefined) members.push(`${JSON.stringify(key)}:${text}`);
  }
  return `{${members.join()}}`;
}
