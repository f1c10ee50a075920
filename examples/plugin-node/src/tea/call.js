import { ActionError } from "./error.js";
import { encode, parse } from "./json.js";
import { fromMessage } from "./protocol.js";

/** One call of an action, with its way to the host. */
export class Call {
  /**
   * @param {object} request the protocol's InvokeRequest: run_id, node, attempt, idempotency_key and so on
   * @param {object} options
   * @param {unknown} options.instance what the bundle's open has returned
   * @param {AbortSignal} options.signal aborts at the call's deadline and when it is canceled: pass it to everything that waits
   * @param {object} [options.host] the client of the host's services
   * @param {(event: object) => Promise<void>} [options.emit] sends an event into the call's stream
   */
  constructor(request, { instance, signal, host, emit }) {
    this.request = request;
    this.instance = instance;
    this.signal = signal;
    this.host = host;
    this.emit = emit;
  }

  /** Emits a piece of text. The action must be declared with streaming. */
  token(text) {
    return this.#report("Token", "token", { text });
  }

  /** Reports progress; fraction is from 0 to 1. */
  progress(fraction, message) {
    return this.#report("Progress", "progress", { fraction, message });
  }

  /** Writes a record to the run's log. level is debug, info, warn or error. */
  log(level, message, fields) {
    return this.#report("Log", "log", { level, message, fields_json: fields ? encode(fields, "fields of a log record") : "" });
  }

  /** Calls another action of the workflow and returns its result. */
  async invoke(action, params = {}, { exact = false } = {}) {
    const answer = await this.#request("InvokeAction", { action, params: encode(params, `parameters of ${action}`) });
    if (answer.error) throw fromMessage(answer.error);
    return parse(answer.result, { exact });
  }

  /** Returns the description of an action. */
  async describe(action) {
    const answer = await this.#request("DescribeAction", { action });
    if (answer.error) throw fromMessage(answer.error);
    return answer.action;
  }

  /** Returns a durable note of the calling node, or undefined. */
  async note(key, { exact = false } = {}) {
    const answer = await this.#request("GetNote", { key });
    if (answer.error) throw fromMessage(answer.error);
    return answer.found ? parse(answer.note, { exact }) : undefined;
  }

  /** Stores a note. It survives a crash of plugin and host. */
  async setNote(key, note) {
    const answer = await this.#request("SetNote", { key, note: encode(note, `note ${key}`) });
    if (answer.error) throw fromMessage(answer.error);
  }

  /**
   * Counts the usage of one request to a model against the run's budget. It
   * throws budget_exceeded when the budget is spent.
   */
  async usage({ tokens = 0, usd = 0 }) {
    const answer = await this.#request("ReportUsage", { tokens, usd });
    if (answer.error) throw fromMessage(answer.error);
  }

  // Events of a streamed call are sent in its stream, which keeps their order.
  async #report(method, kind, event) {
    if (this.emit) return this.emit({ [kind]: event });
    if (this.host) await this.#request(method, { [kind]: event });
  }

  async #request(method, message) {
    if (!this.host) throw new ActionError("dependency_missing", "this host offers no callbacks");
    this.signal.throwIfAborted();
    let abort;
    try {
      return await new Promise((resolve, reject) => {
        const pending = this.host[method]({ call_id: this.request.call_id, ...message }, (error, answer) =>
          error ? reject(error) : resolve(answer),
        );
        abort = () => pending.cancel();
        this.signal.addEventListener("abort", abort);
      });
    } catch (error) {
      this.signal.throwIfAborted();
      throw new ActionError("connection_error", `${method}: the host did not answer: ${error.message}`, { cause: error });
    } finally {
      this.signal.removeEventListener("abort", abort);
    }
  }
}
