package tabular

import (
	"context"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// changesSuffix is the suffix of the view of a table's stored changes.
const changesSuffix = "__changes"

// changeViews returns the views of stored changes that a query names. A table with the
// same name takes precedence.
func (s *Tables) changeViews(ctx context.Context, query string, names []string) (views []store.View, err error) {
	query = strings.ToLower(query)
	for _, name := range names {
		view := strings.ToLower(name) + changesSuffix
		if !strings.Contains(query, view) || slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, view) }) {
			continue
		}
		t, err := s.find(ctx, name)
		if err != nil {
			return nil, err
		}
		v := store.View{Name: t.entry.Name + changesSuffix, Columns: []store.Column{{Name: "_op"}, {Name: "_version"}, {Name: "_pk"}}}
		values := []string{"_tea_op", "_tea_seq", "_tea_key"}
		from := t.log()
		for _, c := range t.columns {
			column, value := store.Column{Name: c.Name}, quote(c.Name)
			if s.dialect() == store.SQLite {
				column.Type, value = c.shown(), c.inTime(value)
			} else if c.Type == JSON {
				value = "CAST(" + value + " AS JSON)"
			}
			v.Columns, values = append(v.Columns, column), append(values, value)
		}
		if s.dialect() == store.DuckDB {
			files, err := s.o.Catalog.FilesIn(ctx, nil, t.name)
			if err != nil {
				return nil, err
			}
			from = s.changesIn(t, files)
		}
		v.Query = "SELECT " + strings.Join(values, ", ") + " FROM " + from
		views = append(views, v)
	}
	return views, nil
}

// changesIn returns the query for all stored changes of a table on DuckDB.
func (s *Tables) changesIn(t *table, files []catalog.File) string {
	var base []string
	for _, f := range files {
		if f.Base {
			base = append(base, literal(s.path(f.Path)))
		}
	}
	if len(base) == 0 {
		return t.delta()
	}
	columns := t.allColumns()
	return "(SELECT " + columns + " FROM read_parquet([" + strings.Join(base, ", ") + "]) UNION ALL SELECT " + columns + " FROM " + t.delta() + ")"
}
