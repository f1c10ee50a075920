package postgres

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// selector runs queries of workflows. It is safe for concurrent use.
type selector struct{ d *database }

var _ store.Selector = selector{}

func (selector) Dialect() store.Dialect { return store.PostgreSQL }

// views are the tables of the stores other than the documents.
func (s selector) views() []store.View {
	text := func(column string) string { // keys can contain NUL
		return "CASE WHEN position('\\x00'::bytea IN " + column + ") = 0 THEN convert_from(" + column + ", 'UTF8') ELSE encode(" + column + ", 'escape') END"
	}
	object := func(column string) string { return "replace(" + column + `, '\u0000', '\ufffd')::jsonb` }
	instant := func(column string) string { return "to_timestamp(" + column + " / 1000000.0)" }
	now := strconv.FormatInt(s.d.micro(), 10)
	return []store.View{
		{
			Name: "memories",
			Columns: []store.Column{
				{Name: "namespace"}, {Name: "key"}, {Name: "value"}, {Name: "metadata"}, {Name: "content_hash"}, {Name: "inlined"}, {Name: "created_at"}, {Name: "updated_at"}, {Name: "expires_at"},
			},
			Query: "SELECT namespace, " + text("key") + ", " + object("value") + ", " + object("metadata") + ", content_hash, true, " +
				instant("created_at") + ", " + instant("updated_at") + ", " + instant("expires_at") + " FROM main.ltm WHERE " + notExpired + now + ")",
		},
		{
			Name:    "vectors",
			Columns: []store.Column{{Name: "collection"}, {Name: "id"}, {Name: "text"}, {Name: "metadata"}, {Name: "dimension"}},
			Query: "SELECT " + text("v.collection") + ", " + text("v.name") + ", " + text("v.text") + ", " + object("v.metadata") +
				", c.dimension FROM main.vectors AS v JOIN main.vector_collections AS c ON c.name = v.collection",
		},
	}
}

// Select runs one SELECT of a workflow.
func (s selector) Select(ctx context.Context, query string, bounds store.Sandbox) (store.Table, error) {
	bounds.Views = append(slices.Clone(bounds.Views), s.views()...)
	return s.run(ctx, query, bounds)
}

// run runs one SELECT over the given views.
func (s selector) run(ctx context.Context, query string, bounds store.Sandbox) (table store.Table, err error) {
	bounds = sandbox.Bounds(bounds)
	bounds.Views = slices.Clone(bounds.Views)
	schema := pgx.Identifier{s.d.schema}.Sanitize() + "."
	for i := range bounds.Views {
		bounds.Views[i].Query = strings.ReplaceAll(bounds.Views[i].Query, "main.", schema)
	}
	c, err := check(query, bounds)
	if err != nil {
		return store.Table{}, err
	}
	if bounds.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, bounds.Timeout)
		defer cancel()
	}
	err = s.d.do(ctx, reading, func(ctx context.Context, conn conn) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if err := s.begin(ctx, conn, query, c, bounds); err != nil {
			return err
		}
		r := &running{s: s, query: query, before: sandbox.With(bounds) + "SELECT * FROM (\n", bounds: bounds}
		table, err = r.run(ctx, cancel, conn, c)
		if ctx.Err() == nil {
			_, failed := conn.Exec(ctx, "ROLLBACK")
			err = errors.Join(err, failed)
		}
		return err
	})
	if err != nil {
		return store.Table{}, sandbox.Failure(ctx, err, bounds.Timeout)
	}
	return table, nil
}

