// Engine runs the host in this thread: the file system, Go, and the calls between
// both sides.

import './memory.js';
import './wasm_exec.js';
import { FileSystem } from './fs.js';
import { openDisk } from './disk.js';

const dir = '/work', runsDir = '/runs';

/**
 * Starts the host. on has callbacks: answer(key, text), event(key, text) with an array of events,
 * action(name, params, idempotencyKey), which returns a promise of a text,
 * objects(request), which returns one of an answer, log(text) and crashed(message).
 */
export async function startEngine(options, on) {
  let panic = '';
  const fs = new FileSystem((line) => {
    if (/^(panic|fatal error): /.test(line)) panic ||= line;
    on.log(line);
  });
  const disk = options.storage ? await openDisk(options.storage) : null;
  if (disk) await fs.mount(disk);
  fs.writable = options.writable;
  const makeDirs = () => [dir, runsDir, '/tmp'].forEach((d) => fs.makeDirs(d));
  if (fs.writable) makeDirs();
  const module = options.module ?? (await compile(options.wasm));
  const refresh = async () => {
    if (disk && !fs.writable && !fs.busy) await fs.mount(disk);
  };
  const answer = async (key, text) => {
    await fs.flush().catch((e) => on.log(`the disk: ${e.message}`)); // the page sees in the files what the answer says
    on.answer(key, text);
  };
  const started = await startGo(module, fs, options, { ...on, answer }, () => panic);
  return {
    fs,
    module,
    /** Starts an operation. A page that only reads sees what the owner has written. */
    async call(...args) {
      await refresh().catch((e) => on.log(`the disk: ${e.message}`));
      started(...args);
    },
    /** Does something with the files for the page. */
    async file(name, ...args) {
      await refresh();
      return fs[name](...args);
    },
    /** Makes this thread the owner of the disk. */
    async own() {
      await fs.mount(disk);
      fs.writable = true;
      makeDirs();
    },
    async close() {
      await fs.flush();
      disk?.close();
      globalThis.teaMemory.close(); // others can write
    },
  };
}

async function compile(url) {
  const response = await fetch(url, { credentials: 'same-origin' });
  if (!response.ok) throw new Error(`${url}: status ${response.status}`);
  if (response.headers.get('Content-Type')?.startsWith('application/wasm')) return WebAssembly.compileStreaming(response);
  return WebAssembly.compile(await response.arrayBuffer());
}

// startGo starts the module and returns the function of its calls.
function startGo(module, fs, options, on, panic) {
  globalThis.fs = fs;
  globalThis.process = {
    pid: 1, ppid: 0, cwd: () => dir, chdir() {}, umask: () => 0o077,
    getuid: () => 0, geteuid: () => 0, getgid: () => 0, getegid: () => 0, getgroups: () => [],
  };
  const go = new globalThis.Go();
  return new Promise((resolve, reject) => {
    const host = { ...on, options: options.host, ready: () => resolve(host.call) };
    globalThis.teaHost = host;
    globalThis.teaObjects = options.objects ? on.objects : undefined;
    go.exit = (code) => {
      reject(Object.assign(new Error(panic() || `the host ended with ${code}`), { answer: host.failed }));
      if (!host.failed) on.crashed(panic() || `the host ended with ${code}`);
    };
    WebAssembly.instantiate(module, go.importObject)
      .then((instance) => go.run(instance))
      .catch(reject);
  });
}
