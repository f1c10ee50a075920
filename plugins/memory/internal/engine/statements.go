package engine

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
)

// maxStatements bounds a cache. This module has fewer statements, except for
// those that differ in the number of values in a list.
const maxStatements = 256

// preparer is a pool or a connection.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// statements caches prepared statements by their text. A full cache is emptied.
type statements struct {
	on preparer

	mu      sync.Mutex // guards the fields below and the statements' counts
	byQuery map[string]*statement
	closed  bool
}

// statement is a prepared statement. If it is dropped while in use, its last user
// closes it.
type statement struct {
	*sql.Stmt
	users   int
	dropped bool
}

func newStatements(on preparer) *statements {
	return &statements{on: on, byQuery: map[string]*statement{}}
}

// planned reports whether DuckDB plans a statement when it is prepared instead of
// when it runs: a statement without parameters. The plan relies on the smallest
// and largest values of that time and omits conditions that were always true, so
// that it would later return wrong rows.
func planned(query string) bool {
	return strings.Contains(query, " ") && !strings.ContainsAny(query, "?$")
}

// take returns a prepared statement, which the caller releases.
func (s *statements) take(ctx context.Context, query string) (*statement, error) {
	if found := s.find(query); found != nil {
		return found, nil
	}
	stmt, err := s.on.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := &statement{Stmt: stmt, users: 1}
	switch {
	case s.closed || s.byQuery[query] != nil || planned(query): // used once
		taken.dropped = true
		return taken, nil
	case len(s.byQuery) >= maxStatements:
		_ = s.drop() // an error has no effect
	}
	s.byQuery[query] = taken
	return taken, nil
}

func (s *statements) find(query string) *statement {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.byQuery[query]
	if found != nil {
		found.users++
	}
	return found
}

// release ends the use of a statement.
func (s *statements) release(stmt *statement) {
	s.mu.Lock()
	stmt.users--
	done := stmt.dropped && stmt.users == 0
	s.mu.Unlock()
	if done {
		_ = stmt.Close() // an error has no effect
	}
}

// drop empties the cache and closes the statements that are not in use.
func (s *statements) drop() error {
	var errs []error
	for _, stmt := range s.byQuery {
		if stmt.dropped = true; stmt.users == 0 {
			errs = append(errs, stmt.Close())
		}
	}
	clear(s.byQuery)
	return errors.Join(errs...)
}

func (s *statements) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.drop()
}
