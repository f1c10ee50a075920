package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/mirror"
	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

var (
	_ store.Driver          = (*database)(nil)
	_ store.DocumentFinder  = (*database)(nil)
	_ store.TextSearcher    = (*database)(nil)
	_ store.NearestSearcher = (*database)(nil)
	_ store.PrefixDeleter   = (*database)(nil)
	_ store.ContentStore    = (*database)(nil)
	_ store.Inspector       = (*database)(nil)
	_ store.Resetter        = (*database)(nil)
)

// table describes the rows of a feed.
type table struct {
	name       string
	space, key string // columns
	// columns and body have the names of rowColumns, except the score.
	columns, body string
	size          string
	// textSpace and textKey report that the names have the type text, which cannot contain NUL; otherwise bytea.
	textSpace, textKey bool
}

// rowColumns are the columns of each SELECT of rows, before the number of all rows.
const rowColumns = "seq, gone, rid, space, key, metadata, hash, size, created, updated, expires, version, text, body, embedding, score"

var feeds = map[store.Feed]table{
	store.EntryFeed: {
		name: "ltm", space: "namespace", key: "key", textSpace: true,
		columns: "seq, false AS gone, id AS rid, convert_to(namespace, 'UTF8') AS space, key, metadata, content_hash AS hash, octet_length(value)::bigint AS size, created_at AS created, updated_at AS updated, expires_at AS expires, 0::bigint AS version, NULL::bytea AS text",
		body:    "value AS body, NULL::bytea AS embedding",
		size:    "octet_length(value) + coalesce(octet_length(metadata), 0)",
	},
	store.VectorFeed: {
		name: "vectors", space: "collection", key: "name",
		columns: "seq, false AS gone, id AS rid, collection AS space, name AS key, metadata, NULL::text AS hash, 0::bigint AS size, 0::bigint AS created, 0::bigint AS updated, NULL::bigint AS expires, 0::bigint AS version, text",
		body:    "NULL::text AS body, embedding",
		size:    "octet_length(text) + octet_length(embedding) + coalesce(octet_length(metadata), 0)",
	},
	store.DocumentFeed: {
		name: "documents", space: "kind", key: "id", textSpace: true, textKey: true,
		columns: "seq, false AS gone, 0::bigint AS rid, convert_to(kind, 'UTF8') AS space, convert_to(id, 'UTF8') AS key, NULL::text AS metadata, NULL::text AS hash, 0::bigint AS size, 0::bigint AS created, 0::bigint AS updated, NULL::bigint AS expires, version, NULL::bytea AS text",
		body:    "body, NULL::bytea AS embedding",
		size:    "octet_length(body)",
	},
}

const (
	noBody             = ", NULL::text AS body, NULL::bytea AS embedding"
	noScore            = ", 0::float8 AS score"
	noRowCount         = ", 0::bigint AS all_rows"
	tombstoneColumns   = "seq, true AS gone, 0::bigint AS rid, space, key, NULL::text AS metadata, NULL::text AS hash, 0::bigint AS size, 0::bigint AS created, deleted_at AS updated, NULL::bigint AS expires, 0::bigint AS version, NULL::bytea AS text" + noBody + noScore
	removedItemColumns = "seq, true AS gone, id AS rid, collection AS space, ''::bytea AS key, NULL::text AS metadata, NULL::text AS hash, 0::bigint AS size, 0::bigint AS created, 0::bigint AS updated, NULL::bigint AS expires, 0::bigint AS version, NULL::bytea AS text" + noBody + noScore
)

// selected returns the columns of a SELECT without the number of all rows.
func (t table) selected(without bool, score string) string {
	if without {
		return t.columns + noBody + score
	}
	return t.columns + ", " + t.body + score
}

// listed returns the columns of a SELECT for page.
func (t table) listed(without bool, score string) string {
	if t.name == "ltm" {
		t.body = "CASE WHEN octet_length(value) <= 65536 THEN value END AS body, NULL::bytea AS embedding"
	}
	return t.selected(without, score) + noRowCount
}

type page struct {
	rows   []store.Row
	scores []float64
	all    int64 // the column all_rows
	more   bool  // there may be more rows
}

