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
	"github.com/the-edge-agent/tea/sdk/diag"

	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// Type is what a column holds.
type Type string

// The types; decimal(12,2) is one too.
const (
	String    Type = "string"
	Int       Type = "int"
	Float     Type = "float"
	Bool      Type = "bool"
	Timestamp Type = "timestamp"
	Date      Type = "date"
	JSON      Type = "json"
)

// typeNames are the names of types that a schema may use.
var typeNames = map[string]Type{
	"string": String, "int": Int, "float": Float, "bool": Bool, "timestamp": Timestamp, "date": Date, "json": JSON,
	"str": String, "text": String, "integer": Int, "number": Float, "boolean": Bool, "datetime": Timestamp,
}

// sql is the type of the database's column. For SQLite the name says how a
// query gives the value; TEXT in it keeps the text "5" from becoming a number.
func (t Type) sql(dialect store.Dialect) string {
	if digits, scale, ok := t.decimal(); ok {
		return decimalSQL(dialect, digits, scale)
	}
	names := map[Type][2]string{
		String: {"VARCHAR", "TEXT"}, Int: {"BIGINT", "BIGINT"}, Float: {"DOUBLE", "DOUBLE"}, Bool: {"BOOLEAN", "BOOLEAN"},
		Timestamp: {"TIMESTAMP", "TIMESTAMP"}, Date: {"DATE", "TEXT"}, JSON: {"VARCHAR", "JSON_TEXT"},
	}
	if dialect == store.DuckDB {
		return names[t][0]
	}
	return names[t][1]
}

// Column is a column of a table.
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
		return tea.Errorf(tea.ValidationError, "%q is no name of a table: it begins with a letter or _ and has letters, digits and _ (at most 63)", name)
	case slices.ContainsFunc([]string{reserved, "_tea_", "sqlite_", "duckdb_", "pragma_", "information_schema", "pg_"}, func(p string) bool { return strings.HasPrefix(lower, p) }),
		lower == "json_each", lower == "json_tree": // a table would hide the function, which statements need
		return tea.Errorf(tea.ValidationError, "the name %q is taken by the database; choose another one", name)
	}
	return nil
}

// given is a column as a schema has it.
type given struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable *bool  `json:"nullable"`
	Required *bool  `json:"required"`
}

// ParseSchema reads the columns of a table: a list of {name, type, nullable}
// in their order, or an object of name and type (or {type, nullable}).
func ParseSchema(raw json.RawMessage, primaryKey []string) ([]Column, error) {
	columns, err := readSchema(raw)
	if err != nil {
		return nil, err
	}
	if len(columns) == 0 || len(columns) > maxColumns {
		return nil, tea.Errorf(tea.ValidationError, "a table has 1 to %d columns, not %d", maxColumns, len(columns))
	}
	seen := map[string]bool{}
	for _, c := range columns {
		lower := strings.ToLower(c.Name)
		switch {
		case !identifier().MatchString(c.Name):
			return nil, tea.Errorf(tea.ValidationError, "%q is no name of a column: it begins with a letter or _ and has letters, digits and _ (at most 63)", c.Name)
		case strings.HasPrefix(lower, reservedColumn):
			return nil, tea.Errorf(tea.ValidationError, "column %q: names that begin with %s are taken", c.Name, reservedColumn)
		case lower == "true", lower == "false":
			return nil, tea.Errorf(tea.ValidationError, "column %q: SQL takes true and false for values", c.Name)
		case seen[lower]:
			return nil, tea.Errorf(tea.ValidationError, "column %q is there twice; upper and lower case are the same", c.Name)
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
			return tea.Errorf(tea.ValidationError, "primary_key: %q is there twice", name)
		case columns[at].Type == JSON:
			return tea.Errorf(tea.ValidationError, "primary_key: column %q is of type json, which has no fixed form", name)
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
	return "; there are " + strings.Join(names, ", ")
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
		return nil, tea.Errorf(tea.ValidationError, "schema is a list of {name, type} or an object of names and types")
	}
	// The columns have the order in which they were written.
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
			return Column{}, tea.Errorf(tea.ValidationError, "schema: a column is {name, type, nullable}: %w", err)
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
			return Column{}, tea.Errorf(tea.ValidationError, "column %q: required and nullable say different things", g.Name)
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
		more = "; there are " + strings.Join(names, ", ")
	}
	return "", tea.Errorf(tea.ValidationError, "there is no type %q%s", name, more)
}

// in says where a value was wrong.
func in(where string, err error) error {
	return tea.Errorf(tea.ValidationError, "%s: %s", where, tea.AsError(err).Message)
}
