import { serve } from './serve.js';

/** Runs the host in this thread, for a service worker, which cannot start a worker. */
export function inlineWorker() {
  const { port1, port2 } = new MessageChannel();
  serve(port2);
  port1.terminate = () => port1.close();
  return port1;
}
