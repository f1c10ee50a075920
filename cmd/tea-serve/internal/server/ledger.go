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
	"strings"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

const (
	// ledgerFormat is the version of the format of the file.
	ledgerFormat = 1
	// compactSize is the size beyond which the file is compacted, if most of it is
	// obsolete.
	compactSize = 1 << 20
	// lazySync is how long a change that nobody waits for can be in the memory of
	// the kernel only.
	lazySync = time.Second
)

// entry is a change of the ledger. It sets a value, so applying it twice has no
// effect. A line of the ledger has the entries of one atomic change.
type entry struct {
	Format int       `json:"format,omitempty"`
	Item   *item     `json:"item,omitempty"`
	Try    *progress `json:"try,omitempty"`
	End    string    `json:"end,omitempty"`
	Drop   *dropped  `json:"drop,omitempty"`
	Over   *overRun  `json:"over,omitempty"`
	Gone   string    `json:"gone,omitempty"`
	Key    *keyUse   `json:"key,omitempty"`
	Fired  *firing   `json:"fired,omitempty"`
	File   *fileSeen `json:"file,omitempty"`
	Used   *dayUse   `json:"used,omitempty"`
}

// firing is the last time of a schedule.
type firing struct {
	Trigger string    `json:"trigger"`
	At      time.Time `json:"at"`
}

// fileSeen is a file that a trigger has processed; Stamp is "" if it is gone.
type fileSeen struct {
	Trigger string `json:"trigger"`
	Name    string `json:"name"`
	Stamp   string `json:"stamp,omitempty"`
}

// dropped is a run that was stopped before it began, so that it has no
// checkpoint.
type dropped struct {
	ID       string    `json:"id"`
	Workflow string    `json:"workflow"`
	Trigger  string    `json:"trigger,omitempty"`
	At       time.Time `json:"at"`
	Until    time.Time `json:"until"`
}

// overRun is what the server has of a run that has ended, as long as its checkpoint
// is kept.
type overRun struct {
	ID       string      `json:"id"`
	Trigger  string      `json:"trigger,omitempty"`
	At       time.Time   `json:"at"`
	Attempts int         `json:"attempts,omitempty"`
	Usage    *flow.Usage `json:"usage,omitempty"`
}

// keyUse is the run of a deduplication key.
type keyUse struct {
	Key   string    `json:"key"`
	Run   string    `json:"run"`
	Hash  string    `json:"hash,omitempty"`
	Until time.Time `json:"until"`
}

// dayUse is what the runs of a workflow have used on a day.
type dayUse struct {
	Day      string  `json:"day"`
	Workflow string  `json:"workflow"`
	Tokens   int64   `json:"tokens"`
	USD      float64 `json:"usd"`
}

// ledgerState is the sum of the entries.
type ledgerState struct {
	items map[string]*item
	drops map[string]*dropped
	over  map[string]*overRun
	keys  map[string]*keyUse
	fired map[string]time.Time
	files map[string]map[string]string
	used  map[string]*dayUse
}

func newLedgerState() ledgerState {
	return ledgerState{items: map[string]*item{}, drops: map[string]*dropped{}, over: map[string]*overRun{}, keys: map[string]*keyUse{}, fired: map[string]time.Time{}, files: map[string]map[string]string{}, used: map[string]*dayUse{}}
}

func (s *ledgerState) apply(e *entry) {
	if e.Item != nil {
		s.items[e.Item.ID] = e.Item
	}
	if e.Try != nil {
		if it := s.items[e.Try.ID]; it != nil {
			it.progress = *e.Try
		}
	}
	if e.End != "" {
		delete(s.items, e.End)
	}
	if e.Drop != nil {
		s.drops[e.Drop.ID] = e.Drop
	}
	if e.Over != nil {
		s.over[e.Over.ID] = e.Over
	}
	delete(s.over, e.Gone)
	if e.Key != nil {
		s.keys[e.Key.Key] = e.Key
	}
	if e.Fired != nil {
		s.fired[e.Fired.Trigger] = e.Fired.At
	}
	if f := e.File; f != nil {
		if s.files[f.Trigger] == nil {
			s.files[f.Trigger] = map[string]string{}
		}
		s.files[f.Trigger][f.Name] = f.Stamp
		if f.Stamp == "" {
			delete(s.files[f.Trigger], f.Name)
		}
	}
	if e.Used != nil {
		s.used[e.Used.Workflow] = e.Used // a new day replaces the last one
	}
}

