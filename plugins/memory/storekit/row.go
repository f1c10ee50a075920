package storekit

import (
	"cmp"
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strings"

	jsonvalue "github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Row is a document with its decoded body, for a database that cannot evaluate all
// conditions of a query itself.
type Row struct {
	store.Document
	body any
}

// NewRow decodes the body of a document. A damaged document has no fields.
func NewRow(d store.Document) Row {
	body, _ := jsonvalue.Decode(d.Body)
	return Row{d, body}
}

// CheckQuery returns a validation_error for an invalid condition or order.
func CheckQuery(q store.DocumentQuery) error {
	if _, _, err := documents.Where(store.SQLite, q); err != nil {
		return err
	}
	_, err := documents.OrderBy(store.SQLite, q)
	return err
}

// field returns the value of a field, nil for none.
func (r Row) field(path string) any {
	if path == "id" {
		return r.ID
	}
	v := r.body
	for name := range strings.SplitSeq(path, ".") {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return Number(v)
}

// Number returns a number as an int64 or a float64, and other values unchanged.
func Number(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case json.Number:
		f, _ := v.Float64()
		return f
	}
	return v
}

// Matches reports whether the document meets all conditions, which must be valid.
func (r Row) Matches(where []store.Condition) bool {
	return !slices.ContainsFunc(where, func(c store.Condition) bool { return !matches(r.field(c.Field), c) })
}

func matches(v any, c store.Condition) bool {
	switch c.Op {
	case store.Eq:
		return same(v, c.Value)
	case store.Ne:
		return !same(v, c.Value)
	case store.In:
		list, _ := c.Value.([]any)
		return slices.ContainsFunc(list, func(one any) bool { return same(v, one) })
	case store.Prefix:
		text, ok := v.(string)
		prefix, _ := c.Value.(string)
		return ok && strings.HasPrefix(text, prefix)
	}
	order, ok := compare(v, Number(c.Value))
	switch c.Op {
	case store.Lt:
		return ok && order < 0
	case store.Le:
		return ok && order <= 0
	case store.Gt:
		return ok && order > 0
	}
	return ok && order >= 0
}

func same(v, wanted any) bool {
	wanted = Number(wanted)
	switch v.(type) {
	case nil, bool:
		return v == wanted
	}
	order, ok := compare(v, wanted)
	return ok && order == 0
}

// compare compares two numbers or two texts.
func compare(a, b any) (order int, ok bool) {
	x, isText := a.(string)
	y, alsoText := b.(string)
	if isText && alsoText {
		return strings.Compare(x, y), true
	}
	return compareNumbers(a, b)
}

// compareNumbers compares numbers by their exact values.
func compareNumbers(a, b any) (order int, ok bool) {
	i, isInt := a.(int64)
	j, alsoInt := b.(int64)
	if isInt && alsoInt {
		return cmp.Compare(i, j), true
	}
	x, y := exact(a), exact(b)
	if x == nil || y == nil {
		return 0, false
	}
	return x.Cmp(y), true
}

func exact(v any) *big.Float {
	switch v := v.(type) {
	case int64:
		return new(big.Float).SetInt64(v)
	case float64:
		if !math.IsNaN(v) {
			return big.NewFloat(v)
		}
	}
	return nil
}

// SortRows sorts rows by DocumentQuery.OrderBy and Descending.
func SortRows(all []Row, by string, descending bool) {
	class := func(v any) int {
		switch v.(type) {
		case int64, float64:
			return 0
		case string:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b Row) int {
		order := 0
		switch by {
		case "id":
		case "", "seq":
			order = cmp.Compare(a.Seq, b.Seq)
		default:
			x, y := a.field(by), b.field(by)
			if order = cmp.Compare(class(x), class(y)); order != 0 {
				return order
			}
			order, _ = compare(x, y)
		}
		if by == "id" || by == "" || by == "seq" {
			if order == 0 {
				order = strings.Compare(a.ID, b.ID)
			}
			if descending {
				return -order
			}
			return order
		}
		if descending {
			order = -order
		}
		return cmp.Or(order, strings.Compare(a.ID, b.ID))
	})
}

// Select returns the documents that match a query. All must have the query's
// kind.
func Select(all []store.Document, q store.DocumentQuery) ([]store.Document, error) {
	if err := CheckQuery(q); err != nil {
		return nil, err
	}
	var rows []Row
	for _, d := range all {
		if r := NewRow(d); r.Matches(q.Where) {
			rows = append(rows, r)
		}
	}
	SortRows(rows, q.OrderBy, q.Descending)
	return Page(rows, q), nil
}

// defaultLimit is the default of DocumentQuery.Limit.
const defaultLimit = 1000

// Limit returns the largest number of documents of a query.
func Limit(q store.DocumentQuery) int {
	if q.Limit <= 0 {
		return defaultLimit
	}
	return q.Limit
}

// Page returns the documents of sorted rows between the offset and the limit of a
// query.
func Page(rows []Row, q store.DocumentQuery) []store.Document {
	rows = rows[min(max(q.Offset, 0), len(rows)):]
	var found []store.Document
	for _, r := range rows[:min(Limit(q), len(rows))] {
		found = append(found, r.Document)
	}
	return found
}
