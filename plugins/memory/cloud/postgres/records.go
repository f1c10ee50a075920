package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/replica"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// records are the tables of a database as records.
type records struct{ d *database }

var _ replica.Tables = (*records)(nil)

// Identity identifies the contents.
func (r *records) Identity(ctx context.Context) (identity string, err error) {
	err = r.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		return c.QueryRow(ctx, "SELECT identity FROM tea_identity").Scan(&identity)
	})
	return identity, err
}

// Bounds returns the numbers between which all deletions are known.
func (r *records) Bounds(ctx context.Context, feed store.Feed) (forgotten, last int64, err error) {
	err = r.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		return c.QueryRow(ctx, "SELECT coalesce((SELECT seq FROM tea_forgotten WHERE feed = $1), 0), n FROM tea_seq WHERE name = $1", string(feed)).Scan(&forgotten, &last)
	})
	return forgotten, last, err
}

// forgetSQL removes the tombstones of a feed that are older than a number of
// microseconds, and those with smaller numbers.
const forgetSQL = `WITH old AS (SELECT max(seq) AS seq FROM tea_deleted WHERE feed = $1 AND seq > 0 AND deleted_at < tea_now() - $2::bigint),
	noted AS (INSERT INTO tea_forgotten SELECT $1, seq FROM old WHERE seq IS NOT NULL ON CONFLICT (feed) DO UPDATE SET seq = excluded.seq)
	DELETE FROM tea_deleted WHERE feed = $1 AND seq > 0 AND seq <= (SELECT seq FROM old)`

// forget removes old tombstones.
func (d *database) forget(ctx context.Context) error {
	for _, feed := range store.Feeds() {
		err := d.do(ctx, writing, func(ctx context.Context, c conn) error {
			_, err := c.Exec(ctx, forgetSQL, string(feed), int64(replica.KeptDeletions)*time.Second.Microseconds())
			return err
		})
		if err != nil {
			return fmt.Errorf("remove old deletions: %w", err)
		}
	}
	return nil
}

// number assigns the numbers of the changes of entries.
func (d *database) number(ctx context.Context) error {
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

// selected are the columns of a feed's rows, those of its tombstones, and the size
// of a row.
type selected struct{ table, columns, tombstone, size string }

var feeds = map[store.Feed]selected{
	store.EntryFeed: {
		table:     "ltm",
		columns:   "seq, false AS gone, convert_to(namespace, 'UTF8') AS space, key, value, metadata, content_hash, created_at, updated_at, expires_at",
		tombstone: "seq, true, space, key, '', NULL, '', 0, deleted_at, NULL",
		size:      "octet_length(value) + coalesce(octet_length(metadata), 0)",
	},
	store.VectorFeed: {
		table:     "vectors",
		columns:   "seq, false AS gone, collection AS space, name AS key, text, metadata, embedding, 0::bigint",
		tombstone: "seq, true, space, key, ''::bytea, NULL, ''::bytea, deleted_at",
		size:      "octet_length(text) + octet_length(embedding) + coalesce(octet_length(metadata), 0)",
	},
	store.DocumentFeed: {
		table:     "documents",
		columns:   "seq, false AS gone, convert_to(kind, 'UTF8') AS space, convert_to(id, 'UTF8') AS key, body, 0::bigint",
		tombstone: "seq, true, space, key, '', deleted_at",
		size:      "octet_length(body)",
	},
}

// maxPage is the size of the rows of a page.
const maxPage = 4 << 20

// Page returns the first records of a feed after a number.
func (r *records) Page(ctx context.Context, query store.ChangeQuery) (found []store.Record, more bool, err error) {
	if query.Feed == store.EntryFeed {
		if err := r.d.number(ctx); err != nil {
			return nil, false, err
		}
	}
	of := feeds[query.Feed]
	size := int64(maxPage)
	if query.MaxBytes > 0 {
		size = min(size, query.MaxBytes)
	}
	// A row is there if those before it are not larger than the page. The sizes are
	// added up before the values are read.
	sql := fmt.Sprintf(`WITH page AS (SELECT seq, sum(bytes) OVER (ORDER BY seq) - bytes AS before, count(*) OVER () AS all_rows FROM (
			SELECT seq, %s AS bytes FROM %s WHERE seq > $1 UNION ALL SELECT seq, 0 FROM tea_deleted WHERE feed = $2 AND seq > $1 ORDER BY seq LIMIT $3) AS rows_of_page),
		chosen AS (SELECT min(seq) AS first, max(seq) AS last, max(all_rows) > count(*) AS more FROM page WHERE before <= $4)
		SELECT %s, chosen.more FROM %s, chosen WHERE seq BETWEEN chosen.first AND chosen.last
		UNION ALL SELECT %s, chosen.more FROM tea_deleted, chosen WHERE feed = $2 AND seq BETWEEN chosen.first AND chosen.last ORDER BY 1`,
		of.size, of.table, of.columns, of.table, of.tombstone)
	err = r.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		rows, err := c.Query(ctx, sql, query.After, string(query.Feed), max(query.Limit, 1)+1, size)
		if err != nil {
			return err
		}
		found, more, err = r.scan(query.Feed, rows, true)
		return err
	})
	return found, more, err
}

