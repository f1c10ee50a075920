package fulltext

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/the-edge-agent/tea/sdk/x/words"
)

// Options configures an index.
type Options struct {
	// Language selects the stop words and the stemmer, one of [Languages]. The
	// zero value is [words.DefaultLanguage]. Open discards an index of another language.
	Language string
	// MemoryBytes is the approximate size at which Put flushes the part in memory; 0 means 8 MiB.
	MemoryBytes int
	// ReadOnly leaves the directory unchanged. Changes of the index stay in memory
	// and are lost when it is closed.
	ReadOnly bool
}

// Field is a part of a document. All fields count as one text, but a phrase
// matches within a single field.
type Field struct {
	Name, Text string
}

// Document is the argument of Put.
type Document struct {
	// ID identifies the document. Equal scores are ordered by it.
	ID int64
	// Seq is the number of the change. It is positive, and greater than the numbers
	// of all earlier changes.
	Seq int64
	// Tag is a tag that SearchOptions can restrict a search to; "" = none. It has
	// at most 300 bytes.
	Tag    string
	Fields []Field
}

// ErrSeq reports a change whose number is not greater than the last one.
var ErrSeq = errors.New("the change is out of order")

// ErrClosed reports that the index was closed.
var ErrClosed = errors.New("the full-text index is closed")

// Index is an open index. Its methods are safe for concurrent use. The
// directory belongs to one Index at a time, which the owner of the rows ensures.
type Index struct {
	disk  disk
	lang  *words.Language
	limit int

	memory  sync.Pool // of *searchMemory
	next    atomic.Uint64
	merging sync.Mutex // one merge at a time; locked before writer
	merges  sync.WaitGroup
	stop    chan struct{}

	writer   sync.Mutex // held by changes, flushes, and the begin and end of merges
	cutter   words.Cutter
	words    []occurrence
	obsolete []string // files to remove when the manifest no longer lists them
	stale    bool     // the manifest lists other segments
	retry    int      // after a failed flush, the size at which Put tries again
	failed   error    // of the last merge

	mu        sync.RWMutex // searches hold it; with writer, it guards the parts and all below
	mem       *memPart
	segments  []*segment
	watermark int64
	seq       int64
	mark      int64
	broken    error
	closed    bool
	lost      error
	outdated  error
}

// Open opens the index in a directory, and creates it if needed. An index that
// cannot be used is deleted and starts empty: see [Index.Lost]. An error means
// that the options are not valid or the directory cannot be written.
func Open(dir string, o Options) (*Index, error) {
	if o.ReadOnly {
		return open(dir, readOnly{osDisk{dir}}, o)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the index's directory: %w", err)
	}
	return open(dir, osDisk{dir}, o)
}

// OpenFolder is Open for files that are not in a directory.
func OpenFolder(f Folder, o Options) (*Index, error) {
	var d disk = &folderDisk{folder: f, writing: map[string]*bytes.Buffer{}}
	if o.ReadOnly {
		d = readOnly{d}
	}
	return open("the database", d, o)
}

func open(dir string, d disk, o Options) (*Index, error) {
	lang, err := words.New(o.Language)
	if err != nil {
		return nil, err
	}
	if o.MemoryBytes <= 0 {
		o.MemoryBytes = 8 << 20
	}
	x := &Index{disk: d, lang: lang, limit: o.MemoryBytes, mem: newMemPart(), stop: make(chan struct{})}
	if err := x.load(); err != nil {
		x.lost = fmt.Errorf("the full-text index in %s starts empty: %w", dir, err)
		x.closeSegments()
		x.watermark, x.seq, x.mark = 0, 0, 0
		if err := ignoreMissing(d.remove(manifestName)); err != nil {
			return nil, fmt.Errorf("remove a damaged index: %w", err)
		}
	}
	if err := x.sweep(); err != nil {
		x.closeSegments()
		return nil, err
	}
	if _, ok := d.(readOnly); !ok && x.outdated != nil {
		x.mergeSoon()
	}
	return x, nil
}

func (x *Index) load() error {
	m, err := readManifest(x.disk, x.lang)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no index exists yet: %w", fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	x.watermark, x.seq, x.mark = m.Watermark, m.Watermark, m.Mark
	for _, named := range m.Segments {
		s, err := openSegment(x.disk, named, x.lang)
		if errors.Is(err, fs.ErrNotExist) {
			return corrupt("%v", err)
		}
		if err != nil {
			return err
		}
		x.segments = append(x.segments, s)
		if s.outdated(x.lang) {
			x.outdated = fmt.Errorf("its words were stemmed by Snowball %s; this program uses %s", cmp.Or(s.Stems, "2"), words.StemsVersion)
		}
	}
	return nil
}

func (x *Index) closeSegments() {
	for _, s := range x.segments {
		s.file.Close()
	}
	x.segments = nil
}

