import { stringify, parse } from './json.js';
import { Run } from './run.js';
import { TeaError, checkOptions, fileError, misuse, resultOf } from './errors.js';

export { TeaError, parse, stringify };

const openOptions = { storage: 'string', wasm: 'string|object', config: 'object', env: 'object', actions: 'object', objects: 'function', onLog: 'function', onWritable: 'function', worker: 'function' };
const runOptions = {
  name: 'string', input: 'object', secrets: 'object', env: 'object', durability: 'string', interruptBefore: 'array', interruptAfter: 'array', signal: 'object',
};
const resumeOptions = { ...runOptions, workflow: 'string|object', answers: 'object', hold: 'boolean', retryFailed: 'boolean', force: 'boolean', migrate: 'boolean' };

/** Starts the host. */
export async function openTea(options = {}) {
  checkOptions('openTea', options, openOptions);
  for (const [name, action] of Object.entries(options.actions ?? {})) {
    if (typeof action?.run !== 'function') throw misuse(`the action ${name} has no function run`);
  }
  const tea = new Tea(options);
  await tea.ready;
  return tea;
}

const dir = '/work';

// oddCharacters are those that file actions refuse (sdk/x/confine): also control characters, and look-alikes of dots and slashes.
const oddCharacters = /[\\<>"|?*\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u2024\u2025\uff0e\ufe52\u2044\u2215\u29f8\uff0f\uff3c\ufe68\u29f5\ufffd]/u;

// inWork returns the absolute path of a file, which is below /work as in file actions.
function inWork(path, verb) {
  if (typeof path !== 'string') throw misuse(`the path of a file is a string, not ${path}`);
  if (!path) throw misuse('the path of a file is empty');
  const refuse = (why) => {
    throw new TeaError({ type: 'permission_denied', message: `path ${JSON.stringify(path)} ${why}` });
  };
  const relative = path === dir || path.startsWith(`${dir}/`) ? path.slice(dir.length + 1) : path;
  if (relative.startsWith('/')) refuse(`is absolute and not below ${dir}`);
  const names = relative.split('/');
  if (names.some((name) => name.trim() === '..')) refuse(`contains .., which can lead out of ${dir}`);
  const odd = relative.match(oddCharacters);
  if (odd) refuse(`contains the character ${JSON.stringify(odd[0])}, which is not allowed`);
  if (verb === 'remove' && names.every((name) => name === '' || name === '.')) refuse(`is ${dir} itself, which cannot be removed`);
  return `${dir}/${relative}`;
}

function bytesOf(data) {
  if (typeof data === 'string') return new TextEncoder().encode(data);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  throw misuse('the content of a file is a string or bytes');
}

class Tea {
  #options;
  #port;
  #module;
  #calls = new Map();
  #lastKey = 0;
  #writable = true;
  #noted = false; // that runs have no checkpoints
  #release = () => {};
  #closed = false;

  constructor(options) {
    this.#options = options;
    this.ready = this.#lock().then(() => this.#start());
    this.ready.catch(() => this.#release());
    this.files = {
      read: async (path) => this.#file('readFile', inWork(path)),
      readText: async (path) => new TextDecoder().decode(await this.files.read(path)),
      write: async (path, data) => this.#file('writeFile', inWork(path), bytesOf(data)),
      list: async (path = '.') => this.#file('list', inWork(path)),
      remove: async (path) => this.#file('remove', inWork(path, 'remove')),
    };
  }

  get writable() {
    return this.#writable;
  }

  // lock makes this page the owner of the storage. If another one is, this page
  // reads until that one has gone.
  async #lock() {
    if (!this.#storage) return;
    if (!globalThis.navigator?.locks) throw new TeaError({ type: 'dependency_missing', message: 'storage needs Web Locks, which a browser has for https and localhost only' });
    const hold = (first) => new Promise((release) => ((this.#release = release), first?.()));
    this.#writable = await new Promise((decided, fail) => {
      navigator.locks.request(this.#storage, { ifAvailable: true }, (lock) => (lock ? hold(() => decided(true)) : decided(false))).catch(fail);
    });
    if (this.#writable) return;
    const waiting = new AbortController();
    this.#release = () => waiting.abort();
    navigator.locks
      .request(this.#storage, { signal: waiting.signal }, async () => {
        const held = hold();
        await this.#own();
        this.#writable = true;
        this.#options.onWritable?.();
        await held;
      })
      .catch((e) => this.#closed || e.name === 'AbortError' || this.#log(`the page does not become the owner of its storage: ${e.message}`));
  }

  // own makes the worker the owner, also one that is started again meanwhile.
  async #own() {
    for (;;) {
      const ready = this.ready;
      await ready;
      try {
        return await this.#send('own');
      } catch (e) {
        if (this.#closed || this.ready === ready) throw e;
      }
    }
  }

  #log(line) {
    if (this.#options.onLog) return this.#options.onLog(line);
    if (!/"level":"(DEBUG|INFO)"/.test(line)) console.warn(`tea: ${line}`);
  }

  get #storage() {
    return this.#options.storage ? `tea:${this.#options.storage}` : null;
  }

  #start() {
    const { config = null, env = {}, actions = {} } = this.#options;
    const described = Object.entries(actions).map(([name, a]) => ({ name, summary: a.summary ?? name, params: a.params ?? undefined, idempotent: a.idempotent ?? false }));
    return new Promise((opened, failed) => {
      const port = this.#options.worker?.() ?? new Worker(new URL('./worker.js', import.meta.url), { type: 'module', name: 'tea' });
      this.#port = port;
      let isOpen = false;
      port.onerror = (e) => {
        e.preventDefault?.();
        if (isOpen) return this.#restart(e.message);
        failed(new TeaError({ type: 'internal_error', message: `the worker failed: ${e.message || 'its script could not be loaded'}` }));
      };
      port.onmessage = ({ data: [kind, key, ...rest] }) => this.#receive(kind, key, rest, () => opened((isOpen = true)), failed);
      port.postMessage(['open', null, {
        objects: Boolean(this.#options.objects), storage: this.#storage, writable: this.#writable, module: this.#module,
        wasm: String(this.#options.wasm ?? new URL('./tea.wasm', import.meta.url)),
        host: textOf('openTea', { dir, runs_dir: '/runs', config, env, actions: described }),
      }]);
    });
  }

  #receive(kind, key, rest, opened, failed) {
    const call = this.#calls.get(key);
    switch (kind) {
      case 'opened':
        this.#module = rest[0];
        return opened();
      case 'failed':
        return failed(rest[0] ? new TeaError(parse(rest[0]).error) : new TeaError({ type: 'internal_error', message: `the host did not start: ${rest[1]}` }));
      case 'log':
        return this.#log(rest[0]);
      case 'action':
        return this.#act(key, ...rest);
      case 'objects':
        return this.#request(key, ...rest);
      case 'crashed':
        return this.#restart(rest[0]);
      case 'event':
        return call?.event?.(rest[0]);
      case 'answer':
      case 'done':
        call?.resolve(rest[0]);
        break;
      case 'refused':
        call?.reject(fileError(...rest, call.path));
    }
    this.#calls.delete(key);
  }

  // restart replaces the worker after a panic. The calls that it had fail; runs
  // with a checkpoint can be resumed.
  #restart(message) {
    this.#port.terminate();
    if (!this.#closed) {
      this.ready = this.#start();
      this.ready.catch(() => {}); // the next call reports it
    }
    this.#fail(new TeaError({ type: 'internal_error', message: `the host has crashed and was started again: ${message}` }));
  }

  #fail(error) {
    for (const call of this.#calls.values()) call.reject(error);
    this.#calls.clear();
  }

  async #request(key, request) {
    const port = this.#port;
    let result;
    try {
      result = { answer: await this.#options.objects(request) };
    } catch (e) {
      const { type = 'internal_error', message = String(e), retryable = false, reason } = e ?? {};
      result = { error: { type, message, retryable, reason } };
    }
    port.postMessage(['result', key, result]);
  }

  async #act(key, name, params, idempotencyKey) {
    const port = this.#port; // another one has other keys
    let text;
    try {
      const result = await this.#options.actions[name].run(parse(params), { idempotencyKey });
      text = stringify({ result: result ?? null });
    } catch (e) {
      const { type = 'internal_error', message = String(e), retryable = false, details = null } = e ?? {};
      text = stringify({ error: { type: String(type), message: String(message), retryable: Boolean(retryable), details: details?.constructor === Object ? details : null } });
    }
    port.postMessage(['result', key, text]);
  }

  #send(kind, rest = [], { event, path, key = String(++this.#lastKey) } = {}) {
    return new Promise((resolve, reject) => {
      if (this.#closed && kind !== 'close') throw new TeaError({ type: 'canceled', message: 'tea is closed' });
      this.#calls.set(key, { resolve, reject, event, path });
      this.#port.postMessage([kind, key, ...rest]);
    });
  }

  async #call(op, params, more) {
    const text = textOf(op, params);
    if (!this.#closed) await this.ready;
    return this.#send('call', [op, text], more);
  }

  async #file(name, path, ...args) {
    if (!this.#closed) await this.ready;
    return this.#send('fs', [name, path, ...args], { path });
  }

  #execute(op, params, o) {
    const key = String(++this.#lastKey);
    const cancel = () => this.#call('cancel', { name: key }).catch(() => {});
    const all = {
      ...params, input: o.input, answers: o.answers, secrets: o.secrets, env: o.env ?? this.#options.env, durability: o.durability,
      interrupt_before: o.interruptBefore, interrupt_after: o.interruptAfter, retry_failed: o.retryFailed, hold: o.hold, force: o.force, migrate: o.migrate,
    };
    const run = new Run((event) => this.#call(op, all, { event, key }), cancel);
    if (o.signal?.aborted) cancel();
    o.signal?.addEventListener('abort', cancel, { once: true });
    return run;
  }

  run(workflow, options = {}) {
    checkOptions('run', options, runOptions);
    if (!this.#writable && options.durability === undefined) {
      options = { ...options, durability: 'off' };
      if (!this.#noted) this.#log('another tab owns the storage: runs in this one have no checkpoints, and one that waits for an answer cannot be resumed');
      this.#noted = true;
    }
    return this.#execute('run', workflowOf(workflow, options), options);
  }

  resume(run, options = {}) {
    checkOptions('resume', options, resumeOptions);
    if (typeof run !== 'string' || !run) throw misuse('a run is resumed by its id, a string');
    const changed = options.workflow === undefined ? {} : workflowOf(options.workflow, options);
    return this.#execute('resume', { run, ...changed }, options);
  }

  async action(name, params = {}, options = {}) {
    if (typeof name !== 'string') throw misuse(`the name of an action is a string, not ${name}`);
    checkOptions('action', options, { secrets: 'object', env: 'object' });
    return resultOf(await this.#call('action', { name, params, secrets: options.secrets, env: options.env ?? this.#options.env }));
  }

  async validate(workflow, options = {}) {
    checkOptions('validate', options, { name: 'string' });
    return resultOf(await this.#call('validate', workflowOf(workflow, options)));
  }

  async inspect(workflow, format = 'text', options = {}) {
    checkOptions('inspect', options, { name: 'string' });
    return resultOf(await this.#call('inspect', { ...workflowOf(workflow, options), format }));
  }

  async actions() {
    return resultOf(await this.#call('actions', {}));
  }

  async runs() {
    return resultOf(await this.#call('runs', {}));
  }

  async events(run, after = 0) {
    return resultOf(await this.#call('events', { run, after }));
  }

  async show(run) {
    return resultOf(await this.#call('show', { run }));
  }

  async remove(run) {
    resultOf(await this.#call('remove', { run }));
  }

  /** Ends the worker. Runs that are not finished stop. */
  async close() {
    if (this.#closed) return;
    this.#closed = true;
    try {
      await this.ready;
      await this.#send('close');
    } finally {
      this.#port.terminate();
      this.#release();
      this.#fail(new TeaError({ type: 'canceled', message: 'tea is closed' }));
    }
  }
}

function textOf(op, params) {
  try {
    return stringify(params);
  } catch (e) {
    throw misuse(`the parameters of ${op} cannot be JSON: ${e.message}`);
  }
}

function workflowOf(workflow, { name }) {
  if (typeof workflow === 'string') return { source: workflow, file: inWork(name || 'workflow.yaml') };
  if (typeof workflow?.file !== 'string') throw misuse('a workflow is its text, or {file: ...} for one in tea.files');
  return { file: inWork(workflow.file) };
}
