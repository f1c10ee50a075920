package postgres

import (
	"math"
	"strconv"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const idField = "id"

// where returns the condition of a query.
func (a *args) where(q store.DocumentQuery) (string, error) {
	// The embedded engines have checked the same conditions.
	if _, _, err := documents.Where(store.SQLite, q); err != nil {
		return "", err
	}
	all := []string{"kind = " + a.text(q.Kind)}
	for _, c := range q.Where {
		all = append(all, a.condition(c))
	}
	return strings.Join(all, " AND "), nil
}

// text adds a text. A text that the server cannot have equals none and is less
// than none.
func (a *args) text(s string) string {
	if !isText(s) {
		return "NULL::text"
	}
	return a.add(s) + "::text"
}

// field is a member of the body.
type field struct{ value, kind string }

// fieldOf returns a field. Its path has been checked.
func fieldOf(path string) field {
	value := `fields #> '{"` + strings.ReplaceAll(path, ".", `","`) + `"}'` // null is no name without the quotation marks
	return field{value: "(" + value + ")", kind: "jsonb_typeof(" + value + ")"}
}

func (f field) text() string { return "(" + f.value + ` #>> '{}') COLLATE "C"` }
func (f field) number() string {
	return "CASE WHEN " + f.kind + " = 'number' THEN " + f.value + "::numeric END"
}
func (f field) isText() string { return f.kind + " = 'string'" }

func (a *args) condition(c store.Condition) string {
	if c.Field == idField {
		return a.idCondition(c)
	}
	f := fieldOf(c.Field)
	switch c.Op {
	case store.Eq:
		return a.equal(f, c.Value)
	case store.Ne:
		return "NOT coalesce(" + a.equal(f, c.Value) + ", false)"
	case store.In:
		each := []string{"false"}
		for _, v := range c.Value.([]any) { //nolint:forcetypeassert // it was checked
			each = append(each, a.equal(f, v))
		}
		return "(" + strings.Join(each, " OR ") + ")"
	case store.Prefix:
		return "(" + f.isText() + " AND starts_with(" + f.text() + ", " + a.text(c.Value.(string)) + "))" //nolint:forcetypeassert // it was checked
	}
	return a.ordered(f, string(c.Op), c.Value)
}

func (a *args) equal(f field, v any) string {
	switch v := v.(type) {
	case nil:
		return "coalesce(" + f.kind + ", 'null') = 'null'"
	case bool:
		return f.value + " = '" + strconv.FormatBool(v) + "'::jsonb"
	}
	return a.ordered(f, "=", v)
}

// ordered compares with a number or a text.
func (a *args) ordered(f field, op string, v any) string {
	switch v := v.(type) {
	case string:
		return "(" + f.isText() + " AND " + f.text() + " " + op + " " + a.text(v) + ")"
	case int:
		return a.ordered(f, op, int64(v))
	case int64:
		return "coalesce(" + f.number() + " " + op + " " + a.add(v) + "::bigint, false)"
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return "false"
		}
		return "coalesce(" + f.number() + " " + op + " " + a.add(strconv.FormatFloat(v, 'g', -1, 64)) + "::text::numeric, false)"
	}
	return "false"
}

// idCondition compares the id, which is in its own column.
func (a *args) idCondition(c store.Condition) string {
	switch v := c.Value.(type) {
	case []any:
		ids := []string{}
		for _, id := range v {
			if text, ok := id.(string); ok && isText(text) {
				ids = append(ids, text)
			}
		}
		return "id = ANY(" + a.add(ids) + "::text[])"
	case string:
		if c.Op != store.Prefix {
			return "id " + string(c.Op) + " " + a.text(v)
		}
		sql := "(starts_with(id, " + a.text(v) + ") AND id >= " + a.text(v)
		if end := documents.Behind(v); end != "" {
			sql += " AND id < " + a.text(end)
		}
		return sql + ")"
	}
	return "false"
}

func orderBy(q store.DocumentQuery) (string, error) {
	if _, err := documents.OrderBy(store.SQLite, q); err != nil {
		return "", err
	}
	direction := ""
	if q.Descending {
		direction = " DESC"
	}
	switch q.OrderBy {
	case "", "seq":
		return " ORDER BY seq" + direction, nil
	case idField:
		return " ORDER BY id" + direction, nil
	}
	f := fieldOf(q.OrderBy)
	end := direction + " NULLS LAST, "
	return " ORDER BY " + f.number() + end + "CASE WHEN " + f.isText() + " THEN " + f.text() + " END" + end + idField, nil
}

// errDamaged is the error of an embedding that is not what was stored.
func errDamaged(id string) error {
	return tea.Errorf(tea.InternalError, "the embedding of item %q is damaged; store it again or delete it", id)
}
