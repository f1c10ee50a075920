package archive

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Result is the result of an Import.
type Result struct {
	Summary
	// Written and Kept are the numbers of written records and of existing records
	// that were kept.
	Written, Kept int64
	// Resumed reports whether an earlier import of the archive was continued.
	Resumed bool
	// Refused are the reasons why records were not written, at most maxRefused.
	Refused []string
}

const maxRefused = 100

// Options configure an Import.
type Options struct {
	// Tables are the tables of the memory; nil = it has none.
	Tables Tables
	// Replace replaces records and rows that exist.
	Replace bool
	// Empty returns an error if the memory is not empty; nil = the memory may have
	// records. It is not called if an interrupted import with Empty of the same
	// archive is continued.
	Empty func(ctx context.Context) error
}

// Import reads an archive twice. It first checks all of it and writes nothing if
// it is damaged, and then writes its records and tables. An interrupted import
// continues when Import is called again with the same archive; until then the
// store has a document of ImportKind.
func Import(ctx context.Context, r io.ReadSeeker, to store.Replica, o Options) (Result, error) {
	summary, id, err := Check(ctx, r)
	if err != nil {
		return Result{}, err
	}
	if len(summary.Rows) > 0 && o.Tables == nil {
		return Result{}, tea.Errorf(tea.DependencyMissing, "the archive has tables, which this memory cannot store; import it into a memory with settings.memory.engine %s", store.EnginesWith(store.Tables))
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return Result{}, fmt.Errorf("read the archive again: %w", err)
	}
	i := &importing{to: to, Options: o, mark: store.RecordName{Feed: store.DocumentFeed, Space: ImportKind, Key: id}, contents: map[string][]byte{}, Result: Result{Summary: summary}}
	if err := i.resume(ctx); err != nil {
		return Result{}, err
	}
	if o.Empty != nil && !i.empty {
		if err := o.Empty(ctx); err != nil {
			return Result{}, err
		}
		i.empty = true
	}
	if !i.Resumed {
		i.run = rand.Text()
		mark, err := i.markWrite(0)
		if err == nil {
			_, err = to.Put(ctx, mark)
		}
		if err != nil {
			return Result{}, fmt.Errorf("begin the import: %w", err)
		}
	}
	if _, err := walk(ctx, r, visitor{content: i.content, records: i.records, table: i.table, rows: i.rows}); err != nil {
		return Result{}, fmt.Errorf("%w; a part of the archive is in the memory: import it again with memory.import to continue", err)
	}
	_, err = to.Put(ctx, store.RecordWrite{Record: store.Record{RecordName: i.mark, Deleted: true}, If: store.AnySeq})
	return i.Result, err
}

type importing struct {
	Options
	to       store.Replica
	empty    bool // the memory was empty at the beginning
	mark     store.RecordName
	run      string            // identifies this import, even when it is continued
	contents map[string][]byte // of the next page
	done     int64             // the pages that an earlier import wrote
	page     int64
	key      []string // the primary key of the table
	Result
}

// progress is the body of the document of an import.
type progress struct {
	Pages int64 `json:"pages"`
	// Empty reports whether the memory was empty before the import.
	Empty bool `json:"empty,omitempty"`
	// Run identifies the import, "" for an import that an older version began.
	Run string `json:"run,omitempty"`
}

// markWrite writes the document of the import after a number of pages.
func (i *importing) markWrite(pages int64) (store.RecordWrite, error) {
	body, err := json.Marshal(progress{Pages: pages, Empty: i.empty, Run: i.run})
	return store.RecordWrite{Record: store.Record{RecordName: i.mark, Body: body}, If: store.AnySeq}, err
}

func (i *importing) resume(ctx context.Context) error {
	found, err := i.to.Records(ctx, i.mark)
	if err != nil || found[0].Deleted {
		return err
	}
	var p progress
	if err := json.Unmarshal(found[0].Body, &p); err != nil {
		return tea.Errorf(tea.InternalError, "the document of the interrupted import is damaged: %w", err)
	}
	i.done, i.empty, i.run, i.Resumed = p.Pages, p.Empty, p.Run, true
	return nil
}

