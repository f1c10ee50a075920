package bucket

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// tableStore has the tables of data.*. Its changes are also reads, because the result of an earlier call may be
// unpublished.
type tableStore struct{ s *shared }

func (x tableStore) Create(ctx context.Context, n store.NewTable) (bool, error) {
	return with(ctx, x.s.read, func(t *holder) (bool, error) { return t.tables.Create(ctx, n) })
}

func (x tableStore) Insert(ctx context.Context, table string, rows []store.TableRow, conflict store.RowConflict, call store.TableCall) (store.TableResult, error) {
	return with(ctx, x.s.read, func(t *holder) (store.TableResult, error) { return t.tables.Insert(ctx, table, rows, conflict, call) })
}

func (x tableStore) Update(ctx context.Context, table string, which store.RowSelection, set store.TableRow, call store.TableCall) (store.TableResult, error) {
	return with(ctx, x.s.read, func(t *holder) (store.TableResult, error) { return t.tables.Update(ctx, table, which, set, call) })
}

func (x tableStore) UpdateRows(ctx context.Context, table string, rows []store.TableRow, call store.TableCall) (store.TableResult, error) {
	return with(ctx, x.s.read, func(t *holder) (store.TableResult, error) { return t.tables.UpdateRows(ctx, table, rows, call) })
}

func (x tableStore) Delete(ctx context.Context, table string, which store.RowSelection, call store.TableCall) (store.TableResult, error) {
	return with(ctx, x.s.read, func(t *holder) (store.TableResult, error) { return t.tables.Delete(ctx, table, which, call) })
}

func (x tableStore) Query(ctx context.Context, query store.TableQuery) (store.TableAnswer, error) {
	return with(ctx, x.s.read, func(t *holder) (store.TableAnswer, error) { return t.tables.Query(ctx, query) })
}

func (x tableStore) Rows(ctx context.Context, table, after string, limit int) (rows []json.RawMessage, next string, err error) {
	err = x.s.read(ctx, func(t *holder) (err error) {
		rows, next, err = t.tables.Rows(ctx, table, after, limit)
		return err
	})
	return rows, next, err
}

func (x tableStore) Versions(ctx context.Context) (map[string]int64, error) {
	return with(ctx, x.s.read, func(t *holder) (map[string]int64, error) { return t.tables.Versions(ctx) })
}

func (x tableStore) CountRows(ctx context.Context, table string) (int64, error) {
	return with(ctx, x.s.read, func(t *holder) (int64, error) { return t.tables.CountRows(ctx, table) })
}

func (x tableStore) ChangedRows(ctx context.Context, table string, after int64, limit int) (store.ChangePage, error) {
	return with(ctx, x.s.read, func(t *holder) (store.ChangePage, error) { return t.tables.ChangedRows(ctx, table, after, limit) })
}

func (x tableStore) RowRecords(ctx context.Context, table string, keys ...string) ([]store.Record, error) {
	return with(ctx, x.s.read, func(t *holder) ([]store.Record, error) { return t.tables.RowRecords(ctx, table, keys...) })
}

func (x tableStore) PutRows(ctx context.Context, table string, writes ...store.RecordWrite) ([]store.PutResult, error) {
	return with(ctx, x.s.read, func(t *holder) ([]store.PutResult, error) { return t.tables.PutRows(ctx, table, writes...) })
}

func (x tableStore) Consolidate(ctx context.Context, table string) (store.Consolidated, error) {
	return with(ctx, x.s.read, func(t *holder) (store.Consolidated, error) { return t.tables.Consolidate(ctx, table) })
}

type selector struct{ s *shared }

func (selector) Dialect() store.Dialect { return store.SQLite }

func (q selector) Select(ctx context.Context, query string, sandbox store.Sandbox) (store.Table, error) {
	return with(ctx, q.s.read, func(t *holder) (store.Table, error) {
		box := sandbox
		box.Views = append(slices.Clone(sandbox.Views), t.driver.Views()...)
		return t.engine.Select(ctx, query, box)
	})
}
