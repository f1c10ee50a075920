package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
	"github.com/the-edge-agent/tea/sdk/x/filelock"
)

const (
	// ledgerFormat is the version of the format of the file.
	ledgerFormat = 1
	// compactSize is the size above which the file is compacted, if most of it is
	// obsolete.
	compactSize = 1 << 20
	// lazySync bounds how long a change that nobody waits for stays unsynced.
	lazySync = time.Second
	// growth is the size by which the file is extended. A write into the extension
	// changes neither its size nor its blocks, so it does not wait for the journal of
	// the file system, which the checkpoints of runs keep busy.
	growth = 256 << 10
)

// ledger is the state of the server on disk: a file to which changes are
// appended. Several changes share one sync. The holder of mu owns the state.
type ledger struct {
	path string

	mu    sync.Mutex
	state ledgerState
	// next is the batch that collects changes; nil if there are none.
	next *batch
	wake chan struct{}
	done chan struct{}
	// version grows with each addition, also over restarts of the server; changed is closed at the next one, nil if nobody
	// waits for it.
	version int64
	changed chan struct{}
	touched touched
	// closed reports whether nothing can be appended; failed is the error of the last
	// write.
	closed bool
	failed error
	// home identifies the directory that contained the file when it was opened.
	home os.FileInfo

	// Only the writer uses file. size is the size of its content, and live the size
	// after compaction; zeros follow up to allocated. The file is synced up to safe, and
	// recordedSafe is the value of safe that it records. lost reports that the file lacks
	// changes because it was removed or a write failed. info identifies the file.
	file               *os.File
	info               os.FileInfo
	size, live         int64
	allocated          int64
	safe, recordedSafe int64
	lost               bool
	// fresh reports whether there was no file.
	fresh bool
	// cut is the size of the torn tail that was removed on opening, without zeros.
	cut int64
}

// batch is a group of changes that are written together.
type batch struct {
	text []byte
	// sync reports whether a caller waits for the disk.
	sync    bool
	written chan struct{}
	err     error
}

// wait returns when the changes are synced.
func (b *batch) wait() error {
	<-b.written
	return b.err
}