func (i *importing) content(_ context.Context, sha string, data []byte) error {
	i.contents[sha] = data
	return nil
}

// records writes a page, together with its number.
func (i *importing) records(ctx context.Context, records []store.Record) error {
	i.page++
	defer clear(i.contents)
	if i.page <= i.done {
		return nil
	}
	condition := store.AnySeq
	if !i.Replace {
		condition = 0
	}
	for part := range slices.Chunk(records, pageRecords) {
		writes := make([]store.RecordWrite, 0, len(part)+1)
		seen := make(map[store.RecordName]bool, len(part))
		for _, r := range part {
			if seen[r.RecordName] || r.Space == ImportKind {
				return damaged("record %q of %s appears twice on a page", r.Key, r.Feed)
			}
			seen[r.RecordName] = true
			writes = append(writes, store.RecordWrite{Record: r, If: condition, Open: i.opener(r.Content)})
		}
		pages := i.page - 1
		if &part[len(part)-1] == &records[len(records)-1] {
			pages = i.page // the last part completes the page
		}
		mark, err := i.markWrite(pages)
		if err != nil {
			return err
		}
		writes = append(writes, mark)
		results, err := syncing.Put(ctx, i.to, writes)
		if err != nil {
			return fmt.Errorf("import page %d: %w", i.page, err)
		}
		i.count(part, results)
	}
	return nil
}

func (i *importing) count(records []store.Record, results []store.PutResult) {
	for n, r := range records {
		switch {
		case results[n].Err != nil:
			i.refuse(fmt.Sprintf("%s %q %q: %v", r.Feed, r.Space, r.Key, results[n].Err))
		case results[n].Conflict:
			i.Kept++
		default:
			i.Written++
		}
	}
}

func (i *importing) opener(sha string) func(context.Context) (io.ReadCloser, error) {
	data, ok := i.contents[sha]
	if sha == "" || !ok {
		return nil
	}
	return func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
}

func (i *importing) refuse(reason string) {
	if len(i.Refused) < maxRefused {
		i.Refused = append(i.Refused, reason)
	}
}

func (i *importing) table(ctx context.Context, table Table) error {
	i.key = table.PrimaryKey
	return i.Tables.Create(ctx, table)
}

// rows adds a page of rows. It is idempotent.
func (i *importing) rows(ctx context.Context, table string, rows []json.RawMessage) error {
	i.page++
	return i.insert(ctx, table, rows, fmt.Sprintf("import-%s%s-%d", i.mark.Key, i.run, i.page))
}

// insert adds rows except those that the memory cannot store, which it finds by
// bisection.
func (i *importing) insert(ctx context.Context, table string, rows []json.RawMessage, key string) error {
	err := i.Tables.Insert(ctx, table, rows, i.Replace, key)
	refused := tea.AsError(err)
	switch {
	case refused == nil || refused.Type != tea.ValidationError && !errors.Is(err, store.ErrTooLarge):
		return err
	case len(rows) == 1:
		i.refuse(fmt.Sprintf("table %s, row %s: %s", table, keyOf(rows[0], i.key), strings.TrimPrefix(refused.Message, "row 0: ")))
		return nil
	}
	half := len(rows) / 2
	if err := i.insert(ctx, table, rows[:half], key+"a"); err != nil {
		return err
	}
	return i.insert(ctx, table, rows[half:], key+"b")
}

// keyOf returns the primary key of a row as JSON, or the beginning of a row
// without a key.
func keyOf(row json.RawMessage, columns []string) string {
	var members map[string]json.RawMessage
	if len(columns) == 0 || json.Unmarshal(row, &members) != nil {
		return fmt.Sprintf("%.100s", row)
	}
	values := make([]json.RawMessage, len(columns))
	for n, c := range columns {
		values[n] = members[c]
	}
	key, _ := json.Marshal(values) // parts of JSON
	return string(key)
}
