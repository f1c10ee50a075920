package documents

import (
	"regexp"
	"sync"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// IDField is the name of a document's id in conditions and orders.
const IDField = "id"

// fieldPath matches the fields of conditions, which become part of the statement.
var fieldPath = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)
})

// field is the SQL of the type and the value of a field of the body. The type tells the
// number 5 from the text "5".
type field struct {
	types
	kind  string // its json_type
	value string // a text, or for a number in SQLite a number
}

// types are the names of JSON types in a dialect.
type types struct {
	null, text, boolean string // boolean is "" if true and false are types
	whole, broken       string // lists of numbers' types
	// fold is the SQL that converts the value to a number of a type.
	fold func(value, sqlType string) string
}

func typesOf(dialect store.Dialect) types {
	if dialect == store.DuckDB {
		return types{
			null: "'NULL'", text: "'VARCHAR'", boolean: "'BOOLEAN'", whole: "'BIGINT', 'UBIGINT', 'HUGEINT'", broken: "'DOUBLE'",
			fold: func(value, sqlType string) string { return "try_cast(" + value + " AS " + sqlType + ")" },
		}
	}
	return types{null: "'null'", text: "'text'", whole: "'integer'", broken: "'real'", fold: func(value, _ string) string { return value }}
}

func fieldOf(dialect store.Dialect, path string) (field, error) {
	if !fieldPath().MatchString(path) {
		return field{}, tea.Errorf(tea.ValidationError, "%q is not a valid field: use letters, digits and _, with dots between the names", path)
	}
	return field{types: typesOf(dialect), kind: extract(dialect, "json_type", path), value: Field(dialect, path)}, nil
}

// Clause is a part of a statement and its parameters.
type Clause struct {
	SQL  string
	Args []any
}

// Where returns the conditions of a query in SQL and their parameters: nil, int64,
// float64 and string.
func Where(dialect store.Dialect, query store.DocumentQuery) (sql string, args []any, err error) {
	sql, args = "kind = ?", []any{query.Kind}
	for _, c := range query.Where {
		made, err := condition(dialect, c)
		if err != nil {
			return "", nil, err
		}
		sql += " AND " + made.SQL
		args = append(args, made.Args...)
	}
	return sql, args, nil
}

func condition(dialect store.Dialect, c store.Condition) (Clause, error) {
	if c.Field == IDField {
		return idCondition(c)
	}
	f, err := fieldOf(dialect, c.Field)
	if err != nil {
		return Clause{}, err
	}
	switch c.Op {
	case store.Eq:
		return f.equal(c.Value)
	case store.Ne:
		equal, err := f.equal(c.Value)
		return Clause{"NOT coalesce(" + equal.SQL + ", false)", equal.Args}, err
	case store.Lt, store.Le, store.Gt, store.Ge:
		return f.ordered(string(c.Op), c.Value)
	case store.In:
		return f.anyOf(c.Value)
	case store.Prefix:
		prefix, ok := c.Value.(string)
		if !ok {
			return Clause{}, tea.Errorf(tea.ValidationError, "%s: a prefix is a string, not %T", c.Field, c.Value)
		}
		return Clause{"(" + f.kind + " = " + f.text + " AND substr(" + f.value + ", 1, length(?)) = ?)", []any{prefix, prefix}}, nil
	}
	return Clause{}, tea.Errorf(tea.ValidationError, "unknown comparison %q", c.Op)
}

// idCondition returns the SQL of a condition on the id, which has its own column.
func idCondition(c store.Condition) (Clause, error) {
	if c.Op == store.In {
		list, ok := c.Value.([]any)
		if texts := textsOf(list); ok && len(texts) == len(list) {
			return In(texts), nil
		}
		return Clause{}, tea.Errorf(tea.ValidationError, "an id is in a list of strings, not in %v", c.Value)
	}
	id, ok := c.Value.(string)
	if !ok {
		return Clause{}, tea.Errorf(tea.ValidationError, "an id is a string, not %T", c.Value)
	}
	switch c.Op {
	case store.Eq, store.Ne, store.Lt, store.Le, store.Gt, store.Ge:
		return Clause{IDField + " " + string(c.Op) + " ?", []any{id}}, nil
	case store.Prefix:
		// The bounds let the database use its index.
		begins := Clause{"(id >= ? AND substr(id, 1, length(?)) = ?", []any{id, id, id}}
		if end := Behind(id); end != "" {
			begins.SQL += " AND id < ?"
			begins.Args = append(begins.Args, end)
		}
		begins.SQL += ")"
		return begins, nil
	}
	return Clause{}, tea.Errorf(tea.ValidationError, "unknown comparison %q", c.Op)
}

