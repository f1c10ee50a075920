import fs from "node:fs/promises";
import grpc from "@grpc/grpc-js";
import { Call } from "./call.js";
import { ActionError } from "./error.js";
import { currentCall } from "./log.js";
import { Host, MESSAGE_LIMITS, toMessage } from "./protocol.js";

/** go-plugin's broker: the host sends the addresses of its services. */
export class Broker {
  #addresses = new Map();
  #waiting = new Map();

  startStream(stream) {
    stream.on("data", ({ service_id, network, address }) => {
      const target = network === "unix" ? `unix:${address}` : address;
      this.#addresses.set(service_id, target);
      this.#waiting.get(service_id)?.(target);
    });
    stream.on("end", () => stream.end());
    stream.on("error", () => {}); // the host has closed the connection
  }

  /** Returns the address of a service; the host sends it soon. */
  async address(id) {
    if (this.#addresses.has(id)) return this.#addresses.get(id);
    const { promise, resolve, reject } = withResolvers();
    this.#waiting.set(id, resolve);
    const late = setTimeout(() => reject(new ActionError("connection_error", "the host did not send the address of its services")), 5000);
    return promise.finally(() => clearTimeout(late));
  }
}

/** The service tea.plugin.v1.Plugin. */
export class PluginService {
  #bundle;
  #broker;
  #stop;
  #instances = new Map();
  #host;
  #draining = false;
  #running = new Set(); // ids of calls
  #drained;

  constructor(bundle, broker, stop) {
    this.#bundle = bundle;
    this.#broker = broker;
    this.#stop = stop;
  }

  /** Returns the functions that the gRPC server calls. */
  handlers() {
    const unary = (method) => (call, respond) =>
      method.call(this, call.request, call).then(
        (answer) => respond(null, answer),
        (error) => respond(error),
      );
    return {
      Describe: unary(async () => ({ manifest: this.#bundle.manifest() })),
      Configure: unary(this.#configure),
      Release: unary(this.#release),
      Health: unary(this.#health),
      Shutdown: unary(this.#shutdown),
      Invoke: unary(this.#invoke),
      InvokeStream: (stream) => this.#invokeStream(stream),
    };
  }

  // The host asks for a call that it no longer waits for.
  async #health({ call_id }) {
    const ready = !this.#draining;
    return call_id ? { ready, call: this.#running.has(call_id) ? "CALL_STATE_RUNNING" : "CALL_STATE_ENDED" } : { ready };
  }

  async #configure({ instance_id, settings_json, host_service, import_path }) {
    const capabilities = ["stream", "host"];
    try {
      if (host_service !== 0) await this.#connect(host_service);
      const value = await this.#bundle.openInstance(settings_json);
      if (value?.exportState) capabilities.push("handover");
      if (import_path) await value.importState(await fs.readFile(import_path));
      this.#instances.set(instance_id, { value });
      return { capabilities };
    } catch (error) {
      return { capabilities, error: toMessage(ActionError.from(error, "configure")) };
    }
  }

  async #connect(id) {
    this.#host ??= new Host(await this.#broker.address(id), grpc.credentials.createInsecure(), MESSAGE_LIMITS);
  }

  async #release({ instance_id, export_path }) {
    const instance = this.#instances.get(instance_id);
    try {
      if (export_path && instance) {
        await fs.writeFile(export_path, await instance.value.exportState(), { flag: "wx", mode: 0o600 });
      }
      this.#instances.delete(instance_id);
      if (instance) await this.#bundle.close(instance.value);
      return {};
    } catch (error) {
      return { error: toMessage(ActionError.from(error, "release")) };
    }
  }

  async #shutdown({ grace_ms }) {
    this.#draining = true;
    const { promise, resolve } = withResolvers();
    this.#drained = resolve;
    if (this.#running.size === 0) resolve(true);
    const late = setTimeout(() => resolve(false), grace_ms);
    const drained = await promise;
    clearTimeout(late);
    for (const id of [...this.#instances.keys()]) await this.#release({ instance_id: id });
    setImmediate(this.#stop);
    if (!drained) throw { code: grpc.status.DEADLINE_EXCEEDED, details: "calls are still running" };
    return {};
  }

  async #invoke(request, call) {
    try {
      return { result: await this.#run(request, call) };
    } catch (error) {
      if (!(error instanceof ActionError)) throw error;
      return { error: toMessage(error) };
    }
  }

  async #invokeStream(stream) {
    const emit = async (event) => {
      if (!stream.write(event)) await new Promise((resolve) => stream.once("drain", resolve));
    };
    try {
      stream.write({ result: await this.#run(stream.request, stream, emit) });
    } catch (error) {
      if (!(error instanceof ActionError)) return stream.destroy(error);
      stream.write({ error: toMessage(error) });
    }
    stream.end();
  }

  /**
   * Runs an action and returns the JSON text of its result. It throws an
   * ActionError, or a gRPC status for a mistake of the host.
   */
  async #run(request, grpcCall, emit) {
    const instance = this.#instances.get(request.instance_id);
    if (!instance) {
      throw { code: grpc.status.FAILED_PRECONDITION, details: `instance ${request.instance_id} is not configured` };
    }
    if (this.#draining) throw { code: grpc.status.UNAVAILABLE, details: "the plugin is shutting down" };
    const ended = new AbortController();
    grpcCall.on("cancelled", () => ended.abort(new ActionError("canceled", "the call was canceled or its deadline has passed")));
    const call = new Call(request, { instance: instance.value, signal: ended.signal, host: this.#host, emit });
    this.#running.add(request.call_id);
    try {
      return await currentCall.run(call, () => this.#bundle.run(call));
    } catch (error) {
      throw ActionError.from(error, request.action);
    } finally {
      this.#running.delete(request.call_id);
      if (this.#running.size === 0) this.#drained?.(true);
    }
  }
}

function withResolvers() {
  const result = {};
  result.promise = new Promise((resolve, reject) => Object.assign(result, { resolve, reject }));
  return result;
}
