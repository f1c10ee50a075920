// Runs the test binary of the package, whose arguments are in the query.
importScripts("/wasm_exec.js", "/memory.js");
const query = new URLSearchParams(location.search);
const id = query.get("id");
let output = "";
const decoder = new TextDecoder();
globalThis.fs.writeSync = (fd, bytes) => {
  output += decoder.decode(bytes, { stream: true });
  return bytes.length;
};
globalThis.fs.write = (fd, bytes, offset, length, position, done) => done(null, globalThis.fs.writeSync(fd, bytes.slice(offset, offset + length)));
globalThis.testReport = (line) => fetch("/report?id=" + id, { method: "POST", body: line });
const report = (code) => fetch("/done?id=" + id, { method: "POST", body: JSON.stringify({ code, output }) });
const go = new Go();
go.argv = ["browser.test", ...JSON.parse(query.get("args"))];
go.env = { HOME: "/", TMPDIR: "/tmp", ...JSON.parse(query.get("env") || "{}") };
go.exit = report;
onerror = (e) => { output += String(e.message || e); report(2); };
WebAssembly.instantiateStreaming(fetch("/browser.wasm"), go.importObject)
  .then((r) => go.run(r.instance))
  .catch((e) => { output += String(e.stack || e); report(2); });
