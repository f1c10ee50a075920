// serve answers the calls of index.js, in a worker or over a channel. A message is
// an array: its kind, the key of the call, and texts.

import { startEngine } from './engine.js';

export function serve(port) {
  const post = (...message) => port.postMessage(message);
  const asked = new Map(); // resolves what the page was asked for, by keys
  let engine;
  let lastAsked = 0;

  const ask = (kind, ...rest) =>
    new Promise((resolve) => {
      asked.set(++lastAsked, resolve);
      post(kind, lastAsked, ...rest);
    });

  const on = {
    answer: (key, text) => post('answer', key, text),
    event: (key, text) => post('event', key, text),
    log: (text) => post('log', null, text),
    crashed: async (message) => {
      await engine?.fs.flush().catch(() => {});
      post('crashed', null, message);
    },
    action: (name, params, idempotencyKey) => ask('action', name, params, idempotencyKey),
    async objects(request) {
      const { error, answer } = await ask('objects', request);
      if (error) throw Object.assign(new Error(error.message), error);
      return answer;
    },
  };

  const handlers = {
    async open(_key, options) {
      try {
        engine = await startEngine(options, on);
        post('opened', null, engine.module);
      } catch (e) {
        post('failed', null, e.answer ?? null, e.message);
      }
    },
    call: (key, op, params) => engine.call(op, params, key),
    result(key, result) {
      asked.get(key)?.(result);
      asked.delete(key);
    },
    fs: (key, name, ...args) => attempt(key, () => engine.file(name, ...args)),
    own: (key) => attempt(key, () => engine.own()),
    close: (key) => attempt(key, () => engine.close()),
  };

  async function attempt(key, fn) {
    try {
      post('done', key, (await fn()) ?? null);
    } catch (e) {
      post('refused', key, typeof e.code === 'string' ? e.code : 'EIO', e.message);
    }
  }

  port.onmessage = ({ data: [kind, key, ...rest] }) => handlers[kind](key, ...rest);
}