// sweep removes the index's files that the manifest does not list, which an
// interrupted flush or merge left.
func (x *Index) sweep() error {
	names, err := x.disk.list()
	if err != nil {
		return fmt.Errorf("list the index's directory: %w", err)
	}
	keep := map[string]bool{manifestName: true}
	for _, s := range x.segments {
		keep[s.Name] = true
	}
	for _, name := range names {
		whole := strings.TrimSuffix(name, ".tmp")
		n, ours := segmentNumber(whole)
		x.next.Store(max(x.next.Load(), n))
		if keep[name] || !ours && whole != manifestName {
			continue
		}
		if err := ignoreMissing(x.disk.remove(name)); err != nil {
			return fmt.Errorf("remove what is left of an index: %w", err)
		}
	}
	return nil
}

// Lost returns why Open could not use the contents of the directory; nil if it
// could. It wraps [fs.ErrNotExist] if the directory was empty.
func (x *Index) Lost() error { return x.lost }

// Outdated returns why Open began to rewrite the index in the background; nil if it did not. Meanwhile,
// searches use the current stems. A read-only index is not rewritten.
func (x *Index) Outdated() error { return x.outdated }

// Watermark returns the number of the last change that is on disk. After Open
// the owner replays every change with a greater number, before it searches.
func (x *Index) Watermark() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.watermark
}

// usable returns an error if the index cannot be used. The caller holds a lock.
func (x *Index) usable() error {
	if x.closed {
		return ErrClosed
	}
	return x.broken
}

// parts requires a lock.
func (x *Index) parts() []*part {
	out := make([]*part, 0, len(x.segments)+1)
	for _, s := range x.segments {
		out = append(out, &s.part)
	}
	return append(out, &x.mem.part)
}

// Put adds a document and replaces an earlier one with its ID. The next Search
// finds it; [Index.Flush] makes it durable. Only the first million words of a
// text are indexed. An error other than [ErrSeq], [ErrClosed] and [ErrCorrupt]
// means that the part in memory cannot be written to disk; the change is made
// nevertheless.
func (x *Index) Put(d Document) error {
	x.writer.Lock()
	defer x.writer.Unlock()
	if err := x.accepts(d.Seq); err != nil {
		return err
	}
	x.analyze(d)
	x.mu.Lock()
	x.kill(d.ID)
	x.mem.add(d.ID, x.words, x.lang)
	x.seq = d.Seq
	x.mu.Unlock()
	if x.mem.size < max(x.limit, x.retry) {
		return nil
	}
	err := x.flush()
	if err != nil && x.mem.size < 4*x.limit {
		x.retry = x.mem.size + x.limit/4
		return nil
	}
	return err
}

// Delete removes a document if it exists.
func (x *Index) Delete(id, seq int64) error { return x.change(seq, func() { x.kill(id) }) }

// SetMark records a change that consists of a mark only. The owner adds one, chosen at random, to the changes of each
// process, because change numbers alone do not show that other rows have replaced the indexed ones.
func (x *Index) SetMark(mark, seq int64) error { return x.change(seq, func() { x.mark = mark }) }

// change applies a change with the number seq.
func (x *Index) change(seq int64, apply func()) error {
	x.writer.Lock()
	defer x.writer.Unlock()
	if err := x.accepts(seq); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	apply()
	x.seq = seq
	return nil
}

// Mark returns the last mark, 0 for none.
func (x *Index) Mark() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.mark
}

func (x *Index) accepts(seq int64) error {
	if err := x.usable(); err != nil {
		return err
	}
	if seq <= x.seq {
		return fmt.Errorf("%w: %d comes after %d", ErrSeq, seq, x.seq)
	}
	return nil
}

const (
	// fieldGap is the distance between the last position of a field and the first of the next, which is greater than
	// the span of any phrase.
	fieldGap = 2 * maxPhrase
	// maxDocumentWords bounds the indexed words of a document.
	maxDocumentWords = 1 << 20
)

func (x *Index) analyze(d Document) {
	x.words = x.words[:0]
	if d.Tag != "" {
		x.words = append(x.words, x.mem.occurrence([]byte(words.Literal+d.Tag), 0, x.lang))
	}
	pos := 0
	for _, field := range d.Fields {
		pos = x.cutter.Cut(x.lang.Normalize(field.Text), pos, func(text []byte, w words.Word) bool {
			if len(x.words) == maxDocumentWords || w.Pos > maxPosition/2 {
				return false
			}
			if w.Unspaced || !x.lang.IsStop(text) {
				x.words = append(x.words, x.mem.occurrence(text, uint32(w.Pos), x.lang))
			}
			return true
		})
		pos += fieldGap
	}
}

// kill marks the live version of a document as dead.
func (x *Index) kill(id int64) {
	if ord, ok := x.mem.byID[id]; ok {
		delete(x.mem.byID, id)
		x.mem.kill(ord)
		return
	}
	for _, s := range x.segments {
		if ord, ok := s.find(id); ok && !s.dead.has(ord) {
			s.kill(ord)
			return
		}
	}
}
