import fs from "node:fs";
import path from "node:path";
import { z } from "zod";
import { ActionError } from "./error.js";
import { encode, parse } from "./json.js";
import { PROTOCOL } from "./protocol.js";
import { ROOT } from "./root.js";

/**
 * Declares an action.
 *
 * @param {string} name "namespace.verb"
 * @param {string} summary one sentence
 * @param {object} options
 * @param {import("zod").ZodType} [options.params] the schema of the parameters; tea checks calls and workflows with it
 * @param {import("zod").ZodType} [options.result] the schema of the result
 * @param {boolean} [options.streaming] whether the handler emits tokens or progress
 * @param {boolean} [options.idempotent] whether tea can repeat the call after a crash
 * @param {boolean} [options.once] whether the effect of a call must happen at most once
 * @param {boolean} [options.reads] whether the action changes nothing outside the run, so that dry runs call it
 * @param {boolean} [options.exact] whether numbers without a schema keep their text, see parse in json.js
 * @param {(params: any, call: import("./call.js").Call) => unknown} handler returns the result, or throws an ActionError
 */
export function action(name, summary, options, handler) {
  return { name, summary, ...options, handler };
}

/** The actions of a plugin with what tea has to know about them. */
export class Bundle {
  /**
   * @param {object} options
   * @param {string} options.name the file's name without "tea-plugin-"
   * @param {string} options.version a semantic version
   * @param {string} [options.description]
   * @param {ReturnType<typeof action>[]} options.actions
   * @param {Record<string, import("zod").ZodType>} [options.settings] the top-level settings that the plugin reads
   * @param {(settings: any) => unknown} [options.open] returns the instance for a set of settings, which handlers find in
   *   call.instance. With the methods exportState() and importState(buffer) its state moves to a new version of the plugin.
   * @param {(instance: any) => unknown} [options.close] releases an instance
   * @param {string[]} [options.files] the files of the plugin, relative to its executable file
   * @param {string[]} [options.env] the environment variables that the plugin reads
   * @param {number} [options.startTimeoutMs] the time that the plugin can need to start, if that is more than 10 s
   * @param {number} [options.memoryBytes] the memory that the plugin needs
   * @param {string[]} [options.exclusive] paths in the settings, such as "memory.path", that name what only one process can use
   */
  constructor({ actions, description = "", settings = {}, open = (s) => s, close = () => {}, files = sources(), ...declared }) {
    Object.assign(this, { description, settings, open, close, files, ...declared });
    this.actions = new Map(actions.map((a) => [a.name, a]));
  }

  /** Returns the manifest as the protocol's message. */
  manifest() {
    return {
      name: this.name,
      version: this.version,
      description: this.description,
      protocol: PROTOCOL,
      actions: [...this.actions.values()].map((a) => ({
        name: a.name,
        summary: a.summary,
        params_schema_json: schemaOf(a.params, "input"),
        result_schema_json: schemaOf(a.result, "output"),
        streaming: a.streaming ?? false,
        idempotent: a.idempotent ?? false,
        once: a.once ?? false,
        reads: a.reads ?? false,
      })),
      settings_schema_json: Object.fromEntries(
        Object.entries(this.settings).map(([key, schema]) => [key, schemaOf(schema, "input")]),
      ),
      files: this.files,
      env: this.env,
      start_timeout_ms: this.startTimeoutMs,
      memory_bytes: this.memoryBytes,
      exclusive: this.exclusive,
    };
  }

  /** Opens the instance for the settings of the protocol's message. */
  async openInstance(settings) {
    const values = {};
    for (const [key, schema] of Object.entries(this.settings)) {
      const value = key in settings ? parse(settings[key]) : undefined;
      values[key] = check(schema.optional(), value, `settings.${key}`);
    }
    return this.open(values);
  }

  /** Runs an action and returns the JSON text of the result. */
  async run(call) {
    const name = call.request.action;
    const found = this.actions.get(name);
    if (!found) throw new ActionError("not_found", `bundle ${this.name} has no action ${name}`);
    const raw = call.request.params;
    const params = parse(raw.length > 0 ? raw : "{}", { exact: found.exact });
    const checked = check(found.params ?? z.looseObject({}), params, `parameters of ${name}`);
    return encode(await found.handler(checked, call), `result of ${name}`);
  }
}

function schemaOf(schema, io) {
  return schema ? Buffer.from(JSON.stringify(z.toJSONSchema(schema, { io, unrepresentable: "any" }))) : "";
}

function check(schema, value, what) {
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  const problems = error.issues.map((i) => [i.path.join("."), i.message].filter(Boolean).join(": "));
  throw new ActionError("validation_error", `${what}: ${problems.join("; ")}`);
}

/**
 * Lists what the plugin consists of besides its executable file. tea asks for
 * the manifest again when one of these files has changed.
 */
function sources() {
  const list = (folder) =>
    fs.existsSync(path.join(ROOT, folder)) ? fs.readdirSync(path.join(ROOT, folder), { recursive: true }).map((f) => path.join(folder, f)) : [];
  const files = [...list("src"), ...list("proto"), "package.json"].filter((f) => /\.(js|json|proto)$/.test(f));
  return files.filter((f) => fs.existsSync(path.join(ROOT, f))).sort();
}
