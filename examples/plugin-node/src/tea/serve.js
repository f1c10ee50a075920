import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import grpc from "@grpc/grpc-js";
import { endWithHost } from "./lifetime.js";
import { Broker, PluginService } from "./service.js";
import { COOKIE_KEY, COOKIE_VALUE, GRPCBroker, MESSAGE_LIMITS, Plugin, PROTOCOL } from "./protocol.js";

/**
 * Serves a bundle until the host shuts the plugin down.
 *
 * @param {import("./bundle.js").Bundle} bundle
 */
export async function serve(bundle) {
  if (process.env[COOKIE_KEY] !== COOKIE_VALUE) {
    console.error(`This is tea-plugin-${bundle.name} ${bundle.version}, a plugin with actions for tea workflows.
It is not started by hand: tea starts it when a workflow uses one of its actions.
Put it into a directory and name that with --plugins.`);
    process.exit(2);
  }
  endWithHost();
  process.on("SIGINT", () => {}); // Ctrl-C reaches all processes; the host decides when to end
  const server = new grpc.Server(MESSAGE_LIMITS);
  const broker = new Broker();
  server.addService(GRPCBroker.service, { StartStream: (stream) => broker.startStream(stream) });
  server.addService(Plugin.service, new PluginService(bundle, broker, () => stop(server)).handlers());
  const directory = process.env.PLUGIN_UNIX_SOCKET_DIR || fs.mkdtempSync(path.join(os.tmpdir(), "tea-"));
  const socket = path.join(directory, `plugin-${process.pid}`);
  await new Promise((resolve, reject) =>
    server.bindAsync(`unix:${socket}`, grpc.ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())),
  );
  // The first line on stdout tells the host where to connect. Everything after
  // it is output like any other.
  fs.writeSync(1, `1|${PROTOCOL}|unix|${socket}|grpc\n`);
}

// The host closes the connection when it has the answer. If it does not, the
// process ends anyway.
function stop(server) {
  server.tryShutdown(() => process.exit(0));
  setTimeout(() => process.exit(0), 500);
}
