package documents

import (
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
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
		return "id"
	case dialect == store.SQLite && s.As == Object:
		return "body -> '$." + s.Field + "'"
	case dialect == store.SQLite:
		return Field(dialect, s.Field)
	}
	switch text := Field(dialect, s.Field); s.As {
	case Number:
		return "CAST(" + text + " AS BIGINT)"
	case Bool:
		return "coalesce(CAST(" + text + " AS BOOLEAN), false)"
	case Instant:
		return "CAST(" + text + " AS TIMESTAMPTZ)"
	case Object:
		return "CAST(body AS JSON) -> '$." + s.Field + "'"
	default:
		return text
	}
}

// Field returns the SQL of a field of the body: its text, or in SQLite its
// number.
func Field(dialect store.Dialect, name string) string {
	if dialect == store.DuckDB {
		return "json_extract_string(body, '$." + name + "')"
	}
	return "json_extract(body, '$." + name + "')"
}
