import { isInteger, isSafeNumber, LosslessNumber, parse as parseLossless } from "lossless-json";
import { ActionError } from "./error.js";

/** The largest JSON text of parameters or a result. */
export const MAX_PAYLOAD = 64 << 20;

// JSON.parse is exact for a text without a number of 16 digits.
const LONG_NUMBER = /[0-9]{16}/;

const toNumber = (text) => (isInteger(text) && !isSafeNumber(text) ? BigInt(text) : Number(text));

/**
 * Parses JSON text. An integer that a number cannot represent becomes a BigInt.
 * With exact, each number becomes a LosslessNumber, which keeps its text: 3.0
 * stays different from 3.
 */
export function parse(text, { exact = false } = {}) {
  const source = text.toString();
  if (exact) return parseLossless(source);
  return LONG_NUMBER.test(source) ? parseLossless(source, null, toNumber) : JSON.parse(source);
}

/** Returns a value as JSON text in a Buffer. what names it in errors. */
export function encode(value, what) {
  const text = Buffer.from(stringify(value, what) ?? "null");
  if (text.length > MAX_PAYLOAD) {
    throw new ActionError("validation_error", `${what}: ${text.length} bytes exceed the limit of ${MAX_PAYLOAD} (64 MiB)`);
  }
  return text;
}

/** JSON.stringify with BigInt and LosslessNumber; NaN and infinity are errors. */
function stringify(value, what) {
  if (typeof value?.toJSON === "function") value = value.toJSON();
  switch (typeof value) {
    case "bigint":
      return value.toString();
    case "number":
      if (Number.isFinite(value)) return JSON.stringify(value);
      throw new ActionError("validation_error", `${what}: JSON has no number ${value}`);
    case "object":
      break;
    default:
      return JSON.stringify(value);
  }
  if (value === null) return "null";
  if (value instanceof LosslessNumber) return value.toString();
  if (Array.isArray(value)) return `[${value.map((item) => stringify(item, what) ?? "null").join()}]`;
  const members = [];
  for (const [key, member] of Object.entries(value)) {
    const text = stringify(member, what);
    if (text !== undefined) members.push(`${JSON.stringify(key)}:${text}`);
  }
  return `{${members.join()}}`;
}
