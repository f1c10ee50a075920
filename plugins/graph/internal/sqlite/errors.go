package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// fault converts an error of SQLite or the operating system to a *tea.Error.
func fault(err error) error {
	var typed *tea.Error
	switch {
	case err == nil, errors.As(err, &typed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return tea.Errorf(tea.ResourceExhausted, "the disk of the graph is full: %w", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return tea.Errorf(tea.PermissionDenied, "the graph needs a folder that it can write; set settings.graph.path: %w", err)
	}
	var failure *sqlite.Error
	if !errors.As(err, &failure) {
		return tea.Errorf(tea.InternalError, "the graph's database: %w", err)
	}
	if failure.Code() == sqlite3.SQLITE_IOERR_SHMSIZE { // the index of the log cannot grow
		return tea.Errorf(tea.ResourceExhausted, "the disk of the graph is full: %w", err)
	}
	switch failure.Code() & 0xff {
	case sqlite3.SQLITE_INTERRUPT:
		return context.Canceled
	case sqlite3.SQLITE_FULL:
		return tea.Errorf(tea.ResourceExhausted, "the disk of the graph is full: %w", err)
	case sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_TOOBIG:
		return tea.Errorf(tea.ResourceExhausted, "the graph's database: %w", err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return store.Unusable(tea.InternalError, "restore a backup with graph.restore", "the graph's database %s is damaged: %w", databaseFile, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN:
		return tea.Errorf(tea.PermissionDenied, "the graph needs a folder that it can write; set settings.graph.path: %w", err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		e := tea.Errorf(tea.ConnectionError, "another program uses the graph's database: %w", err)
		e.Retryable = true
		return e
	}
	return tea.Errorf(tea.InternalError, "the graph's database: %w", err)
}
