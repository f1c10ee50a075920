// Runs Cloudflare's D1 on a free port of the loopback interface:
//
//   node serve.mjs MODULES COUNT [FOLDER]
//
// MODULES is the folder node_modules, COUNT the number of databases: their ids are
// db0, db1 and so on. The data are in FOLDER, or in memory. It prints the address,
// and ends with its standard input.
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, count, folder] = process.argv.slice(2);
const { Miniflare } = createRequire(join(modules, "x.js"))("miniflare");
const names = Array.from({ length: Number(count) }, (_, i) => `db${i}`);
const server = new Miniflare({
  modules: true,
  script: "export default { fetch() { return new Response() } }",
  host: "127.0.0.1",
  port: 0,
  unsafeLocalExplorer: true,
  d1Databases: Object.fromEntries(names.map((name) => [name.toUpperCase(), name])),
  ...(folder ? { d1Persist: folder } : {}),
});
const end = async () => {
  await server.dispose();
  process.exit();
};
process.stdin.on("end", end).on("error", end).resume();
process.on("SIGTERM", end);
console.log(String(await server.ready));
