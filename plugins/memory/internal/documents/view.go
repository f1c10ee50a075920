package documents

import (
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Shown is a column of a View: a field of the documents of a kind.
type Shown struct {
	Name string
	// Field is a field of the body; "" is the document's id.
	Field string
	As    Kind
	// Is is the SQL of another value, which uses fields by Field.
	Is string
}

// Kind is the type of a column.
type Kind int

// The kinds of columns.
const (
	Text Kind = iota
	Number
	Bool
	Instant // RFC 3339 in the body
	Object
)

// View is a table of the documents of a kind for queries of workflows.
func View(dialect store.Dialect, name, kind string, shown []Shown) store.View {
	v := store.View{Name: name}
	list := make([]string, len(shown))
	for i, s := range shown {
		column := store.Column{Name: s.Name}
		switch s.As {
		case Object:
			column.Type = store.JSON
		case Bool:
			column.Type = store.Boolean
		}
		v.Columns = append(v.Columns, column)
		list[i] = s.sql(dialect)
	}
	v.Query = "SELECT " + strings.Join(list, ", ") + " FROM main.documents WHERE kind = '" + kind + "'"
	return v
}

func (s Shown) sql(dialect store.Dialect) string {
	switch {
	case s.Is != "":
		return s.Is
	case s.Field == "":
		return IDField
	case dialect == store.PostgreSQL:
		return s.postgres()
	case dialect == store.SQLite && s.As == Object:
		return "(CASE WHEN json_valid(body) THEN body -> '$." + s.Field + "' END)"
	case dialect == store.SQLite && s.As == Instant:
		return Field(dialect, s.Field) + " COLLATE " + clock.Collation
	case dialect == store.SQLite:
		return Field(dialect, s.Field)
	}
	switch text := Field(dialect, s.Field); s.As {
	case Number:
		return "try_cast(" + text + " AS BIGINT)"
	case Bool:
		return "coalesce(try_cast(" + text + " AS BOOLEAN), false)"
	case Instant:
		return "try_cast(" + text + " AS TIMESTAMPTZ)"
	case Object:
		return extract(dialect, "json_extract", s.Field)
	default:
		return text
	}
}

// postgres is sql for PostgreSQL, where the body is jsonb.
func (s Shown) postgres() string {
	text, member := Field(store.PostgreSQL, s.Field), "(fields -> '"+s.Field+"')"
	switch s.As {
	case Number:
		return "CASE WHEN jsonb_typeof" + member + " = 'number' THEN " + text + "::numeric::bigint END"
	case Bool:
		return "coalesce(" + member + " = 'true', false)"
	case Instant:
		return "CASE WHEN " + text + " ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$' THEN " + text + "::timestamptz END"
	case Object:
		return member
	default:
		return text
	}
}

// Field returns the SQL of a field of the body: its text, or in SQLite its
// number.
func Field(dialect store.Dialect, name string) string {
	switch dialect {
	case store.DuckDB:
		return extract(dialect, "json_extract_string", name)
	case store.PostgreSQL:
		return "(fields ->> '" + name + "')"
	}
	return extract(dialect, "json_extract", name)
}

// extract returns the SQL of a JSON function of a field of the body. An invalid body has
// no fields and does not make the query fail.
func extract(dialect store.Dialect, function, path string) string {
	call := function + "(body, '$." + path + "')"
	if dialect == store.DuckDB {
		return "try(" + call + ")"
	}
	return "(CASE WHEN json_valid(body) THEN " + call + " END)"
}
