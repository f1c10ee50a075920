package fulltext

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
)

// Options says how an index works.
type Options struct {
	// Language names the stop words and the stemmer, one of [Languages]. The
	// zero value is [DefaultLanguage]. An index of another language is thrown
	// away by Open.
	Language string
	// MemoryBytes is about what may be in memory before it is flushed without
	// being asked; 0 means 8 MiB.
	MemoryBytes int
}

// Field is a part of a document. All fields count as one text, but a phrase
// lies in one of them.
type Field struct {
	Name, Text string
}

// Document is what Put takes.
type Document struct {
	// ID tells documents from each other. Equal scores are ordered by it.
	ID int64
	// Seq numbers the change: positive, and greater than that of every change
	// before.
	Seq int64
	// Tag is what SearchOptions may restrict a search to; "" = none. It has at
	// most 300 bytes.
	Tag    string
	Fields []Field
}

// ErrSeq says that a change does not come after the last one.
var ErrSeq = errors.New("the change is out of order")

// ErrClosed says that the index was closed.
var ErrClosed = errors.New("the full-text index is closed")

// Index is an open index. All methods may be called at any time from any
// goroutine. The directory belongs to one Index at a time; the owner of the
// rows sees to that.
type Index struct {
	disk  disk
	lang  *language
	limit int

	cells  sync.Pool  // of *cells, for searches
	writer sync.Mutex // one change at a time
	cutter wordCutter
	words  []occurrence

	merging sync.Mutex // one merge at a time

	commit sync.Mutex // one manifest at a time
	failed error      // of the background work, under commit

	mu        sync.RWMutex // everything below, and what is in the memParts
	mem       *memPart
	frozen    *memPart // being written, or nil
	segments  []*liveSegment
	watermark int64
	next      uint64 // numbers the segments
	seq       int64
	docs      int   // that are live
	tokens    int64 // that live documents have
	broken    error
	closed    bool
	lost      error

	work   chan struct{} // wakes the worker
	stop   chan struct{} // closed by Close
	worker sync.WaitGroup
}

// liveSegment is a segment and the documents in it that are dead: now, and in
// the state that the last flush has frozen.
type liveSegment struct {
	*segment
	dead, saved deadSet
	merging     bool
}

// Open opens the index in a directory, and makes it if need be. An index that
// cannot be used is deleted and begun anew: see [Index.Lost]. An error means
// that the options are wrong or the directory cannot be written.
func Open(dir string, o Options) (*Index, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the index's directory: %w", err)
	}
	return open(dir, osDisk{dir}, o)
}

func open(dir string, d disk, o Options) (*Index, error) {
	lang, err := newLanguage(o.Language)
	if err != nil {
		return nil, err
	}
	if o.MemoryBytes <= 0 {
		o.MemoryBytes = 8 << 20
	}
	x := &Index{disk: d, lang: lang, limit: o.MemoryBytes, work: make(chan struct{}, 1), stop: make(chan struct{})}
	x.mem = newMemPart(&x.mu)
	if err := x.load(); err != nil {
		x.lost = fmt.Errorf("the full-text index in %s begins empty: %w", dir, err)
		x.dropSegments()
		if err := ignoreMissing(d.remove(manifestName)); err != nil {
			return nil, fmt.Errorf("remove a broken index: %w", err)
		}
	}
	if err := x.sweep(); err != nil {
		x.dropSegments()
		return nil, err
	}
	x.worker.Add(1)
	go x.background()
	return x, nil
}

// load opens what the manifest names.
func (x *Index) load() error {
	m, err := readManifest(x.disk, x.lang)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is none yet: %w", fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	for _, named := range m.Segments {
		file, size, err := x.disk.open(named.Name)
		if err != nil {
			return fmt.Errorf("open segment %s: %v", named.Name, err)
		}
		s, err := openSegment(named.Name, file, size, false)
		if err != nil {
			return err
		}
		live := &liveSegment{segment: s}
		x.segments = append(x.segments, live)
		var ok bool
		if live.dead, ok = deadSetOf(named.Dead, len(s.ids)); !ok || s.sum != named.Sum {
			return corrupt("the manifest does not fit segment %s", named.Name)
		}
		x.arm(s)
		live.saved = live.dead
		x.docs += len(s.ids) - live.dead.n
		x.tokens += s.tokens
		live.dead.since(deadSet{}, func(ord uint32) { x.tokens -= int64(s.lens[ord]) })
	}
	x.watermark, x.seq, x.next = m.Watermark, m.Watermark, m.Next
	return nil
}

// arm says how the segment's file is removed when nobody reads it any more.
func (x *Index) arm(s *segment) {
	s.drop = func() { _ = x.disk.remove(s.name) } // else the next Open sweeps it
}