// entries returns entries that make up the state.
func (s *ledgerState) entries(now time.Time) []*entry {
	var list []*entry
	for _, it := range s.items {
		list = append(list, &entry{Item: it, Try: &it.progress})
	}
	for _, d := range s.drops {
		if now.Before(d.Until) {
			list = append(list, &entry{Drop: d})
		}
	}
	for _, o := range s.over {
		list = append(list, &entry{Over: o})
	}
	for _, k := range s.keys {
		if now.Before(k.Until) {
			list = append(list, &entry{Key: k})
		}
	}
	for trigger, at := range s.fired {
		list = append(list, &entry{Fired: &firing{trigger, at}})
	}
	for trigger, files := range s.files {
		for name, stamp := range files {
			list = append(list, &entry{File: &fileSeen{trigger, name, stamp}})
		}
	}
	for _, u := range s.used {
		list = append(list, &entry{Used: u})
	}
	return list
}

// ledger is the state of the server on disk: a file to which changes are
// appended, several of which share one write to the disk. The state belongs to
// the holder of mu.
type ledger struct {
	path string

	mu    sync.Mutex
	state ledgerState
	// next is the batch that collects changes, nil if there are none.
	next *batch
	wake chan struct{}
	done chan struct{}
	// closed reports that nothing can be appended, and failed is why the last write
	// has failed.
	closed bool
	failed error
	// home is the directory as it was when the file was opened.
	home os.FileInfo

	// file is the writer's, size that of what it has written, and live the size
	// after it was compacted. lost reports that it lacks changes, because a write
	// failed.
	// info identifies the file.
	file *os.File
	info os.FileInfo
	size int64
	live int64
	lost bool
	// cut is how much of a torn tail was cut off when the file was opened.
	cut int64
}

// batch is a group of changes that are written together.
type batch struct {
	text []byte
	// sync reports that somebody waits for the disk.
	sync    bool
	written chan struct{}
	err     error
}

// wait returns when the changes are on disk.
func (b *batch) wait() error {
	<-b.written
	return b.err
}

// openLedger reads the file and begins to write to it. A torn tail, as a power cut
// leaves it, is cut off.
func openLedger(path string) (*ledger, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	l := &ledger{path: path, state: newLedgerState(), wake: make(chan struct{}, 1), done: make(chan struct{})}
	if err := l.read(); err != nil {
		return nil, err
	}
	var err error
	if l.home, err = os.Stat(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if l.failed = l.compact(); l.failed != nil { // the disk can be full
		if l.open() != nil {
			return nil, l.failed
		}
		l.lost = true // it is tried again
	}
	go l.write()
	return l, nil
}

// read reads the entries of the file.
func (l *ledger) read() error {
	f, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	begun := false // a file exists with its first line or not at all
	in := bufio.NewReaderSize(f, 1<<16)
	offset, torn := int64(0), int64(-1)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if !begun {
			entries, ok := decodeLine(line)
			if begun = ok && len(entries) == 1 && entries[0].Format > 0; !begun {
				return fmt.Errorf("%s is not a state of tea serve, or damaged from its beginning; %s", l.path, moveAway)
			}
		}
		if len(line) > 0 {
			entries, ok := decodeLine(line)
			switch {
			case !ok && torn < 0:
				torn = offset
			case ok && torn >= 0:
				return fmt.Errorf("%s is damaged at byte %d; %s", l.path, torn, moveAway)
			}
			for _, e := range entries {
				if e.Format > ledgerFormat {
					return fmt.Errorf("%s has the format %d, which a newer tea has written; this one reads up to %d", l.path, e.Format, ledgerFormat)
				}
				l.state.apply(e)
			}
		}
		offset += int64(len(line))
		if err != nil {
			if torn >= 0 {
				l.cut = offset - torn
			}
			return nil
		}
	}
}

