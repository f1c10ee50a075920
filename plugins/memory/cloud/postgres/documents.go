package postgres

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const defaultLimit = 1000

func (d *database) FindDocuments(ctx context.Context, q store.DocumentQuery) ([]store.Row, error) {
	a, limit := &args{}, q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	sql := "SELECT " + feeds[store.DocumentFeed].selected(false, noScore) + noRowCount + " FROM documents WHERE " + a.where(q) + orderBy(q) + " LIMIT " + a.add(limit) + " OFFSET " + a.add(q.Offset)
	p, err := d.read(ctx, store.DocumentFeed, sql, a)
	return p.rows, err
}

func (d *database) CountDocuments(ctx context.Context, q store.DocumentQuery) (n int, err error) {
	a := &args{}
	where := a.where(q)
	err = d.do(ctx, reading, func(ctx context.Context, c conn) error {
		return c.QueryRow(ctx, "SELECT count(*) FROM documents WHERE "+where, a.list...).Scan(&n)
	})
	return n, err
}

const idField = "id"

func (a *args) where(q store.DocumentQuery) string {
	all := []string{"kind = " + a.text(q.Kind)}
	for _, c := range q.Where {
		all = append(all, a.condition(c))
	}
	return strings.Join(all, " AND ")
}

// text adds a text. A text that PostgreSQL cannot store compares as less than, and different from, every stored text.
func (a *args) text(s string) string {
	if !isText(s) {
		return "NULL::text"
	}
	return a.add(s) + "::text"
}

type field struct{ value, kind string }

// fieldOf returns a field. Its path was checked.
func fieldOf(path string) field {
	value := `fields #> '{"` + strings.ReplaceAll(path, ".", `","`) + `"}'` // without the quotation marks, null would not be a name
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

// ordered returns a comparison with a number or a text.
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

// idCondition compares the id, which has its own column.
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

func orderBy(q store.DocumentQuery) string {
	direction := ""
	if q.Descending {
		direction = " DESC"
	}
	switch q.OrderBy {
	case "", "seq":
		return " ORDER BY seq" + direction
	case idField:
		return " ORDER BY id" + direction
	}
	f := fieldOf(q.OrderBy)
	end := direction + " NULLS LAST, "
	return " ORDER BY " + f.number() + end + "CASE WHEN " + f.isText() + " THEN " + f.text() + " END" + end + idField
}

// fieldsOf returns the body for jsonb, which cannot store NUL.
func fieldsOf(body []byte) string {
	if !strings.Contains(string(body), `\u`) {
		return string(body)
	}
	decoded, err := value.Decode(body)
	if err != nil {
		return "{}"
	}
	text, err := value.Encode(withoutNUL(decoded))
	if err != nil {
		return "{}"
	}
	return string(text)
}

// withoutNUL replaces NUL in all texts of a value.
func withoutNUL(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "\x00", "\uFFFD")
	case []any:
		for i := range v {
			v[i] = withoutNUL(v[i])
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for name, member := range v {
			clean[withoutNUL(name).(string)] = withoutNUL(member) //nolint:forcetypeassert // a string stays one
		}
		return clean
	}
	return v
}
