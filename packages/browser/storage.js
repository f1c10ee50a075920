// What the drivers of object storage share.

/** StorageError is what a request without an answer throws. */
export class StorageError extends Error {
  constructor(type, reason, message, retryable = true) {
    super(message);
    Object.assign(this, { name: 'StorageError', type, reason, retryable });
  }
}

export const isOffline = () => globalThis.navigator?.onLine === false;

/** Returns credentials or a signed address, for which a page often asks a server. */
export async function resolve(given) {
  try {
    return await (typeof given === 'function' ? given() : given);
  } catch (e) {
    if (e?.type) throw e;
    throw new StorageError('connection_error', isOffline() ? 'offline' : 'signing', `the page has not signed the request: ${e?.message ?? e}`);
  }
}

/** Returns the bucket and the key of a request's object. Devices take the same addresses (objstore.ParseAddress). */
export function locate({ url, name }) {
  const [, bucket, , prefix] = /^[a-z0-9]+:\/\/([^/:\0- \x7f?#%\\@*"<>|]+)(\/([^\0- \x7f?#%\\@*"<>|]*?)\/?)?$/i.exec(url) ?? [];
  const parts = prefix ? prefix.split('/') : [];
  if (!bucket || parts.some((part) => ['', '.', '..'].includes(part))) {
    throw new StorageError('validation_error', 'address', `${url} is not the address of a bucket, such as s3://bucket/prefix`, false);
  }
  return { bucket, key: [...parts, name].join('/') };
}

/** Makes a request of HTTP. */
export async function exchange(url, { method, headers, body, immutable }) {
  let response;
  try {
    response = await fetch(url, { method, headers, body, credentials: 'omit', redirect: 'error', referrerPolicy: 'no-referrer', cache: immutable ? 'force-cache' : 'no-store' });
  } catch (e) {
    throw await explain(url, e);
  }
  try {
    return { status: response.status, headers: response.headers, body: new Uint8Array(await response.arrayBuffer()) };
  } catch (e) {
    throw new StorageError('connection_error', 'broken', `the connection to ${url.host} broke: ${e.message}`);
  }
}

// explain finds out why fetch has failed, which browsers do not report: a request
// without CORS succeeds if the service can be reached.
async function explain(url, e) {
  if (isOffline()) return new StorageError('connection_error', 'offline', 'the device is offline');
  try {
    await fetch(url.origin, { mode: 'no-cors', credentials: 'omit', cache: 'no-store', referrerPolicy: 'no-referrer' });
  } catch {
    return new StorageError('connection_error', 'unreachable', `${url.host} cannot be reached, or the page's Content-Security-Policy does not allow it: ${e.message}`);
  }
  return new StorageError('permission_denied', 'cors', `${url.host} answers, but its CORS rules do not let this page use it; allow the origin ${globalThis.location?.origin}, the methods GET, PUT and DELETE and all headers, and expose ETag`, false);
}
