/** A request for an object of the storage that the memory synchronises with. */
export interface ObjectRequest {
  /** The address in the settings, such as s3://bucket/prefix. */
  url: string;
  method: 'GET' | 'PUT' | 'DELETE';
  /** The name of the object, below the prefix. */
  name: string;
  /** The version that the object must have. */
  ifMatch?: string;
  /** The version that the object must not have; `*` = it must not exist. */
  ifNoneMatch?: string;
  body?: Uint8Array<ArrayBuffer>;
  /** The object never changes, so it can come from a cache. */
  immutable: boolean;
}

export interface ObjectAnswer {
  /** The status of HTTP: 304, 404 and 412 are answers, not failures. */
  status: number;
  /** The object's ETag. */
  version: string | null;
  body?: Uint8Array;
}

/** Makes the requests of the synchronisation, for openTea({objects}). */
export type Objects = (request: ObjectRequest) => Promise<ObjectAnswer>;

/** A request had no answer. An Objects of your own throws one too. */
export class StorageError extends Error {
  constructor(type: string, reason: string, message: string, retryable?: boolean);
  readonly type: string;
  /** offline, signing, cors, unreachable, broken or address. */
  readonly reason: string;
  readonly retryable: boolean;
}

type Given<T> = T | (() => T | Promise<T>);

export interface S3Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

/** Amazon S3 and compatible services. A function returns credentials for each request. */
export function s3(options: { region?: string; endpoint?: string; credentials: Given<S3Credentials> }): Objects;

/** Azure Blob Storage, with the account's key or a shared access signature. */
export function azure(options: { account: string; endpoint?: string; credentials: Given<{ accountKey: string } | { sasToken: string }> }): Objects;

/** Any service, by addresses that a server of the page signs. */
export function presigned(
  sign: (request: { url: string; method: 'GET' | 'PUT' | 'DELETE'; name: string; bucket: string; key: string }) => Promise<string | { url: string; headers?: Record<string, string> }>,
): Objects;
