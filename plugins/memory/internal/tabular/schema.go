package tabular

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Type is the type of a column's values.
type Type string

// The types, in addition to decimals such as decimal(12,2).
const (
	String    Type = "string"
	Int       Type = "int"
	Float     Type = "float"
	Bool      Type = "bool"
	Timestamp Type = "timestamp"
	Date      Type = "date"
	JSON      Type = "json"
)

var typeNames = map[string]Type{
	"string": String, "int": Int, "float": Float, "bool": Bool, "timestamp": Timestamp, "date": Date, "json": JSON,
	"str": String, "text": String, "integer": Int, "number": Float, "boolean": Bool, "datetime": Timestamp,
}

// sql returns the type of the column in the database. In SQLite it decides how a
// query returns the value; with TEXT in it the text "5" stays a text.
func (t Type) sql(dialect store.Dialect) string {
	if digits, scale, ok := t.decimal(); ok {
		return decimalSQL(dialect, digits, scale)
	}
	names := map[Type][3]string{
		String: {"VARCHAR", "TEXT", "text"}, Int: {"BIGINT", "BIGINT", "bigint"}, Float: {"DOUBLE", "DOUBLE", "float8"}, Bool: {"BOOLEAN", "BOOLEAN", "boolean"},
		Timestamp: {"TIMESTAMP", "TIMESTAMP", "timestamptz"}, Date: {"DATE", "TEXT", "date"}, JSON: {"VARCHAR", "JSON_TEXT", "jsonb"},
	}
	return names[t][slices.Index([]store.Dialect{store.DuckDB, store.SQLite, store.PostgreSQL}, dialect)]
}

// Column defines a column of a table.
type Column struct {
	Name     string `json:"name"`
	Type     Type   `json:"type"`
	Nullable bool   `json:"nullable"`
}

const (
	maxColumns = 500
	// reserved begins the names of tables, views and columns of this package.
	reserved       = "tea_"
	reservedColumn = "_tea_"
)