// nameBatch is the number of records that one statement reads by their names.
const nameBatch = 500

// Named returns the records with these names.
func (r *records) Named(ctx context.Context, feed store.Feed, names []store.RecordName) (found []store.Record, err error) {
	if feed == store.EntryFeed {
		if err := r.d.number(ctx); err != nil {
			return nil, err
		}
	}
	of := feeds[feed]
	for part := range slices.Chunk(names, nameBatch) {
		var hashes, spaces, keys [][]byte
		for _, name := range part {
			if feed == store.DocumentFeed && (!isText(name.Space) || !isText(name.Key)) {
				continue
			}
			hashes, spaces, keys = append(hashes, rowHash(name)), append(spaces, []byte(name.Space)), append(keys, []byte(name.Key))
		}
		where := "hash = ANY($1)"
		if feed == store.DocumentFeed {
			where = "$1::bytea[] IS NOT NULL AND (kind, id) IN (SELECT convert_from(s, 'UTF8'), convert_from(k, 'UTF8') FROM unnest($2::bytea[], $3::bytea[]) AS n (s, k))"
		}
		sql := fmt.Sprintf(`SELECT %s FROM %s WHERE %s UNION ALL SELECT %s FROM (
				SELECT DISTINCT ON (t.space, t.key) t.* FROM unnest($2::bytea[], $3::bytea[]) AS n (s, k)
				JOIN tea_deleted AS t ON t.feed = $4 AND substring(t.key FROM 1 FOR 1024) = substring(n.k FROM 1 FOR 1024) AND t.key = n.k AND t.space = n.s
				ORDER BY t.space, t.key, abs(t.seq) DESC) AS gone`, of.columns, of.table, where, of.tombstone)
		err := r.d.do(ctx, reading, func(ctx context.Context, c conn) error {
			rows, err := c.Query(ctx, sql, hashes, spaces, keys, string(feed))
			if err != nil {
				return err
			}
			some, _, err := r.scan(feed, rows, false)
			if err == nil {
				found = append(found, some...)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// rowHash returns the primary key of a row, which documents do not have.
func rowHash(name store.RecordName) []byte {
	if name.Feed == store.VectorFeed {
		return itemHash(name.Space, name.Key)
	}
	return hashOf(name.Space, name.Key)
}

// scan reads rows of a feed, with more at their end if paged.
func (r *records) scan(feed store.Feed, rows pgx.Rows, paged bool) (all []store.Record, more bool, err error) {
	var seq, created, updated int64
	var gone bool
	var space, key, text, embedding []byte
	var value, hash string
	var metadata *string
	var expires *int64
	into := []any{&seq, &gone, &space, &key}
	switch feed {
	case store.EntryFeed:
		into = append(into, &value, &metadata, &hash, &created, &updated, &expires)
	case store.VectorFeed:
		into = append(into, &text, &metadata, &embedding, &updated)
	case store.DocumentFeed:
		into = append(into, &value, &updated)
	}
	if paged {
		into = append(into, &more)
	}
	_, err = pgx.ForEachRow(rows, into, func() (err error) {
		name := store.RecordName{Feed: feed, Space: string(space), Key: string(key)}
		one := store.Record{RecordName: name, Seq: seq, Deleted: true, Updated: clock.FromMicro(updated)}
		switch {
		case gone:
		case feed == store.EntryFeed:
			e := store.Memory{Namespace: name.Space, Key: name.Key, Value: []byte(value), Metadata: raw(metadata), ContentHash: hash, CreatedAt: clock.FromMicro(created), UpdatedAt: clock.FromMicro(updated), ExpiresAt: instant(expires)}
			if content.Hash(e.Value) != hash {
				r.d.logger.Error("an entry is damaged", "key", name.Key)
				e.Damaged, e.Value = true, nil
			}
			one, err = longterm.ToRecord(e, seq)
		case feed == store.VectorFeed:
			one = vectors.ToRecord(name.Space, name.Key, seq, store.VectorBody{Text: string(text), Embedding: vectors.Decode(embedding[:len(embedding)/4*4]), Metadata: raw(metadata)})
			one.Damaged = one.Damaged || len(embedding)%4 != 0
		default:
			one = documents.ToRecord(store.Document{Kind: name.Space, ID: name.Key, Body: []byte(value), Seq: seq})
		}
		all = append(all, one)
		return err
	})
	return all, more, err
}

// errChanged makes a transaction run again: another writer has changed a row since
// it was read.
var errChanged = &pgconn.PgError{Code: serializationFailure, Message: "a record was changed meanwhile"}

// Put does the writes in one transaction.
func (r *records) Put(ctx context.Context, w *replica.Writes) error {
	_, err := r.d.write(ctx, func(ctx context.Context, c conn, id []byte) ([]string, error) {
		p := &putting{d: r.d, w: w, numbers: map[store.RecordName]int64{}, versions: map[store.RecordName]int64{}, dimensions: map[string]int{}}
		if err := p.lock(ctx, c, id); err != nil {
			return nil, err
		}
		return p.write(ctx, c)
	})
	return err
}

// putting is a transaction of a Put.
type putting struct {
	d          *database
	w          *replica.Writes
	numbers    map[store.RecordName]int64
	versions   map[store.RecordName]int64 // of documents
	dimensions map[string]int
	last       map[store.Feed]int64
}

func (p *putting) all() []*replica.Write {
	return slices.Concat(p.w.Entries, p.w.Vectors, p.w.Documents)
}

func hashesOf(writes []*replica.Write) [][]byte {
	hashes := make([][]byte, len(writes))
	for i, w := range writes {
		hashes[i] = rowHash(w.RecordName)
	}
	return hashes
}

// lock begins the transaction and locks the rows, and the last numbers of
// documents and vectors, which it counts up.
func (p *putting) lock(ctx context.Context, c conn, id []byte) error {
	p.last = map[store.Feed]int64{}
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	b.Queue(noteSQL, id)
	for _, feed := range []store.Feed{store.DocumentFeed, store.VectorFeed} {
		n := len(p.w.Documents)
		if feed == store.VectorFeed {
			n = len(p.w.Vectors)
		}
		if n > 0 {
			// One more, for the collections.
			b.Queue("UPDATE tea_seq SET n = n + $2 WHERE name = $1 RETURNING n - $2", string(feed), int64(n+1)).QueryRow(func(row pgx.Row) error {
				var last int64
				err := row.Scan(&last)
				p.last[feed] = last
				return err
			})
		}
	}
	if len(p.w.Entries) > 0 {
		b.Queue("SELECT n FROM tea_seq WHERE name = 'ltm' FOR UPDATE")
		b.Queue("SELECT tea_number()")
	}
	p.read(b, "SELECT seq, convert_to(namespace, 'UTF8'), key, 0::bigint FROM ltm WHERE hash = ANY($1) ORDER BY hash FOR UPDATE", store.EntryFeed, hashesOf(p.w.Entries))
	p.read(b, "SELECT seq, collection, name, 0::bigint FROM vectors WHERE hash = ANY($1) ORDER BY hash FOR UPDATE", store.VectorFeed, hashesOf(p.w.Vectors))
	var kinds, ids []string
	for _, w := range p.w.Documents {
		kinds, ids = append(kinds, w.Space), append(ids, w.Key)
	}
	p.read(b, "SELECT seq, convert_to(kind, 'UTF8'), convert_to(id, 'UTF8'), version FROM documents WHERE (kind, id) IN (SELECT * FROM unnest($1::text[], $2::text[]))", store.DocumentFeed, kinds, ids)
	var collections [][]byte
	for _, w := range p.w.Vectors {
		collections = append(collections, []byte(w.Space))
	}
	b.Queue("SELECT name, dimension FROM vector_collections WHERE name = ANY($1)", collections).Query(func(rows pgx.Rows) error {
		var name []byte
		var dimension int
		_, err := pgx.ForEachRow(rows, []any{&name, &dimension}, func() error { p.dimensions[string(name)] = dimension; return nil })
		return err
	})
	return p.d.transaction(ctx, c, b)
}

// read adds a statement that reads the numbers of rows.
func (p *putting) read(b *pgx.Batch, sql string, feed store.Feed, args ...any) {
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		var seq, version int64
		var space, key []byte
		_, err := pgx.ForEachRow(rows, []any{&seq, &space, &key, &version}, func() error {
			name := store.RecordName{Feed: feed, Space: string(space), Key: string(key)}
			p.numbers[name], p.versions[name] = seq, version
			return nil
		})
		return err
	})
}

// write checks the conditions, writes and commits.
func (p *putting) write(ctx context.Context, c conn) ([]string, error) {
	for _, w := range p.all() {
		have := p.numbers[w.RecordName]
		w.Result = store.PutResult{Seq: have, Conflict: w.If != store.AnySeq && w.If != have}
		if w.Feed == store.VectorFeed && !w.Deleted && !w.Result.Conflict {
			p.checkDimension(w)
		}
	}
	b := &pgx.Batch{}
	p.remove(b)
	p.writeDocuments(b)
	p.writeVectors(b)
	p.writeEntries(b)
	if err := p.d.transaction(ctx, c, b); err != nil {
		return nil, err
	}
	commit := &pgx.Batch{}
	commit.Queue("COMMIT")
	return nil, p.d.transaction(ctx, c, commit)
}

func (p *putting) checkDimension(w *replica.Write) {
	got := len(w.Item.Embedding)
	have, known := p.dimensions[w.Space]
	if !known {
		p.dimensions[w.Space], have = got, got
	}
	if have != got {
		w.Result.Err = vectors.WrongDimension(w.Space, got, have)
	}
}

// chosen returns the writes that are done.
func chosen(writes []*replica.Write, deleted bool) (some []*replica.Write) {
	for _, w := range writes {
		if !w.Result.Conflict && w.Result.Err == nil && w.Deleted == deleted {
			some = append(some, w)
		}
	}
	return some
}

// remove adds the statements that delete rows.
func (p *putting) remove(b *pgx.Batch) {
	if gone := chosen(p.w.Entries, true); len(gone) > 0 {
		b.Queue("DELETE FROM ltm WHERE hash = ANY($1)", hashesOf(gone))
		done(gone)
	}
	if gone := chosen(p.w.Vectors, true); len(gone) > 0 {
		b.Queue(`WITH gone AS (DELETE FROM vectors WHERE hash = ANY($1) RETURNING collection, id)
			INSERT INTO vectors_gone SELECT $2 + row_number() OVER (), collection, id FROM gone`, hashesOf(gone), p.last[store.VectorFeed]+int64(len(p.w.Vectors)-len(gone))) // after those of the writes
		done(gone)
	}
	if gone := chosen(p.w.Documents, true); len(gone) > 0 {
		var kinds, ids []string
		for _, w := range gone {
			kinds, ids = append(kinds, w.Space), append(ids, w.Key)
		}
		b.Queue(deleteDocumentsSQL, kinds, ids)
		done(gone)
	}
}

func done(gone []*replica.Write) {
	for _, w := range gone {
		w.Result.Seq = 0
	}
}

// next assigns the numbers of writes and returns them.
func (p *putting) next(feed store.Feed, writes []*replica.Write) []int64 {
	numbers := make([]int64, len(writes))
	for i, w := range writes {
		numbers[i] = p.last[feed] + int64(i) + 1
		w.Result.Seq = numbers[i]
	}
	return numbers
}

func (p *putting) writeDocuments(b *pgx.Batch) {
	writes := chosen(p.w.Documents, false)
	if len(writes) == 0 {
		return
	}
	var kinds, ids, bodies, fields []string
	var versions []int64
	for _, w := range writes {
		kinds, ids, bodies, fields = append(kinds, w.Space), append(ids, w.Key), append(bodies, string(w.Body)), append(fields, fieldsOf(w.Body))
		versions = append(versions, p.versions[w.RecordName]+1)
	}
	b.Queue(insertDocumentsSQL, kinds, ids, bodies, fields, versions, p.next(store.DocumentFeed, writes))
}

func (p *putting) writeVectors(b *pgx.Batch) {
	writes := chosen(p.w.Vectors, false)
	if len(writes) == 0 {
		return
	}
	var names [][]byte
	var dimensions []int
	for _, name := range slices.Sorted(maps.Keys(p.dimensions)) {
		names, dimensions = append(names, []byte(name)), append(dimensions, p.dimensions[name])
	}
	last := p.last[store.VectorFeed]
	b.Queue("INSERT INTO vector_collections SELECT n, d, $3 FROM unnest($1::bytea[], $2::integer[]) AS c (n, d) ON CONFLICT DO NOTHING", names, dimensions, last+int64(len(p.w.Vectors))+1)
	var hashes, collections, ids, texts, embeddings [][]byte
	var metadata []*string
	for _, w := range writes {
		hashes, collections, ids = append(hashes, rowHash(w.RecordName)), append(collections, []byte(w.Space)), append(ids, []byte(w.Key))
		texts, embeddings, metadata = append(texts, []byte(w.Item.Text)), append(embeddings, vectors.Encode(w.Item.Embedding)), append(metadata, orNull(w.Metadata))
	}
	b.Queue(`INSERT INTO vectors (hash, collection, name, seq, text, embedding, metadata)
		SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bytea[], $6::bytea[], $7::text[])
		ON CONFLICT (hash) DO UPDATE SET seq = excluded.seq, text = excluded.text, embedding = excluded.embedding, metadata = excluded.metadata`,
		hashes, collections, ids, p.next(store.VectorFeed, writes), texts, embeddings, metadata)
}

// putSQL writes entries over the rows that were read. Other writers of entries do
// not wait for the transaction, so it returns what it has written.
const putSQL = `INSERT INTO ltm AS l (hash, namespace, key, value, metadata, content_hash, created_at, updated_at, expires_at, fresh, words)
	SELECT i.hash, i.namespace, i.key, i.value, i.metadata, i.content_hash, i.created_at, i.updated_at, i.expires_at, true, i.words::tsvector
	FROM unnest($1::bytea[], $2::text[], $3::bytea[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[], $10::text[])
		AS i (hash, namespace, key, value, metadata, content_hash, created_at, updated_at, expires_at, words)
	ON CONFLICT (hash) DO UPDATE SET value = excluded.value, metadata = excluded.metadata, content_hash = excluded.content_hash,
		created_at = excluded.created_at, updated_at = excluded.updated_at, expires_at = excluded.expires_at, fresh = false, words = excluded.words
	WHERE l.hash = ANY($11)`

func (p *putting) writeEntries(b *pgx.Batch) {
	writes := chosen(p.w.Entries, false)
	if len(writes) == 0 {
		return
	}
	slices.SortFunc(writes, func(a, b *replica.Write) int { return slices.Compare(rowHash(a.RecordName), rowHash(b.RecordName)) })
	var keys, existing [][]byte
	var namespaces, values, hashes, words []string
	var metadata []*string
	var created, updated []int64
	var expires []*int64
	now := p.d.micro()
	byHash := map[string]*replica.Write{}
	for _, w := range writes {
		e := w.Entry
		keys, namespaces, values, hashes = append(keys, []byte(w.Key)), append(namespaces, w.Space), append(values, e.Value), append(hashes, e.Hash)
		metadata, words, expires = append(metadata, orNull(e.Metadata)), append(words, p.d.vector(e.Fields)), append(expires, orNull(e.ExpiresAt))
		created, updated = append(created, microOr(w.Created, now)), append(updated, microOr(w.Updated, now))
		hash := rowHash(w.RecordName)
		if byHash[string(hash)] = w; p.numbers[w.RecordName] != 0 {
			existing = append(existing, hash)
		}
	}
	b.Queue(putSQL, hashesOf(writes), namespaces, keys, values, metadata, hashes, created, updated, expires, words, existing).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != int64(len(writes)) {
			return errChanged
		}
		return nil
	})
	b.Queue("SELECT tea_number()")
	b.Queue("SELECT hash, seq FROM ltm WHERE hash = ANY($1)", hashesOf(writes)).Query(func(rows pgx.Rows) error {
		var hash []byte
		var seq int64
		_, err := pgx.ForEachRow(rows, []any{&hash, &seq}, func() error { byHash[string(hash)].Result.Seq = seq; return nil })
		return err
	})
}

func microOr(t time.Time, now int64) int64 {
	if t.IsZero() {
		return now
	}
	return t.UnixMicro()
}
