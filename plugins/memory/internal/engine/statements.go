package engine

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
)

// maxStatements bounds what a cache keeps. This module's own statements are
// fewer; what is beyond is made by the number of values in a list.
const maxStatements = 256

// preparer is what statements are prepared on: a pool or a connection.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// statements keeps prepared statements by their text. When it is full it
// begins anew.
type statements struct {
	on preparer

	mu      sync.Mutex // guards what follows and the statements' counts
	byQuery map[string]*statement
	closed  bool
}

// statement is a prepared one. Who has it may run it until it is given back:
// one that is dropped meanwhile is closed then.
type statement struct {
	*sql.Stmt
	users   int
	dropped bool
}

func newStatements(on preparer) *statements {
	return &statements{on: on, byQuery: map[string]*statement{}}
}

// planned says that DuckDB plans a statement when it is prepared rather than
// when it runs: one without parameters. Its plan relies on the least and
// largest values that the tables had then, and leaves out conditions which
// always held; later it would give rows that do not fit, or none.
func planned(query string) bool {
	return strings.Contains(query, " ") && !strings.ContainsAny(query, "?$")
}

// take prepares a statement. The caller gives it back.
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
	case s.closed || s.byQuery[query] != nil || planned(query): // somebody else was faster
		taken.dropped = true
		return taken, nil
	case len(s.byQuery) >= maxStatements:
		_ = s.drop() // nothing is lost with a statement
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

// give says that a statement is not used any more.
func (s *statements) give(stmt *statement) {
	s.mu.Lock()
	stmt.users--
	done := stmt.dropped && stmt.users == 0
	s.mu.Unlock()
	if done {
		_ = stmt.Close() // nothing is lost with a statement
	}
}

// drop forgets all statements and closes those that nobody uses.
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
