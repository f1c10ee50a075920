package archive

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	format  = "tea-memory"
	version = 1

	headerName = "tea-memory.json"
	endName    = "end.json"

	pageRecords = 1000
	pageBytes   = 4 << 20
	// pageContents bounds the contents before a page, except the last one.
	pageContents = 32 << 20
)

// header is the first entry of an archive.
type header struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	ID      string    `json:"id"` // of the memory
	Created time.Time `json:"created"`
}

// Summary counts the contents of an archive.
type Summary struct {
	// Records are the numbers of records by feed, with "documents" by kind.
	Records map[string]int64 `json:"records"`
	// Rows are the numbers of rows by table.
	Rows     map[string]int64 `json:"rows,omitempty"`
	Contents int64            `json:"contents"`
	// Damaged are the numbers of records that could not be read and are missing
	// from the archive.
	Damaged int64 `json:"damaged,omitempty"`
}

// end is the last entry of an archive.
type end struct {
	Summary
	Entries int64  `json:"entries"`
	SHA256  string `json:"sha256"`
}

// Table is a table of a memory.
type Table struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"`
	PrimaryKey  []string        `json:"primary_key,omitempty"`
}

// Tables are the tables of a memory.
type Tables interface {
	Tables(ctx context.Context) ([]Table, error)
	// Rows calls page with all rows of a table, some at a time.
	Rows(ctx context.Context, table Table, page func(rows []json.RawMessage) error) error
	// Create creates a table unless it exists with the same definition.
	Create(ctx context.Context, table Table) error
	// Insert adds rows. Rows with an existing primary key replace it if replace is
	// set, otherwise they are ignored. A repeated call with the same key does
	// nothing.
	Insert(ctx context.Context, table string, rows []json.RawMessage, replace bool, key string) error
}

// Export writes all records of a store, and all tables unless tables is nil.
func Export(ctx context.Context, w io.Writer, from store.Replica, tables Tables) (Summary, error) {
	identity, err := from.Identity(ctx)
	if err != nil {
		return Summary{}, err
	}
	packed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return Summary{}, err
	}
	e := &export{from: from, tar: tar.NewWriter(packed), sum: sha256.New(), saved: map[string]bool{}, Summary: Summary{Records: map[string]int64{}, Rows: map[string]int64{}}}
	if err := e.addJSON(headerName, header{Format: format, Version: version, ID: identity, Created: time.Now().UTC().Truncate(time.Second)}); err != nil {
		return Summary{}, err
	}
	for _, feed := range store.Feeds() {
		if err := e.feed(ctx, feed); err != nil {
			return Summary{}, err
		}
	}
	if tables != nil {
		if err := e.tables(ctx, tables); err != nil {
			return Summary{}, err
		}
	}
	if err := e.addJSON(endName, end{Summary: e.Summary, Entries: e.entries, SHA256: hex.EncodeToString(e.sum.Sum(nil))}); err != nil {
		return Summary{}, err
	}
	if err := e.tar.Close(); err != nil {
		return Summary{}, err
	}
	return e.Summary, packed.Close()
}

type export struct {
	from    store.Replica
	tar     *tar.Writer
	sum     hash.Hash
	entries int64
	pages   int
	saved   map[string]bool // the contents before the current page
	Summary
}

func (e *export) add(name string, data []byte) error {
	if err := e.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o600, Format: tar.FormatPAX}); err != nil {
		return err
	}
	if _, err := e.tar.Write(data); err != nil {
		return err
	}
	e.entries++
	addTo(e.sum, name, data)
	return nil
}

func addTo(sum hash.Hash, name string, data []byte) {
	fmt.Fprintf(sum, "%s\n%d\n", name, len(data))
	_, _ = sum.Write(data) // a hash never fails
}

func (e *export) addJSON(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return e.add(name, append(data, '\n'))
}

func (e *export) feed(ctx context.Context, feed store.Feed) error {
	query := store.ChangeQuery{Feed: feed, Limit: pageRecords, MaxBytes: pageBytes}
	for {
		page, err := e.from.Changes(ctx, query)
		if err != nil {
			return err
		}
		if err := e.page(ctx, page.Records); err != nil {
			return err
		}
		if query.After, query.FromStart = page.Last, true; !page.More {
			return nil
		}
	}
}

func (e *export) page(ctx context.Context, records []store.Record) error {
	var lines []byte
	contents := 0
	flush := func() error {
		if len(lines) == 0 {
			return nil
		}
		e.pages++
		err := e.add(fmt.Sprintf("records/%06d.jsonl", e.pages), lines)
		lines, contents = lines[:0], 0
		clear(e.saved)
		return err
	}
	for _, r := range records {
		switch {
		case r.Deleted:
			continue
		case r.Damaged:
			e.Damaged++
			continue
		}
		if r.Content != "" {
			n, err := e.content(ctx, r.Content)
			if errors.Is(err, store.ErrNotFound) || errors.Is(err, content.ErrDamaged) {
				e.Damaged++ // or it was replaced since, and the later change follows
				continue
			}
			if err != nil {
				return fmt.Errorf("read the content of %q: %w", r.Key, err)
			}
			contents += n
		}
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
		name := string(r.Feed)
		if r.Feed == store.DocumentFeed {
			name = r.Space
		}
		e.Records[name]++
		if contents >= pageContents {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// content writes the content of a file and returns its size.
func (e *export) content(ctx context.Context, sha string) (int, error) {
	if e.saved[sha] {
		return 0, nil
	}
	from, err := e.from.Content(ctx, sha)
	if err != nil {
		return 0, err
	}
	defer from.Close()
	data, err := io.ReadAll(from)
	if err != nil {
		return 0, err
	}
	e.saved[sha] = true
	e.Contents++
	return len(data), e.add("contents/"+sha, data)
}

func (e *export) tables(ctx context.Context, tables Tables) error {
	all, err := tables.Tables(ctx)
	if err != nil {
		return err
	}
	for _, table := range all {
		if err := e.addJSON("tables/"+table.Name+".json", table); err != nil {
			return err
		}
		e.Rows[table.Name] = 0
		n := 0
		err := tables.Rows(ctx, table, func(rows []json.RawMessage) error {
			var lines []byte
			for _, row := range rows {
				lines = append(append(lines, row...), '\n')
			}
			n++
			e.Rows[table.Name] += int64(len(rows))
			return e.add(fmt.Sprintf("tables/%s/%06d.jsonl", table.Name, n), lines)
		})
		if err != nil {
			return fmt.Errorf("table %s: %w", table.Name, err)
		}
	}
	return nil
}
