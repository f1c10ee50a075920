package bucket

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
	"github.com/the-edge-agent/tea/sdk/x/filelock"
)

// local is the copy of the database on this device. Each process has a separate copy: two processes of a device share
// the database as two devices would.
type local struct {
	dir    string
	bucket *objstore.Bucket
	lock   *os.File
	device string
	state  state
	// damaged reports whether the state could not be read.
	damaged bool
	// published has the hashes of the pages of the current head, in the order of
	// their numbers; nil = unknown.
	published []uint64
	indexes   map[string]index // of segments, by name
}

// state identifies the state of the database in the folder of a copy. It is
// stored there as a file.
type state struct {
	Store   string `json:"store"`
	Term    int64  `json:"term"`
	Version int64  `json:"version"`
	Phase   phase  `json:"phase"`
	// Acknowledged reports whether writes are acknowledged before they are published.
	Acknowledged bool `json:"acknowledged,omitempty"`
	// Marks are the last published numbers of the feeds, and of the logs of tables.
	Marks map[store.Feed]int64 `json:"marks,omitempty"`
}

// phase is the relation of the copy to the version of its state.
type phase string

const (
	// phaseClean: the copy is at this version.
	phaseClean phase = "clean"
	// phaseFetching: some pages of the copy are at another version.
	phaseFetching phase = "fetching"
	// phaseOpen: the copy is at this version or a later one of the same term, with
	// changes that may be unpublished.
	phaseOpen phase = "open"
)

const (
	stateFile  = "state.json"
	deviceFile = "device"
	// asidePrefix begins the names of folders of copies whose changes could not be
	// published.
	asidePrefix = "aside-"
	// ofOther follows asidePrefix for copies of another database, which remain after the bucket was emptied or
	// replaced.
	ofOther = "of-"
	// withDamage follows asidePrefix for a copy whose state was damaged.
	withDamage = ofOther + "damaged"
	// withRefused follows asidePrefix for copies that were merged except for
	// records that the memory refuses.
	withRefused = "refused-"
	// maxCopies bounds the processes of a device that use the database at the same
	// time.
	maxCopies = 64
)

// openLocal locks a copy that no other process uses.
func openLocal(dir string, b *objstore.Bucket) (*local, error) {
	for n := range maxCopies {
		l := &local{dir: filepath.Join(dir, strconv.Itoa(n)), bucket: b, indexes: map[string]index{}}
		if err := os.MkdirAll(l.dir, 0o700); err != nil {
			return nil, store.SystemError(err)
		}
		var err error
		if l.lock, err = filelock.Open(filepath.Join(l.dir, "process.lock")); errors.Is(err, filelock.ErrLocked) {
			continue
		}
		if err == nil {
			if err = l.load(); err != nil {
				err = errors.Join(err, l.close())
			}
		}
		return l, store.SystemError(err)
	}
	return nil, fmt.Errorf("%d processes use the memory in %s", maxCopies, dir)
}

func (l *local) load() error {
	raw, err := os.ReadFile(l.path(deviceFile))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(raw) == 0 {
		host, _ := os.Hostname()
		raw = []byte(host + "-" + rand.Text()[:8])
		err = writeFile(l.path(deviceFile), raw)
	}
	if err != nil {
		return err
	}
	l.device = string(raw)
	return l.readState()
}

