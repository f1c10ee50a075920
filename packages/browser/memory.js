// The part of tea's memory that calls IndexedDB and Web Locks. The worker that runs
// tea.wasm loads it first, as a module or with importScripts; it sets
// globalThis.teaMemory. Keys and values are byte strings, and several of them are
// passed in one array, each with its length in front (see idb.go).
"use strict";
(() => {
  const storeName = "pairs";
  const absent = 0xffffffff;

  const request = (r) => new Promise((resolve, reject) => {
    r.onsuccess = () => resolve(r.result);
    r.onerror = () => reject(r.error);
  });

  // reader reads the parts of an array.
  class Reader {
    constructor(bytes) {
      this.bytes = bytes;
      this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      this.at = 0;
    }
    get more() { return this.at < this.bytes.length; }
    // part returns a copy, since IndexedDB stores the whole buffer of a view.
    part() {
      const size = this.view.getUint32(this.at, true);
      this.at += 4;
      if (size === absent) return undefined;
      this.at += size;
      return this.bytes.slice(this.at - size, this.at);
    }
  }

  const pack = (parts) => {
    let size = 0;
    for (const p of parts) size += 4 + (p ? p.byteLength : 0);
    const bytes = new Uint8Array(size);
    const view = new DataView(bytes.buffer);
    let at = 0;
    for (const p of parts) {
      view.setUint32(at, p ? p.byteLength : absent, true);
      at += 4;
      if (!p) continue;
      bytes.set(p instanceof Uint8Array ? p : new Uint8Array(p), at);
      at += p.byteLength;
    }
    return bytes;
  };

  const opened = new Set();
  let tenures = 0; // counts the times that a lock was granted

  class Database {
    constructor(db, lockName) {
      this.db = db;
      opened.add(this);
      this.tenure = 0; // the number of the lock
      this.held = false;
      this.closed = false;
      this.asked = false;
      db.onversionchange = () => this.close();
      db.onclose = () => this.close(); // the user has cleared the site's data
      this.granted = new Promise((resolve) => {
        this.abort = new AbortController();
        navigator.locks.request(lockName, { signal: this.abort.signal }, () => {
          if (this.closed) return undefined;
          this.tenure = ++tenures;
          this.held = true;
          resolve();
          return new Promise((release) => { this.release = release; });
        }).catch(() => {}); // it was closed before it had the lock
      });
    }

    // lock returns the number of the tenure, 0 if another one has the lock. The first
    // call waits for a page that is just being closed.
    async lock() {
      if (!this.held && !this.asked) {
        this.asked = true;
        await Promise.race([this.granted, new Promise((r) => setTimeout(r, 2000))]);
      }
      return this.held ? this.tenure : 0;
    }

    async get(keys) {
      const store = this.db.transaction(storeName, "readonly").objectStore(storeName);
      const all = [];
      for (const r = new Reader(keys); r.more;) {
        const key = r.part();
        all.push(key.length === 0 ? undefined : request(store.get(key)));
      }
      return pack(await Promise.all(all));
    }

    async scan(from, to, limit) {
      const store = this.db.transaction(storeName, "readonly").objectStore(storeName);
      const range = IDBKeyRange.bound(from, to, false, true);
      const [keys, values] = await Promise.all([request(store.getAllKeys(range, limit)), request(store.getAll(range, limit))]);
      const parts = [];
      keys.forEach((key, i) => parts.push(key, values[i]));
      return pack(parts);
    }

    write(ops) {
      return new Promise((resolve, reject) => {
        const tx = this.db.transaction(storeName, "readwrite", { durability: "strict" });
        tx.oncomplete = () => resolve();
        tx.onabort = () => reject(tx.error || new DOMException("the transaction was aborted", "AbortError"));
        const store = tx.objectStore(storeName);
        for (const r = new Reader(ops); r.more;) {
          const key = r.part(), to = r.part(), value = r.part();
          if (to) store.delete(IDBKeyRange.bound(key, to, false, true));
          else if (value) store.put(value, key);
          else store.delete(key);
        }
      });
    }

    close() {
      if (this.closed) return;
      this.closed = true;
      opened.delete(this);
      this.held = false;
      this.db.close();
      if (this.release) this.release();
      else this.abort.abort();
    }
  }

  globalThis.teaMemory = {
    async open(name) {
      if (!globalThis.navigator || !navigator.locks) throw new DOMException("Web Locks need a page from https or localhost", "SecurityError");
      const opening = indexedDB.open(name, 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore(storeName);
      return new Database(await request(opening), name);
    },
    /** Closes all databases. */
    close() {
      for (const database of opened) database.close();
    },
    remove: (name) => request(indexedDB.deleteDatabase(name)),
  };
})();
