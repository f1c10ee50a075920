package remotesqlite

import (
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/mirror"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

var (
	_ store.Driver         = (*database)(nil)
	_ store.Bounded        = (*database)(nil)
	_ store.DocumentFinder = (*database)(nil)
	_ store.TextSearcher   = (*database)(nil)
	_ store.PrefixDeleter  = (*database)(nil)
	_ store.ContentStore   = (*database)(nil)
	_ store.Inspector      = (*database)(nil)
	_ store.Resetter       = (*database)(nil)
)

// table describes how the rows of a feed are read. l is the row; j.value is a JSON list that begins with the space and
// the key.
type table struct {
	from          string
	space, key    string // columns
	columns, size string
	version       string
	// spaceEscaped and keyEscaped report that the names can contain NUL; see escaper.
	spaceEscaped, keyEscaped bool
}

// Each SELECT of rows has these columns: seq, whether it is a tombstone, id, space, key,
// body, metadata, hash, size, created, updated, expires, version, text.
var feeds = map[store.Feed]table{
	store.EntryFeed: {
		from: "ltm AS l", space: "l.namespace", key: "l.key", keyEscaped: true, version: "0",
		columns: "l.seq AS seq, 0 AS gone, l.id AS rid, l.namespace AS space, l.key AS key, l.value AS body, l.metadata AS metadata, l.content_hash AS hash, l.size AS size, l.created_at AS created, l.updated_at AS updated, l.expires_at AS expires, 0 AS version, NULL AS text",
		size:    "l.size + coalesce(length(l.metadata), 0)",
	},
	store.VectorFeed: {
		from: "vectors AS l", space: "l.collection", key: "l.name", spaceEscaped: true, keyEscaped: true, version: "0",
		columns: "l.seq AS seq, 0 AS gone, l.id AS rid, l.collection AS space, l.name AS key, l.embedding AS body, l.metadata AS metadata, NULL AS hash, 0 AS size, 0 AS created, 0 AS updated, NULL AS expires, 0 AS version, l.text AS text",
		size:    "length(l.text) + length(l.embedding) + coalesce(length(l.metadata), 0)",
	},
	store.DocumentFeed: {
		from: "documents AS l", space: "l.kind", key: "l.id", version: "coalesce(l.version, 0)",
		columns: "l.seq AS seq, 0 AS gone, 0 AS rid, l.kind AS space, l.id AS key, l.body AS body, NULL AS metadata, NULL AS hash, 0 AS size, 0 AS created, 0 AS updated, NULL AS expires, l.version AS version, NULL AS text",
		size:    "length(l.body)",
	},
}

const tombstoneColumns = "t.seq AS seq, 1 AS gone, 0 AS rid, t.space AS space, t.key AS key, NULL AS body, NULL AS metadata, NULL AS hash, 0 AS size, 0 AS created, t.deleted_at AS updated, NULL AS expires, 0 AS version, NULL AS text"

func (t table) named() string {
	return t.space + " = json_extract(j.value, '$[0]') AND " + t.key + " = json_extract(j.value, '$[1]')"
}

var withBody = regexp.MustCompile(`[a-z.]+ AS body`)

// without returns the columns, optionally without the body.
func (t table) without(noBody bool) string {
	if !noBody {
		return t.columns
	}
	return withBody.ReplaceAllString(t.columns, "NULL AS body")
}

func (t table) escape(n store.RecordName) (space, key string) {
	if space, key = n.Space, n.Key; t.spaceEscaped {
		space = escape(space)
	}
	if t.keyEscaped {
		key = escape(key)
	}
	return space, key
}

// toRow reads a row, without the value of a large entry.
func toRow(feed store.Feed, row []any) store.Row {
	t := feeds[feed]
	r := store.Row{
		Seq: number(row, 0), Deleted: number(row, 1) == 1, ID: number(row, 2), Metadata: text(row, 6), Hash: text(row, 7), Size: number(row, 8),
		Created: number(row, 9), Updated: number(row, 10), Expires: number(row, 11), Version: number(row, 12), Text: unescape(text(row, 13)),
	}
	if r.RecordName = (store.RecordName{Feed: feed, Space: text(row, 3), Key: text(row, 4)}); t.spaceEscaped {
		r.Space = unescape(r.Space)
	}
	if t.keyEscaped {
		r.Key = unescape(r.Key)
	}
	if row[5] == nil {
		return r
	}
	if r.Body = []byte(text(row, 5)); feed == store.VectorFeed {
		raw, err := base64.StdEncoding.DecodeString(text(row, 5))
		if r.Body = raw; err != nil || len(raw)%4 != 0 {
			r.Damaged = tea.Errorf(tea.InternalError, "the embedding of %q in %q is damaged", r.Key, r.Space)
		}
	}
	return r
}

func toRows(feed store.Feed, found Result) []store.Row {
	rows := make([]store.Row, len(found))
	for i, row := range found {
		rows[i] = toRow(feed, row)
	}
	return rows
}

// State returns the state of a feed.
func (d *database) State(ctx context.Context, feed store.Feed) (store.FeedState, error) {
	rows, err := d.query(ctx, "SELECT coalesce((SELECT seq FROM tea_forgotten WHERE feed = ?1), 0), (SELECT n FROM tea_seq WHERE name = ?1), (SELECT value FROM tea_settings WHERE name = '"+settingIdentity+"')", string(feed))
	if err != nil {
		return store.FeedState{}, err
	}
	s := store.FeedState{Forgotten: number(rows[0], 0), Last: number(rows[0], 1), Identity: text(rows[0], 2)}
	if s.Identity == "" { // written by an older version and only read
		return s, store.Unsupported(d.name, store.Records, "write to the memory once with this version of the plugin")
	}
	return s, nil
}

// Get returns rows and tombstones. If parts of a large value are removed while they are read, the row is read again.
func (d *database) Get(ctx context.Context, q store.RowQuery) ([]store.Row, error) {
	var all []store.Row
	for part := range slices.Chunk(q.Names, nameBatch) {
		names := make([][]any, len(part))
		for i, n := range part {
			space, key := feeds[q.Feed].escape(n)
			names[i] = []any{space, key}
		}
		lists, err := chunks(names)
		if err != nil {
			return nil, err
		}
		for _, list := range lists {
			rows, err := d.get(ctx, q, list, len(q.Names) == 1)
			if err != nil {
				return nil, err
			}
			all = append(all, rows...)
		}
	}
	for part := range slices.Chunk(q.IDs, nameBatch) {
		t := feeds[q.Feed]
		found, err := d.query(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE l.id IN (SELECT value FROM json_each(?1))", t.without(q.NoBody), t.from), list(part))
		if err != nil {
			return nil, err
		}
		rows := toRows(q.Feed, found)
		if err := d.fill(ctx, rows, q.NoBody); err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

// nameBatch is the number of rows that one request reads by their names or ids.
const nameBatch = 500

// get reads the rows named in a list, and the value if there is only one.
func (d *database) get(ctx context.Context, q store.RowQuery, names string, single bool) ([]store.Row, error) {
	t := feeds[q.Feed]
	sql := fmt.Sprintf(`SELECT %s FROM json_each(?1) AS j JOIN %s ON %s
		UNION ALL SELECT %s FROM (SELECT max(d.seq) AS seq, d.deleted_at, d.space, d.key FROM json_each(?1) AS j
			JOIN tea_deleted AS d ON d.feed = ?2 AND d.space = json_extract(j.value, '$[0]') AND d.key = json_extract(j.value, '$[1]') GROUP BY d.space, d.key) AS t`,
		t.without(q.NoBody), t.from, t.named(), tombstoneColumns)
	withParts := single && q.Feed == store.EntryFeed && !q.NoBody
	if withParts {
		sql = "SELECT * FROM (" + sql + fmt.Sprintf(`) UNION ALL SELECT part, 2, 0, '', '', data, NULL, NULL, 0, 0, 0, NULL, 0, NULL FROM ltm_parts
			WHERE hash = (SELECT l.content_hash FROM json_each(?1) AS j JOIN ltm AS l ON %s WHERE l.value IS NULL) AND part < %d ORDER BY gone, seq`, t.named(), requestParts)
	}
	for try := 0; ; try++ {
		found, err := d.query(ctx, sql, names, string(q.Feed))
		if err != nil {
			return nil, err
		}
		n := slices.IndexFunc(found, func(row []any) bool { return number(row, 1) == 2 })
		if n < 0 {
			n = len(found)
		}
		rows := toRows(q.Feed, found[:n])
		if n < len(found) {
			parts := make(Result, 0, len(found)-n)
			for _, row := range found[n:] {
				parts = append(parts, row[5:6])
			}
			if err := d.join(ctx, &rows[0], parts); err != nil {
				return nil, err
			}
		}
		if err := d.fill(ctx, rows, q.NoBody); err != nil {
			return nil, err
		}
		if try > 0 || !slices.ContainsFunc(rows, wrongValue) {
			return rows, nil
		}
	}
}

// wrongValue reports whether the value of an entry does not match its hash.
func wrongValue(r store.Row) bool {
	return r.Feed == store.EntryFeed && r.Body != nil && content.Hash(r.Body) != r.Hash
}

const (
	// partBytes is the size of a part of a large value.
	partBytes = 512 << 10
	// requestParts is the number of parts in one request.
	requestParts = 8
	// keepParts is the number of seconds that parts without an entry are kept, because the entry may follow.
	keepParts = 3600
)

// join joins the first parts of a value and reads the others.
func (d *database) join(ctx context.Context, r *store.Row, parts Result) error {
	var b strings.Builder
	for n := 0; ; {
		for _, row := range parts {
			b.WriteString(text(row, 0))
		}
		n += len(parts)
		if int64(b.Len()) >= r.Size || len(parts) == 0 {
			r.Body = []byte(b.String())
			return nil
		}
		var err error
		parts, err = d.query(ctx, fmt.Sprintf("SELECT data FROM ltm_parts WHERE hash = ?1 AND part >= %d ORDER BY part LIMIT %d", n, requestParts), r.Hash)
		if err != nil {
			return err
		}
	}
}

// fill reads the values that are stored in parts, several per request.
func (d *database) fill(ctx context.Context, rows []store.Row, noBody bool) error {
	var large []*store.Row
	for i := range rows {
		if r := &rows[i]; !noBody && r.Feed == store.EntryFeed && !r.Deleted && r.Body == nil {
			large = append(large, r)
		}
	}
	for len(large) > 0 {
		var hashes []string
		size := int64(0)
		for _, r := range large {
			if size += r.Size; len(hashes) > 0 && size > partBytes*requestParts {
				break
			}
			hashes = append(hashes, r.Hash)
		}
		found, err := d.query(ctx, fmt.Sprintf("SELECT hash, data FROM ltm_parts WHERE hash IN (SELECT value FROM json_each(?1)) AND part < %d ORDER BY hash, part", requestParts), list(hashes))
		if err != nil {
			return err
		}
		parts := map[string]Result{}
		for _, row := range found {
			parts[text(row, 0)] = append(parts[text(row, 0)], row[1:])
		}
		for _, r := range large[:len(hashes)] {
			if err := d.join(ctx, r, parts[r.Hash]); err != nil {
				return err
			}
		}
		large = large[len(hashes):]
	}
	return nil
}

// maxPage bounds the rows of a page.
const maxPage = 4 << 20

// pageOf returns a SELECT of the first rows of another SELECT, in an order, up to a size in bytes. The last column is
// the number of all rows.
func pageOf(rows, order string, bytes int64) string {
	if bytes <= 0 || bytes > maxPage {
		bytes = maxPage
	}
	return fmt.Sprintf("SELECT * FROM (SELECT *, sum(bytes) OVER (ORDER BY %[2]s) - bytes AS before, count(*) OVER () AS all_rows FROM (%[1]s)) WHERE before <= %[3]d ORDER BY %[2]s", rows, order, bytes)
}

// Scan returns rows of a space.
func (d *database) Scan(ctx context.Context, q store.RowRange) (page store.RowPage, err error) {
	t := feeds[q.Feed]
	space, after := t.escape(store.RecordName{Space: q.Space, Key: q.After})
	_, prefix := t.escape(store.RecordName{Key: q.Prefix})
	begins, args := prefixed(t.key, prefix, []string{space, after})
	size := t.size
	if q.NoBody {
		size = "0"
	}
	if q.Feed == store.EntryFeed && q.Live != 0 {
		begins += fmt.Sprintf(" AND (l.expires_at IS NULL OR l.expires_at > %d)", q.Live)
	}
	sql := fmt.Sprintf("SELECT %s, %s AS bytes, %s AS k FROM %s WHERE %s = ?1 AND %s > ?2%s ORDER BY k LIMIT %d", t.without(q.NoBody), size, t.key, t.from, t.space, t.key, begins, q.Limit)
	found, err := d.query(ctx, pageOf(sql, "k", q.MaxBytes), args...)
	if err != nil || len(found) == 0 {
		return page, err
	}
	page.More = len(found) == q.Limit || number(found[0], len(found[0])-1) > int64(len(found))
	page.Rows = toRows(q.Feed, found)
	return page, d.fill(ctx, page.Rows, q.NoBody)
}

// Changes returns changes of a feed, and, in the same request, the state of the feed and of the collection.
func (d *database) Changes(ctx context.Context, q store.RowChanges) (page store.RowPage, err error) {
	t := feeds[q.Feed]
	of := "l.seq > CAST(?1 AS INTEGER)"
	gone := "SELECT " + tombstoneColumns + ", 0 AS bytes FROM tea_deleted AS t WHERE t.feed = ?2 AND t.seq > CAST(?1 AS INTEGER)"
	args := []string{integer(q.After), string(q.Feed)}
	state := "SELECT -1 AS seq, 0 AS gone, (SELECT n FROM tea_seq WHERE name = ?2) AS rid, '' AS space, '' AS key, NULL AS body, NULL AS metadata, NULL AS hash, coalesce((SELECT seq FROM tea_forgotten WHERE feed = ?2), 0) AS size, 0 AS created, 0 AS updated, 0 AS expires, 0 AS version, NULL AS text, 0 AS bytes, 0 AS before, 0 AS all_rows"
	if q.Space != "" {
		space, _ := t.escape(store.RecordName{Space: q.Space})
		args = append(args, space)
		of += " AND l.collection = ?3"
		gone = "SELECT seq, 1 AS gone, id, collection, '', NULL, NULL, NULL, 0, 0, 0, NULL, 0, NULL, 0 AS bytes FROM vectors_gone WHERE collection = ?3 AND seq > CAST(?1 AS INTEGER)"
		state = fmt.Sprintf("SELECT -1 AS seq, 0 AS gone, (SELECT n FROM tea_seq WHERE name = ?2) AS rid, '' AS space, '' AS key, NULL AS body, NULL AS metadata, NULL AS hash, max(0, (SELECT n FROM tea_seq WHERE name = ?2) - %d) AS size, c.dimension AS created, c.born AS updated, 0 AS expires, 0 AS version, NULL AS text, 0 AS bytes, 0 AS before, 0 AS all_rows FROM (SELECT 1) LEFT JOIN vector_collections AS c ON c.name = ?3", mirror.KeepGone)
	}
	rows := fmt.Sprintf("SELECT %s, %s AS bytes FROM %s WHERE %s UNION ALL %s ORDER BY seq LIMIT %d", t.columns, t.size, t.from, of, gone, q.Limit)
	found, err := d.query(ctx, "SELECT * FROM ("+state+") UNION ALL SELECT * FROM ("+pageOf(rows, "seq", q.MaxBytes)+") ORDER BY seq", args...)
	if err != nil {
		return page, err
	}
	first := found[0]
	page.Last, page.Forgotten = number(first, 2), number(first, 8)
	if q.Space != "" {
		page.Space = store.Space{Name: q.Space, Dimension: int(number(first, 9)), Born: number(first, 10)}
		page.Forgotten = 0 // mirrors have a separate bound, KeepGone
	}
	if found = found[1:]; len(found) == 0 {
		return page, nil
	}
	last := number(found[len(found)-1], 0)
	page.More = len(found) == q.Limit || number(found[0], len(found[0])-1) > int64(len(found))
	if page.More || last > page.Last {
		page.Last = last
	}
	page.Rows = toRows(q.Feed, found)
	return page, d.fill(ctx, page.Rows, false)
}

func (d *database) Spaces(ctx context.Context, names ...string) (all []store.Space, err error) {
	where, args := "", []string(nil)
	if len(names) > 0 {
		escaped := make([]string, len(names))
		for i, name := range names {
			escaped[i] = escape(name)
		}
		where, args = " WHERE name IN (SELECT value FROM json_each(?1))", []string{list(escaped)}
	}
	rows, err := d.query(ctx, "SELECT name, dimension, born, (SELECT count(*) FROM vectors WHERE collection = c.name) FROM vector_collections AS c"+where+" ORDER BY name", args...)
	for _, row := range rows {
		all = append(all, store.Space{Name: unescape(text(row, 0)), Dimension: int(number(row, 1)), Born: number(row, 2), Count: int(number(row, 3))})
	}
	return all, err
}

func (d *database) FindDocuments(ctx context.Context, q store.DocumentQuery) ([]store.Row, error) {
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
	sql, texts := packed(fmt.Sprintf("SELECT %s FROM documents AS l WHERE %s%s LIMIT %d OFFSET %d", feeds[store.DocumentFeed].columns, where, order, limit, q.Offset), args)
	found, err := d.query(ctx, sql, texts...)
	return toRows(store.DocumentFeed, found), err
}

const defaultLimit = 1000

func (d *database) CountDocuments(ctx context.Context, q store.DocumentQuery) (int, error) {
	where, args, err := documents.Where(store.SQLite, q)
	if err != nil {
		return 0, err
	}
	sql, texts := packed("SELECT count(*) FROM documents AS l WHERE "+where, args)
	rows, err := d.query(ctx, sql, texts...)
	if err != nil {
		return 0, err
	}
	return int(number(rows[0], 0)), nil
}

func (d *database) Close() error { return d.server.Close() }

// maxArgs is the maximum number of parameters that get a placeholder each. D1 allows 100.
const maxArgs = 90

// packed returns a statement with its parameters as text, which the statement casts to numbers. Many parameters become
// one, a JSON list.
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