// readState reads the state of the copy. It treats a damaged state as missing,
// and the copy may then have unpublished changes.
func (l *local) readState() error {
	raw, err := os.ReadFile(l.path(stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && json.Unmarshal(raw, &l.state) != nil {
		l.state, l.damaged = state{}, true
	}
	return err
}

func writeFile(path string, data []byte) error {
	return atomicfile.Write(path, 0o600, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

func (l *local) path(name string) string { return filepath.Join(l.dir, name) }

func (l *local) database() string { return l.path(sqlite.Driver{}.File()) }

func (l *local) note(s state) error {
	raw, err := json.Marshal(s)
	if err == nil {
		err = writeFile(l.path(stateFile), raw)
	}
	if err != nil {
		return store.SystemError(fmt.Errorf("write the state of the copy: %w", err))
	}
	l.state = s
	return nil
}

// prepare updates the copy to the current state of the bucket. previous is the
// head before the lease was taken. compare reports whether the copy may have
// unpublished changes.
func (l *local) prepare(ctx context.Context, current, previous head) (compare bool, err error) {
	_, statErr := os.Stat(l.database())
	there := statErr == nil
	switch {
	case there && l.damaged:
		if err := l.setAside(withDamage); err != nil {
			return false, err
		}
		there = false
	case there && l.state.Store != "" && l.state.Store == current.Previous: // it was reset
		if err := l.empty(sqlite.Driver{}.File(), "index", "vectors"); err != nil {
			return false, err
		}
		l.state, l.published, there = state{}, nil, false
	case there && l.state.Store != "" && l.state.Store != current.Store:
		if err := l.setAside(ofOther + l.state.Store); err != nil {
			return false, err
		}
		there = false
	case there && l.state.Phase == phaseOpen && l.state.Term == previous.Term:
		// No other device has written since.
		l.published, err = l.remote(ctx, current)
		return true, err
	case there && l.state.Phase == phaseOpen && l.state.Acknowledged:
		if err := l.setAside(strconv.FormatInt(l.state.Term, 10)); err != nil {
			return false, err
		}
		there = false
	}
	if current.Pages == 0 {
		l.published = nil
		return true, l.empty(sqlite.Driver{}.File(), "index", "vectors")
	}
	return false, l.fetch(ctx, current, there)
}

// empty removes the database's companion files and the named files.
func (l *local) empty(names ...string) error {
	for _, name := range append(names, sqlite.Driver{}.File()+"-wal", sqlite.Driver{}.File()+"-shm", "database.id") {
		if err := os.RemoveAll(l.path(name)); err != nil {
			return store.SystemError(err)
		}
	}
	return nil
}

// setAside moves the copy into a folder next to it.
func (l *local) setAside(name string) error {
	aside := l.path(asidePrefix + name)
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return store.SystemError(err)
	}
	// The state is moved last: a folder without it is incomplete.
	for _, name := range []string{sqlite.Driver{}.File() + "-wal", sqlite.Driver{}.File(), stateFile} {
		if err := os.Rename(l.path(name), filepath.Join(aside, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return store.SystemError(err)
		}
	}
	l.state, l.damaged, l.published = state{}, false, nil
	return l.empty("index", "vectors")
}

// fetch downloads the pages that differ. After an error, the next call downloads them again.
func (l *local) fetch(ctx context.Context, current head, there bool) error {
	remote, err := l.remote(ctx, current)
	if err != nil {
		return err
	}
	unchanged := there && l.state.Phase == phaseClean
	var have []uint64
	switch {
	case !there:
	case unchanged && l.published != nil:
		have = l.published
	case unchanged && l.state.Version == current.Version:
		have = remote
	default:
		if have, err = l.hashes(current.PageSize); err != nil {
			return store.SystemError(err)
		}
	}
	l.published = nil
	var wanted []uint32
	for i, hash := range remote {
		if i >= len(have) || have[i] != hash {
			wanted = append(wanted, uint32(i)+1) //nolint:gosec // a page number
		}
	}
	if len(wanted) > 0 || len(have) != len(remote) || !unchanged {
		s := l.state
		s.Store, s.Phase = current.Store, phaseFetching
		if err := l.note(s); err != nil {
			return err
		}
		var indexes []string
		if !unchanged {
			indexes = []string{"index", "vectors"} // these may have unpublished changes
		}
		if err := l.empty(indexes...); err != nil {
			return err
		}
		if err := l.write(ctx, current, wanted); err != nil {
			return err
		}
	}
	l.published = remote
	return nil
}

// write writes pages of a head to the copy.
func (l *local) write(ctx context.Context, current head, wanted []uint32) error {
	file, err := os.OpenFile(l.database(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return store.SystemError(err)
	}
	put := func(number uint32, page []byte) error {
		_, err := file.WriteAt(page, int64(number-1)*int64(current.PageSize))
		return store.SystemError(err)
	}
	err = l.read(ctx, current, wanted, put)
	if err == nil {
		err = store.SystemError(errors.Join(file.Truncate(int64(current.Pages)*int64(current.PageSize)), file.Sync()))
	}
	return errors.Join(err, file.Close())
}

// read reads pages of a head from its segments, the latest segment first.
func (l *local) read(ctx context.Context, current head, wanted []uint32, put func(uint32, []byte) error) error {
	for _, s := range slices.Backward(current.Segments) {
		x := l.indexes[s.Name]
		var at []int
		rest := wanted[:0:0]
		for _, n := range wanted {
			if i, ok := x.find(n); ok {
				at = append(at, i)
			} else {
				rest = append(rest, n)
			}
		}
		if err := readPages(ctx, l.bucket, s, x, at, current.PageSize, put); err != nil {
			return err
		}
		wanted = rest
	}
	if len(wanted) > 0 {
		return damaged(l.bucket, headName, fmt.Errorf("page %d is in no segment", wanted[0]))
	}
	return nil
}

// remote returns the hashes of the pages of a head.
func (l *local) remote(ctx context.Context, current head) ([]uint64, error) {
	hashes := make([]uint64, current.Pages)
	known := map[string]index{}
	for _, s := range current.Segments {
		x, ok := l.indexes[s.Name]
		if !ok {
			var err error
			if x, err = readIndex(ctx, l.bucket, s); err != nil {
				return nil, err
			}
		}
		known[s.Name] = x
		l.indexes[s.Name] = x // even if a later index cannot be read
		for i, n := range x.numbers {
			if n >= 1 && n <= current.Pages {
				hashes[n-1] = x.hashes[i]
			}
		}
	}
	l.indexes = known
	return hashes, nil
}

// hashes returns the hashes of the pages of the copy.
func (l *local) hashes(pageSize int) ([]uint64, error) {
	file, err := os.Open(l.database())
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 1<<20)
	page := make([]byte, pageSize)
	var all []uint64
	for {
		if _, err := io.ReadFull(r, page); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, hashOf(page))
	}
}

// close releases the copy for other processes.
func (l *local) close() error { return filelock.Close(l.lock) }
