//go:build !wasm

package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/manifest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func sqlActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("memory.sql_query", "Queries the memory by SQL: one SELECT that can only read memories, sessions, files, agent_memory, vectors, catalog_tables and catalog_files.",
			(*Memory).SQLQuery, tea.Idempotent(), tea.Reads()),
	}
}

// SQLQueryParams are the parameters of memory.sql_query.
type SQLQueryParams struct {
	SQL string `json:"sql" minLength:"1" doc:"one SELECT in the SQL of the database (duckdb, sqlite or postgres) over memories (key, value, metadata, content_hash, inlined, created_at, updated_at, expires_at), sessions (session_id, user_id, status, reason, metadata, created_at, updated_at, expires_at, archived_at), files (path, type, size, is_text, lines, tokens, content_hash, metadata, session_id, archived, created_at, updated_at), agent_memory (the records of memory.cloud_store: file_path, content_type, storage_uri, anchors, status, summary, content_hash, byte_size, line_count, token_estimate, embedding, embedding_model, created_at, updated_at, synced_at, created_by, project_id), vectors (collection, id, text, metadata, dimension), catalog_tables and catalog_files. value is NULL where inlined is false: it is a file of its own"`
	// Parameters are a list or an object.
	Parameters     json.RawMessage `json:"parameters,omitempty" doc:"values for the query's parameters: a list for ? and $1, or an object for $name"`
	MaxRows        int             `json:"max_rows,omitempty" default:"1000" minimum:"1" maximum:"100000" doc:"largest number of rows; if there are more, truncated is true"`
	TimeoutSeconds float64         `json:"timeout_seconds,omitempty" default:"30" minimum:"0.001" maximum:"3600"`
}

// SQLQueryResult is the result of memory.sql_query.
type SQLQueryResult struct {
	Success   bool             `json:"success"`
	Columns   []string         `json:"columns" doc:"names of the columns in their order; a number is appended to the second of two equal names"`
	Rows      []map[string]any `json:"rows" doc:"objects of columns and values: JSON, lists, structs and maps as such; an instant is text in RFC 3339 in UTC, a blob base64, a decimal a float, NaN and infinity null, any other type its text"`
	RowCount  int              `json:"row_count"`
	Truncated bool             `json:"truncated" doc:"true if rows are missing because of max_rows or the size limit of a result"`
}

// SQLQuery is the action memory.sql_query.
func (m *Memory) SQLQuery(ctx context.Context, _ *tea.Request, p SQLQueryParams) (*SQLQueryResult, error) {
	args, err := queryArgs(p.Parameters)
	if err != nil {
		return nil, err
	}
	engine, err := m.selector()
	if err != nil {
		return nil, err
	}
	found, err := engine.Select(ctx, p.SQL, store.Sandbox{
		Views: m.views(engine.Dialect()), MaxRows: p.MaxRows, MaxBytes: maxAnswer, Timeout: time.Duration(p.TimeoutSeconds * float64(time.Second)), Args: args,
	})
	if err != nil {
		return nil, err
	}
	a := store.AnswerOf(found)
	return &SQLQueryResult{Success: true, Columns: a.Columns, Rows: a.Rows, RowCount: len(a.Rows), Truncated: a.Truncated}, nil
}

// selector runs the queries.
func (m *Memory) selector() (store.Selector, error) {
	if f := m.folder; f.stores.SQL == nil {
		return nil, store.Unsupported(f.settings.Engine, store.SQL, "")
	}
	return m.folder.stores.SQL, nil
}

// views are the tables of memory.sql_query. A Selector of a Backend adds its own.
func (m *Memory) views(dialect store.Dialect) []store.View {
	views := append(catalog.Views(dialect), m.folder.sessions.View(dialect), file.View(dialect), manifest.View(dialect))
	if m.folder.embedded != nil {
		views = append(views, m.folder.embedded.driver.Views()...)
	}
	return views
}

var parameterName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`) })

// queryArgs are the parameters of a query as the engine takes them.
func queryArgs(raw json.RawMessage) ([]any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	given, err := value.Decode(raw)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "parameters: %w", err)
	}
	switch given := given.(type) {
	case nil:
		return nil, nil
	case []any:
		return given, nil
	case map[string]any:
		var args []any
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if !parameterName().MatchString(name) {
				return nil, tea.Errorf(tea.ValidationError, "parameters: %q is not a valid parameter name: use a letter, then letters, digits and _", name)
			}
			args = append(args, sql.Named(name, given[name]))
		}
		return args, nil
	}
	return nil, tea.Errorf(tea.ValidationError, "parameters must be a list or an object")
}
