// SQL over the entries of the memory, with DuckDB-WASM in a worker of its own. Its
// extensions parquet and fts are part of the build that package.json names; it loads
// no others, since a failed load breaks it.

import { stringify } from './json.js';
import { TeaError } from './errors.js';

const pageSize = 1000;

/** Starts DuckDB, and copies the entries of the memory into its table `entries`. */
export async function openDuckDB({ tea, assets, duckdb, namespaces = [''], fullText }) {
  const module = duckdb ?? (await import('@duckdb/duckdb-wasm').catch((e) => {
    throw new TeaError({ type: 'dependency_missing', message: `@duckdb/duckdb-wasm is not installed, or the page has no import map for it: ${e.message}` });
  }));
  const base = new URL(assets, globalThis.location?.href);
  if (!base.pathname.endsWith('/')) base.pathname += '/';
  const worker = new Worker(new URL('duckdb-browser-eh.worker.js', base), { name: 'duckdb' });
  const opened = new DuckDB(tea, new module.AsyncDuckDB(new module.VoidLogger(), worker), worker, namespaces, fullText);
  try {
    await opened.start(new URL('duckdb-eh.wasm', base));
  } catch (e) {
    worker.terminate();
    throw e;
  }
  return opened;
}

class DuckDB {
  #tea;
  #db;
  #worker;
  #namespaces;
  #fullText;
  #broken; // rejects when the worker fails, for which DuckDB's promises wait
  #connection;
  #columns;
  #refreshed = Promise.resolve();

  constructor(tea, db, worker, namespaces, fullText) {
    this.#tea = tea;
    this.#db = db;
    this.#worker = worker;
    this.#namespaces = namespaces;
    this.#fullText = fullText;
    this.#broken = new Promise((_, reject) => {
      worker.addEventListener('error', (e) => {
        e.preventDefault();
        reject(new TeaError({ type: 'internal_error', message: `the worker of DuckDB failed: ${e.message || 'its script could not be loaded'}` }));
      });
    });
    this.#broken.catch(() => {});
  }

  #wait(promise) {
    return Promise.race([promise, this.#broken]);
  }

  async start(wasm) {
    // The worker does not report that its module is missing.
    const { ok, status, body, statusText } = await fetch(wasm, { credentials: 'same-origin' }).catch((e) => ({ statusText: e.message }));
    await body?.cancel();
    if (!ok) throw new TeaError({ type: 'not_found', message: `${wasm}: ${status ?? ''} ${statusText}` });
    await this.#wait(this.#db.instantiate(wasm.href));
    await this.#wait(this.#db.open({}));
    this.#connection = await this.#wait(this.#db.connect());
    await this.query('SET autoinstall_known_extensions = false');
    await this.query('SET autoload_known_extensions = false');
    await this.query('CREATE TEMP TABLE pages (namespace VARCHAR, key VARCHAR, value VARCHAR, paths VARCHAR[], texts VARCHAR[], meta_paths VARCHAR[], meta_texts VARCHAR[], updated_at VARCHAR, expires_at VARCHAR)');
    const { schema } = await this.#connection.query('SELECT * FROM pages');
    this.#columns = Object.fromEntries(schema.fields.map((f) => [f.name, f.type]));
    await this.refresh();
  }

  /** Copies the entries again, and returns their number. */
  refresh() {
    const result = this.#refreshed.then(() => this.#copy());
    this.#refreshed = result.catch(() => {});
    return result;
  }

  async #copy() {
    await this.query('DELETE FROM pages');
    for (const namespace of this.#namespaces) {
      for (let cursor = ''; ; ) {
        const page = await this.#tea.action('ltm.list', { namespace, limit: pageSize, cursor });
        if (page.entries.length) await this.#insert(page.entries.map((e) => toRow(namespace, e)));
        cursor = page.next_cursor;
        if (!cursor) break;
      }
    }
    await this.query(`CREATE OR REPLACE TABLE entries AS SELECT row_number() OVER () AS id, namespace, key, value,
      map(paths, texts) AS fields, map(meta_paths, meta_texts) AS metadata, updated_at::TIMESTAMP AS updated_at, expires_at::TIMESTAMP AS expires_at FROM pages`);
    await this.query('DELETE FROM pages');
    if (this.#fullText) await this.query(`PRAGMA create_fts_index('entries', 'id', 'key', 'value', stemmer = '${this.#fullText}', overwrite = 1)`);
    return (await this.query('SELECT count(*) AS n FROM entries'))[0].n;
  }

  async #insert(rows) {
    const file = 'pages.json';
    await this.#wait(this.#db.registerFileText(file, stringify(rows)));
    try {
      await this.#query(() => this.#connection.insertJSONFromPath(file, { name: 'pages', create: false, shape: 'row-array', columns: this.#columns }));
    } finally {
      await this.#db.dropFile(file);
    }
  }

  async #query(fn) {
    try {
      return await this.#wait(fn());
    } catch (e) {
      throw e instanceof TeaError ? e : new TeaError({ type: 'query_error', message: `DuckDB: ${e.message}` });
    }
  }

  /** Returns the rows of a statement, whose question marks are the parameters. */
  async query(sql, params = []) {
    const table = await this.#query(async () => {
      if (params.length === 0) return this.#connection.query(sql);
      const statement = await this.#connection.prepare(sql);
      try {
        return await statement.query(...params.map((p) => (typeof p === 'bigint' ? String(p) : p)));
      } finally {
        await statement.close();
      }
    });
    return table.toArray().map((row) => plain(row, { typeId: typeIds.struct, children: table.schema.fields }));
  }

  /** Returns the result of a query as a Parquet file. */
  async toParquet(sql = 'SELECT * FROM entries') {
    const file = `export-${crypto.randomUUID()}.parquet`;
    await this.query(`COPY (${sql}) TO '${file}' (FORMAT PARQUET, COMPRESSION ZSTD)`);
    try {
      return await this.#wait(this.#db.copyFileToBuffer(file));
    } finally {
      await this.#db.dropFile(file);
    }
  }

  /** Makes a file available to queries under a name, `FROM 'sales.parquet'`. */
  register(name, data) {
    return this.#wait(this.#db.registerFileBuffer(name, data.slice())); // the buffer moves to the worker
  }

  async close() {
    this.#worker.terminate();
  }
}

