package engine

import (
	"context"
	"database/sql"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// Driver is what differs between the databases.
type Driver interface {
	// Dialect is the SQL that the database speaks.
	Dialect() store.Dialect
	// File is the name of the database in its folder.
	File() string
	// Open opens the database file, making it where it is missing.
	Open(ctx context.Context, path string, limits Limits) (Handles, error)
	// OpenReadOnly opens the database file for reading. It writes nothing beside
	// the file, and sees every commit or fails.
	OpenReadOnly(ctx context.Context, path string, limits Limits) (*sql.DB, error)
	// Fault says how to treat an error of the database.
	Fault(err error) Fault
	// Full reports whether an error means that the disk is full.
	Full(err error) bool
	// Damaged reports whether an error means that the database file is damaged.
	Damaged(err error) bool
	// Select runs one SELECT from outside on a connection for reading. What it
	// finds out about the query it may keep in plans.
	Select(ctx context.Context, conn *sql.Conn, plans *sandbox.Plans, query string, bounds store.Sandbox) (store.Table, error)
}

// Appender is a driver with a faster way to add many rows than an INSERT each.
type Appender interface {
	// Append adds rows to a table inside the transaction that conn has open.
	Append(ctx context.Context, conn *sql.Conn, table string, rows [][]any) error
}

// Handles are the pools of an open database. Both may be the same one.
type Handles struct {
	// Read is for statements that read.
	Read *sql.DB
	// Write gives the one connection that writes.
	Write *sql.DB
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

// Unclean is the error of opening a database for reading whose log cannot be
// read as it is.
func Unclean(err error) error {
	return tea.Errorf(tea.PermissionDenied, "the memory was not closed, and its last changes are in a log that cannot be read from a %w folder; open it once for writing: %w", store.ErrReadOnly, err)
}

// Fault says how an error of the database is to be treated.
type Fault int

// The faults.
const (
	// FaultStatement is the statement's own: a repetition fails the same way.
	FaultStatement Fault = iota
	// FaultTransient may pass when the call is repeated at once.
	FaultTransient
	// FaultBroken is the database's: the disk, the file, the memory.
	FaultBroken
	// FaultFatal is FaultBroken where the database as it is open is of no use
	// any more: it is closed, and the next call opens it again.
	FaultFatal
)
