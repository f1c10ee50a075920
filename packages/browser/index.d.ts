import type { Objects } from './sync.js';

/** A value of JSON. An integer beyond 2^53 is a bigint, with all its digits. */
export type Value = null | boolean | number | bigint | string | Value[] | { [key: string]: Value };
export type Values = { [key: string]: Value };

/** The kinds of errors, as in workflow files (`retry_on`). */
export type ErrorType =
  | 'validation_error' | 'not_found' | 'permission_denied' | 'dependency_missing' | 'timeout' | 'circuit_open' | 'connection_error'
  | 'query_error' | 'rate_limited' | 'resource_exhausted' | 'plugin_crashed' | 'canceled' | 'budget_exceeded' | 'internal_error';

/** A mistake in a workflow file. */
export interface Diagnostic {
  code: string;
  severity: 'error' | 'warning';
  message: string;
  hint?: string;
  file?: string;
  line?: number;
  column?: number;
  path?: string;
}

/** Every failure of this package. */
export class TeaError extends Error {
  readonly name: 'TeaError';
  readonly type: ErrorType;
  readonly retryable: boolean;
  /** Seconds to wait before the next attempt. */
  readonly retryAfter?: number;
  readonly source?: string;
  readonly details?: Values;
  /** The node that failed. */
  readonly node?: string;
  readonly path?: string;
  /** The mistakes in a workflow that cannot run. */
  readonly diagnostics?: Diagnostic[];
  /** The outcome of a run that failed or was stopped. */
  readonly result?: Result;
}

/** A place where a run waits for an answer. */
export interface Interrupt {
  id: string;
  kind: 'before' | 'after' | 'ask';
  node: string;
  path: string;
  question?: string;
  schema?: Value;
  choices?: Value[];
  default?: Value;
  asked_at?: string;
  deadline?: string;
  on_timeout?: string;
}

export interface Failure {
  path: string;
  branch?: boolean;
  error_type: ErrorType;
  error: string;
}

export interface Result {
  runId: string;
  status: 'done' | 'waiting' | 'failed' | 'stopped';
  state: Values;
  /** The interrupts at which the run waits. */
  pending: Interrupt[] | null;
  /** Nodes that the run continued after, and branches that failed. */
  failures: Failure[] | null;
  failedBranches: number;
  usage: { steps: number; tokens: number; usd: number; tool_calls: number };
  /** The file to resume from; empty without a checkpoint. */
  checkpoint: string;
  elapsedMs: number;
}

/** One event of a run; docs/reference/events.schema.json describes the fields. */
export interface Event {
  seq: number;
  ts: string;
  run_id: string;
  event:
    | 'run_start' | 'node_start' | 'node_end' | 'node_error' | 'retry' | 'branch_start' | 'branch_end'
    | 'loop' | 'token' | 'log' | 'interrupt' | 'checkpoint' | 'run_end' | (string & {});
  node?: string;
  path?: string;
  [field: string]: Value | undefined;
}

/**
 * A run: a promise of its result, which rejects with a TeaError if the run fails
 * or is stopped, and an iterator of its events.
 */
export interface Run extends Promise<Result>, AsyncIterable<Event> {
  /** Stops the run. With a checkpoint it can be resumed. */
  cancel(): void;
}

/** A workflow: its text, or a file in `tea.files`. */
export type Workflow = string | { file: string };

export interface RunOptions {
  /** The file under which the text of a workflow is kept; default workflow.yaml. */
  name?: string;
  /** Merged over the initial state; on resume, into the state. */
  input?: Values;
  /** Available under `secrets`; replaced by *** in everything that is returned or stored. */
  secrets?: Values;
  /** Available under `env`; default: the one of openTea. */
  env?: Record<string, string>;
  /**
   * When checkpoints are written. The default is exit, which keeps no checkpoint of a run that has ended, and off
   * while another tab owns the storage.
   */
  durability?: 'exit' | 'sync' | 'async' | 'off';
  interruptBefore?: string[];
  interruptAfter?: string[];
  /** Stops the run. */
  signal?: AbortSignal;
}