function toRow(namespace, { key, value, metadata, updated_at, expires_at }) {
  const fields = flatten(value), meta = flatten(metadata);
  return {
    namespace, key: text(key), value: text(value), paths: [...fields.keys()], texts: [...fields.values()],
    meta_paths: [...meta.keys()], meta_texts: [...meta.values()], updated_at, expires_at,
  };
}

// text is a string as it is, and anything else as JSON. A column has no zero bytes.
const text = (v) => (v === null ? null : (typeof v === 'string' ? v : stringify(v)).replaceAll('\0', ' '));

// flatten returns the texts of a value's leaves by their paths, "address.city".
function flatten(value, path = '', found = new Map()) {
  if (value === null || typeof value !== 'object') {
    if (path) found.set(path, text(value));
  } else {
    for (const [name, member] of Object.entries(value)) flatten(member, path ? `${path}.${text(name)}` : text(name), found);
  }
  return found;
}

const typeIds = { decimal: 7, timestamp: 10, list: 12, struct: 13, fixedSizeList: 16, map: 17 }; // of Apache Arrow

// plain converts a value of Arrow.
function plain(v, { typeId, scale, children }) {
  if (v === null || v === undefined) return null;
  switch (typeId) {
    case typeIds.decimal:
      return decimal(v, scale);
    case typeIds.timestamp:
      return new Date(Number(v));
    case typeIds.list:
    case typeIds.fixedSizeList:
      return Array.from(v, (e) => plain(e, children[0].type));
    case typeIds.struct:
      return Object.fromEntries(children.map(({ name, type }) => [name, plain(v[name], type)]));
    case typeIds.map:
      return Object.fromEntries(Array.from(v, ([k, e]) => [k, plain(e, children[0].type.children[1].type)]));
  }
  return typeof v === 'bigint' ? integer(v) : v;
}

const integer = (v) => (Number.isSafeInteger(Number(v)) ? Number(v) : v);

// decimal returns the number of four words, the lowest first.
function decimal(words, scale) {
  const digits = BigInt.asIntN(128, words.reduceRight((sum, word) => (sum << 32n) | BigInt(word), 0n));
  return scale === 0 ? integer(digits) : Number(`${digits}e-${scale}`);
}