var identifier = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`) })

func checkTableName(name string) error {
	lower := strings.ToLower(name)
	switch {
	case !identifier().MatchString(name):
		return tea.Errorf(tea.ValidationError, "%q is not a valid table name: use at most 63 ASCII letters, digits and _, not beginning with a digit", name)
	case slices.ContainsFunc([]string{reserved, "_tea_", "sqlite_", "duckdb_", "pragma_", "information_schema", "pg_"}, func(p string) bool { return strings.HasPrefix(lower, p) }),
		lower == "json_each", lower == "json_tree": // a table would hide the function, which statements need
		return reservedName(name)
	}
	return nil
}

func reservedName(name string) error {
	return tea.Errorf(tea.ValidationError, "the name %q is reserved by the database; choose another one", name)
}

type given struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable *bool  `json:"nullable"`
	Required *bool  `json:"required"`
}

// ParseSchema reads the columns of a table: a list of {name, type, nullable},
// or an object of names and types, each a name or {type, nullable}. The order
// is kept. The error is a validation_error.
func ParseSchema(raw json.RawMessage, primaryKey []string) ([]Column, error) {
	columns, err := readSchema(raw)
	if err != nil {
		return nil, err
	}
	if len(columns) == 0 || len(columns) > maxColumns {
		return nil, tea.Errorf(tea.ValidationError, "a table must have 1 to %d columns, not %d", maxColumns, len(columns))
	}
	seen := map[string]bool{}
	for _, c := range columns {
		lower := strings.ToLower(c.Name)
		switch {
		case !identifier().MatchString(c.Name):
			return nil, tea.Errorf(tea.ValidationError, "%q is not a valid column name: use at most 63 ASCII letters, digits and _, not beginning with a digit", c.Name)
		case strings.HasPrefix(lower, reservedColumn):
			return nil, tea.Errorf(tea.ValidationError, "column %q: names that begin with %s are reserved", c.Name, reservedColumn)
		case lower == "true", lower == "false":
			return nil, tea.Errorf(tea.ValidationError, "column %q: true and false are values in SQL", c.Name)
		case seen[lower]:
			return nil, tea.Errorf(tea.ValidationError, "column %q appears twice; upper and lower case are the same", c.Name)
		}
		seen[lower] = true
	}
	return columns, markKey(columns, primaryKey)
}

// markKey checks the primary key, whose columns are never null.
func markKey(columns []Column, primaryKey []string) error {
	for i, name := range primaryKey {
		at := slices.IndexFunc(columns, func(c Column) bool { return c.Name == name })
		switch {
		case at < 0:
			return tea.Errorf(tea.ValidationError, "primary_key: there is no column %q%s", name, hint(name, columns))
		case slices.Contains(primaryKey[:i], name):
			return tea.Errorf(tea.ValidationError, "primary_key: %q appears twice", name)
		case columns[at].Type == JSON:
			return tea.Errorf(tea.ValidationError, "primary_key: column %q has the type json, which cannot be part of a key", name)
		}
		columns[at].Nullable = false
	}
	return nil
}

func hint(name string, columns []Column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	if s := diag.Suggest(name, names); s != "" {
		return "; " + s
	}
	return "; the columns are " + strings.Join(names, ", ")
}

func readSchema(raw json.RawMessage) ([]Column, error) {
	raw = bytes.TrimSpace(raw)
	if bytes.HasPrefix(raw, []byte("[")) {
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, tea.Errorf(tea.ValidationError, "schema: %w", err)
		}
		columns := make([]Column, len(list))
		for i, one := range list {
			var err error
			if columns[i], err = readColumn("", one); err != nil {
				return nil, err
			}
		}
		return columns, nil
	}
	if !bytes.HasPrefix(raw, []byte("{")) {
		return nil, tea.Errorf(tea.ValidationError, "schema must be a list of {name, type} or an object of names and types")
	}
	// A map would not keep the order of the columns.
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if _, err := decoder.Token(); err != nil {
		return nil, tea.Errorf(tea.ValidationError, "schema: %w", err)
	}
	var columns []Column
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, tea.Errorf(tea.ValidationError, "schema: %w", err)
		}
		var one json.RawMessage
		if err := decoder.Decode(&one); err != nil {
			return nil, tea.Errorf(tea.ValidationError, "schema: %w", err)
		}
		text, _ := name.(string)
		column, err := readColumn(text, one)
		if err != nil {
			return nil, err
		}
		columns = append(columns, column)
	}
	return columns, nil
}

func readColumn(name string, raw json.RawMessage) (Column, error) {
	g := given{Name: name}
	if bytes.HasPrefix(raw, []byte(`"`)) && name != "" {
		if err := json.Unmarshal(raw, &g.Type); err != nil {
			return Column{}, tea.Errorf(tea.ValidationError, "column %q: %w", name, err)
		}
	} else {
		strict := json.NewDecoder(bytes.NewReader(raw))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&g); err != nil {
			return Column{}, tea.Errorf(tea.ValidationError, "schema: a column must be {name, type, nullable}: %w", err)
		}
		if name != "" {
			g.Name = name
		}
	}
	kind, err := typeOf(g.Type)
	if err != nil {
		return Column{}, in(fmt.Sprintf("column %q", g.Name), err)
	}
	c := Column{Name: g.Name, Type: kind, Nullable: true}
	if g.Nullable != nil {
		c.Nullable = *g.Nullable
	}
	if g.Required != nil {
		if g.Nullable != nil && *g.Nullable == *g.Required {
			return Column{}, tea.Errorf(tea.ValidationError, "column %q: required and nullable contradict each other", g.Name)
		}
		c.Nullable = !*g.Required
	}
	return c, nil
}

func typeOf(name string) (Type, error) {
	lower := strings.ToLower(strings.TrimSpace(name))
	if t, ok := typeNames[lower]; ok {
		return t, nil
	}
	if t, ok, err := decimalType(lower); ok {
		return t, err
	}
	names := []string{"string", "int", "float", "decimal", "bool", "timestamp", "date", "json"}
	more := "; " + diag.Suggest(name, names)
	if more == "; " {
		more = "; the types are " + strings.Join(names, ", ")
	}
	return "", tea.Errorf(tea.ValidationError, "unknown type %q%s", name, more)
}

// in adds the place of a wrong value to an error.
func in(where string, err error) error {
	return tea.Errorf(tea.ValidationError, "%s: %s", where, tea.AsError(err).Message)
}