func (p *page) read(feed store.Feed, rows pgx.Rows) error {
	var r store.Row
	var space, key, body, text, embedding []byte
	var metadata, hash *string
	var expires *int64
	var score float64
	into := []any{&r.Seq, &r.Deleted, &r.ID, &space, &key, &metadata, &hash, &r.Size, &r.Created, &r.Updated, &expires, &r.Version, &text, &body, &embedding, &score, &p.all}
	_, err := pgx.ForEachRow(rows, into, func() error {
		one := r
		one.RecordName = store.RecordName{Feed: feed, Space: string(space), Key: string(key)}
		one.Metadata, one.Hash, one.Expires, one.Text, one.Body = orZero(metadata), orZero(hash), orZero(expires), string(text), body
		if embedding != nil {
			if one.Body = embedding; len(embedding)%4 != 0 {
				one.Damaged = tea.Errorf(tea.InternalError, "the embedding of item %q is damaged; store it again or delete it", one.Key)
			}
		}
		p.rows, p.scores = append(p.rows, one), append(p.scores, score)
		return nil
	})
	return err
}

// orZero dereferences a pointer, and returns the zero value for nil.
func orZero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// orNull returns a pointer to v, nil for the zero value.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func (d *database) read(ctx context.Context, feed store.Feed, sql string, a *args) (p page, err error) {
	err = d.do(ctx, reading, func(ctx context.Context, c conn) error {
		p = page{}
		rows, err := c.Query(ctx, sql, append([]any{pgx.QueryResultFormats{pgx.BinaryFormatCode}}, a.list...)...)
		if err != nil {
			return err
		}
		return p.read(feed, rows)
	})
	return p, err
}

// maxPage bounds the rows of a page.
const maxPage = 4 << 20

// pageOf returns a SELECT of the first changes of another SELECT that fit on a page. The sizes are added up before the
// values are read.
func pageOf(rows string, bytes int64) string {
	if bytes <= 0 || bytes > maxPage {
		bytes = maxPage
	}
	return fmt.Sprintf("SELECT %s, all_rows FROM (SELECT *, sum(bytes) OVER (ORDER BY seq) - bytes AS before, count(*) OVER () AS all_rows FROM (%s) AS chosen) AS sized WHERE before <= %d ORDER BY seq",
		rowColumns, rows, bytes)
}

// State returns the state of a feed, without changes of entries that are not numbered yet.
func (d *database) State(ctx context.Context, feed store.Feed) (s store.FeedState, err error) {
	err = d.do(ctx, reading, func(ctx context.Context, c conn) error {
		return c.QueryRow(ctx, "SELECT identity, n, coalesce((SELECT seq FROM tea_forgotten WHERE feed = $1), 0) FROM tea_identity, tea_seq WHERE name = $1", string(feed)).Scan(&s.Identity, &s.Last, &s.Forgotten)
	})
	return s, err
}

