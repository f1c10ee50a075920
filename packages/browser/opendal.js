// Object storage through OpenDAL, compiled to WebAssembly: functions for
// openTea({objects}), as those of sync.js. OpenDAL signs a request and reads its
// answer, and the page makes it. Credentials are used for one request.

import { exchange, isOffline, locate, resolve, StorageError } from './storage.js';

export { StorageError };

let loading;

/** Loads OpenDAL, as the first request does. */
export const load = () => (loading ??= start());

async function start() {
  try {
    const opendal = await import('./opendal-glue.js');
    await opendal.default({ module_or_path: new URL('./opendal.wasm', import.meta.url) });
    return opendal.request;
  } catch (e) {
    loading = undefined;
    if (isOffline()) throw new StorageError('connection_error', 'offline', 'the device is offline');
    throw new StorageError('dependency_missing', 'opendal', `OpenDAL cannot be loaded: ${e.message}; this package was built without opendal.wasm, or the page does not serve it`, false);
  }
}

/** Amazon S3 and compatible services. */
export function s3({ region = 'us-east-1', endpoint, credentials }) {
  const address = endpoint ? { endpoint } : { endpoint: `https://s3.${region}.amazonaws.com`, style: 'virtual' };
  return driver({ service: 's3', region, ...address }, credentials, ({ accessKeyId, secretAccessKey }) => accessKeyId && secretAccessKey);
}

/** Azure Blob Storage. */
export function azure({ account, endpoint = `https://${account}.blob.core.windows.net`, credentials }) {
  return driver({ service: 'azblob', account, endpoint }, credentials, ({ accountKey, sasToken }) => accountKey || sasToken);
}

const types = { PermissionDenied: 'permission_denied', ConfigInvalid: 'validation_error', Unsupported: 'validation_error' };

const driver = (settings, credentials, complete) => async (request) => {
  const [perform, given] = await Promise.all([load(), resolve(credentials)]);
  const { bucket, key } = locate(request);
  // OpenDAL would look for others.
  if (!given || !complete(given)) throw new StorageError('permission_denied', 'credentials', 'the page has no credentials for the request', false);
  const { method, ifMatch, ifNoneMatch, body, immutable } = request;
  let answer, failure;
  const fetch = async (method, url, headers, body) => {
    try {
      answer = await exchange(new URL(url), { method, headers, body: body.length ? body : undefined, immutable });
    } catch (e) {
      throw (failure = e);
    }
    return [answer.status, [...answer.headers], answer.body];
  };
  try {
    const [version, content] = await perform({ ...given, sasToken: given.sasToken?.replace(/^\?/, ''), ...settings, bucket }, method, key, ifMatch, ifNoneMatch, body, fetch);
    return { status: answer.status, version: version ?? null, body: content };
  } catch (e) {
    if (failure) throw failure;
    if (answer && answer.status >= 300) return { status: answer.status, version: null, body: answer.body };
    throw new StorageError(types[e.name] ?? 'connection_error', 'opendal', `OpenDAL: ${e.message}`, false);
  }
};
