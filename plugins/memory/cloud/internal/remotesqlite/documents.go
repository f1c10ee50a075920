package remotesqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Documents is a MetadataStore in a database.
type Documents struct{ d *database }

var _ store.MetadataStore = (*Documents)(nil)

const documentColumns = "kind, id, body, version, seq"

func toDocuments(rows Result) []store.Document {
	var found []store.Document
	for _, row := range rows {
		found = append(found, store.Document{Kind: text(row, 0), ID: text(row, 1), Body: json.RawMessage(text(row, 2)), Version: number(row, 3), Seq: number(row, 4)})
	}
	return found
}

// Get returns the document, or an error that wraps store.ErrNotFound.
func (s *Documents) Get(ctx context.Context, kind, id string) (store.Document, error) {
	rows, err := s.d.query(ctx, "SELECT "+documentColumns+" FROM documents WHERE kind = ?1 AND id = ?2", kind, id)
	if err != nil {
		return store.Document{}, fmt.Errorf("read %s %s: %w", kind, id, err)
	}
	if len(rows) == 0 {
		return store.Document{}, fmt.Errorf("%s %s: %w", kind, id, store.ErrNotFound)
	}
	return toDocuments(rows)[0], nil
}

const defaultLimit = 1000

// Query returns documents of one kind.
func (s *Documents) Query(ctx context.Context, q store.DocumentQuery) ([]store.Document, error) {
	where, args, err := documents.Where(store.SQLite, q)
	if err != nil {
		return nil, err
	}
	order, err := documents.OrderBy(store.SQLite, q)
	if err != nil {
		return nil, err
	}
	limit := q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	sql, texts := packed(fmt.Sprintf("SELECT %s FROM documents WHERE %s%s LIMIT %d OFFSET %d", documentColumns, where, order, limit, q.Offset), args)
	rows, err := s.d.query(ctx, sql, texts...)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", q.Kind, err)
	}
	return toDocuments(rows), nil
}

// Count returns the number of documents that match a query, without its limit.
func (s *Documents) Count(ctx context.Context, q store.DocumentQuery) (int, error) {
	where, args, err := documents.Where(store.SQLite, q)
	if err != nil {
		return 0, err
	}
	sql, texts := packed("SELECT count(*) FROM documents WHERE "+where, args)
	rows, err := s.d.query(ctx, sql, texts...)
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", q.Kind, err)
	}
	return int(number(rows[0], 0)), nil
}

// maxArgs is the number of parameters up to which each has its own place. D1
// allows 100.
const maxArgs = 90

// packed returns a statement with parameters as text. Numbers are cast in the
// statement. Many parameters become one, a JSON list.
func packed(sql string, args []any) (string, []string) {
	texts := make([]string, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			texts[i] = v
		case float64:
			texts[i] = strconv.FormatFloat(v, 'g', -1, 64)
		default:
			texts[i] = fmt.Sprint(v)
		}
	}
	if len(args) <= maxArgs {
		return sql, texts
	}
	var b strings.Builder
	for i, piece := range strings.Split(sql, "?") {
		if i > 0 {
			fmt.Fprintf(&b, "json_extract(?1, '$[%d]')", i-1)
		}
		b.WriteString(piece)
	}
	return b.String(), []string{list(texts)}
}

// Apply does the changes atomically. If each document has one change, it is one
// request: the statements check the versions, and a write that they refuse returns
// them. Otherwise the versions are read first.
func (s *Documents) Apply(ctx context.Context, changes ...store.Change) error {
	for _, c := range changes {
		if err := documents.Check(c); err != nil {
			return err
		}
	}
	if err := s.d.writable(ctx); err != nil || len(changes) == 0 {
		return err
	}
	rows, ok := single(changes)
	var versions map[documents.Name]int64
	var err error
	if !ok {
		if versions, err = s.versions(ctx, changes); err != nil {
			return err
		}
	}
	for {
		if versions != nil {
			merged, err := documents.Merge(changes, versions)
			if err != nil {
				return err
			}
			rows = fromMerged(merged)
		}
		err := s.write(ctx, rows)
		refused := (*refusedError)(nil)
		if !errors.As(err, &refused) {
			return err
		}
		if versions, err = toVersions(refused.before); err != nil {
			return err
		}
	}
}

// toVersions reads the versions that a refused write returns.
func toVersions(text string) (map[documents.Name]int64, error) {
	var rows [][]json.RawMessage
	err := json.Unmarshal([]byte(text), &rows)
	versions := map[documents.Name]int64{}
	for _, row := range rows {
		var n documents.Name
		var version int64
		err = errors.Join(err, json.Unmarshal(row[0], &n.Kind), json.Unmarshal(row[1], &n.ID), json.Unmarshal(row[2], &version))
		versions[n] = version
	}
	if err != nil {
		return nil, fmt.Errorf("read the result of a write: %w", err)
	}
	return versions, nil
}

