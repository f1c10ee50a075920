package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// documentStore is a MetadataStore. It is safe for concurrent use.
type documentStore struct{ d *database }

var _ store.MetadataStore = (*documentStore)(nil)

const documentColumns = "kind, id, body, version, seq"

func scanDocuments(rows pgx.Rows) (all []store.Document, err error) {
	var one store.Document
	var body string
	_, err = pgx.ForEachRow(rows, []any{&one.Kind, &one.ID, &body, &one.Version, &one.Seq}, func() error {
		one.Body = json.RawMessage(body)
		all = append(all, one)
		return nil
	})
	return all, err
}

// isText reports whether the server can have a text.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// Get returns the document, or an error that wraps store.ErrNotFound.
func (s *documentStore) Get(ctx context.Context, kind, id string) (found store.Document, err error) {
	missing := fmt.Errorf("%s %s: %w", kind, id, store.ErrNotFound)
	if !isText(kind) || !isText(id) {
		return found, missing
	}
	err = s.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		var body string
		err := c.QueryRow(ctx, "SELECT "+documentColumns+" FROM documents WHERE kind = $1 AND id = $2", kind, id).
			Scan(&found.Kind, &found.ID, &body, &found.Version, &found.Seq)
		if found.Body = json.RawMessage(body); errors.Is(err, pgx.ErrNoRows) {
			return missing
		}
		return err
	})
	if err != nil {
		return store.Document{}, err
	}
	return found, nil
}

const defaultLimit = 1000

// Query returns documents of one kind.
func (s *documentStore) Query(ctx context.Context, q store.DocumentQuery) (found []store.Document, err error) {
	a := &args{}
	where, err := a.where(q)
	if err != nil {
		return nil, err
	}
	order, err := orderBy(q)
	if err != nil {
		return nil, err
	}
	limit := q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	sql := "SELECT " + documentColumns + " FROM documents WHERE " + where + order + " LIMIT " + a.add(limit) + " OFFSET " + a.add(q.Offset)
	err = s.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		rows, err := c.Query(ctx, sql, a.list...)
		if err != nil {
			return err
		}
		found, err = scanDocuments(rows)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", q.Kind, err)
	}
	return found, nil
}

// Count returns the number of documents that match a query, without its limit.
func (s *documentStore) Count(ctx context.Context, q store.DocumentQuery) (n int, err error) {
	a := &args{}
	where, err := a.where(q)
	if err != nil {
		return 0, err
	}
	err = s.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		return c.QueryRow(ctx, "SELECT count(*) FROM documents WHERE "+where, a.list...).Scan(&n)
	})
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", q.Kind, err)
	}
	return n, nil
}

// Apply does the changes atomically. The first of two requests locks the last
// number and reads the versions, the second one writes.
func (s *documentStore) Apply(ctx context.Context, changes ...store.Change) error {
	var kinds, ids []string
	for _, c := range changes {
		if err := documents.Check(c); err != nil {
			return err
		}
		kinds, ids = append(kinds, c.Kind), append(ids, c.ID)
	}
	if len(changes) == 0 {
		return ctx.Err()
	}
	_, err := s.d.write(ctx, func(ctx context.Context, c conn, id []byte) ([]string, error) {
		versions := map[documents.Name]int64{}
		var last int64
		begin := &pgx.Batch{}
		begin.Queue("BEGIN")
		begin.Queue(noteSQL, id)
		begin.Queue("UPDATE tea_seq SET n = n + $1 WHERE name = 'documents' RETURNING n", len(changes)).QueryRow(func(row pgx.Row) error { return row.Scan(&last) })
		begin.Queue("SELECT kind, id, version FROM documents WHERE (kind, id) IN (SELECT * FROM unnest($1::text[], $2::text[]))", kinds, ids).Query(func(rows pgx.Rows) error {
			var n documents.Name
			var version int64
			_, err := pgx.ForEachRow(rows, []any{&n.Kind, &n.ID, &version}, func() error { versions[n] = version; return nil })
			return err
		})
		if err := s.d.transaction(ctx, c, begin); err != nil {
			return nil, err
		}
		merged, err := documents.Merge(changes, versions)
		if err != nil {
			_, failed := c.Exec(ctx, "ROLLBACK")
			return nil, errors.Join(err, failed)
		}
		return nil, s.d.transaction(ctx, c, writesOf(merged, last-int64(len(changes))))
	})
	return err
}

const (
	insertDocumentsSQL = `INSERT INTO documents (kind, id, body, fields, version, seq)
		SELECT i.kind, i.id, i.body, i.fields::jsonb, i.version, i.seq
		FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[]) AS i (kind, id, body, fields, version, seq)
		ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body, fields = excluded.fields, version = excluded.version, seq = excluded.seq`
	deleteDocumentsSQL = "DELETE FROM documents WHERE (kind, id) IN (SELECT * FROM unnest($1::text[], $2::text[]))"
)

// writesOf are the statements that write documents and commit.
func writesOf(merged []documents.Written, seq int64) *pgx.Batch {
	var kinds, ids, bodies, fields, goneKinds, goneIDs []string
	var versions, seqs []int64
	for i, w := range merged {
		if w.Body == nil {
			goneKinds, goneIDs = append(goneKinds, w.Kind), append(goneIDs, w.ID)
			continue
		}
		kinds, ids, bodies, fields = append(kinds, w.Kind), append(ids, w.ID), append(bodies, string(w.Body)), append(fields, fieldsOf(w.Body))
		versions, seqs = append(versions, w.Version), append(seqs, seq+int64(i)+1)
	}
	b := &pgx.Batch{}
	if len(goneIDs) > 0 {
		b.Queue(deleteDocumentsSQL, goneKinds, goneIDs)
	}
	if len(ids) > 0 {
		b.Queue(insertDocumentsSQL, kinds, ids, bodies, fields, versions, seqs)
	}
	b.Queue("COMMIT")
	return b
}

// fieldsOf returns the body for jsonb, which has no NUL.
func fieldsOf(body json.RawMessage) string {
	if !strings.Contains(string(body), `\u`) {
		return string(body)
	}
	decoded, err := value.Decode(body)
	if err != nil {
		return "{}"
	}
	text, err := value.Encode(withoutNUL(decoded))
	if err != nil {
		return "{}"
	}
	return string(text)
}

// withoutNUL replaces NUL in all texts of a value.
func withoutNUL(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "\x00", "\uFFFD")
	case []any:
		for i := range v {
			v[i] = withoutNUL(v[i])
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for name, member := range v {
			clean[withoutNUL(name).(string)] = withoutNUL(member) //nolint:forcetypeassert // a string stays one
		}
		return clean
	}
	return v
}
