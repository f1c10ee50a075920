import type { Tea } from './index.js';

/** A value of a row. An integer beyond 2^53 is a bigint. */
export type Cell = null | boolean | number | bigint | string | Date | Uint8Array | Cell[] | { [key: string]: Cell };

export interface DuckDBOptions {
  /** Its memory is queried. */
  tea: Pick<Tea, 'action'>;
  /** The folder of the page that has duckdb-eh.wasm and duckdb-browser-eh.worker.js: `dist` of @duckdb/duckdb-wasm. */
  assets: string | URL;
  /** The module of @duckdb/duckdb-wasm; default `import('@duckdb/duckdb-wasm')`. */
  duckdb?: object;
  /** The namespaces that are copied; default that without a name. */
  namespaces?: string[];
  /** Also builds an index of the words of keys and values, with this stemmer: `english`, `german`, `none` ... */
  fullText?: string;
}

export interface DuckDB {
  /** Copies the entries again, and returns their number. */
  refresh(): Promise<number>;
  /** Returns the rows of a statement, whose question marks are the parameters. */
  query<Row = { [column: string]: Cell }>(sql: string, params?: (null | boolean | number | bigint | string)[]): Promise<Row[]>;
  /** Returns the result of a query, default all entries, as a Parquet file. */
  toParquet(sql?: string): Promise<Uint8Array>;
  /** Makes a file available to queries under a name, `FROM 'sales.parquet'`. */
  register(name: string, data: Uint8Array): Promise<void>;
  /** Ends the worker. */
  close(): Promise<void>;
}

/** Starts DuckDB, and copies the entries of the memory into its table `entries`. */
export function openDuckDB(options: DuckDBOptions): Promise<DuckDB>;
