package bucket

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/embedded"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// parts are the driver, the records and the tables of one database.
type parts struct {
	driver  *embedded.Driver
	replica store.Replica
	tables  *tabular.Tables
}

// partsOn opens the parts of a database in a folder.
func partsOn(e store.QueryEngine, dir string, blobs store.BlobStorage, clock *clock.Clock, c store.Config) parts {
	c.Dir, c.Blobs = dir, blobs
	d := embedded.New(e, c, vector.Options{})
	s := records.OpenFinder(d, c)
	docs := d.Documents(s.Metadata)
	return parts{d, s.Replica, tabular.New(tabular.Options{
		Engine: e, Documents: docs, Catalog: catalog.NewManaged(docs, clock), Dir: filepath.Join(dir, "tables"), ReadOnly: c.ReadOnly != "", Logger: c.Logger,
	})}
}

// recoverCopies merges the acknowledged changes of copies that were moved aside. It
// retries failed merges with the next lease.
func (t *holder) recoverCopies(ctx context.Context) {
	folders, err := filepath.Glob(filepath.Join(t.l.dir, asidePrefix+"*"))
	if err != nil {
		return // the pattern is valid
	}
	for _, dir := range folders {
		name := strings.TrimPrefix(filepath.Base(dir), asidePrefix)
		if strings.HasPrefix(name, ofOther) || strings.HasPrefix(name, withRefused) {
			continue
		}
		n, refused, err := t.merge(ctx, dir)
		switch {
		case err == nil && refused != nil:
			if err = os.Rename(dir, filepath.Join(t.l.dir, asidePrefix+withRefused+name)); err == nil {
				t.s.c.Logger.Warn("changes of this device that the memory refuses stay in a folder", "folder", asidePrefix+withRefused+name, "error", refused.Error())
			}
		case err == nil:
			err = os.RemoveAll(dir)
		}
		if err != nil {
			t.s.c.Logger.Warn("changes that this device has not published could not be merged; they are retried", "folder", dir, "error", err.Error())
			continue
		}
		t.s.c.Logger.Warn("changes that this device had acknowledged before another one took the lease were merged", "records", n)
	}
}

// merge writes the unpublished changes of a copy to the memory and publishes
// them. It returns their number, and the first reason why a record was refused.
func (t *holder) merge(ctx context.Context, dir string) (merged int, refused, err error) {
	old := local{dir: dir}
	if _, err := os.Stat(old.path(stateFile)); errors.Is(err, fs.ErrNotExist) {
		// The move was interrupted: the other files stayed in place and were moved into another folder later, or have
		// no changes.
		return 0, nil, nil
	}
	if err := old.readState(); err != nil {
		return 0, nil, err
	}
	e, err := engine.Open(ctx, engine.Options{Dir: dir, Driver: sqlite.Driver{}, LockTimeout: t.s.c.Timeout, Logger: t.s.c.Logger})
	if err != nil {
		return 0, nil, err
	}
	from := partsOn(e, dir, t.s.blobs, t.s.clock, t.s.c)
	defer func() { err = errors.Join(err, from.driver.Close(), e.Close()) }()
	for _, feed := range store.Feeds() {
		mark := old.state.Marks[feed]
		query := store.ChangeQuery{Feed: feed, After: mark, Limit: mergeAtOnce}
		for {
			page, err := from.replica.Changes(ctx, query)
			if errors.Is(err, store.ErrTooOld) && query.After > 0 {
				query.After, query.FromStart = 0, true
				continue
			}
			if err != nil {
				return merged, nil, err
			}
			n, no, err := t.mergePage(ctx, from.replica, page.Records, mark)
			if refused == nil {
				refused = no
			}
			if merged += n; err != nil {
				return merged, nil, err
			}
			if !page.More {
				break
			}
			query.After = page.Last
		}
	}
	rows, kept, err := t.tables.MergeCopy(ctx, from.tables, filepath.Base(dir), func(log string) int64 { return old.state.Marks[store.Feed(log)] })
	if merged += int(rows); err != nil {
		return merged, nil, err
	}
	if kept > 0 {
		t.s.c.Logger.Warn("rows changed by this device and by another one keep the values that the other one published", "rows", kept)
	}
	return merged, refused, t.publish(ctx, false)
}

// mergeAtOnce is the number of records that are compared together.
const mergeAtOnce = 500

// mergePage writes the records whose last change since the mark was made on this device. It returns their number, and
// the reason for the first refused record.
func (t *holder) mergePage(ctx context.Context, from store.Replica, changed []store.Record, mark int64) (merged int, refused, err error) {
	// A record can exist again after its tombstone.
	latest := map[store.RecordName]store.Record{}
	var names []store.RecordName
	for _, r := range changed {
		if _, ok := latest[r.RecordName]; !ok {
			names = append(names, r.RecordName)
		}
		latest[r.RecordName] = r
	}
	current, err := t.replica.Records(ctx, names...)
	if err != nil {
		return 0, nil, err
	}
	var writes []store.RecordWrite
	for i, now := range current {
		r := latest[names[i]]
		switch {
		case r.Damaged, r.Deleted && now.Deleted, !r.Deleted && !now.Deleted && r.Hash == now.Hash:
			continue
		case now.Seq <= mark, r.Updated.After(now.Updated), r.Updated.Equal(now.Updated) && r.Hash > now.Hash:
			w := store.RecordWrite{Record: r, If: store.AnySeq}
			if r.Content != "" {
				w.Open = contentOf(from, r.Content)
			}
			writes = append(writes, w)
		}
	}
	if len(writes) == 0 {
		return 0, nil, nil
	}
	results, err := t.replica.Put(ctx, writes...)
	if err != nil {
		return 0, nil, err
	}
	for _, r := range results {
		if r.Err == nil {
			merged++
		} else if refused == nil {
			refused = r.Err
		}
	}
	return merged, refused, nil
}

func contentOf(from store.Replica, hash string) func(context.Context) (io.ReadCloser, error) {
	return func(ctx context.Context) (io.ReadCloser, error) { return from.Content(ctx, hash) }
}
