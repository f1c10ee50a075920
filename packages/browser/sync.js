// Object storage for the synchronisation of the memory: functions for
// openTea({objects}). Each makes one request with the page's credentials, which
// neither reach the worker nor are stored.

import { exchange, locate, resolve, StorageError } from './storage.js';

export { StorageError };

/** Amazon S3 and compatible services. */
export function s3({ region = 'us-east-1', endpoint, credentials }) {
  return async (request) => {
    const { bucket, key } = locate(request);
    const path = (endpoint ? `/${encode(bucket)}` : '') + `/${encode(key)}`;
    const url = new URL(`${(endpoint ?? `https://${bucket}.s3.${region}.amazonaws.com`).replace(/\/$/, '')}${path}`);
    return send(url, request, await signS3(url, request, region, await resolve(credentials)));
  };
}

/** Azure Blob Storage. */
export function azure({ account, endpoint = `https://${account}.blob.core.windows.net`, credentials }) {
  return async (request) => {
    const { bucket, key } = locate(request);
    const url = new URL(`${endpoint.replace(/\/$/, '')}/${encode(bucket)}/${encode(key)}`);
    const { accountKey, sasToken } = await resolve(credentials);
    const headers = { 'x-ms-version': '2021-08-06', 'x-ms-date': new Date().toUTCString(), ...(request.method === 'PUT' && { 'x-ms-blob-type': 'BlockBlob' }) };
    if (sasToken) url.search = sasToken.replace(/^\?/, '');
    else headers.authorization = await signAzure(url, request, headers, account, accountKey);
    return send(url, request, headers);
  };
}

/**
 * Any service, by addresses that a server of the page has signed: sign gets the
 * request and returns the address, or {url, headers}.
 */
export function presigned(sign) {
  return async (request) => {
    const { bucket, key } = locate(request);
    const { url, method, name } = request;
    const signed = await resolve(() => sign({ url, method, name, bucket, key }));
    return typeof signed === 'string' ? send(new URL(signed), request, {}) : send(new URL(signed.url), request, signed.headers ?? {});
  };
}

// encode is encodeURIComponent for each part of a path, as signatures need it.
const encode = (path) => path.split('/').map((part) => encodeURIComponent(part).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)).join('/');

// send makes the request. The conditions are headers.
async function send(url, { ifMatch, ifNoneMatch, ...request }, headers) {
  const all = { ...headers, ...(ifMatch && { 'if-match': ifMatch }), ...(ifNoneMatch && { 'if-none-match': ifNoneMatch }) };
  const answer = await exchange(url, { ...request, headers: all });
  return { status: answer.status, version: answer.headers.get('etag'), body: answer.body };
}

const bytes = (text) => new TextEncoder().encode(text);
const hex = (buffer) => Array.from(new Uint8Array(buffer), (b) => b.toString(16).padStart(2, '0')).join('');
const sha256 = async (data) => hex(await crypto.subtle.digest('SHA-256', data));

async function hmac(key, text) {
  const imported = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  return new Uint8Array(await crypto.subtle.sign('HMAC', imported, bytes(text)));
}

// signS3 returns the headers with a signature of version 4.
async function signS3(url, { method, body }, region, { accessKeyId, secretAccessKey, sessionToken }) {
  const time = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const hash = await sha256(body ?? bytes(''));
  const headers = { 'x-amz-content-sha256': hash, 'x-amz-date': time, ...(sessionToken && { 'x-amz-security-token': sessionToken }) };
  const signed = { host: url.host, ...headers };
  const names = Object.keys(signed).sort();
  const canonical = [method, url.pathname, '', ...names.map((n) => `${n}:${signed[n]}`), '', names.join(';'), hash].join('\n');
  const scope = [time.slice(0, 8), region, 's3', 'aws4_request'];
  let key = bytes(`AWS4${secretAccessKey}`);
  for (const part of scope) key = await hmac(key, part);
  const signature = hex(await hmac(key, ['AWS4-HMAC-SHA256', time, scope.join('/'), await sha256(bytes(canonical))].join('\n')));
  return { ...headers, authorization: `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope.join('/')}, SignedHeaders=${names.join(';')}, Signature=${signature}` };
}

// signAzure returns the header of a signature with the account's key.
async function signAzure(url, { method, ifMatch, ifNoneMatch, body }, headers, account, accountKey) {
  const named = Object.keys(headers).sort().map((n) => `${n}:${headers[n]}`);
  const text = [method, '', '', body?.length || '', '', '', '', '', ifMatch ?? '', ifNoneMatch ?? '', '', '', ...named, `/${account}${url.pathname}`].join('\n');
  const key = Uint8Array.from(atob(accountKey), (c) => c.charCodeAt(0));
  return `SharedKey ${account}:${btoa(String.fromCharCode(...(await hmac(key, text))))}`;
}
