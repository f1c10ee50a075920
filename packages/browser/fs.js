// FileSystem is what Go's port for JavaScript expects as globalThis.fs: node's
// functions with callbacks. The tree is in memory; a Disk, if there is one, keeps
// it. fsync waits for the disk, everything else is written a moment later.

import { chunkSize } from './disk.js';

const O = { O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_CREAT: 64, O_EXCL: 128, O_TRUNC: 512, O_APPEND: 1024, O_DIRECTORY: 65536 };
const directory = 0o040000, regular = 0o100000, kind = 0o170000;
const writeDelay = 50; // ms until a change without fsync is written

const failure = (code, message = code) => Object.assign(new Error(message), { code });

export class FileSystem {
  constants = O;

  #nodes = new Map(); // by ino
  #open = new Map(); // by descriptor
  #lastIno = 1;
  #lastFd = 99;
  #disk = null;
  #dirty = new Map(); // ino -> set of chunks
  #removed = new Set();
  #commit = Promise.resolve();
  #next = null; // the commit that waits for the one in progress
  #timer = 0;
  #output;
  #partial = '';

  /** writable is false while another tab owns the disk. */
  writable = true;

  /** output gets the lines that are written to stdout and stderr. */
  constructor(output) {
    this.#output = output;
    this.#reset();
    for (const name of ['open', 'close', 'fstat', 'stat', 'lstat', 'mkdir', 'readdir', 'unlink', 'rmdir', 'rename', 'ftruncate', 'truncate', 'read', 'fsync', 'chmod', 'fchmod', 'utimes', 'chown', 'fchown', 'lchown', 'link', 'symlink', 'readlink']) {
      this[name] = this.#withCallback(this[`_${name}`]);
    }
  }

