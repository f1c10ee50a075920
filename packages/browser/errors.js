import { parse } from './json.js';

const types = { ENOENT: 'not_found', EROFS: 'permission_denied', ENOSPC: 'resource_exhausted', EIO: 'connection_error' };
const texts = { ENOENT: 'does not exist', EISDIR: 'is a directory', ENOTDIR: 'is not a directory', EEXIST: 'exists', EROFS: 'cannot be written: another page owns the storage' };

/** TeaError is every failure of this package. */
export class TeaError extends Error {
  constructor({ type, message, retryable = false, retry_after, source, details, node, path, diagnostics }, more) {
    super(message);
    this.name = 'TeaError';
    Object.assign(this, { type, retryable, retryAfter: retry_after, source, details, node, path, diagnostics }, more);
  }
}

/** Converts a failure of the file system. */
export const fileError = (code, message, path) => new TeaError({ type: types[code] ?? 'validation_error', message: `${path}: ${message === code && texts[code] ? texts[code] : message}` });

/** Returns the failure of a call with wrong parameters. */
export const misuse = (message) => new TeaError({ type: 'validation_error', message });

/** Throws for options that do not exist or have another type than types has. */
export function checkOptions(of, options, types) {
  if (options === null || typeof options !== 'object' || Array.isArray(options)) throw misuse(`the options of ${of} are an object, not ${options}`);
  for (const [name, value] of Object.entries(options)) {
    const type = types[name];
    if (!type) throw misuse(`${of} has no option ${name}; it has ${Object.keys(types).join(', ')}`);
    if (value != null && !type.split('|').includes(Array.isArray(value) ? 'array' : typeof value)) throw misuse(`the option ${name} of ${of} is not of the type ${type.replaceAll('|', ' or ')}`);
  }
}

/** Returns the result of an answer, or throws its error. */
export function resultOf(text) {
  const answer = parse(text);
  if (answer.error) throw new TeaError(answer.error);
  return answer.result;
}
