import { Call } from "./call.js";
import { ActionError } from "./error.js";
import { encode, parse } from "./json.js";
import { currentCall } from "./log.js";
import { toMessage } from "./protocol.js";

/**
 * Calls an action inside a test, without a process. It returns the result and
 * what the action has emitted, or throws the action's error.
 *
 * @param {import("./bundle.js").Bundle} bundle
 * @param {string} name the action
 * @param {object} [params]
 * @param {object} [options]
 * @param {object} [options.settings] the settings by their top-level key
 * @param {AbortSignal} [options.signal]
 * @param {Record<string, (params: any) => unknown>} [options.actions] what the host answers when the action calls others
 * @param {Record<string, unknown>} [options.notes] the notes of the node, which the action can change
 */
export async function callAction(bundle, name, params = {}, { settings = {}, signal, actions = {}, notes = {} } = {}) {
  const emitted = { tokens: [], progress: [], logs: [] };
  const texts = Object.entries(settings).map(([key, value]) => [key, encode(value, key)]);
  const instance = await bundle.openInstance(Object.fromEntries(texts));
  const call = new Call(
    { action: name, params: encode(params, name), call_id: "test", run_id: "test", node: "test", attempt: 1 },
    { instance, signal: signal ?? new AbortController().signal, host: fakeHost(actions, notes), emit: async (event) => record(emitted, event) },
  );
  try {
    return { result: parse(await currentCall.run(call, () => bundle.run(call))), ...emitted };
  } catch (error) {
    throw ActionError.from(error, name);
  } finally {
    await bundle.close(instance);
  }
}

function record({ tokens, progress, logs }, event) {
  if (event.token) tokens.push(event.token.text);
  if (event.progress) progress.push(event.progress);
  if (event.log) logs.push({ ...event.log, fields: event.log.fields_json ? parse(event.log.fields_json) : {} });
}

function fakeHost(actions, notes) {
  const service = {
    async InvokeAction({ action, params }) {
      if (!actions[action]) throw new ActionError("not_found", `the test has no action ${action}`);
      return { result: encode(await actions[action](parse(params)), action) };
    },
    async DescribeAction({ action }) {
      throw new ActionError("not_found", `the test has no description of ${action}`);
    },
    async GetNote({ key }) {
      return key in notes ? { found: true, note: encode(notes[key], key) } : { found: false };
    },
    async SetNote({ key, note }) {
      notes[key] = parse(note);
      return {};
    },
    async ReportUsage() {
      return {};
    },
  };
  const callback = (method) => (request, respond) => {
    method(request).then(
      (answer) => respond(null, answer),
      (error) => respond(null, { error: toMessage(ActionError.from(error, "the test")) }),
    );
    return { cancel() {} };
  };
  return Object.fromEntries(Object.entries(service).map(([name, method]) => [name, callback(method)]));
}