  #reset() {
    this.#nodes = new Map([[1, { ino: 1, mode: directory | 0o700, mtime: Date.now(), entries: {} }]]);
    this.#lastIno = 1;
    this.#dirty.clear();
    this.#removed.clear();
  }

  /** Reads the tree of a disk, which keeps it from now on. */
  async mount(disk) {
    const nodes = await disk.nodes();
    this.#disk = disk;
    this.#reset();
    for (const node of nodes) {
      this.#nodes.set(node.ino, node);
      this.#lastIno = Math.max(this.#lastIno, node.ino);
    }
    const reached = new Set([1]);
    for (const ino of reached) {
      for (const child of Object.values(this.#nodes.get(ino)?.entries ?? {})) reached.add(child);
    }
    for (const ino of this.#nodes.keys()) {
      if (!reached.has(ino)) this.#drop(ino); // it was removed while it was open
    }
  }

  /** Reports whether files are open. */
  get busy() {
    return this.#open.size > 0;
  }

  /** Waits until everything that has changed is on the disk. Calls during a commit share the next one. */
  flush() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#next ??= this.#commit = this.#commit.catch(() => {}).then(() => {
      this.#next = null;
      return this.#write();
    });
    return this.#next;
  }

  async #write() {
    if (!this.#disk || !this.writable || (this.#dirty.size === 0 && this.#removed.size === 0)) return;
    const dirty = this.#dirty, removed = this.#removed;
    this.#dirty = new Map();
    this.#removed = new Set();
    const nodes = [], chunks = [];
    for (const [ino, pieces] of dirty) {
      const { data, open, unlinked, loading, ...node } = this.#nodes.get(ino);
      nodes.push(node);
      for (const i of pieces) {
        if (i * chunkSize < node.size) chunks.push([[ino, i], data.slice(i * chunkSize, Math.min((i + 1) * chunkSize, node.size))]);
      }
    }
    try {
      await this.#disk.commit({ nodes, chunks, removed });
    } catch (e) {
      for (const [ino, pieces] of dirty) {
        if (!this.#removed.has(ino)) this.#dirty.set(ino, new Set([...pieces, ...(this.#dirty.get(ino) ?? [])]));
      }
      for (const ino of removed) this.#removed.add(ino);
      throw e.name === 'QuotaExceededError' ? failure('ENOSPC', e.message) : failure('EIO', e.message);
    }
    for (const ino of dirty.keys()) this.#forget(this.#nodes.get(ino));
  }

  // forget drops the content of a file that the disk has and no one uses.
  #forget(node) {
    if (this.#disk && node?.data && !node.open && !this.#dirty.has(node.ino)) delete node.data;
  }

  #changed(node, from = 0, to = 0) {
    node.mtime = Date.now();
    let pieces = this.#dirty.get(node.ino);
    if (!pieces) this.#dirty.set(node.ino, (pieces = new Set()));
    for (let i = Math.floor(from / chunkSize); i * chunkSize < to; i++) pieces.add(i);
    if (this.#disk && !this.#timer) this.#timer = setTimeout(() => this.flush().catch((e) => this.#output(`the disk: ${e.message}`)), writeDelay);
  }

  #drop(ino) {
    this.#nodes.delete(ino);
    this.#dirty.delete(ino);
    this.#removed.add(ino);
  }

  // withCallback makes a function that returns or throws one with a callback.
  #withCallback(fn) {
    return (...args) => {
      const done = args.pop();
      const fail = (e) => done(typeof e.code === 'string' ? e : failure('EIO', e.message)); // Go panics on others
      let result;
      try {
        result = fn.apply(this, args);
      } catch (e) {
        queueMicrotask(() => fail(e));
        return;
      }
      if (result instanceof Promise) result.then((r) => done(null, r), fail);
      else queueMicrotask(() => done(null, result));
    };
  }

  #parts(path) {
    const parts = [];
    for (const name of path.split('/')) {
      if (name === '..') parts.pop();
      else if (name !== '' && name !== '.') parts.push(name);
    }
    return parts;
  }

  #find(parts) {
    let node = this.#nodes.get(1);
    for (const name of parts) {
      if (!node.entries) throw failure('ENOTDIR');
      node = Object.hasOwn(node.entries, name) ? this.#nodes.get(node.entries[name]) : undefined;
      if (!node) throw failure('ENOENT');
    }
    return node;
  }

  // place returns the directory of a path, which is going to change, and the name
  // and the node there, if there is one.
  #place(path, changes = true) {
    const parts = this.#parts(path), name = parts.pop();
    if (name === undefined) throw failure('EEXIST');
    const dir = this.#find(parts);
    if (!dir.entries) throw failure('ENOTDIR');
    if (changes) this.#mustWrite();
    return { dir, name, node: Object.hasOwn(dir.entries, name) ? this.#nodes.get(dir.entries[name]) : undefined };
  }

  #mustWrite() {
    if (!this.writable) throw failure('EROFS', 'another tab owns the files');
  }

  #add({ dir, name }, node) {
    node.ino = ++this.#lastIno;
    this.#nodes.set(node.ino, node);
    dir.entries[name] = node.ino;
    this.#changed(node);
    this.#changed(dir);
    return node;
  }

  #remove({ dir, name, node }) {
    delete dir.entries[name];
    this.#changed(dir);
    if (node.open) node.unlinked = true;
    else this.#drop(node.ino);
  }

  #file(fd) {
    const file = this.#open.get(fd);
    if (!file) throw failure('EBADF');
    return file;
  }

  #stat(node) {
    const directory = Boolean(node.entries);
    return {
      dev: 1, ino: node.ino, mode: node.mode, nlink: 1, uid: 0, gid: 0, rdev: 0, size: directory ? 0 : node.size, blksize: 4096, blocks: 0,
      atimeMs: node.mtime, mtimeMs: node.mtime, ctimeMs: node.mtime, isDirectory: () => directory,
    };
  }

  // load reads the content of a node. Its users share it.
  async #load(node) {
    if (node.data) return;
    node.loading ??= this.#disk
      .content(node.ino)
      .then(({ node: stored, data }) => {
        // While another tab owns the disk, it can have changed the file.
        if (!stored || stored.entries) throw failure('ENOENT');
        Object.assign(node, { size: stored.size, data });
      })
      .finally(() => delete node.loading);
    await node.loading;
  }

  #resize(node, size) {
    if (size > node.data.length) {
      const data = new Uint8Array(Math.max(size, node.data.length * 2, 4096));
      data.set(node.data.subarray(0, node.size));
      node.data = data;
    }
    node.data.fill(0, Math.min(size, node.size), Math.max(size, node.size));
    this.#changed(node, Math.min(size, node.size), Math.max(size, node.size));
    node.size = size;
  }

  _open(path, flags, mode) {
    let node;
    if (flags & O.O_CREAT) {
      const place = this.#place(path, false);
      node = place.node;
      if (node && flags & O.O_EXCL) throw failure('EEXIST');
      if (!node) {
        this.#mustWrite();
        node = this.#add(place, { mode: regular | (mode & 0o777), mtime: 0, size: 0, data: new Uint8Array(0) });
      }
    } else {
      node = this.#find(this.#parts(path));
    }
    if (node.entries ? flags & 3 : flags & O.O_DIRECTORY) throw failure(node.entries ? 'EISDIR' : 'ENOTDIR');
    if (flags & 3) this.#mustWrite();
    node.open = (node.open ?? 0) + 1;
    const opened = () => {
      if (flags & O.O_TRUNC && node.size) this.#resize(node, 0);
      this.#open.set(++this.#lastFd, { node, flags, at: 0 });
      return this.#lastFd;
    };
    return node.entries || node.data ? opened() : this.#load(node).then(opened);
  }

  _close(fd) {
    const { node } = this.#file(fd);
    this.#open.delete(fd);
    if (--node.open === 0) {
      delete node.open;
      if (node.unlinked) this.#drop(node.ino);
      else this.#forget(node);
    }
  }

  _read(fd, buffer, offset, length, position) {
    const file = this.#file(fd), { node } = file;
    if (node.entries) throw failure('EISDIR');
    const at = position == null ? file.at : Number(position);
    const n = Math.max(0, Math.min(length, node.size - at));
    buffer.set(node.data.subarray(at, at + n), offset);
    if (position == null) file.at += n;
    return n;
  }

  write(fd, buffer, offset, length, position, done) {
    let n = length;
    let error = null;
    try {
      if (fd === 1 || fd === 2) this.writeSync(fd, buffer.subarray(offset, offset + length));
      else this.#put(this.#file(fd), buffer.subarray(offset, offset + length), position);
    } catch (e) {
      [error, n] = [e, 0];
    }
    queueMicrotask(() => done(error, n, buffer));
  }

  #put(file, bytes, position) {
    const { node } = file;
    this.#mustWrite();
    let at = position == null ? file.at : Number(position);
    if (file.flags & O.O_APPEND) at = node.size;
    if (at + bytes.length > node.size) this.#resize(node, at + bytes.length);
    node.data.set(bytes, at);
    this.#changed(node, at, at + bytes.length);
    if (position == null) file.at = at + bytes.length;
  }

  writeSync(_fd, bytes) {
    this.#partial += new TextDecoder().decode(bytes);
    const lines = this.#partial.split('\n');
    this.#partial = lines.pop();
    for (const line of lines) this.#output(line);
    return bytes.length;
  }

  _fstat(fd) {
    return this.#stat(this.#file(fd).node);
  }

  _stat(path) {
    return this.#stat(this.#find(this.#parts(path)));
  }

  _lstat(path) {
    return this._stat(path);
  }

  _mkdir(path, mode) {
    const place = this.#place(path);
    if (place.node) throw failure('EEXIST');
    this.#add(place, { mode: directory | (mode & 0o777), mtime: 0, entries: {} });
  }

  _readdir(path) {
    const node = this.#find(this.#parts(path));
    if (!node.entries) throw failure('ENOTDIR');
    return Object.keys(node.entries);
  }

  _unlink(path) {
    const place = this.#place(path);
    if (!place.node) throw failure('ENOENT');
    if (place.node.entries) throw failure('EISDIR');
    this.#remove(place);
  }

  _rmdir(path) {
    const place = this.#place(path);
    if (!place.node) throw failure('ENOENT');
    if (!place.node.entries) throw failure('ENOTDIR');
    if (Object.keys(place.node.entries).length) throw failure('ENOTEMPTY');
    this.#remove(place);
  }

  _rename(from, to) {
    const a = this.#place(from), b = this.#place(to);
    if (!a.node) throw failure('ENOENT');
    if (b.node === a.node) return;
    if (`${this.#parts(to).join('/')}/`.startsWith(`${this.#parts(from).join('/')}/`)) throw failure('EINVAL');
    if (b.node?.entries) {
      if (!a.node.entries) throw failure('EISDIR');
      if (Object.keys(b.node.entries).length) throw failure('ENOTEMPTY');
    } else if (b.node && a.node.entries) throw failure('ENOTDIR');
    if (b.node) this.#remove(b);
    delete a.dir.entries[a.name];
    b.dir.entries[b.name] = a.node.ino;
    this.#changed(a.dir);
    this.#changed(b.dir);
  }

  _ftruncate(fd, size) {
    this.#mustWrite();
    this.#resize(this.#file(fd).node, size);
  }

  async _truncate(path, size) {
    this.#mustWrite();
    const node = this.#find(this.#parts(path));
    await this.#load(node);
    this.#resize(node, size);
  }

  _fsync() {
    return this.flush();
  }

  _chmod(path, mode) {
    const node = this.#find(this.#parts(path));
    this.#mustWrite();
    node.mode = (node.mode & kind) | (mode & 0o777);
    this.#changed(node);
  }

  _utimes(path, _atime, mtime) {
    const node = this.#find(this.#parts(path));
    this.#mustWrite();
    this.#changed(node);
    node.mtime = mtime * 1000;
  }

  // There is one user, and there are no links.
  _fchmod() {}
  _chown() {}
  _fchown() {}
  _lchown() {}
  _link() {
    throw failure('ENOSYS');
  }
  _symlink() {
    throw failure('ENOSYS');
  }
  _readlink(path) {
    this._stat(path);
    throw failure('EINVAL');
  }

  /** Creates a directory and those above it. */
  makeDirs(path) {
    let at = '';
    for (const name of this.#parts(path)) {
      at += `/${name}`;
      try {
        this._mkdir(at, 0o700);
      } catch (e) {
        if (e.code !== 'EEXIST') throw e;
      }
    }
  }

  /** Returns the content of a file. */
  async readFile(path) {
    const node = this.#find(this.#parts(path));
    if (node.entries) throw failure('EISDIR');
    await this.#load(node);
    const data = node.data.slice(0, node.size);
    this.#forget(node);
    return data;
  }

  /** Replaces the content of a file, and waits until it is on the disk. */
  async writeFile(path, data) {
    const parts = this.#parts(path);
    this.makeDirs(parts.slice(0, -1).join('/'));
    const fd = await this._open(path, O.O_WRONLY | O.O_CREAT | O.O_TRUNC, 0o600);
    this.#put(this.#file(fd), data, 0);
    this._close(fd);
    await this.flush();
  }

  /** Removes a file, or a directory with everything in it. */
  async remove(path) {
    const place = this.#place(path);
    if (!place.node) throw failure('ENOENT');
    const clear = (dir) => {
      for (const [name, ino] of Object.entries(dir.entries ?? {})) {
        const node = this.#nodes.get(ino);
        clear(node);
        this.#remove({ dir, name, node });
      }
    };
    clear(place.node);
    this.#remove(place);
    await this.flush();
  }

  /** Lists a directory. */
  list(path) {
    const node = this.#find(this.#parts(path));
    if (!node.entries) throw failure('ENOTDIR');
    return Object.entries(node.entries).map(([name, ino]) => {
      const child = this.#nodes.get(ino);
      return { name, directory: Boolean(child.entries), size: child.entries ? 0 : child.size, modified: child.mtime };
    });
  }
}
