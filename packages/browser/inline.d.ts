/** Runs the host in the calling thread: `openTea({worker: inlineWorker})` in a service worker. */
export function inlineWorker(): MessagePort;
