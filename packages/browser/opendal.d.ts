import type { azure as AzureDriver, s3 as S3Driver } from './sync.js';

export { StorageError } from './sync.js';

/** Loads OpenDAL, as the first request does. Fails with a StorageError of the type dependency_missing if the package was built without it. */
export function load(): Promise<unknown>;

/** Amazon S3 and compatible services, as s3 of `@tea/browser/sync`. */
export const s3: typeof S3Driver;

/** Azure Blob Storage, as azure of `@tea/browser/sync`. */
export const azure: typeof AzureDriver;
