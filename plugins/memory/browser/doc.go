// Package browser has the memory of tea in a browser: the engine wasm, which stores
// everything in IndexedDB. Begin with Bundle, which exists for js/wasm only.
//
// The worker that runs tea loads packages/browser/memory.js first. One page or worker
// writes to a database at a time, others read; the next one can write when it ends.
package browser
