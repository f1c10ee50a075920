import { AsyncLocalStorage } from "node:async_hooks";
import { encode } from "./json.js";

const LEVELS = ["debug", "info", "warn", "error"];
const lowest = Math.max(LEVELS.indexOf((process.env.TEA_LOG_LEVEL ?? "info").toLowerCase()), 0);

/** The call in whose handler the current code runs. */
export const currentCall = new AsyncLocalStorage();

/**
 * Writes log records: within a handler to the run's log, elsewhere to stderr,
 * where the host reads each line as a record. console.log works too, but its
 * output has no level.
 */
export const log = Object.fromEntries(
  LEVELS.map((level, rank) => [
    level,
    (message, fields) => {
      if (rank < lowest) return;
      const write = () => writeRecord(level, message, fields);
      const call = currentCall.getStore();
      if (call) call.log(level, message, fields).catch(write);
      else write();
    },
  ]),
);

function writeRecord(level, message, fields = {}) {
  const record = { "@level": level, "@message": message, "@timestamp": new Date(), ...fields };
  process.stderr.write(`${encode(record, "log record")}\n`);
}
