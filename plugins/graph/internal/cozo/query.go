//go:build cozo && cgo

package cozo

import (
	"context"
	"errors"
	"time"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// queryTimeout is the time limit of a query whose context has no deadline.
const queryTimeout = time.Minute

// Language implements [store.Querier].
func (db *DB) Language() string { return "datalog" }

// Query implements [store.Querier].
func (db *DB) Query(ctx context.Context, q store.Query) (*store.Table, error) {
	done, err := db.use(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if !q.ReadOnly {
		if err := db.unseal(); err != nil {
			return nil, err
		}
	}
	l := limits{timeout: queryTimeout, memory: db.memory, rows: q.MaxRows, write: !q.ReadOnly}
	if at, ok := ctx.Deadline(); ok {
		l.timeout = max(time.Until(at), time.Millisecond)
	}
	p := params{}
	p.count(0)
	for name, v := range q.Params {
		if err := p.add(name).any(v); err != nil {
			return nil, err
		}
	}
	result := &store.Table{}
	err = db.engine.query(ctx, q.Text, p.done(), l, func(r *reader) error {
		t := r.open()
		result.Columns = t.columns
		result.Truncated = t.rows > q.MaxRows
		for range min(t.rows, q.MaxRows) {
			row := make([]any, len(t.columns))
			for i := range row {
				var err error
				if row[i], err = r.any(); err != nil {
					return err
				}
			}
			result.Rows = append(result.Rows, row)
		}
		return nil
	})
	var f *failure
	if ctxErr := ctx.Err(); ctxErr != nil && errors.As(err, &f) {
		return nil, ctxErr
	}
	if !q.ReadOnly {
		db.vectors.Forget() // the query may have changed entities
	}
	if err != nil {
		return nil, queryFault(q.Text, err)
	}
	return result, nil
}
