package tabular

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// Query is a SELECT of a workflow.
type Query struct {
	SQL  string
	Args []any
	// Tables are the tables that it can read; nil = all tables.
	Tables   []string
	MaxRows  int
	MaxBytes int
	Timeout  time.Duration
}

// Answer is the result of a Query. Truncated reports that rows are missing
// because of MaxRows or MaxBytes.
type Answer struct {
	Columns   []string
	Rows      []map[string]any
	Truncated bool
}

// Query runs a SELECT over the committed rows, under the restrictions of
// [store.QueryEngine].
func (s *Tables) Query(ctx context.Context, q Query) (Answer, error) {
	tables, err := s.readable(ctx, q.Tables)
	if err != nil {
		return Answer{}, err
	}
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t.entry.Name
	}
	end := s.readers.begin()
	found, err := s.o.Engine.Select(ctx, q.SQL, store.Sandbox{Tables: names, MaxRows: q.MaxRows, MaxBytes: q.MaxBytes, Timeout: q.Timeout, Args: q.Args})
	end()
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Columns: found.Columns, Rows: make([]map[string]any, len(found.Rows)), Truncated: found.Truncated}
	for i, row := range found.Rows {
		a.Rows[i] = make(map[string]any, len(row))
		for j, v := range row {
			a.Rows[i][found.Columns[j]] = v
		}
	}
	return a, nil
}

// readable returns the tables of a query: the named ones, or all that can be
// used.
func (s *Tables) readable(ctx context.Context, names []string) ([]*table, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	var tables []*table
	for _, name := range names {
		t, err := s.find(ctx, name)
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	if names != nil {
		return tables, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		if t := s.byName[name]; t.broken == nil {
			tables = append(tables, t)
		}
	}
	return tables, nil
}
