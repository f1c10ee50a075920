package checkpoint

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
)

// The suffixes of a run's files, whose names begin with its id.
const (
	journalSuffix = ".tea"
	eventsSuffix  = ".events.jsonl"
	tempSuffix    = ".tmp"
)

// Store is a directory of runs. It has no other state, so several processes and
// goroutines can use one directory at the same time.
type Store struct {
	dir string
}

// OpenStore returns the store in dir, which it creates with mode 0700 if
// necessary. It fails if dir is not a directory or not writable.
func OpenStore(dir string) (*Store, error) {
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("open checkpoint directory: %w", err)
	}
	s, err := ViewStore(dir)
	if err != nil {
		return nil, err
	}
	if err := checkWritable(s.dir); err != nil {
		return nil, fmt.Errorf("open checkpoint directory: %w", &os.PathError{Op: "write to", Path: s.dir, Err: err})
	}
	return s, nil
}

// ViewStore returns the store in an existing directory that may be read-only, for
// List, Find and reading runs. It only checks that dir is a directory.
func ViewStore(dir string) (*Store, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open checkpoint directory: %w", err)
	}
	info, err := os.Stat(abs)
	if err == nil && !info.IsDir() {
		err = &os.PathError{Op: "open", Path: abs, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, fmt.Errorf("open checkpoint directory: %w", err)
	}
	return &Store{dir: abs}, nil
}

// Dir returns the store's directory as an absolute path.
func (s *Store) Dir() string { return s.dir }

// Create begins the journal of a new run, which the caller owns. The file is
// created together with the first records: at the first [Journal.Append] with
// durability sync and async, at the first [Journal.Sync] with exit, never with
// off. Create, or the call that creates the file, returns fs.ErrExist if the run
// already exists.
func (s *Store) Create(h Header, d flow.Durability) (*Journal, error) {
	if err := checkRunID(h.RunID); err != nil {
		return nil, err
	}
	h.Format = FormatVersion
	if d == flow.DurabilityOff {
		return newJournal(h, "", d, nil, 0), nil
	}
	path := s.journalPath(h.RunID)
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("create checkpoint: %w", &os.PathError{Op: "create", Path: path, Err: fs.ErrExist})
	}
	return newJournal(h, path, d, nil, 0), nil
}

// Open opens a run to continue it: the caller becomes its owner. A torn tail is
// cut off, with a note. run is an argument of [Store.Find].
//
// Open returns a [*InUseError] if a live process owns the run; a [*CorruptError],
// [*VersionError] or [*NoStartError], without changing the file; and the errors
// of Find.
func (s *Store) Open(run string, d flow.Durability) (*Journal, *Contents, error) {
	path, err := s.Find(run)
	if err != nil {
		return nil, nil, err
	}
	f, err := openJournalFile(path, os.O_RDWR)
	if err != nil {
		return nil, nil, fmt.Errorf("open checkpoint: %w", err)
	}
	w, c, err := recoverJournal(f, path)
	if err != nil {
		_ = releaseFile(f)
		return nil, nil, err
	}
	return newJournal(c.Header, path, d, w, uint64(len(c.Records))), c, nil
}

// recoverJournal locks f, reads it and prepares it for appending. On an error the
// caller releases f.
func recoverJournal(f *os.File, path string) (*writer, *Contents, error) {
	if err := lockFile(f, path); err != nil {
		return nil, nil, err
	}
	if err := checkNotRemoved(f, path); err != nil {
		return nil, nil, fmt.Errorf("open checkpoint: %w", err)
	}
	c, err := readFrom(f, path)
	if err == nil {
		err = c.checkStart(path)
	}
	if err != nil {
		return nil, nil, err
	}
	if c.torn > 0 {
		if err := f.Truncate(c.Size); err != nil {
			return nil, nil, fmt.Errorf("cut off the torn tail of a checkpoint: %w", err)
		}
		c.Notes = append(c.Notes, fmt.Sprintf("torn tail of %d bytes cut off", c.torn))
	}
	// A killed owner may have left records that are not on disk yet; the caller
	// is about to rely on them.
	w := &writer{f: journalFile{f, path}, path: path, size: c.Size}
	if err := w.sync(); err != nil {
		return nil, nil, err
	}
	_ = os.Chtimes(path, time.Time{}, time.Now()) // the run is running, which an Index then notices
	return w, c, nil
}

// checkNotRemoved checks that the locked file was not removed between opening and
// locking.
func checkNotRemoved(f *os.File, path string) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !os.SameFile(opened, named) {
		return &os.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return nil
}

// Show reads a run; run is as for [Store.Find].
func (s *Store) Show(run string) (*Contents, error) {
	path, err := s.Find(run)
	if err != nil {
		return nil, err
	}
	return Read(path)
}