// openLedger reads the file and starts the writer. A torn tail, as after a power
// failure, is removed.
func openLedger(path string) (*ledger, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	l := &ledger{path: path, state: newLedgerState(), version: time.Now().UnixMilli(), wake: make(chan struct{}, 1), done: make(chan struct{})}
	l.touched.floor = l.version
	if err := l.read(); err != nil {
		return nil, err
	}
	l.state.renewKeys(time.Now().Round(0))
	var err error
	if l.home, err = os.Stat(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if l.failed = l.compact(); l.failed != nil { // the disk may be full
		if l.open() != nil {
			return nil, l.failed
		}
		l.lost = true // it is retried
	}
	go l.write()
	return l, nil
}

// read reads the entries of the file.
func (l *ledger) read() error {
	f, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		l.fresh = true
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	begun, chained := false, false // a file is created together with its first line
	in := bufio.NewReaderSize(f, 1<<16)
	offset, torn := int64(0), int64(-1)
	for {
		whole, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		line := bytes.TrimLeft(whole, "\x00") // a killed server leaves zeros
		at := offset + int64(len(whole)-len(line))
		entries, ok := decodeLine(line)
		if !begun {
			if begun = ok && at == 0 && len(entries) == 1 && entries[0].Format > 0; !begun {
				return fmt.Errorf("%s is not a state file of tea serve, or its beginning is damaged; %s", l.path, moveAway)
			}
			chained = entries[0].Safe > 0
		}
		if len(line) > 0 {
			switch {
			case !ok && torn < 0:
				torn = at
			case ok && torn >= 0 && (!chained || slices.ContainsFunc(entries, func(e *entry) bool { return e.Safe > torn })):
				return fmt.Errorf("%s is damaged at byte %d; %s", l.path, torn, moveAway)
			}
		}
		for _, e := range entries {
			if e.Format > ledgerFormat {
				return fmt.Errorf("%s has the format %d, which a newer tea has written; this one reads up to %d", l.path, e.Format, ledgerFormat)
			}
			if torn < 0 {
				l.state.apply(e)
			}
		}
		if offset += int64(len(whole)); torn >= 0 && len(line) > 0 {
			l.cut = at + int64(len(bytes.TrimRight(line, "\x00"))) - torn
		} else if len(line) > 0 {
			l.size = offset
		}
		if err != nil {
			return nil
		}
	}
}

// moveAway is the hint for a file that cannot be read.
const moveAway = "move it away to start without the requests and positions in it"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendLine appends a line: the checksum of the JSON, and the JSON.
func appendLine(dst []byte, entries ...*entry) ([]byte, error) {
	text, err := json.Marshal(entries)
	if err != nil {
		return dst, err
	}
	dst = fmt.Appendf(dst, "%08x ", crc32.Checksum(text, castagnoli))
	return append(append(dst, text...), '\n'), nil
}

func decodeLine(line []byte) (entries []*entry, ok bool) {
	line, whole := bytes.CutSuffix(line, []byte("\n"))
	sum, text, found := bytes.Cut(line, []byte(" "))
	if !whole || !found || string(sum) != fmt.Sprintf("%08x", crc32.Checksum(text, castagnoli)) || json.Unmarshal(text, &entries) != nil {
		return nil, false
	}
	return entries, true
}

// open opens the file and removes its torn tail.
func (l *ledger) open() error {
	f, err := os.OpenFile(l.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		l.live, l.allocated = l.size, l.size
		err = f.Truncate(l.size)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.info = f, info
	return nil
}

// unwritable is the reason why the state cannot be written.
type unwritable struct{ err error }

func (e *unwritable) Error() string {
	return "the state of the server cannot be written: " + e.err.Error()
}
func (e *unwritable) Unwrap() error { return e.err }

// errMoved reports that the directory of the state was moved or replaced.
var errMoved = errors.New("its directory was moved or removed; restart tea serve")

// check returns an error if changes cannot be written now. The caller holds mu.
func (l *ledger) check() error {
	err := l.failed
	if err == nil {
		err = l.moved()
	}
	if err != nil {
		return &unwritable{withoutPath(err)}
	}
	return nil
}

// moved returns an error if the directory of the file was moved or replaced.
func (l *ledger) moved() error {
	if home, err := os.Stat(filepath.Dir(l.path)); err != nil || !os.SameFile(home, l.home) {
		return errMoved
	}
	return nil
}

// checkRemoved sets lost if the file was removed. Only the writer calls it.
func (l *ledger) checkRemoved() {
	if info, err := os.Stat(l.path); err != nil || !os.SameFile(info, l.info) {
		l.lost = true
	}
}

// withoutPath returns the cause of an error that names a file.
func withoutPath(err error) error {
	var link *os.LinkError
	var path *os.PathError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// errLedgerClosed reports that the server has stopped.
var errLedgerClosed = errors.New("the server has stopped")

// add applies changes and queues them to be written. The caller holds mu. If sync
// is set, the caller then releases mu and waits for the batch.
func (l *ledger) add(sync bool, entries ...*entry) (*batch, error) {
	if l.closed {
		return nil, errLedgerClosed
	}
	if l.next == nil {
		l.next = &batch{written: make(chan struct{})}
	}
	b := l.next
	b.sync = b.sync || sync
	if len(entries) > 0 {
		text, err := appendLine(b.text, entries...)
		if err != nil {
			return nil, fmt.Errorf("encode the state of the server: %w", err)
		}
		b.text = text
	}
	var ids []string
	for _, e := range entries {
		l.state.apply(e)
		ids = append(ids, e.ids()...)
	}
	l.touch(ids)
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return b, nil
}

// touch notifies those who wait for changes, of runs and others. The caller holds mu.
func (l *ledger) touch(ids []string) {
	l.version++
	l.touched.add(l.version, ids...)
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// write writes batches until the ledger is closed.
func (l *ledger) write() {
	defer close(l.done)
	lazy := time.NewTimer(lazySync)
	defer lazy.Stop()
	armed := true
	arm := func() {
		if !armed { // otherwise steady changes would postpone it forever
			lazy.Reset(lazySync)
			armed = true
		}
	}
	for {
		select {
		case <-l.wake:
		case <-lazy.C:
			armed = false
			err := l.syncOrRewrite()
			if l.report(err); err != nil {
				arm()
			}
			continue
		}
		l.mu.Lock()
		b, closed := l.next, l.closed
		l.next = nil
		l.mu.Unlock()
		if b != nil {
			err := l.put(b)
			if err != nil || !b.sync {
				arm()
			}
			if l.report(err); err != nil {
				b.err = &unwritable{withoutPath(err)}
			}
			close(b.written)
		}
		if closed {
			_ = errors.Join(l.syncOrRewrite(), l.file.Truncate(l.size), l.file.Close()) // callers that waited for lost changes got an error
			return
		}
		if l.size > compactSize && l.size > 4*l.live {
			l.mu.Lock()
			if l.compact() != nil {
				l.live = l.size // retry after further growth
			}
			l.mu.Unlock()
		}
	}
}

// report records the outcome of the last write.
func (l *ledger) report(err error) {
	l.mu.Lock()
	l.failed = err
	l.mu.Unlock()
}

// syncOrRewrite syncs changes that nobody waits for, and rewrites a file that lacks
// changes.
func (l *ledger) syncOrRewrite() error {
	if l.checkRemoved(); !l.lost {
		return l.sync()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.compact()
}

// sync syncs the written changes.
func (l *ledger) sync() error {
	if l.safe == l.size {
		return nil
	}
	err := atomicfile.SyncData(l.file)
	if err == nil {
		l.safe = l.size
	}
	return err
}

// put writes a batch, and syncs it if a caller waits. After an error the file has
// no part of it.
func (l *ledger) put(b *batch) error {
	if l.checkRemoved(); l.lost {
		return l.syncOrRewrite()
	}
	text := b.text
	if l.safe > l.recordedSafe {
		line, err := appendLine(nil, &entry{Safe: l.safe})
		if err != nil {
			return err
		}
		text = append(line, text...)
	}
	if end := l.size + int64(len(text)); end > l.allocated {
		l.grow(end + growth)
	}
	n, err := l.file.WriteAt(text, l.size)
	if err == nil {
		l.size += int64(len(text))
		l.allocated = max(l.allocated, l.size)
		l.recordedSafe = l.safe
		if b.sync {
			err = l.sync()
		}
		if err == nil {
			return nil
		}
		l.size -= int64(len(text))
	}
	if l.lost = true; n > 0 {
		l.allocated = l.size
		err = errors.Join(err, l.file.Truncate(l.size))
	}
	return err
}

// grow extends the file for further changes. If the disk is full, it has no effect.
func (l *ledger) grow(size int64) {
	_, err := l.file.WriteAt(make([]byte, size-l.size), l.size)
	if err == nil {
		err = atomicfile.SyncData(l.file)
	}
	if err == nil {
		l.allocated, l.safe = size, l.size
		return
	}
	_ = l.file.Truncate(l.size) // the next write reports the error
	l.allocated = l.size
}

// compact replaces the file with one that has only the state. The caller holds mu, or
// is the only user.
func (l *ledger) compact() error {
	if err := l.moved(); err != nil {
		return err
	}
	text, err := appendLine(nil, &entry{Format: ledgerFormat, Safe: 1})
	for _, e := range l.state.entries(time.Now()) {
		if err == nil {
			text, err = appendLine(text, e)
		}
	}
	if err == nil {
		text, err = appendLine(text, &entry{Safe: int64(len(text))})
	}
	if err != nil {
		return err
	}
	err = atomicfile.Write(l.path, 0o600, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(l.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if l.file != nil {
		_ = l.file.Close() // it was replaced
	}
	l.info = info
	l.file, l.size, l.live, l.lost = f, int64(len(text)), int64(len(text)), false
	l.allocated, l.safe, l.recordedSafe = l.size, l.size, l.size
	if l.next != nil { // the new file has its changes
		b := l.next
		l.next = nil
		close(b.written)
	}
	return nil
}

// close writes the remaining changes.
func (l *ledger) close() {
	l.mu.Lock()
	already := l.closed
	l.closed = true
	l.mu.Unlock()
	if already {
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
	<-l.done
}

// lock makes this process the only server of the directory of runs until the returned
// file is closed.
func lock(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := filelock.Open(path)
	if errors.Is(err, filelock.ErrLocked) {
		return nil, fmt.Errorf("another tea serve uses the directory of runs %s; name another one with -c", strings.TrimSuffix(filepath.Dir(path), string(filepath.Separator)+stateDir))
	}
	return f, err
}