// begin begins the transaction of a query, and refuses the names of schemas.
func (s selector) begin(ctx context.Context, conn conn, query string, c checked, bounds store.Sandbox) error {
	var schemas []string
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
	b.Queue("SELECT nspname FROM pg_catalog.pg_namespace").Query(func(rows pgx.Rows) (err error) {
		schemas, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	timeout := s.d.timeout
	if bounds.Timeout > 0 {
		timeout = bounds.Timeout
	}
	b.Queue(`SELECT set_config('search_path', '', true), set_config('statement_timeout', $1, true), set_config('standard_conforming_strings', 'on', true),
		set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO', true), set_config('bytea_output', 'hex', true), set_config('xmloption', 'content', true)`, millis(max(timeout, time.Millisecond)))
	if err := s.d.transaction(ctx, conn, b); err != nil {
		return err
	}
	for name, at := range c.qualifiers {
		if slices.Contains(schemas, name) {
			_, err := conn.Exec(ctx, "ROLLBACK")
			return errors.Join(sandbox.Denied(bounds, query, at, "the schema "+name, "only the listed tables are open to queries"), err)
		}
	}
	return nil
}

// running is a running query.
type running struct {
	s      selector
	query  string
	before string // the text before the query
	bounds store.Sandbox
}

// run reads the rows. It closes the connection if the result is too large, since the server would send the rest.
func (r *running) run(ctx context.Context, cancel func(), conn conn, c checked) (store.Table, error) {
	if p, ok := conn.(interface{ Conn() *pgx.Conn }); ok {
		const headers = 64 << 10
		frontend := p.Conn().PgConn().Frontend()
		frontend.SetMaxBodyLen(2*r.bounds.MaxBytes + headers)
		defer frontend.SetMaxBodyLen(0)
	}
	args := append([]any{pgx.QueryResultFormats{pgx.TextFormatCode}}, c.args...)
	rows, err := conn.Query(ctx, r.before+c.sql+"\n) AS tea_answer LIMIT "+strconv.Itoa(r.bounds.MaxRows+1), args...)
	if err != nil {
		return store.Table{}, r.failed(err)
	}
	defer rows.Close()
	var names []string
	for _, f := range rows.FieldDescriptions() {
		names = append(names, f.Name)
	}
	answer := sandbox.NewAnswer(r.bounds, names)
	for rows.Next() {
		row := make([]any, len(names))
		for i, raw := range rows.RawValues() {
			row[i] = fromText(rows.FieldDescriptions()[i], raw)
		}
		more, err := answer.Add(row)
		if err != nil {
			cancel()
			return store.Table{}, err
		}
		if !more {
			if len(answer.Table().Rows) < r.bounds.MaxRows {
				cancel()
			}
			return answer.Table(), nil
		}
	}
	return answer.Table(), r.failed(rows.Err())
}

// fromText converts a value that the server has sent as text.
func fromText(column pgconn.FieldDescription, raw []byte) any {
	if raw == nil {
		return nil
	}
	text := string(raw)
	switch column.DataTypeOID {
	case pgtype.BoolOID:
		return text == "t"
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	case pgtype.NumericOID:
		// A sum of integers is an integer; a number with decimal places has a point.
		if v, err := value.Decode(raw); err == nil && !strings.Contains(text, ".") {
			return v
		}
		if column.TypeModifier >= 0 { // a decimal(12,2), not an average
			return sandbox.Decimal(text)
		}
		fallthrough
	case pgtype.Float4OID, pgtype.Float8OID:
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return sandbox.Float(f)
		}
	case pgtype.JSONOID, pgtype.JSONBOID:
		if v, err := value.Decode(raw); err == nil {
			return v
		}
	case pgtype.ByteaOID:
		if b, err := hex.DecodeString(strings.TrimPrefix(text, `\x`)); err == nil {
			return base64.StdEncoding.EncodeToString(b)
		}
	case pgtype.TimestamptzOID:
		if at, err := time.Parse("2006-01-02 15:04:05.999999-07", text); err == nil {
			return at.UTC().Format(time.RFC3339Nano)
		}
	case pgtype.TimestampOID:
		if at, err := time.Parse("2006-01-02 15:04:05.999999", text); err == nil {
			return at.Format(time.RFC3339Nano)
		}
	}
	return text
}

// failed sets the type of an error of the query.
func (r *running) failed(err error) error {
	var refused *pgconn.PgError
	if errors.As(err, new(*pgproto3.ExceededMaxBodyLenErr)) {
		return tea.Errorf(tea.ValidationError, "SQL: a single row has more than %d bytes; select less of it", r.bounds.MaxBytes)
	}
	if !errors.As(err, &refused) {
		return err
	}
	offset := r.offset(int(refused.Position))
	switch class := refused.Code[:2]; {
	case refused.Code == readOnlyTransaction:
		return sandbox.Denied(r.bounds, r.query, offset, "a statement that is not a plain SELECT", "only a single SELECT is allowed")
	case refused.Code == queryCanceled:
		return tea.Errorf(tea.Timeout, "the query took longer than %v; restrict it, or raise its timeout", r.bounds.Timeout)
	case refused.Code == "42P01":
		return sandbox.Denied(r.bounds, r.query, offset, refused.Message, "only the listed tables are open to queries")
	case refused.Code == insufficientRight, isShutdown(refused.Code), class == "40", class == "53":
		return err
	case class == "42", class == "0A":
		return sandbox.Invalid(r.query, offset, refused.Message)
	}
	return tea.Errorf(tea.QueryError, "SQL: %s (SQLSTATE %s)", refused.Message, refused.Code)
}

// offset returns the offset in the query of a character of the statement, counted from 1, or -1 if it is outside of the
// query or if parameters have shifted it.
func (r *running) offset(character int) int {
	character -= utf8.RuneCountInString(r.before) + 1
	if character < 0 || len(r.bounds.Args) > 0 {
		return -1
	}
	for at := range r.query {
		if character == 0 {
			return at
		}
		character--
	}
	return -1
}
