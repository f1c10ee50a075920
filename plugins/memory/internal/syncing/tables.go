package syncing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Rows are the rows of tables with primary keys, as records of the [store.RowFeed]. A row has the number of its last
// change, which increases with each change of its table. A deletion also has a number, but no tombstone. The names of
// tables are in lower case.
type Rows interface {
	// Versions returns the number of the last change of each table.
	Versions(ctx context.Context) (map[string]int64, error)
	CountRows(ctx context.Context, table string) (int64, error)
	// ChangedRows returns the rows that changed after a number, in the order of their
	// numbers.
	ChangedRows(ctx context.Context, table string, after int64, limit int) (store.ChangePage, error)
	// RowRecords returns the rows with keys, in order. A row that does not exist is
	// Deleted.
	RowRecords(ctx context.Context, table string, keys ...string) ([]store.Record, error)
	// PutRows writes rows as Put of a [store.Replica] writes records.
	PutRows(ctx context.Context, table string, writes ...store.RecordWrite) ([]store.PutResult, error)
}

// Tables are the tables of a memory.
type Tables interface {
	Rows
	// Definitions returns the definitions of all tables.
	Definitions(ctx context.Context) ([]store.NewTable, error)
	// Create creates a table, unless the same table exists. A different definition
	// is a validation_error.
	Create(ctx context.Context, t store.NewTable) error
}

// DeviceTables are the tables of the device.
type DeviceTables interface {
	Tables
	// PutRowsWith is PutRows, with also as for PutWith of a [Device].
	PutRowsWith(ctx context.Context, table string, writes []store.RecordWrite, also func([]store.PutResult) []SyncedRecord) ([]store.PutResult, error)
}

// remoteRecords and localRecords are the compared records: the records of a feed,
// or the rows of a table.
type remoteRecords interface {
	Records(ctx context.Context, names ...store.RecordName) ([]store.Record, error)
	Put(ctx context.Context, writes ...store.RecordWrite) ([]store.PutResult, error)
}

type localRecords interface {
	Records(ctx context.Context, names ...store.RecordName) ([]store.Record, error)
	PutWith(ctx context.Context, writes []store.RecordWrite, also func([]store.PutResult) []SyncedRecord) ([]store.PutResult, error)
}

// rows are the rows of a table.
type rows[T Rows] struct {
	of    T
	table string
}

func (r rows[T]) Records(ctx context.Context, names ...store.RecordName) ([]store.Record, error) {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = name.Key
	}
	return r.of.RowRecords(ctx, r.table, keys...)
}

func (r rows[T]) Put(ctx context.Context, writes ...store.RecordWrite) ([]store.PutResult, error) {
	return r.of.PutRows(ctx, r.table, writes...)
}

type deviceRows struct{ rows[DeviceTables] }

func (r deviceRows) PutWith(ctx context.Context, writes []store.RecordWrite, also func([]store.PutResult) []SyncedRecord) ([]store.PutResult, error) {
	return r.of.PutRowsWith(ctx, r.table, writes, also)
}

// maxRounds bounds the rounds for tables that change meanwhile.
const maxRounds = 4

// tables synchronises the rows of all tables.
func (r *run) tables(ctx context.Context) error {
	names, err := r.sameTables(ctx)
	if err != nil || len(names) == 0 {
		return err
	}
	// The second round handles the writes of the first one.
	for range maxRounds {
		local, err := r.LocalTables.Versions(ctx)
		if err != nil {
			return err
		}
		remote, err := r.RemoteTables.Versions(ctx)
		if err != nil {
			return err
		}
		changed := false
		for _, name := range names {
			done, err := r.table(ctx, name, Numbers{local[name], remote[name]})
			if err != nil {
				return fmt.Errorf("table %s: %w", name, err)
			}
			changed = changed || done
		}
		if !changed {
			break
		}
	}
	return nil
}

// sameTables creates the tables that one side lacks, and returns the names of the
// tables that are the same on both sides.
func (r *run) sameTables(ctx context.Context) (names []string, err error) {
	defined := map[string]store.NewTable{}
	add := func(of Tables) error {
		all, err := of.Definitions(ctx)
		for _, t := range all {
			if name := strings.ToLower(t.Name); defined[name].Name == "" {
				defined[name] = t
			}
		}
		return err
	}
	if r.RemoteTables != nil {
		err = add(r.RemoteTables)
	}
	if r.LocalTables != nil {
		err = errors.Join(err, add(r.LocalTables))
	}
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(defined)) {
		t := defined[name]
		if len(t.PrimaryKey) == 0 || r.LocalTables == nil || r.RemoteTables == nil {
			r.SkippedTables = append(r.SkippedTables, name)
			continue
		}
		err := r.LocalTables.Create(ctx, t)
		if err == nil {
			err = r.RemoteTables.Create(ctx, t)
		}
		switch {
		case err == nil:
			names = append(names, name)
		case tea.AsError(err).Type != tea.ValidationError:
			return nil, err
		case len(r.Refused) < maxListed:
			r.Refused = append(r.Refused, fmt.Sprintf("the table %s is not synchronised: %v", t.Name, err))
		}
	}
	return names, nil
}

// table synchronises the rows of a table, whose current change numbers are now, and reports whether it changed since
// the last time.
func (r *run) table(ctx context.Context, name string, now Numbers) (changed bool, err error) {
	of := []string{string(store.RowFeed), name}
	id := strings.Join(of, "/")
	last, err := r.base.numbers(ctx, of...)
	if err != nil {
		return false, err
	}
	r.evidence = nil
	if e := r.evidenceOf(id); e != nil && !r.compared[name] {
		if r.history.Divergence.Read != nil {
			e.read = last.Remote
		}
		r.evidence = e
	} else if last == now {
		return false, nil
	} else if now.Local < last.Local || now.Remote < last.Remote {
		r.evidence = &evidence{} // the table was created again
	}
	r.compared[name] = true
	r.local, r.remote = deviceRows{rows[DeviceTables]{r.LocalTables, name}}, rows[Tables]{r.RemoteTables, name}
	if r.evidence != nil {
		last = Numbers{}
	}
	r.unmarked = r.unmarked || now.Remote != last.Remote
	for _, side := range []struct {
		from Rows
		last int64
	}{{r.RemoteTables, last.Remote}, {r.LocalTables, last.Local}} {
		for more := true; more; {
			page, err := side.from.ChangedRows(ctx, name, side.last, pageRecords)
			if err != nil {
				return false, err
			}
			if err := r.page(ctx, page.Records); err != nil {
				return false, err
			}
			side.last, more = page.Last, page.More
		}
	}
	if r.evidence != nil {
		err = r.deletions(ctx, of...)
	} else {
		err = r.deletedRows(ctx, name, of)
	}
	if err != nil {
		return false, err
	}
	if err := r.note(ctx, id, now.Remote); err != nil {
		return false, err
	}
	return true, r.base.setNumbers(ctx, now, of...)
}

// deletedRows compares all rows that both sides had if one side has fewer.
func (r *run) deletedRows(ctx context.Context, name string, of []string) error {
	local, err := r.LocalTables.CountRows(ctx, name)
	if err != nil {
		return err
	}
	remote, err := r.RemoteTables.CountRows(ctx, name)
	if err != nil {
		return err
	}
	known := int64(0)
	for last := ""; ; {
		names, next, err := r.base.after(ctx, last, idsPerPage, of...)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			break
		}
		known, last = known+int64(len(names)), next
	}
	if local == known && remote == known {
		return nil
	}
	return r.deletions(ctx, of...)
}

// idsPerPage is the number of ids of the base that are counted together.
const idsPerPage = 5000