export interface ResumeOptions extends RunOptions {
  /** The workflow, if it is not the one with which the run began. */
  workflow?: Workflow;
  /** Answers by the ids of interrupts. */
  answers?: Values;
  /** Leaves interrupts without an answer waiting. */
  hold?: boolean;
  /** Runs failed branches again. */
  retryFailed?: boolean;
  /** Resumes although the workflow has changed. */
  force?: boolean;
  /** Resumes with a changed workflow if everything that the run used still exists. */
  migrate?: boolean;
}

/** An action that the page implements. */
export interface Action {
  summary?: string;
  /** The JSON Schema of the parameters. */
  params?: object;
  /** The call can be repeated after a crash. */
  idempotent?: boolean;
  /** A thrown object with `type`, `message`, `retryable` and `details` is the action's error. */
  run(params: Values, call: { idempotencyKey: string }): unknown;
}

export interface OpenOptions {
  /** The name of the storage in IndexedDB; without it, files and runs are in memory. */
  storage?: string;
  /** The address of tea.wasm; default next to this module. */
  wasm?: string | URL;
  /** Merged over every workflow, `{settings: {...}}` for instance. */
  config?: Values;
  /** For `${VAR}` in settings, and `env` in templates. */
  env?: Record<string, string>;
  /** Actions by name, `namespace.verb`. */
  actions?: Record<string, Action>;
  /** Reaches the object storage that the memory synchronises with; see @tea/browser/sync. */
  objects?: Objects;
  /** Receives the lines of the log, JSON objects. By default warnings and errors go to the console. */
  onLog?(line: string): void;
  /** Called when this page becomes the owner of the storage. */
  onWritable?(): void;
  /** Replaces the dedicated worker; see @tea/browser/inline.js. */
  worker?(): Worker | MessagePort;
}

export interface FileEntry {
  name: string;
  directory: boolean;
  size: number;
  modified: number;
}

/** The files that workflows see. Paths are relative to /work. */
export interface Files {
  read(path: string): Promise<Uint8Array>;
  readText(path: string): Promise<string>;
  /** Resolves when the file is stored. */
  write(path: string, data: string | Uint8Array): Promise<void>;
  list(path?: string): Promise<FileEntry[]>;
  /** Removes a file, or a directory with its content. */
  remove(path: string): Promise<void>;
}

export interface ActionEntry {
  name: string;
  summary?: string;
  [field: string]: Value | undefined;
}

export interface RunEntry {
  id: string;
  workflow: string;
  status: 'running' | 'waiting' | 'failed' | 'stopped' | 'done';
  node: string;
  started_at: string;
  updated_at: string;
  [field: string]: Value | undefined;
}

export interface Tea {
  readonly files: Files;
  /** False while another page of the origin owns the storage: files can be read only. */
  readonly writable: boolean;
  run(workflow: Workflow, options?: RunOptions): Run;
  /** Continues a run by its id. What finished is not run again. */
  resume(run: string, options?: ResumeOptions): Run;
  /** Calls one action and returns its result. */
  action(name: string, params?: Values, options?: { secrets?: Values; env?: Record<string, string> }): Promise<Value>;
  validate(workflow: Workflow, options?: { name?: string }): Promise<Diagnostic[]>;
  /** Draws the graph: text, json, dot, mermaid or svg. */
  inspect(workflow: Workflow, format?: 'text' | 'json' | 'dot' | 'mermaid' | 'svg', options?: { name?: string }): Promise<string>;
  actions(): Promise<ActionEntry[]>;
  runs(): Promise<RunEntry[]>;
  /** The stored events of a run after the one numbered `after`. */
  events(run: string, after?: number): Promise<Event[]>;
  /** Returns the graph of a run as SVG, coloured by status. */
  show(run: string): Promise<string>;
  /** Removes a run and its events. */
  remove(run: string): Promise<void>;
  /** Stops what runs, stores the files and ends the worker. */
  close(): Promise<void>;
}

/** Starts the host. */
export function openTea(options?: OpenOptions): Promise<Tea>;

/** Parses JSON; integers beyond 2^53 become bigints. */
export function parse(text: string): Value;
/** Returns the JSON text of a value, which can contain bigints. */
export function stringify(value: unknown): string;
