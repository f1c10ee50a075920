// serve answers the calls of index.js, in a worker or over a channel. A message is
// an array: its kind, the key of the call, and texts.

import { startEngine } from './engine.js';

export function serve(port) {
  const post = (...message) => port.postMessage(message);
  const actions = new Map(); // resolves the calls of the page's actions
  let engine;
  let lastAction = 0;

  const on = {
    answer: (key, text) => post('answer', key, text),
    event: (key, text) => post('event', key, text),
    log: (text) => post('log', null, text),
    crashed: async (message) => {
      await engine?.fs.flush().catch(() => {});
      post('crashed', null, message);
    },
    action: (name, params, idempotencyKey) =>
      new Promise((resolve) => {
        actions.set(++lastAction, resolve);
        post('action', lastAction, name, params, idempotencyKey);
      }),
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
    result(key, text) {
      actions.get(key)?.(text);
      actions.delete(key);
    },
    fs: (key, name, ...args) => attempt(key, () => engine.fs[name](...args)),
    own: (key) => attempt(key, () => engine.own()),
    close: (key) => attempt(key, () => engine.close()),
  };

  async function attempt(key, fn) {
    try {
      post('done', key, (await fn()) ?? null);
    } catch (e) {
      post('refused', key, e.code ?? '', e.message);
    }
  }

  port.onmessage = ({ data: [kind, key, ...rest] }) => handlers[kind](key, ...rest);
}