// row is a document to be written. If is as in store.Change; version is nil where
// the one in the database is counted up.
type row struct {
	kind, id string
	ifs      int64
	body     json.RawMessage
	version  any
}

// single returns the changes as rows if there is one for each document.
func single(changes []store.Change) ([]row, bool) {
	seen := make(map[documents.Name]bool, len(changes))
	rows := make([]row, len(changes))
	for i, c := range changes {
		n := documents.Name{Kind: c.Kind, ID: c.ID}
		if seen[n] {
			return nil, false
		}
		seen[n] = true
		rows[i] = row{kind: c.Kind, id: c.ID, ifs: c.If, body: c.Body}
	}
	return rows, true
}

func fromMerged(merged []documents.Written) []row {
	rows := make([]row, len(merged))
	for i, w := range merged {
		rows[i] = row{kind: w.Kind, id: w.ID, ifs: w.Before, body: w.Body, version: w.Version}
		if w.Before == 0 {
			rows[i].ifs = store.New
		}
	}
	return rows
}

// versions reads the versions of the documents.
func (s *Documents) versions(ctx context.Context, changes []store.Change) (map[documents.Name]int64, error) {
	names := make([][]any, len(changes))
	for i, c := range changes {
		names[i] = []any{c.Kind, c.ID}
	}
	lists, err := chunks(names)
	if err != nil {
		return nil, err
	}
	versions := map[documents.Name]int64{}
	for _, names := range lists {
		rows, err := s.d.query(ctx, "SELECT kind, id, version FROM documents WHERE (kind, id) IN (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?1))", names)
		if err != nil {
			return nil, fmt.Errorf("read the documents' versions: %w", err)
		}
		for _, row := range rows {
			versions[documents.Name{Kind: text(row, 0), ID: text(row, 1)}] = number(row, 2)
		}
	}
	return versions, nil
}

// maxBody is the size of a document.
const maxBody = 1_500_000

// write writes the documents if all conditions are met.
func (s *Documents) write(ctx context.Context, rows []row) error {
	checks, all := make([][]any, len(rows)), make([][]any, len(rows))
	for i, r := range rows {
		if len(r.body) > maxBody {
			return tea.Errorf(tea.ValidationError, "the body of %s %s has %d bytes, more than %d", r.kind, r.id, len(r.body), maxBody)
		}
		var body any
		if r.body != nil {
			body = string(r.body)
		}
		checks[i], all[i] = []any{r.kind, r.id, r.ifs}, []any{r.kind, r.id, body, r.version}
	}
	checkLists, err := chunks(checks)
	if err != nil {
		return err
	}
	lists, err := chunks(all)
	if err != nil {
		return err
	}
	w := write{args: checkLists}
	const these = "json_each(?%d) AS j JOIN documents AS d ON d.kind = json_extract(j.value, '$[0]') AND d.id = json_extract(j.value, '$[1]')"
	for i := range checkLists {
		if i > 0 {
			w.refused += " OR "
			w.before += " UNION ALL "
		}
		w.before += fmt.Sprintf("SELECT json_array(d.kind, d.id, d.version) AS d FROM "+these, i+2)
		w.refused += fmt.Sprintf(`EXISTS (SELECT 1 FROM json_each(?%d) AS j LEFT JOIN documents AS d ON d.kind = json_extract(j.value, '$[0]') AND d.id = json_extract(j.value, '$[1]')
			WHERE json_extract(j.value, '$[2]') = -1 AND d.id IS NOT NULL OR json_extract(j.value, '$[2]') > 0 AND coalesce(d.version, 0) <> json_extract(j.value, '$[2]'))`, i+2)
	}
	w.before = "(SELECT json_group_array(json(d)) FROM (" + w.before + "))"
	for _, rows := range lists {
		w.add("DELETE FROM documents WHERE (kind, id) IN (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?2) WHERE json_extract(value, '$[2]') IS NULL) AND "+pending, rows)
		w.add(`INSERT INTO documents (kind, id, body, version, seq)
			SELECT json_extract(j.value, '$[0]'), json_extract(j.value, '$[1]'), json_extract(j.value, '$[2]'), coalesce(json_extract(j.value, '$[3]'), d.version + 1, 1),
				(SELECT n FROM tea_seq WHERE name = 'documents') + j.key + 1
			FROM json_each(?2) AS j LEFT JOIN documents AS d ON d.kind = json_extract(j.value, '$[0]') AND d.id = json_extract(j.value, '$[1]')
			WHERE json_extract(j.value, '$[2]') IS NOT NULL AND `+pending+`
			ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body, version = excluded.version, seq = excluded.seq`, rows)
		w.add("UPDATE tea_seq SET n = n + json_array_length(?2) WHERE name = 'documents' AND "+pending, rows)
	}
	_, err = s.d.do(ctx, w)
	return err
}
