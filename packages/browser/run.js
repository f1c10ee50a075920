import { parse } from './json.js';
import { TeaError, resultOf } from './errors.js';

/** Run is a run of a workflow: a promise of its result, and an iterator of its events. */
export class Run {
  #events = []; // texts of arrays
  #wake = () => {};
  #ended = false;
  #result;
  #cancel;

  /** start gets a callback for texts of events, and returns a promise of the answer. */
  constructor(start, cancel) {
    this.#cancel = cancel;
    const answer = start((text) => this.#push(text));
    this.#result = answer.then(toResult).finally(() => {
      this.#ended = true;
      this.#wake();
    });
    this.#result.catch(() => {}); // who iterates alone gets it from the iterator
  }

  #push(text) {
    this.#events.push(text);
    this.#wake();
  }

  then(fulfilled, rejected) {
    return this.#result.then(fulfilled, rejected);
  }

  catch(rejected) {
    return this.#result.catch(rejected);
  }

  finally(fn) {
    return this.#result.finally(fn);
  }

  cancel() {
    this.#cancel();
  }

  async *[Symbol.asyncIterator]() {
    for (let i = 0; ; ) {
      while (i < this.#events.length) yield* parse(this.#events[i++]);
      if (this.#ended) break;
      await new Promise((resolve) => (this.#wake = resolve));
    }
    await this.#result;
  }
}

function toResult(text) {
  const r = resultOf(text);
  const result = {
    runId: r.run_id, status: r.status, state: r.state, pending: r.pending, failures: r.failures,
    failedBranches: r.failed_branches, usage: r.usage, checkpoint: r.checkpoint, elapsedMs: r.elapsed_ms,
  };
  if (r.error) throw new TeaError(r.error, { result });
  return result;
}
