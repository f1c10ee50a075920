package longterm

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/metadata"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Options configure a Memory. Logger and InlineBytes are optional.
type Options struct {
	Engine store.QueryEngine
	Blobs  store.BlobStorage
	Clock  *clock.Clock
	// IndexDir has a folder for the text index, named after the database's identity.
	IndexDir string
	// Language is the language of the texts; see [fulltext.Languages].
	Language string
	// InlineBytes is the size in bytes of canonical JSON from which a value is stored as
	// a blob; default 1024.
	InlineBytes int
	// ReadOnly prevents writes to the engine and to IndexDir.
	ReadOnly bool
	Logger   *slog.Logger
}

const defaultInline = 1024

// Memory is the long-term memory in a database. It is safe for concurrent use.
type Memory struct {
	o Options

	large   *content.Store
	backlog backlog
	fields  metadata.Cache

	life       context.Context //nolint:containedctx // Close cancels the background work
	end        context.CancelFunc
	background sync.WaitGroup

	opening sync.Mutex // held while the index is opened
	mu      sync.Mutex // guards the fields below
	numbers numbers
	keys    *keys // nil if the database looks up keys fast
	index   *fulltext.Index
	applied int64 // the last change applied when the index was opened
	expiry  expiry
	// stale reports that the index's files may lack a change; see markStale.
	stale  bool
	marked bool // this process has written its mark; see batch.next
	closed bool
}

var _ store.LongTermMemory = (*Memory)(nil)

// New returns a memory. The caller closes the engine and the blobs after the memory.
func New(o Options) *Memory {
	if o.InlineBytes <= 0 {
		o.InlineBytes = defaultInline
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Memory{o: o, large: content.New(o.Blobs, largePrefix)}
	m.life, m.end = context.WithCancel(context.Background())
	return m
}

// Close ends background work and writes the text index.
func (m *Memory) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.end()
	m.background.Wait()
	m.opening.Lock()
	defer m.opening.Unlock()
	if err := m.backlog.wait(context.Background()); err != nil {
		return err
	}
	m.mu.Lock()
	index := m.index
	m.index = nil
	m.mu.Unlock()
	if index == nil {
		return nil
	}
	if err := index.Close(); err != nil {
		// Nothing is lost: the next start reads the rows.
		m.o.Logger.Warn("the text index cannot be written; the next start rebuilds it", "error", err.Error())
	}
	return nil
}

// errClosed is the error of calls after Close.
func errClosed() error { return tea.Errorf(tea.ConnectionError, "the memory is closed") }

// numbers are the last sequence number of a change and the last id of an entry. They are
// read from the database at the first write.
type numbers struct {
	known   bool
	seq, id int64
}

// ready loads the state that writes need, once.
func (m *Memory) ready(ctx context.Context) error {
	m.mu.Lock()
	known, closed := m.numbers.known, m.closed
	m.mu.Unlock()
	switch {
	case closed:
		return errClosed()
	case known:
		return nil
	}
	seq, id, err := m.lastNumbers(ctx)
	if err != nil {
		return fmt.Errorf("read the last number: %w", err)
	}
	var taken *keys
	if m.o.Engine.Dialect() == store.DuckDB {
		if taken, err = m.readKeys(ctx); err != nil {
			return fmt.Errorf("read the keys: %w", err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.numbers.known {
		m.numbers, m.keys = numbers{known: true, seq: seq, id: id}, taken
	}
	return nil
}

func (m *Memory) lastNumbers(ctx context.Context) (seq, id int64, err error) {
	rows, err := m.o.Engine.Query(ctx, `SELECT coalesce(max(seq), 0), coalesce(max(id), 0) FROM (
		SELECT max(seq) AS seq, max(id) AS id FROM ltm UNION ALL SELECT max(seq), max(id) FROM ltm_gone) AS taken`)
	err = store.Scan(rows, err, func() {}, &seq, &id)
	return seq, id, err
}

// nextSeq and nextID may only be called in a transaction, because transactions do not
// run concurrently.
func (m *Memory) nextSeq() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.numbers.seq++
	return m.numbers.seq
}

func (m *Memory) nextID() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.numbers.id++
	return m.numbers.id
}
