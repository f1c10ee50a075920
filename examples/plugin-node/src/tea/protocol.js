import path from "node:path";
import grpc from "@grpc/grpc-js";
import protoLoader from "@grpc/proto-loader";
import { encode, MAX_PAYLOAD, parse } from "./json.js";
import { ActionError } from "./error.js";
import { ROOT } from "./root.js";

/** What plugin and host agree on; see docs/guide/plugin-protocol.md of tea. */
export const COOKIE_KEY = "TEA_PLUGIN_COOKIE";
export const COOKIE_VALUE = "tea.plugin.v1";
export const PROTOCOL = 1;

/** The size of a message is checked after that of the payload in it. */
export const MESSAGE_LIMITS = {
  "grpc.max_receive_message_length": MAX_PAYLOAD + (1 << 20),
  "grpc.max_send_message_length": MAX_PAYLOAD + (1 << 20),
};

const definitions = protoLoader.loadSync(["plugin.proto", "go_plugin_broker.proto"], {
  includeDirs: [path.join(ROOT, "proto")],
  keepCase: true,
  defaults: true,
  oneofs: true,
  longs: Number,
});

const { tea, plugin } = grpc.loadPackageDefinition(definitions);
export const { Plugin, Host } = tea.plugin.v1;
export const { GRPCBroker } = plugin;

/** Returns an ActionError as the protocol's message. */
export function toMessage(error) {
  return {
    type: error.type,
    message: error.message,
    retryable: error.retryable,
    retry_after_ms: error.retryAfterMs,
    source: error.source,
    details_json: error.details ? encode(error.details, "details of the error") : "",
  };
}

/** Returns the protocol's message as an ActionError. */
export function fromMessage(message) {
  return new ActionError(message.type || "internal_error", message.message, {
    retryable: message.retryable,
    retryAfterMs: message.retry_after_ms,
    source: message.source,
    details: message.details_json.length > 0 ? parse(message.details_json) : undefined,
  });
}
