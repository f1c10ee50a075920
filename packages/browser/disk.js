// Disk keeps the files of a FileSystem in a database of IndexedDB. A commit is
// one transaction: after a crash all of it is there, or nothing.

/** The size of the pieces in which contents are stored. */
export const chunkSize = 64 * 1024;

const promised = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

export async function openDisk(name) {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => {
    request.result.createObjectStore('nodes', { keyPath: 'ino' });
    request.result.createObjectStore('chunks');
  };
  return new Disk(await promised(request));
}

class Disk {
  constructor(db) {
    this.db = db;
    db.onversionchange = () => db.close(); // the database is deleted
  }

  #begin(...args) {
    try {
      return this.db.transaction(...args);
    } catch (e) {
      throw Object.assign(new Error(`the browser has closed the storage, whose data were deleted; call openTea again: ${e.message}`), { code: 'EIO' });
    }
  }

  /** Returns all nodes, without contents. */
  nodes() {
    return promised(this.#begin('nodes').objectStore('nodes').getAll());
  }

  /** Returns the node as it is stored, undefined if it is not, and its content. */
  async content(ino) {
    const range = IDBKeyRange.bound([ino, 0], [ino, Infinity]);
    const t = this.#begin(['nodes', 'chunks']);
    const store = t.objectStore('chunks');
    const [node, keys, chunks] = await Promise.all([promised(t.objectStore('nodes').get(ino)), promised(store.getAllKeys(range)), promised(store.getAll(range))]);
    const size = node?.size ?? 0;
    const data = new Uint8Array(size);
    keys.forEach(([, i], n) => {
      const at = i * chunkSize;
      if (at < size) data.set(chunks[n].subarray(0, size - at), at);
    });
    return { node, data };
  }

  /** Stores nodes and chunks, and removes others, atomically. */
  commit({ nodes, chunks, removed }) {
    return new Promise((resolve, reject) => {
      const t = this.#begin(['nodes', 'chunks'], 'readwrite', { durability: 'strict' });
      t.oncomplete = () => resolve();
      t.onabort = () => reject(t.error);
      const n = t.objectStore('nodes'), c = t.objectStore('chunks');
      for (const node of nodes) n.put(node);
      for (const [key, data] of chunks) c.put(data, key);
      for (const ino of removed) {
        n.delete(ino);
        c.delete(IDBKeyRange.bound([ino, 0], [ino, Infinity]));
      }
      t.commit();
    });
  }

  close() {
    this.db.close();
  }
}