// moveAway is what to do about a file that cannot be read.
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

// open opens the file as it is, without its torn tail.
func (l *ledger) open() error {
	f, err := os.OpenFile(l.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		l.size = info.Size() - l.cut
		l.live = l.size
		err = f.Truncate(l.size)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.info = f, info
	return nil
}

// unwritable is the reason for which the state cannot be written.
type unwritable struct{ err error }

func (e *unwritable) Error() string {
	return "the state of the server cannot be written: " + e.err.Error()
}
func (e *unwritable) Unwrap() error { return e.err }

// errMoved reports that the directory of the state is another one now.
var errMoved = errors.New("its directory was moved or removed; restart tea serve")

// check returns an error if changes cannot be written at the moment. The caller
// holds mu.
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

// moved returns an error if the directory of the file is another one now.
func (l *ledger) moved() error {
	if home, err := os.Stat(filepath.Dir(l.path)); err != nil || !os.SameFile(home, l.home) {
		return errMoved
	}
	return nil
}

// look notices that the file was removed. Only the writer calls it.
func (l *ledger) look() {
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

// add applies changes and queues them to be written. The caller holds mu. With
// sync, the caller then waits for the batch, without mu.
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
	for _, e := range entries {
		l.state.apply(e)
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return b, nil
}

// write writes batches until the ledger is closed.
func (l *ledger) write() {
	defer close(l.done)
	lazy := time.NewTimer(lazySync)
	defer lazy.Stop()
	for {
		select {
		case <-l.wake:
		case <-lazy.C:
			err := l.settle()
			if l.report(err); err != nil {
				lazy.Reset(lazySync)
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
				lazy.Reset(lazySync)
			}
			if l.report(err); err != nil {
				b.err = &unwritable{withoutPath(err)}
			}
			close(b.written)
		}
		if closed {
			_ = errors.Join(l.settle(), l.file.Close()) // what is lost was reported to those who waited
			return
		}
		if l.size > compactSize && l.size > 4*l.live {
			l.mu.Lock()
			if l.compact() != nil {
				l.live = l.size // not again before it has grown
			}
			l.mu.Unlock()
		}
	}
}

// report records the result of the last write.
func (l *ledger) report(err error) {
	l.mu.Lock()
	l.failed = err
	l.mu.Unlock()
}

// settle brings changes to the disk that nobody waits for, or that a write has
// lost.
func (l *ledger) settle() error {
	if l.look(); !l.lost {
		return l.file.Sync()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.compact()
}

// put writes a batch. If that fails, nothing of it stays in the file.
func (l *ledger) put(b *batch) error {
	if l.look(); l.lost {
		return l.settle()
	}
	n, err := l.file.WriteAt(b.text, l.size)
	if err == nil && b.sync {
		err = l.file.Sync()
	}
	if err != nil {
		l.lost = true
		if n > 0 {
			err = errors.Join(err, l.file.Truncate(l.size))
		}
		return err
	}
	l.size += int64(len(b.text))
	return nil
}

// compact replaces the file by one with the state. The caller holds mu, or is the
// only user.
func (l *ledger) compact() error {
	if err := l.moved(); err != nil {
		return err
	}
	text, err := appendLine(nil, &entry{Format: ledgerFormat})
	for _, e := range l.state.entries(time.Now()) {
		if err == nil {
			text, err = appendLine(text, e)
		}
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
	if l.next != nil { // its changes are in the new file
		b := l.next
		l.next = nil
		close(b.written)
	}
	return nil
}

// close writes what is left.
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

// lock makes this process the only server of the directory of runs.
func lock(path string) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("another tea serve uses the directory of runs %s; name another one with -c", strings.TrimSuffix(filepath.Dir(path), string(filepath.Separator)+stateDir))
	}
	return func() { _ = f.Close() }, nil
}
