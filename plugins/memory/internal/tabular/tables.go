package tabular

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Options configure Tables. Engine, Documents, Catalog and Dir are needed.
type Options struct {
	Engine    store.QueryEngine
	Documents catalog.Documents
	Catalog   *catalog.Managed
	// Dir is the folder of the Parquet files; the database must have access to it.
	Dir string
	// InlineBytes is the size from which a change becomes a file; default 1024.
	InlineBytes int
	// MaxFiles and MaxRows are the numbers of files and rows in the delta from
	// which a table is consolidated automatically; default 64 and 100,000.
	MaxFiles, MaxRows int
	// ReadOnly reports whether the engine and Dir are read-only.
	ReadOnly bool
	Logger   *slog.Logger
}

const (
	defaultInline   = 1024
	defaultMaxFiles = 64
	defaultMaxRows  = 100_000
	// maxTables bounds the number of tables that are opened.
	maxTables = 10_000
)

// Tables are the user's tables in a database. Methods open the tables at the
// first call. They are safe for concurrent use; writes run one after the other.
type Tables struct {
	o       Options
	readers readers
	// reached is called at the named steps of a change, for tests.
	reached func(step string)

	opening sync.Mutex // held by the goroutine that opens the tables
	mu      sync.Mutex // guards the fields below
	opened  bool
	byName  map[string]*table // by the name in lower case
	calls   int               // since old calls were removed
}

// New creates Tables. The caller closes the engine, after its last call here.
func New(o Options) *Tables {
	if o.InlineBytes <= 0 {
		o.InlineBytes = defaultInline
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = defaultMaxFiles
	}
	if o.MaxRows <= 0 {
		o.MaxRows = defaultMaxRows
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Tables{o: o, byName: map[string]*table{}, reached: func(string) {}}
}

func (s *Tables) dialect() store.Dialect { return s.o.Engine.Dialect() }

// table is one of the tables. Its columns never change.
type table struct {
	name    string
	entry   catalog.Table
	columns []Column
	key     []int // the columns of the primary key
	broken  error // the reason why it cannot be used, or nil

	merging sync.Mutex // one consolidation at a time

	mu      sync.Mutex // guards the fields below
	version int64      // the last number that was assigned
	done    int64      // the last number that was committed
	load    load
}

// load is the size of a table's delta, and the number of rows of its base. rows
// are the rows in the database; on SQLite, only rows that hide others.
type load struct {
	files          int
	rows, baseRows int64
	fileRows       int64
}

func newTable(entry catalog.Table) (*table, error) {
	t := &table{name: strings.ToLower(entry.Name), entry: entry, version: entry.Version}
	if err := json.Unmarshal(entry.Schema, &t.columns); err != nil {
		return nil, fmt.Errorf("read the schema of table %s: %w", entry.Name, err)
	}
	for _, name := range entry.PrimaryKey {
		for i, c := range t.columns {
			if c.Name == name {
				t.key = append(t.key, i)
			}
		}
	}
	return t, nil
}

// take assigns the next n numbers and returns the number before them. It is only
// called in transactions, which run one after the other.
func (t *table) take(n int64) (before int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before = t.version
	t.version += n
	return before
}

// commit records that changes are durable.
func (t *table) commit(version int64, change func(*load)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done = max(t.done, version)
	change(&t.load)
}

func (t *table) keyColumns() []Column {
	columns := make([]Column, len(t.key))
	for i, at := range t.key {
		columns[i] = t.columns[at]
	}
	return columns
}

func (t *table) column(name string) (int, error) {
	for i, c := range t.columns {
		if c.Name == name {
			return i, nil
		}
	}
	return 0, tea.Errorf(tea.ValidationError, "table %q has no column %q%s", t.entry.Name, name, hint(name, t.columns))
}

// find returns the table with a name, or a not_found error.
func (s *Tables) find(ctx context.Context, name string) (*table, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	t := s.byName[strings.ToLower(name)]
	var names []string
	for _, t := range s.byName {
		names = append(names, t.entry.Name)
	}
	s.mu.Unlock()
	if t != nil {
		return t, t.broken
	}
	if _, err := s.o.Catalog.Table(ctx, name); errors.Is(err, catalog.ErrDamaged) {
		return nil, err
	}
	return nil, catalog.NotFound("table of data.create_table", name, names)
}