// Find returns the path of a run's file. run is an id, an unambiguous prefix of
// an id, or the path of any file in this store. The error is fs.ErrNotExist, an
// [*AmbiguousError], or reports that the path leads out of the store.
func (s *Store) Find(run string) (string, error) {
	if strings.HasSuffix(run, journalSuffix) || strings.ContainsRune(run, filepath.Separator) {
		return s.findFile(run)
	}
	if err := checkRunID(run); err != nil {
		return "", err
	}
	path := s.journalPath(run)
	if _, err := os.Lstat(path); err == nil {
		return path, nil
	}
	ids, err := s.ids()
	if err != nil {
		return "", err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, run) })
	switch len(ids) {
	case 0:
		return "", fmt.Errorf("find run %q in %s: %w", run, s.dir, fs.ErrNotExist)
	case 1:
		return s.journalPath(ids[0]), nil
	}
	return "", &AmbiguousError{Prefix: run, Matches: ids}
}

// findFile returns the file with a path in this store, or with a bare file name.
func (s *Store) findFile(path string) (string, error) {
	name := filepath.Base(path)
	if !strings.ContainsRune(path, filepath.Separator) {
		if err := checkRunID(strings.TrimSuffix(name, journalSuffix)); err != nil {
			return "", err
		}
	} else if err := s.contains(path); err != nil {
		return "", fmt.Errorf("find run: %w", err)
	}
	found := filepath.Join(s.dir, name)
	if _, err := os.Lstat(found); err != nil {
		return "", fmt.Errorf("find run: %w", err)
	}
	return found, nil
}

// contains returns an error unless path is a file in this store.
func (s *Store) contains(path string) error {
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	own, err := os.Stat(s.dir)
	if err == nil && !os.SameFile(dir, own) {
		err = fmt.Errorf("%s is not in the checkpoint directory %s", path, s.dir)
	}
	return err
}

// ids returns the ids of all runs with a journal, sorted.
func (s *Store) ids() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), journalSuffix); ok && checkRunID(id) == nil {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (s *Store) journalPath(id string) string { return filepath.Join(s.dir, id+journalSuffix) }

// EventsPath returns the path of a run's events, for [EventReader].
func (s *Store) EventsPath(id string) string { return filepath.Join(s.dir, id+eventsSuffix) }

// NewRunID returns an id such as 20261121-024512-7k3f9q: short, sorted by time,
// valid as a file name, and random enough for several runs in one second.
func NewRunID(now time.Time) string {
	// 32 digits and letters, without similar-looking ones.
	const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
	var random [6]byte
	rand.Read(random[:]) // never fails
	for i, b := range random {
		random[i] = alphabet[b%byte(len(alphabet))]
	}
	return string(append(now.UTC().AppendFormat(make([]byte, 0, 32), "20060102-150405-"), random[:]...))
}

// checkRunID checks that id is a valid file name, and of no other kind of file.
func checkRunID(id string) error {
	const longest = 100
	if id == "" || len(id) > longest || strings.HasPrefix(id, "-") || strings.ContainsFunc(id, notInRunID) {
		return fmt.Errorf("run id %q: want 1 to %d letters, digits, - and _, not beginning with -", id, longest)
	}
	return nil
}

func notInRunID(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
}

// Fork begins a new run with the records of another one, up to and including
// record number at, followed by more. source can be a run in progress. When Fork
// returns, the file of the new run, which the caller owns, is complete and on
// disk, whatever the durability.
//
// It returns the errors of [Store.Create], a [*NoStartError], and an error if
// source has no record with that number.
func (s *Store) Fork(source *Contents, at uint64, newID string, d flow.Durability, more ...Record) (*Journal, *Contents, error) {
	if err := checkRunID(newID); err != nil {
		return nil, nil, err
	}
	if err := source.checkStart(s.journalPath(source.Header.RunID)); err != nil {
		return nil, nil, err
	}
	if last := uint64(len(source.Records)); at < 1 || at > last {
		return nil, nil, fmt.Errorf("fork run %s at record %d: it has records 1 to %d", source.Header.RunID, at, last)
	}
	h := source.Header
	h.RunID, h.StartedAt = newID, time.Now().UTC()
	h.ParentRun, h.ParentSeq = source.Header.RunID, at
	fork := &Contents{Header: h, Records: slices.Concat(source.Records[:at], more)}
	var frames []byte
	for i := range fork.Records {
		r := &fork.Records[i]
		if r.Seq = uint64(i) + 1; r.Time.IsZero() {
			r.Time = h.StartedAt
		}
		frames = appendFrame(frames, func(b []byte) []byte { return appendRecord(b, *r) })
	}
	path := s.journalPath(newID)
	w, err := createJournalFile(path, h, frames)
	if err != nil {
		return nil, nil, fmt.Errorf("fork run %s: %w", source.Header.RunID, err)
	}
	fork.Size = w.size
	return newJournal(h, path, d, w, uint64(len(fork.Records))), fork, nil
}
