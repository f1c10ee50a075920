package sandbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Answer collects rows until a bound of the sandbox is reached.
type Answer struct {
	bounds store.Sandbox
	table  store.Table
	bytes  int
}

// ErrFirstRow is wrapped by the error of a query whose first row is larger than the
// bound of the result.
var ErrFirstRow = errors.New("the first row has more than")

// NewAnswer creates an Answer with the given columns. It makes their names
// unique.
func NewAnswer(bounds store.Sandbox, columns []string) *Answer {
	return &Answer{bounds: bounds, table: store.Table{Columns: unique(columns), Rows: [][]any{}}}
}

// Read adds all rows, converts each value with convert, and closes the rows.
func (a *Answer) Read(rows *sql.Rows, convert func(column int, v any) (any, error)) (store.Table, error) {
	defer rows.Close()
	into := make([]any, len(a.table.Columns))
	for i := range into {
		into[i] = new(any)
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return store.Table{}, err
		}
		row := make([]any, len(into))
		for i, v := range into {
			converted, err := convert(i, *v.(*any))
			if err != nil {
				return store.Table{}, fmt.Errorf("column %q: %w", a.table.Columns[i], err)
			}
			row[i] = converted
		}
		if more, err := a.Add(row); err != nil {
			return store.Table{}, err
		} else if !more {
			break
		}
	}
	if err := rows.Err(); err != nil && !a.table.Truncated {
		return store.Table{}, err
	}
	return a.table, nil
}

// Add adds a row and reports whether there is room for more. It leaves out a row
// that exceeds a bound.
func (a *Answer) Add(row []any) (more bool, err error) {
	if len(a.table.Rows) == a.bounds.MaxRows {
		a.table.Truncated = true
		return false, nil
	}
	for _, v := range row {
		a.bytes += size(v)
	}
	if a.bytes > a.bounds.MaxBytes {
		if len(a.table.Rows) == 0 {
			return false, tea.Errorf(tea.ValidationError, "SQL: %w %d bytes; select less of it", ErrFirstRow, a.bounds.MaxBytes)
		}
		a.table.Truncated = true
		return false, nil
	}
	a.table.Rows = append(a.table.Rows, row)
	return true, nil
}

// Table returns the result.
func (a *Answer) Table() store.Table { return a.table }

// size estimates the size of a value.
func size(v any) int {
	const scalar = 8
	switch v := v.(type) {
	case string:
		return scalar + len(v)
	case json.Number:
		return scalar + len(v)
	case []any:
		sum := scalar
		for _, e := range v {
			sum += size(e)
		}
		return sum
	case map[string]any:
		sum := scalar
		for k, e := range v {
			sum += scalar + len(k) + size(e)
		}
		return sum
	}
	return scalar
}

// unique appends _2 to the second of two equal names, and so on.
func unique(names []string) []string {
	taken := make(map[string]bool, len(names))
	for _, n := range names {
		taken[n] = true
	}
	seen := make(map[string]bool, len(names))
	out := make([]string, len(names))
	for i, n := range names {
		name := n
		for k := 2; seen[name] || (name != n && taken[name]); k++ {
			name = n + "_" + strconv.Itoa(k)
		}
		seen[name] = true
		out[i] = name
	}
	return out
}

// Float returns a floating-point number in the value model, which is JSON's: null
// for numbers that are not finite.
func Float(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return f + 0 // -0 is 0: not all engines keep its sign
}

// Decimal returns a decimal number, or its text if a float would lose digits.
func Decimal(exact string) any {
	f, err := strconv.ParseFloat(exact, 64)
	want, ok := new(big.Rat).SetString(exact)
	if err == nil && ok {
		if short, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'f', -1, 64)); !ok || short.Cmp(want) != 0 {
			return exact
		}
	}
	return Float(f)
}

// Failure sets the type of the error of a running query. Errors with a type and
// errors of the database itself are returned unchanged.
func Failure(ctx context.Context, err error, timeout fmt.Stringer) error {
	var typed *tea.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &typed):
		return err
	case errors.Is(context.Cause(ctx), errMemory):
		return tea.Errorf(tea.ValidationError, "SQL: %w; read, sort or group less", errMemory)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return tea.Errorf(tea.Timeout, "the query took longer than %v; restrict it, or raise its timeout: %w", timeout, ctx.Err())
	case ctx.Err() != nil:
		return tea.Errorf(tea.Canceled, "the query was canceled: %w", ctx.Err())
	}
	return err
}
