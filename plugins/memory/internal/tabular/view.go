package tabular

import (
	"context"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// LogPrefix begins the names of the logs.
const LogPrefix = reserved + "rows_"

// The names of a table's parts in the database. A table's name has letters,
// digits and _ only.
func (t *table) log() string   { return LogPrefix + t.name }
func (t *table) delta() string { return reserved + "delta_" + t.name }
func (t *table) live() string  { return reserved + "live_" + t.name }

func quote(name string) string { return `"` + name + `"` }

// literal returns a string literal of SQL.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func (t *table) userColumns() string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = quote(c.Name)
	}
	return strings.Join(names, ", ")
}

// shownColumns returns the table's columns in the view for the user on DuckDB.
func (t *table) shownColumns() string {
	shown := make([]string, len(t.columns))
	for i, c := range t.columns {
		if shown[i] = quote(c.Name); c.Type == JSON {
			shown[i] = "CAST(" + shown[i] + " AS JSON) AS " + shown[i]
		}
	}
	return strings.Join(shown, ", ")
}

func (t *table) allColumns() string { return "_tea_seq, _tea_op, _tea_key, " + t.userColumns() }

func (t *table) createLog(dialect store.Dialect) []string {
	var columns strings.Builder
	for _, c := range t.columns {
		columns.WriteString(", " + quote(c.Name) + " " + c.Type.sql(dialect))
	}
	if dialect == store.DuckDB {
		return []string{"CREATE TABLE " + t.log() + " (_tea_seq BIGINT NOT NULL, _tea_op VARCHAR NOT NULL, _tea_key VARCHAR NOT NULL" + columns.String() + ")"}
	}
	return []string{
		"CREATE TABLE " + t.log() + " (_tea_seq INTEGER PRIMARY KEY, _tea_op TEXT NOT NULL, _tea_key TEXT NOT NULL" + columns.String() + ")",
		"CREATE UNIQUE INDEX " + t.log() + "_by_key ON " + t.log() + " (_tea_key, _tea_seq)",
		"CREATE INDEX " + t.log() + "_hiding ON " + t.log() + " (_tea_key, _tea_seq) WHERE _tea_op <> 'I'",
	}
}

// createViews returns the statements that create the views of SQLite, which do not depend on files. The last one is the
// user's view. It names no other view: the check of a query looks only one level below a view for tables.
func (t *table) createViews() []string {
	from := t.lastChanges()
	return []string{
		"CREATE VIEW " + t.live() + " AS SELECT " + t.allColumns() + from,
		"CREATE VIEW " + quote(t.entry.Name) + " AS SELECT " + t.userColumns() + from,
	}
}

// lastChanges returns the end of a SELECT of the rows on SQLite.
func (t *table) lastChanges() string {
	return " FROM " + t.log() + " AS r WHERE r._tea_op <> 'D' AND NOT EXISTS (SELECT 1 FROM " + t.log() + " AS n INDEXED BY " + t.log() + "_hiding" +
		" WHERE n._tea_op <> 'I' AND n._tea_key = r._tea_key AND n._tea_seq > r._tea_seq)"
}

// renewedViews returns the statements that create the views of DuckDB for the
// given files.
func (s *Tables) renewedViews(t *table, files []catalog.File) []string {
	columns := t.allColumns()
	var base, delta []string
	for _, f := range files {
		if f.Base {
			base = append(base, literal(s.path(f.Path)))
		} else {
			delta = append(delta, literal(s.path(f.Path)))
		}
	}
	rows := "SELECT " + columns + " FROM " + t.log()
	if len(delta) > 0 {
		rows = "SELECT " + columns + " FROM read_parquet([" + strings.Join(delta, ", ") + "]) UNION ALL " + rows
	}
	all := t.delta()
	if len(base) > 0 {
		all = "(SELECT " + columns + " FROM read_parquet([" + strings.Join(base, ", ") + "]) UNION ALL SELECT " + columns + " FROM " + t.delta() + ")"
	}
	live := "SELECT " + columns + " FROM " + all + " AS r LEFT JOIN (SELECT _tea_key AS hidden, max(_tea_seq) AS until FROM " + t.delta() +
		" WHERE _tea_op <> 'I' GROUP BY _tea_key) AS h ON h.hidden = r._tea_key WHERE r._tea_op <> 'D' AND (h.until IS NULL OR r._tea_seq >= h.until)"
	return []string{
		"CREATE OR REPLACE VIEW " + t.delta() + " AS " + rows,
		"CREATE OR REPLACE VIEW " + t.live() + " AS " + live,
		"CREATE OR REPLACE VIEW " + quote(t.entry.Name) + " AS SELECT " + t.shownColumns() + " FROM " + t.live(),
	}
}

// refresh replaces DuckDB's views with views for the files in the transaction.
func (s *Tables) refresh(ctx context.Context, tx store.Tx, t *table) error {
	files, err := s.o.Catalog.FilesIn(ctx, tx, t.name)
	if err != nil {
		return err
	}
	return execAll(ctx, tx, s.renewedViews(t, files))
}

func execAll(ctx context.Context, tx store.Tx, statements []string) error {
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// within returns the condition that a row's key is in a list, bound as a JSON
// array of strings.
func within(dialect store.Dialect) string {
	switch dialect {
	case JSONRows:
		return "key IN (SELECT value FROM json_each(?))"
	case store.PostgreSQL:
		return "key IN (SELECT sha256(convert_to(value, 'UTF8')) FROM json_array_elements_text(CAST(? AS json)))"
	case store.DuckDB:
		return `_tea_key IN (SELECT unnest(from_json(?, '["VARCHAR"]')))`
	}
	return "_tea_key IN (SELECT value FROM json_each(?))"
}

// checkNameIsFree refuses a name that the database uses.
func checkNameIsFree(ctx context.Context, tx store.Tx, dialect store.Dialect, name string) error {
	query := "SELECT count(*) FROM sqlite_master WHERE lower(name) = ?"
	if dialect == store.DuckDB {
		query = "SELECT (SELECT count(*) FROM duckdb_tables() WHERE lower(table_name) = $1) + (SELECT count(*) FROM duckdb_views() WHERE lower(view_name) = $1)"
	}
	n, err := store.Int(tx.Query(ctx, query, strings.ToLower(name)))
	if err == nil && n > 0 {
		err = reservedName(name)
	}
	return err
}
