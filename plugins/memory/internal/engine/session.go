package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/plugins/memory/internal/schema"
)

// session is an open database.
type session struct {
	owner    *owner
	handles  Handles
	reads    *statements
	writer   *writer
	identity string
	// beforeWrite calls handles.BeforeWrite once.
	beforeWrite func()

	// Guarded by Engine.mu: the number of calls that use the session, and whether
	// it accepts no more calls.
	users   int
	retired bool
	idle    chan struct{} // closed when the last call of a retired session ends
	gone    chan struct{} // closed when a discarded session is closed
}

// retire makes the session accept no more calls. The caller holds Engine.mu.
func (s *session) retire() {
	s.retired = true
	if s.users == 0 {
		close(s.idle)
	}
}

func openSession(ctx context.Context, o Options) (*session, error) {
	s := &session{idle: make(chan struct{}), gone: make(chan struct{})}
	var err error
	if s.owner, err = own(ctx, o.Dir, o.LockTimeout, o.ReadOnly != ""); err != nil {
		return nil, err
	}
	if o.ReadOnly != "" {
		if err = s.openReadOnly(ctx, o); err != nil {
			return nil, errors.Join(err, s.owner.release())
		}
		return s, nil
	}
	path := filepath.Join(o.Dir, o.Driver.File())
	stored, err := readIdentity(o.Dir)
	if err == nil && stored != "" {
		err = checkThere(o.Dir, path)
	}
	if err != nil {
		return nil, errors.Join(err, s.owner.release())
	}
	if s.handles, err = o.Driver.Open(ctx, path, o.Limits); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), s.owner.release())
	}
	connections := o.Limits.Connections
	if s.handles.Read == s.handles.Write {
		connections++ // for the writer
	}
	s.handles.Read.SetMaxOpenConns(connections)
	s.handles.Read.SetMaxIdleConns(connections)
	conn, err := s.prepare(ctx, o, path)
	if err == nil {
		if err = writeIdentity(o.Dir, stored, s.identity); err != nil {
			err = errors.Join(err, conn.Close())
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), s.handles.Close(), s.owner.release())
	}
	s.reads = newStatements(s.handles.Read)
	s.writer = newWriter(conn, o.Driver, s.beforeWrite, s.beforeCommit, s.handles.Checkpoint, o.Logger)
	for _, what := range s.handles.Repaired {
		o.Logger.Warn("the memory was damaged and is repaired", "folder", o.Dir, "reason", what)
	}
	return s, nil
}

func (s *session) beforeCommit() error {
	if s.handles.BeforeCommit != nil {
		s.handles.BeforeCommit()
	}
	return s.owner.still()
}

// openReadOnly opens the database without changing anything.
func (s *session) openReadOnly(ctx context.Context, o Options) error {
	path := filepath.Join(o.Dir, o.Driver.File())
	stored, err := readIdentity(o.Dir)
	if err == nil {
		err = checkThere(o.Dir, path)
	}
	if err != nil {
		return err
	}
	db, err := o.Driver.OpenReadOnly(ctx, path, o.Limits)
	if err != nil {
		return fmt.Errorf("open %s for reading: %w", path, err)
	}
	db.SetMaxOpenConns(o.Limits.Connections)
	db.SetMaxIdleConns(o.Limits.Connections)
	if err = schema.Check(ctx, db, o.Driver.Dialect()); err == nil {
		err = db.QueryRowContext(ctx, "SELECT id FROM tea_identity").Scan(&s.identity)
	}
	if err == nil && !strings.HasPrefix(s.identity, stored) {
		err = lostDatabase(o.Dir, "was replaced by another one")
	}
	if err == nil {
		err = s.owner.watch(path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("open %s for reading: %w", path, err), db.Close())
	}
	s.handles, s.reads = Handles{Read: db, Write: db}, newStatements(db)
	return nil
}

// prepare migrates the schema and returns the connection that writes.
func (s *session) prepare(ctx context.Context, o Options, path string) (conn *sql.Conn, err error) {
	if conn, err = s.handles.Write.Conn(ctx); err != nil {
		return nil, err
	}
	s.beforeWrite = sync.OnceFunc(s.handles.BeforeWrite)
	changed, err := schema.Migrate(ctx, conn, o.Driver.Dialect(), s.beforeWrite)
	if err == nil && changed && s.handles.Checkpoint != nil {
		err = s.handles.Checkpoint(ctx, conn)
	}
	if err == nil {
		err = conn.QueryRowContext(ctx, "SELECT id FROM tea_identity").Scan(&s.identity)
	}
	if err == nil {
		err = s.owner.watch(path)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func (s *session) close() error {
	var err error
	var whole bool
	if s.writer != nil {
		whole, err = s.writer.close()
	}
	err = errors.Join(err, s.reads.close(), s.handles.Close())
	if err == nil && whole && s.handles.Closed != nil && s.owner.still() == nil {
		_ = s.handles.Closed() // without it the next open takes longer
	}
	return errors.Join(err, s.owner.release())
}

// watched is a file that must not be replaced.
type watched struct {
	path string
	info os.FileInfo
}

// watch records the file at path.
func (o *owner) watch(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	o.files = append(o.files, watched{path: path, info: info})
	return nil
}

// still returns an error if the files were replaced since they were opened.
// Writes to a removed file would be lost without an error.
func (o *owner) still() error {
	for _, file := range o.files {
		if now, err := os.Stat(file.path); err != nil || !os.SameFile(now, file.info) {
			return fmt.Errorf("%s: %w", file.path, errReplaced)
		}
	}
	return nil
}
