package embedded

import (
	"strconv"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// view returns the table memories for the queries of users: the live entries. A value
// that is stored in a blob is NULL, and its column inlined is false.
func (m *entries) view() store.View {
	live := " FROM main.ltm WHERE expires_at IS NULL OR expires_at > " + strconv.FormatInt(m.micro(), 10)
	v := store.View{Name: "memories", Columns: []store.Column{
		{Name: "namespace"},
		{Name: "key"},
		{Name: "value", Type: store.JSON},
		{Name: "metadata", Type: store.JSON},
		{Name: "content_hash"},
		{Name: "inlined", Type: store.Boolean},
		{Name: "created_at"},
		{Name: "updated_at"},
		{Name: "expires_at"},
	}}
	named := func(char string) string {
		return "CASE WHEN key < " + char + "(1114111) THEN '' ELSE substr(key, 2, instr(key, " + char + "(1)) - 2) END, " +
			"CASE WHEN key < " + char + "(1114111) THEN key ELSE substr(key, instr(key, " + char + "(1)) + 1) END, "
	}
	if m.engine.Dialect() == store.DuckDB {
		v.Query = "SELECT " + named("chr") + `try_cast(value AS JSON), try_cast(metadata AS JSON), content_hash, value IS NOT NULL,
			make_timestamptz(created_at), make_timestamptz(updated_at), make_timestamptz(expires_at)` + live
		return v
	}
	v.Query = "SELECT " + named("char") + "value, metadata, content_hash, value IS NOT NULL, " + instant("created_at") + ", " + instant("updated_at") + ", " + instant("expires_at") + live
	return v
}

// instant returns the SQLite expression of a column of microseconds as text in the form
// of timestamps in documents, with a collation that compares different forms.
func instant(column string) string {
	return "strftime('%Y-%m-%dT%H:%M:%S', " + column + " / 1000000, 'unixepoch') || printf('.%06dZ', " + column + " % 1000000) COLLATE " + clock.Collation
}
