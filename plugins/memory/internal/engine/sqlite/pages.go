package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Pages reads the pages of an open database in order to copy it. It must be
// closed before the database.
type Pages struct {
	db   *sql.DB
	size int
	log  log
}

// OpenPages opens the pages of a database that is open for writing.
func OpenPages(ctx context.Context, path string) (*Pages, error) {
	db, err := open(ctx, path, url.Values{}, append(pragmas(engine.Limits{MemoryBytes: pageCache, Connections: 1}), "query_only(1)"))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	p := &Pages{db: db, log: log{path: path + "-wal"}}
	if err := db.QueryRowContext(ctx, "PRAGMA page_size").Scan(&p.size); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	p.log.size = int64(p.size)
	return p, nil
}

// pageCache is the memory of the connection that reads pages.
const pageCache = 2 << 20

// Size returns the size of a page.
func (p *Pages) Size() int { return p.size }

// Changed returns the numbers of the pages that were committed since the last
// call; a number can occur more than once. It is called between two writes, after
// each commit. complete is false if a part of the log was missed.
func (p *Pages) Changed() (pages []uint32, complete bool, err error) { return p.log.read() }

// Close closes the connection.
func (p *Pages) Close() error { return p.db.Close() }

// Snapshot is the state of a database after a commit. It must be ended.
type Snapshot struct {
	conn  *sql.Conn
	page  *sql.Stmt
	count uint32
}

// Snapshot begins a snapshot. There can be one at a time.
func (p *Pages) Snapshot(ctx context.Context) (*Snapshot, error) {
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{conn: conn}
	if _, err = conn.ExecContext(ctx, "BEGIN"); err == nil {
		// The first statement that reads fixes the state.
		var tables int
		err = conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables)
	}
	if err == nil {
		err = conn.QueryRowContext(ctx, "PRAGMA page_count").Scan(&s.count)
	}
	if err == nil {
		s.page, err = conn.PrepareContext(ctx, "SELECT data FROM sqlite_dbpage WHERE pgno = ?")
	}
	if err != nil {
		return nil, errors.Join(err, s.End())
	}
	return s, nil
}

// Count returns the number of pages.
func (s *Snapshot) Count() uint32 { return s.count }

// Page returns the content of a page; the first page has number 1.
func (s *Snapshot) Page(ctx context.Context, number uint32) ([]byte, error) {
	var data []byte
	if err := s.page.QueryRowContext(ctx, number).Scan(&data); err != nil {
		return nil, fmt.Errorf("read page %d: %w", number, err)
	}
	return data, nil
}

// Int returns the only value of a query.
func (s *Snapshot) Int(ctx context.Context, query string) (n int64, err error) {
	err = s.conn.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}

// Names returns the names of the tables that begin with a prefix.
func (s *Snapshot) Names(ctx context.Context, prefix string) ([]string, error) {
	return store.All[string](s.conn.QueryContext(ctx, "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, length(?)) = ?", prefix, prefix))
}

// End ends the snapshot.
func (s *Snapshot) End() error {
	var err error
	if s.page != nil {
		err = s.page.Close()
	}
	_, rollback := s.conn.ExecContext(context.Background(), "ROLLBACK")
	if s.page == nil {
		rollback = nil // it has not begun
	}
	return errors.Join(err, rollback, s.conn.Close())
}

// log follows the write-ahead log of a database, whose format is documented at
// https://sqlite.org/fileformat2.html#walformat.
type log struct {
	path string
	size int64 // of a page

	known bool // the fields below are set
	round uint32
	salt  uint64
	next  int64 // offset of the first frame after the last commit
}

const (
	logHeader   = 32
	frameHeader = 24
)

// read returns the pages of new transactions.
func (l *log) read() (pages []uint32, complete bool, err error) {
	file, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	var header [logHeader]byte
	if _, err := file.ReadAt(header[:], 0); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, true, nil // nothing was written yet
		}
		return nil, false, err
	}
	round, salt := binary.BigEndian.Uint32(header[12:]), binary.BigEndian.Uint64(header[16:])
	complete = true
	if !l.known || salt != l.salt {
		// A new log has round 0, and the round increases each time it restarts.
		complete = round == 0 || l.known && round == l.round+1
		l.known, l.round, l.salt, l.next = true, round, salt, logHeader
	}
	var open []uint32 // pages of a transaction that has no commit yet
	for at := l.next; ; at += frameHeader + l.size {
		var frame [frameHeader]byte
		if _, err := file.ReadAt(frame[:], at); errors.Is(err, io.EOF) {
			return pages, complete, nil
		} else if err != nil {
			return nil, false, err
		}
		if binary.BigEndian.Uint64(frame[8:]) != l.salt {
			return pages, complete, nil // left from before the log restarted
		}
		open = append(open, binary.BigEndian.Uint32(frame[:]))
		if binary.BigEndian.Uint32(frame[4:]) != 0 {
			pages, open = append(pages, open...), nil
			l.next = at + frameHeader + l.size
		}
	}
}