// dropSegments closes all segments and forgets them.
func (x *Index) dropSegments() {
	for _, s := range x.segments {
		s.release()
	}
	x.segments, x.docs, x.tokens, x.watermark, x.seq, x.next = nil, 0, 0, 0, 0, 0
}

// sweep removes the index's files that the manifest does not name: what an
// interrupted flush has left.
func (x *Index) sweep() error {
	names, err := x.disk.list()
	if err != nil {
		return fmt.Errorf("list the index's directory: %w", err)
	}
	keep := map[string]bool{}
	for _, s := range x.segments {
		keep[s.name] = true
	}
	for _, name := range names {
		whole := strings.TrimSuffix(name, ".tmp")
		ours := segmentName().MatchString(whole) || whole == manifestName && whole != name
		if !ours || keep[name] {
			continue
		}
		if err := ignoreMissing(x.disk.remove(name)); err != nil {
			return fmt.Errorf("remove what is left of an index: %w", err)
		}
	}
	return nil
}

// Lost says why Open could not use what was in the directory; nil if it could.
// It wraps [fs.ErrNotExist] if there was nothing.
func (x *Index) Lost() error { return x.lost }

// Watermark returns the number of the last change that is on disk. After Open
// the owner replays every change with a greater number, before it searches.
func (x *Index) Watermark() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.watermark
}

// Len returns the number of documents.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.docs
}

// Put adds a document in place of an earlier one with its ID. The next Search
// finds it; [Index.Flush] makes it last. Of very long texts the first million
// words count. An error other than [ErrSeq], [ErrClosed] and [ErrCorrupt] says
// that the disk does not take what is in memory; the change is in nevertheless.
func (x *Index) Put(d Document) error {
	x.writer.Lock()
	defer x.writer.Unlock()
	mem, err := x.ready(d.Seq)
	if err != nil {
		return err
	}
	x.analyze(mem, d)
	return x.relieve(x.apply(mem, d))
}

// apply puts the words of a document, which were looked up in mem, into the
// part in memory. It returns the part's size.
func (x *Index) apply(mem *memPart, d Document) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.mem != mem { // a flush has begun: the new part has its own terms
		mem = x.mem
		x.mu.Unlock()
		x.analyze(mem, d)
		x.mu.Lock()
	}
	x.kill(d.ID)
	mem.add(d.ID, x.words)
	x.docs++
	x.tokens += int64(len(x.words))
	x.seq, mem.lastSeq = d.Seq, d.Seq
	return mem.size
}

// Delete takes a document out. One that is not there is no error.
func (x *Index) Delete(id, seq int64) error {
	x.writer.Lock()
	defer x.writer.Unlock()
	if _, err := x.ready(seq); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kill(id)
	x.seq, x.mem.lastSeq = seq, seq
	return nil
}

// ready checks that a change may be made, and returns the part that takes it.
func (x *Index) ready(seq int64) (*memPart, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	switch {
	case x.closed:
		return nil, ErrClosed
	case x.broken != nil:
		return nil, x.broken
	case seq <= x.seq:
		return nil, fmt.Errorf("%w: %d comes after %d", ErrSeq, seq, x.seq)
	}
	return x.mem, nil
}

// tagged begins the form that stands for a tag.
const tagged = "\x02"

// analyze cuts the fields into x.words.
func (x *Index) analyze(mem *memPart, d Document) {
	x.words = x.words[:0]
	if d.Tag != "" {
		x.words = append(x.words, occurrence{mem.term([]byte(tagged+d.Tag), x.lang), 0})
	}
	pos := 0
	for _, field := range d.Fields {
		pos = x.cutter.cut(x.lang.normalize(field.Text), pos, func(text []byte, w word) bool {
			if len(x.words) == maxDocumentWords || w.pos > maxPosition/2 {
				return false
			}
			if w.unspaced || !x.lang.isStop(text) {
				x.words = append(x.words, occurrence{mem.term(text, x.lang), uint32(w.pos)})
			}
			return true
		})
		pos += fieldGap
	}
}

// kill marks the live version of a document dead, wherever it is.
func (x *Index) kill(id int64) {
	for _, m := range []*memPart{x.mem, x.frozen} {
		if m == nil {
			continue
		}
		if n, ok := m.kill(id); ok {
			x.docs--
			x.tokens -= int64(n)
			return
		}
	}
	for _, s := range x.segments {
		if ord, ok := s.find(id); ok && !s.dead.has(ord) {
			s.dead = s.dead.with(ord)
			x.docs--
			x.tokens -= int64(s.lens[ord])
			return
		}
	}
}
