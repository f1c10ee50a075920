package engine

import (
	"context"
	"database/sql"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Driver is the part of an engine that differs between databases. It is safe for
// concurrent use.
type Driver interface {
	Dialect() store.Dialect
	// File is the name of the database in its folder.
	File() string
	// Open opens the database file and creates it if it does not exist.
	Open(ctx context.Context, path string, limits Limits) (Handles, error)
	// OpenReadOnly opens the database file for reading. It writes nothing next to
	// the file, and sees every commit or fails.
	OpenReadOnly(ctx context.Context, path string, limits Limits) (*sql.DB, error)
	// Fault classifies an error of the database.
	Fault(err error) Fault
	// Full reports whether an error means that the disk is full.
	Full(err error) bool
	// Damaged reports whether an error means that the database file is damaged.
	Damaged(err error) bool
	// Select runs one SELECT of a workflow on a connection for reading. It can
	// cache the result of its checks in plans.
	Select(ctx context.Context, conn *sql.Conn, plans *sandbox.Plans, query string, bounds store.Sandbox) (store.Table, error)
}

// Appender is a driver that can add many rows faster than with an INSERT each.
type Appender interface {
	// Append adds rows to a table inside the transaction that conn has open.
	Append(ctx context.Context, conn *sql.Conn, table string, rows [][]any) error
}

// Handles are the pools of an open database, which can be the same one.
type Handles struct {
	// Read is for statements that read.
	Read *sql.DB
	// Write has the one connection that writes.
	Write *sql.DB
	// BeforeWrite is called before the first transaction that may write.
	BeforeWrite func()
	// BeforeCommit is called before each commit; nil = nothing to do.
	BeforeCommit func()
	// Checkpoint writes the log into the database. It is called on the connection that
	// writes, after a change of the schema and before the pools are closed. It is nil
	// if the database does this itself.
	Checkpoint func(ctx context.Context, conn *sql.Conn) error
	// Closed is called when the pools are closed after a checkpoint. It can be nil.
	Closed func() error
	// Repaired describes the damage that was found when the database was opened, and
	// how it was repaired.
	Repaired []string
}

// Close closes both pools.
func (h Handles) Close() error {
	err := h.Write.Close()
	if h.Read != h.Write {
		if readErr := h.Read.Close(); err == nil {
			err = readErr
		}
	}
	return err
}

// Unclean returns the error of opening a database for reading whose log cannot be
// read unchanged.
func Unclean(err error) error {
	return tea.Errorf(tea.PermissionDenied, "the memory was not closed, and its last changes are in a log that cannot be read from a %w folder; open it once for writing: %w", store.ErrReadOnly, err)
}

// Fault is a class of database errors, by how they are handled.
type Fault int

// The faults.
const (
	// FaultStatement is a fault of the statement: a retry fails in the same way.
	FaultStatement Fault = iota
	// FaultTransient can pass if the call is retried.
	FaultTransient
	// FaultBroken is a fault of the database: its disk, file or memory.
	FaultBroken
	// FaultFatal is a FaultBroken after which the open database cannot be used: it
	// is closed, and the next call opens it again.
	FaultFatal
)