// number assigns the numbers of the changes of entries.
func (d *database) number(ctx context.Context, feed store.Feed) error {
	if feed != store.EntryFeed {
		return nil
	}
	if d.readOnly != "" {
		return store.Unsupported(name, store.Records, "remove settings.memory.read_only: reading the changes of a memory assigns numbers to them")
	}
	for more := true; more; {
		err := d.do(ctx, writing, func(ctx context.Context, c conn) error {
			return c.QueryRow(ctx, "SELECT tea_number()").Scan(&more)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readBatch is the number of rows that one statement reads by their names or ids.
const readBatch = 500

// Get returns rows and, if they are numbered, tombstones.
func (d *database) Get(ctx context.Context, q store.RowQuery) (all []store.Row, err error) {
	if q.Numbered {
		if err := d.number(ctx, q.Feed); err != nil {
			return nil, err
		}
	}
	t := feeds[q.Feed]
	get := func(a *args, where, also string) error {
		p, err := d.read(ctx, q.Feed, "SELECT "+t.selected(q.NoBody, noScore)+noRowCount+" FROM "+t.name+" WHERE "+where+also, a)
		all = append(all, p.rows...)
		return err
	}
	names := q.Names
	if t.textKey {
		names = slices.DeleteFunc(slices.Clone(names), func(n store.RecordName) bool { return !isText(n.Space) || !isText(n.Key) })
	}
	for part := range slices.Chunk(names, readBatch) {
		a, also := &args{}, ""
		where := a.named(q.Feed, part)
		if q.Numbered {
			also = " UNION ALL " + a.tombstones(q.Feed, part)
		}
		if err := get(a, where, also); err != nil {
			return nil, err
		}
	}
	for part := range slices.Chunk(q.IDs, readBatch) {
		a := &args{}
		if err := get(a, "id = ANY("+a.add(part)+")", ""); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// named returns the condition that selects rows by name.
func (a *args) named(feed store.Feed, names []store.RecordName) string {
	switch {
	case feed != store.DocumentFeed:
		hashes := make([][]byte, len(names))
		for i, n := range names {
			hashes[i] = rowHash(n)
		}
		return "hash = ANY(" + a.add(hashes) + ")"
	case len(names) == 1:
		return "kind = " + a.add(names[0].Space) + " AND id = " + a.add(names[0].Key)
	}
	kinds, ids := make([]string, len(names)), make([]string, len(names))
	for i, n := range names {
		kinds[i], ids[i] = n.Space, n.Key
	}
	return "(kind, id) IN (SELECT * FROM unnest(" + a.add(kinds) + "::text[], " + a.add(ids) + "::text[]))"
}

// tombstones returns the SELECT of the last tombstones with these names.
func (a *args) tombstones(feed store.Feed, names []store.RecordName) string {
	spaces, keys := make([][]byte, len(names)), make([][]byte, len(names))
	for i, n := range names {
		spaces[i], keys[i] = []byte(n.Space), []byte(n.Key)
	}
	return "SELECT " + tombstoneColumns + noRowCount + " FROM (SELECT DISTINCT ON (t.space, t.key) t.* FROM unnest(" + a.add(spaces) + "::bytea[], " + a.add(keys) + "::bytea[]) AS n (s, k)" +
		" JOIN tea_deleted AS t ON t.feed = " + a.add(string(feed)) + " AND substring(t.key FROM 1 FOR 1024) = substring(n.k FROM 1 FOR 1024) AND t.key = n.k AND t.space = n.s" +
		" ORDER BY t.space, t.key, abs(t.seq) DESC) AS gone"
}

// isText reports whether PostgreSQL can store a text.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// prefixBytes is the length of the indexed beginning of a key.
const prefixBytes = 1024

func (t table) keyPrefix() string { return "substring(" + t.key + " FROM 1 FOR 1024)" }

// byKey is the order of the rows of a space.
func (t table) byKey() string {
	if t.textKey {
		return t.key
	}
	return t.keyPrefix() + ", " + t.key
}

// below returns the condition for the rows of a space with a prefix, after a key. It begins with the columns of an
// index.
func (a *args) below(t table, space, prefix, after string) string {
	name := func(s string, text bool) string {
		if text {
			return a.text(s)
		}
		return a.add([]byte(s))
	}
	sql := t.space + " = " + name(space, t.textSpace)
	bound := func(op, key string) {
		sql += " AND " + t.key + " " + op + " " + name(key, t.textKey)
		if !t.textKey {
			sql += " AND " + t.keyPrefix() + " " + op[:1] + "= " + a.add([]byte(key[:min(len(key), prefixBytes)]))
		}
	}
	if prefix != "" {
		bound(">=", prefix)
		if end := documents.Behind(prefix); end != "" {
			bound("<", end)
		}
	}
	if after != "" {
		bound(">", after)
	}
	return sql
}

// Scan returns rows of a space.
func (d *database) Scan(ctx context.Context, q store.RowRange) (store.RowPage, error) {
	t, a := feeds[q.Feed], &args{}
	where := a.below(t, q.Space, q.Prefix, q.After)
	if q.Feed == store.EntryFeed && q.Live != 0 {
		where += " AND " + notExpired + a.add(q.Live) + ")"
	}
	if words := d.required(q.Require); words != "" {
		where += " AND words @@ " + a.add(words) + "::tsquery"
	}
	sql := "SELECT " + t.listed(q.NoBody, noScore) + " FROM " + t.name + " WHERE " + where + " ORDER BY " + t.byKey() + " LIMIT " + a.add(q.Limit)
	p, err := d.page(ctx, q.Feed, sql, a, bounds{q.Limit, q.MaxBytes, q.NoBody})
	return store.RowPage{Rows: p.rows, More: p.more}, err
}

// bounds are the limits of a page.
type bounds struct {
	limit  int
	bytes  int64
	noBody bool
}

// page reads a page of rows without large values, and then the current values of these rows.
func (d *database) page(ctx context.Context, feed store.Feed, sql string, a *args, b bounds) (page, error) {
	if b.bytes <= 0 || b.bytes > maxPage {
		b.bytes = maxPage
	}
	for {
		p, err := d.read(ctx, feed, sql, a)
		if err != nil {
			return p, err
		}
		p.more = len(p.rows) >= b.limit
		if b.noBody {
			return p, nil
		}
		size, large := int64(0), []int64(nil)
		for i, r := range p.rows {
			if size > b.bytes {
				p.rows, p.scores, p.more = p.rows[:i], p.scores[:i], true
				break
			}
			if size += int64(len(r.Metadata)+len(r.Text)) + max(r.Size, int64(len(r.Body))); r.Size > int64(len(r.Body)) {
				large = append(large, r.ID)
			}
		}
		if len(large) == 0 {
			return p, nil
		}
		values, err := d.Get(ctx, store.RowQuery{Feed: feed, IDs: large})
		if p.fill(values); err != nil || len(p.rows) > 0 || !p.more {
			return p, err
		}
	}
}

// fill replaces rows that were read without values, and omits rows that were deleted.
func (p *page) fill(values []store.Row) {
	byID := make(map[int64]store.Row, len(values))
	for _, r := range values {
		byID[r.ID] = r
	}
	kept := page{more: p.more}
	for i, r := range p.rows {
		if r.Size > int64(len(r.Body)) {
			r = byID[r.ID]
		}
		if r.ID != 0 {
			kept.rows, kept.scores = append(kept.rows, r), append(kept.scores, p.scores[i])
		}
	}
	*p = kept
}

// Changes returns changes of a feed. The first row of the result is the state of the feed and the collection: the
// number of the last change as id, the highest number of the removed tombstones as created, and the dimension and
// birth of the collection as version and updated.
func (d *database) Changes(ctx context.Context, q store.RowChanges) (changes store.RowPage, err error) {
	if err := d.number(ctx, q.Feed); err != nil {
		return changes, err
	}
	t, a := feeds[q.Feed], &args{}
	after, feed := a.add(q.After), a.add(string(q.Feed))
	state := "coalesce((SELECT seq FROM tea_forgotten WHERE feed = " + feed + "), 0), 0"
	version, of, from := "0::bigint", "true", "tea_deleted WHERE feed = "+feed
	deleted := tombstoneColumns
	if q.Space != "" {
		space := a.add([]byte(q.Space))
		of = "collection = " + space
		deleted, from = removedItemColumns, "vectors_gone WHERE collection = "+space
		collection := func(column string) string {
			return "coalesce((SELECT " + column + " FROM vector_collections WHERE name = " + space + "), 0)"
		}
		state, version = "0, "+collection("born"), collection("dimension")
	}
	first := " AND seq > " + after + " ORDER BY seq LIMIT " + a.add(q.Limit) // in each part, so that the server uses indexes
	rows := "(SELECT " + t.selected(false, noScore) + ", " + t.size + " AS bytes FROM " + t.name + " WHERE " + of + first + ") UNION ALL (SELECT " + deleted + ", 0 FROM " + from + first + ") ORDER BY seq LIMIT " + a.add(q.Limit)
	sql := "SELECT -1::bigint AS seq, false, n, ''::bytea, ''::bytea, NULL::text, NULL::text, 0::bigint, " + state + ", NULL::bigint, " + version + ", NULL::bytea, NULL::text, NULL::bytea, 0::float8, 0::bigint FROM tea_seq WHERE name = " + feed +
		" UNION ALL SELECT * FROM (" + pageOf(rows, q.MaxBytes) + ") AS changed ORDER BY seq"
	p, err := d.read(ctx, q.Feed, sql, a)
	if err != nil {
		return changes, err
	}
	is := p.rows[0]
	p.rows = p.rows[1:]
	n := len(p.rows)
	changes = store.RowPage{Rows: p.rows, More: n > 0 && (n >= q.Limit || p.all > int64(n)), Last: is.ID, Forgotten: is.Created}
	if q.Space != "" {
		changes.Space = store.Space{Name: q.Space, Dimension: int(is.Version), Born: is.Updated}
	}
	if n > 0 && (changes.More || p.rows[n-1].Seq > changes.Last) {
		changes.Last = p.rows[n-1].Seq
	}
	return changes, nil
}

func (d *database) Spaces(ctx context.Context, names ...string) (all []store.Space, err error) {
	wanted := make([][]byte, len(names))
	for i, n := range names {
		wanted[i] = []byte(n)
	}
	err = d.do(ctx, reading, func(ctx context.Context, c conn) error {
		all = nil
		rows, err := c.Query(ctx, "SELECT name, dimension, born, (SELECT count(*) FROM vectors WHERE collection = c.name) FROM vector_collections AS c WHERE cardinality($1::bytea[]) = 0 OR name = ANY($1) ORDER BY name", wanted)
		if err != nil {
			return err
		}
		var one store.Space
		var name []byte
		_, err = pgx.ForEachRow(rows, []any{&name, &one.Dimension, &one.Born, &one.Count}, func() error {
			one.Name = string(name)
			all = append(all, one)
			return nil
		})
		return err
	})
	return all, err
}

func (d *database) Drop(ctx context.Context, space string) (rows int, existed bool, err error) {
	name := []byte(space)
	results, err := d.write(ctx, func(ctx context.Context, c conn, id []byte) ([]string, error) {
		var result string
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		take(b, store.VectorFeed, 1, new(int64))
		b.Queue("DELETE FROM vectors_gone WHERE collection = $1", name)
		b.Queue(`WITH items AS (DELETE FROM vectors WHERE collection = $2 RETURNING 1), gone AS (DELETE FROM vector_collections WHERE name = $2 RETURNING 1)
			INSERT INTO tea_writes (id, result) SELECT $1::bytea, concat((SELECT count(*) FROM items), ' ', (SELECT count(*) > 0 FROM gone)) RETURNING result`, id, name).
			QueryRow(func(row pgx.Row) error { return row.Scan(&result) })
		b.Queue("COMMIT")
		err := d.transaction(ctx, c, b)
		return []string{result}, err
	})
	if err == nil {
		_, err = fmt.Sscan(results[0], &rows, &existed)
	}
	return rows, existed, err
}

// deleteBatch is the number of entries that one statement removes.
const deleteBatch = 10_000

// DeletePrefix removes the entries whose keys begin with prefix.
func (d *database) DeletePrefix(ctx context.Context, space, prefix string, now int64) (live int, err error) {
	a := &args{list: []any{nil}} // the first one is the id of the write
	where := a.below(feeds[store.EntryFeed], space, prefix, "")
	at, limit := a.add(now), a.add(deleteBatch)
	_, live, err = d.removeAll(ctx, "SELECT hash FROM ltm WHERE "+where+" LIMIT "+limit, at, a.list[1:])
	return live, err
}

// Sweep removes expired entries without tombstones, and old tombstones by the server's clock.
func (d *database) Sweep(ctx context.Context, expired, _ int64) (int, error) {
	n, _, err := d.removeAll(ctx, "SELECT hash FROM ltm WHERE expires_at < $3 AND set_config('tea.untracked', 'on', true) = 'on' LIMIT $4", "$2", []any{d.micro(), expired, deleteBatch})
	if err != nil {
		return n, err
	}
	err = d.forget(ctx)
	if e := tea.AsError(err); d.rowSecurity && e != nil && e.Type == tea.PermissionDenied {
		err = nil // only devices of the owner can do this
	}
	return n, err
}

// removeAll removes all entries that a query selects, in batches.
func (d *database) removeAll(ctx context.Context, chosen, now string, args []any) (all, live int, err error) {
	for {
		n, living, err := d.remove(ctx, chosen, now, args...)
		if err != nil {
			return all, live, err
		}
		all, live = all+n, live+living
		if n < deleteBatch {
			return all, live, nil
		}
	}
}

// notExpired is the condition that an entry has not expired; the time follows.
const notExpired = "(expires_at IS NULL OR expires_at > "

// remove removes the entries with the chosen hashes, and returns how many there were and how many were live. The
// parameters begin at $2.
func (d *database) remove(ctx context.Context, chosen, now string, args ...any) (all, live int, err error) {
	results, err := d.statement(ctx, "WITH gone AS (DELETE FROM ltm WHERE hash IN ("+chosen+") RETURNING expires_at) "+
		"INSERT INTO tea_writes (id, result) SELECT $1::bytea, concat(count(*), ' ', count(*) FILTER (WHERE "+notExpired+now+"))) FROM gone RETURNING result", args...)
	if err == nil {
		_, err = fmt.Sscan(results[0], &all, &live)
	}
	return all, live, err
}

// forgetSQL removes the tombstones of a feed older than a number of microseconds, and all tombstones with smaller
// numbers.
const forgetSQL = `WITH old AS (SELECT max(seq) AS seq FROM tea_deleted WHERE feed = $1 AND seq > 0 AND deleted_at < tea_now() - $2::bigint),
	noted AS (INSERT INTO tea_forgotten SELECT $1, seq FROM old WHERE seq IS NOT NULL ON CONFLICT (feed) DO UPDATE SET seq = excluded.seq)
	DELETE FROM tea_deleted WHERE feed = $1 AND seq > 0 AND seq <= (SELECT seq FROM old)`

func (d *database) forget(ctx context.Context) error {
	for _, feed := range store.Feeds() {
		err := d.do(ctx, writing, func(ctx context.Context, c conn) error {
			_, err := c.Exec(ctx, forgetSQL, string(feed), int64(records.KeptDeletions)*time.Second.Microseconds())
			return err
		})
		if err != nil {
			return fmt.Errorf("remove old deletions: %w", err)
		}
	}
	return nil
}

// forgetItems removes the tombstones that copies of collections no longer need.
func forgetItems(b *pgx.Batch) {
	b.Queue("DELETE FROM vectors_gone WHERE seq <= (SELECT n FROM tea_seq WHERE name = 'vectors') - $1", mirror.KeepGone)
}