// WithIDs returns the WITH Clause of a query that selects documents by ids, or "". DuckDB
// uses an index only for a condition on its column alone, and otherwise reads all
// documents.
func WithIDs(dialect store.Dialect, conditions ...store.Condition) Clause {
	for _, c := range conditions {
		if dialect != store.DuckDB || c.Field != IDField || c.Op != store.Eq && c.Op != store.In {
			continue
		}
		if ids, err := idCondition(c); err == nil { // on error, the query reports it
			return Clause{"WITH documents AS MATERIALIZED (SELECT * FROM main.documents WHERE " + ids.SQL + ") ", ids.Args}
		}
	}
	return Clause{}
}

// Behind returns the first string after all strings with the prefix, "" if there is
// none.
func Behind(prefix string) string {
	for prefix != "" {
		last, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		switch last {
		case utf8.MaxRune:
		case '\ud7ff':
			return prefix + "\ue000" // no text has a code point in between
		default:
			return prefix + string(last+1)
		}
	}
	return ""
}

// anyOf returns the SQL of a condition that matches any value of a list.
func (f field) anyOf(value any) (Clause, error) {
	list, ok := value.([]any)
	if !ok {
		return Clause{}, tea.Errorf(tea.ValidationError, "in takes a list, not %T", value)
	}
	texts := textsOf(list)
	all := in(f.value, texts)
	all.SQL = "((" + f.kind + " = " + f.text + " AND " + all.SQL + ")"
	for _, v := range list {
		if _, isText := v.(string); isText {
			continue
		}
		one, err := f.equal(v)
		if err != nil {
			return Clause{}, err
		}
		all.SQL += " OR " + one.SQL
		all.Args = append(all.Args, one.Args...)
	}
	all.SQL += ")"
	return all, nil
}

func textsOf(list []any) (texts []any) {
	for _, v := range list {
		if _, ok := v.(string); ok {
			texts = append(texts, v)
		}
	}
	return texts
}

// In returns the SQL of a condition that a document has one of these ids.
func In(ids []any) Clause { return in(IDField, ids) }

func in(column string, texts []any) Clause {
	if len(texts) == 0 {
		return Clause{SQL: "false"}
	}
	list, args := store.InList(texts)
	return Clause{column + " IN " + list, args}
}

func (f field) equal(value any) (Clause, error) {
	switch v := value.(type) {
	case nil:
		return Clause{SQL: "coalesce(" + f.kind + ", " + f.null + ") = " + f.null}, nil
	case bool:
		word := "'false'"
		if v {
			word = "'true'"
		}
		if f.boolean == "" {
			return Clause{SQL: "coalesce(" + f.kind + " = " + word + ", false)"}, nil
		}
		return Clause{SQL: "(" + f.kind + " = " + f.boolean + " AND " + f.value + " = " + word + ")"}, nil
	}
	return f.ordered("=", value)
}

// ordered returns the SQL of a comparison with a number or a string.
func (f field) ordered(op string, value any) (Clause, error) {
	switch v := value.(type) {
	case string:
		return Clause{"(" + f.kind + " = " + f.text + " AND " + f.value + " " + op + " ?)", []any{v}}, nil
	case int:
		return f.ordered(op, int64(v))
	case int64:
		// Integers are compared as integers: a float has only 53 bits.
		sql := "((" + f.kind + " IN (" + f.whole + ") AND " + f.fold(f.value, "HUGEINT") + " " + op + " CAST(? AS BIGINT))" +
			" OR (" + f.kind + " IN (" + f.broken + ") AND " + f.fold(f.value, "DOUBLE") + " " + op + " CAST(? AS BIGINT)))"
		return Clause{sql, []any{v, v}}, nil
	case float64:
		return Clause{"(" + f.kind + " IN (" + f.whole + ", " + f.broken + ") AND " + f.fold(f.value, "DOUBLE") + " " + op + " CAST(? AS DOUBLE))", []any{v}}, nil
	case nil, bool:
		return Clause{}, tea.Errorf(tea.ValidationError, "null, true and false have no order")
	}
	return Clause{}, tea.Errorf(tea.ValidationError, "cannot compare a field with a %T", value)
}

// OrderBy returns the ORDER BY clause of a query.
func OrderBy(dialect store.Dialect, query store.DocumentQuery) (string, error) {
	direction := ""
	if query.Descending {
		direction = " DESC"
	}
	switch query.OrderBy {
	case "", "seq":
		return " ORDER BY seq" + direction, nil
	case IDField:
		return " ORDER BY id" + direction, nil
	}
	f, err := fieldOf(dialect, query.OrderBy)
	if err != nil {
		return "", err
	}
	end := direction + " NULLS LAST, "
	return " ORDER BY CASE WHEN " + f.kind + " IN (" + f.whole + ", " + f.broken + ") THEN " + f.fold(f.value, "DOUBLE") + " END" + end +
		"CASE WHEN " + f.kind + " = " + f.text + " THEN " + f.value + " END" + end + IDField, nil
}
