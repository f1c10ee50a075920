package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// rowHash returns the primary key of a row, which documents do not have.
func rowHash(n store.RecordName) []byte {
	if n.Feed == store.VectorFeed {
		first := sha256.Sum256([]byte(n.Space)) // hashed first: a collection's name can contain any character
		sum := sha256.Sum256(append(first[:], n.Key...))
		return sum[:]
	}
	sum := sha256.Sum256([]byte(n.Space + "\x00" + n.Key))
	return sum[:]
}

// column returns a value of each write.
func column[T any](writes []*store.RowWrite, of func(w *store.RowWrite) T) []T {
	all := make([]T, len(writes))
	for i, w := range writes {
		all[i] = of(w)
	}
	return all
}

func hashesOf(writes []*store.RowWrite) [][]byte {
	return column(writes, func(w *store.RowWrite) []byte { return rowHash(w.RecordName) })
}

func spacesOf(writes []*store.RowWrite) []string {
	return column(writes, func(w *store.RowWrite) string { return w.Space })
}

func keysOf(writes []*store.RowWrite) []string {
	return column(writes, func(w *store.RowWrite) string { return w.Key })
}

// toBytes returns texts that can contain NUL as bytea.
func toBytes(texts []string) [][]byte {
	all := make([][]byte, len(texts))
	for i, s := range texts {
		all[i] = []byte(s)
	}
	return all
}

func metadataOf(w *store.RowWrite) *string { return orNull(w.Metadata) }

// Write executes a batch: one request for unconditional writes of entries and unconditional deletions of vectors,
// otherwise two or three.
func (d *database) Write(ctx context.Context, b *store.Batch) error {
	switch {
	case len(b.Writes) == 0:
		return d.do(ctx, writing, func(context.Context, conn) error { return nil })
	case !b.Numbered && plain(b, store.EntryFeed, false):
		return d.storeEntries(ctx, b)
	case len(b.Writes) == 1 && plain(b, store.EntryFeed, true):
		w := b.Writes[0]
		_, live, err := d.remove(ctx, "$2", "$3", rowHash(w.RecordName), b.Now)
		w.Result = store.RowResult{Live: live > 0}
		return err
	case plain(b, store.VectorFeed, true):
		return d.deleteVectors(ctx, b)
	}
	_, err := d.write(ctx, func(ctx context.Context, c conn, id []byte) ([]string, error) {
		x := &lockedBatch{d: d, b: b, have: map[store.RecordName]existing{}, last: map[store.Feed]*int64{}, dimensions: map[string]int{}}
		if err := x.begin(ctx, c, id); err != nil {
			return nil, err
		}
		return nil, x.write(ctx, c)
	})
	return err
}

// plain reports whether all writes are unconditional and are deletions in a feed, or deduplicated writes.
func plain(b *store.Batch, feed store.Feed, deleted bool) bool {
	return !slices.ContainsFunc(b.Writes, func(w *store.RowWrite) bool {
		return w.Feed != feed || w.Deleted != deleted || w.Deduplicate == deleted || w.If != store.Precondition{} || w.Created != 0 || w.Updated != 0
	})
}

const (
	// storeBatch is the number of entries that one statement writes.
	storeBatch = 1000
	// storeBytes bounds their values.
	storeBytes = 16 << 20
)

// The results of storeSQL, one per entry.
const (
	created   = 'c'
	unchanged = '='
)

// entriesSQL writes entries; the parameters are those of entryArgs.
const entriesSQL = `INSERT INTO ltm AS l (hash, namespace, key, value, metadata, content_hash, expires_at, words, created_at, updated_at, fresh)
	SELECT i.hash, i.namespace, i.key, i.value, i.metadata, i.content_hash, i.expires_at, i.words::tsvector, coalesce(i.created, $1), coalesce(i.updated, $1), true
	FROM unnest($2::bytea[], $3::text[], $4::bytea[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::text[], $10::bigint[], $11::bigint[])
		AS i (hash, namespace, key, value, metadata, content_hash, expires_at, words, created, updated)
	ON CONFLICT (hash) DO UPDATE SET value = excluded.value, metadata = excluded.metadata, content_hash = excluded.content_hash, expires_at = excluded.expires_at, words = excluded.words,
		updated_at = excluded.updated_at, `

// storeSQL writes entries. Entries that are not in "written" had the same content.
const storeSQL = "WITH written AS (" + entriesSQL + `created_at = CASE WHEN l.expires_at <= $1 THEN $1 ELSE l.created_at END, fresh = coalesce(l.expires_at <= $1, false)
		WHERE NOT (l.content_hash = excluded.content_hash AND l.metadata IS NOT DISTINCT FROM excluded.metadata AND l.expires_at IS NULL AND excluded.expires_at IS NULL)
		RETURNING l.hash, l.fresh)
	INSERT INTO tea_writes (id, n, result)
	SELECT $12::bytea, $13::integer, string_agg(CASE WHEN fresh THEN 'c' WHEN fresh IS NULL THEN '=' ELSE 'r' END, '' ORDER BY i.n)
	FROM unnest($2::bytea[]) WITH ORDINALITY AS i (hash, n) LEFT JOIN written USING (hash)
	RETURNING result`

// putSQL overwrites the rows that were read. Other writers of entries do not wait for the transaction, so it returns
// what it has written.
const putSQL = entriesSQL + "created_at = excluded.created_at, fresh = false WHERE l.hash = ANY($12)"

// entryArgs are the arguments of entriesSQL.
func (d *database) entryArgs(writes []*store.RowWrite, now int64) []any {
	return []any{
		now, hashesOf(writes), spacesOf(writes), toBytes(keysOf(writes)), bodiesOf(writes),
		column(writes, metadataOf),
		column(writes, func(w *store.RowWrite) string { return w.Hash }),
		column(writes, func(w *store.RowWrite) *int64 { return orNull(w.Expires) }),
		column(writes, func(w *store.RowWrite) string {
			return d.vector(longterm.Fields(w.Key, w.Body, w.Metadata))
		}),
		column(writes, func(w *store.RowWrite) *int64 { return orNull(w.Created) }),
		column(writes, func(w *store.RowWrite) *int64 { return orNull(w.Updated) }),
	}
}

func bodiesOf(writes []*store.RowWrite) []string {
	return column(writes, func(w *store.RowWrite) string { return string(w.Body) })
}

// sorted returns writes of entries in a fixed order, which avoids deadlocks between writers.
func sorted(writes []*store.RowWrite) []*store.RowWrite {
	hashes := hashesOf(writes)
	order := make([]int, len(writes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(hashes[a], hashes[b]) })
	all := make([]*store.RowWrite, len(writes))
	for i, n := range order {
		all[i] = writes[n]
	}
	return all
}

// storeEntries stores entries in parts of storeBatch rows or about storeBytes.
func (d *database) storeEntries(ctx context.Context, b *store.Batch) error {
	var parts [][]*store.RowWrite
	var args [][]any
	for rest := sorted(b.Writes); len(rest) > 0; {
		n, size := 0, 0
		for n < min(len(rest), storeBatch) && size <= storeBytes {
			size += len(rest[n].Body)
			n++
		}
		parts, args = append(parts, rest[:n]), append(args, d.entryArgs(rest[:n], b.Now))
		rest = rest[n:]
	}
	results, err := d.write(ctx, func(ctx context.Context, c conn, id []byte) ([]string, error) {
		results := make([]string, len(parts))
		if len(parts) == 1 {
			err := c.QueryRow(ctx, storeSQL, append(args[0], id, 0)...).Scan(&results[0])
			return results, err
		}
		batch := &pgx.Batch{}
		batch.Queue("BEGIN")
		for n := range parts {
			batch.Queue(storeSQL, append(slices.Clone(args[n]), id, n)...).QueryRow(func(row pgx.Row) error { return row.Scan(&results[n]) })
		}
		batch.Queue("COMMIT")
		return results, d.transaction(ctx, c, batch)
	})
	if err != nil {
		return err
	}
	for n, part := range parts {
		for i, w := range part {
			w.Result = store.RowResult{Live: results[n][i] != created, Same: results[n][i] == unchanged}
		}
	}
	return nil
}

func (d *database) transaction(ctx context.Context, c conn, b *pgx.Batch) error {
	err := c.SendBatch(ctx, b).Close()
	if err != nil {
		_, failed := c.Exec(context.WithoutCancel(ctx), "ROLLBACK")
		if failed != nil {
			d.logger.Debug("a transaction cannot be rolled back; the server does so", "error", failed.Error())
		}
	}
	return err
}

// take locks a feed until the transaction ends, assigns its next numbers, and sets last to the number before them.
func take(b *pgx.Batch, feed store.Feed, n int, last *int64) {
	b.Queue("UPDATE tea_seq SET n = n + $2 WHERE name = $1 RETURNING n - $2", string(feed), int64(n)).QueryRow(func(row pgx.Row) error { return row.Scan(last) })
}

// deleteVectors deletes vectors in one request.
func (d *database) deleteVectors(ctx context.Context, b *store.Batch) error {
	hashes := hashesOf(b.Writes)
	results, err := d.write(ctx, func(ctx context.Context, c conn, id []byte) ([]string, error) {
		var result string
		batch := &pgx.Batch{}
		batch.Queue("BEGIN")
		take(batch, store.VectorFeed, len(hashes), new(int64))
		batch.Queue(`WITH gone AS (DELETE FROM vectors WHERE hash = ANY($2) RETURNING hash, collection, id),
			noted AS (INSERT INTO vectors_gone SELECT (SELECT n FROM tea_seq WHERE name = 'vectors') - $3 + row_number() OVER (), collection, id FROM gone)
			INSERT INTO tea_writes (id, result) SELECT $1::bytea, string_agg(CASE WHEN gone.hash IS NULL THEN '0' ELSE '1' END, '' ORDER BY i.n)
			FROM unnest($2::bytea[]) WITH ORDINALITY AS i (hash, n) LEFT JOIN gone USING (hash) RETURNING result`, id, hashes, len(hashes)).
			QueryRow(func(row pgx.Row) error { return row.Scan(&result) })
		forgetItems(batch)
		batch.Queue("COMMIT")
		err := d.transaction(ctx, c, batch)
		return []string{result}, err
	})
	if err != nil {
		return err
	}
	for i, w := range b.Writes {
		w.Result = store.RowResult{Live: results[0][i] == '1'}
	}
	return nil
}

// errChanged makes a transaction run again because another writer changed a row that it read.
var errChanged = &pgconn.PgError{Code: serializationFailure, Message: "a record was changed meanwhile"}

// existing is what a transaction reads of a row.
type existing struct {
	seq, version, created int64
	expires               *int64
	hash, metadata        *string
}

// lockedBatch is a batch that is written after its rows were locked and read, because it has conditions or its numbers
// are used.
type lockedBatch struct {
	d          *database
	b          *store.Batch
	have       map[store.RecordName]existing
	last       map[store.Feed]*int64 // the last numbers before the transaction
	dimensions map[string]int
}

func (x *lockedBatch) of(feed store.Feed) []*store.RowWrite {
	return slices.DeleteFunc(slices.Clone(x.b.Writes), func(w *store.RowWrite) bool { return w.Feed != feed })
}

// locked are the SELECTs of the rows to be written, without the conditions. Rows of documents and vectors are locked by
// the last number of their feed.
var locked = map[store.Feed]string{
	store.DocumentFeed: "SELECT convert_to(kind, 'UTF8'), convert_to(id, 'UTF8'), seq, version, 0::bigint, NULL::bigint, NULL::text, NULL::text FROM documents WHERE %s",
	store.VectorFeed:   "SELECT collection, name, seq, 0::bigint, 0::bigint, NULL::bigint, NULL::text, NULL::text FROM vectors WHERE %s",
	store.EntryFeed:    "SELECT convert_to(namespace, 'UTF8'), key, seq, 0::bigint, created_at, expires_at, content_hash, metadata FROM ltm WHERE %s ORDER BY hash FOR UPDATE",
}

// begin begins the transaction, reserves numbers in the feeds of documents and vectors (one more than there are writes,
// for collections), and locks and reads the rows.
func (x *lockedBatch) begin(ctx context.Context, c conn, id []byte) error {
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	b.Queue(noteSQL, id)
	for _, feed := range []store.Feed{store.DocumentFeed, store.VectorFeed, store.EntryFeed} {
		writes := x.of(feed)
		if len(writes) == 0 {
			continue
		}
		if x.last[feed] = new(int64); feed == store.EntryFeed {
			b.Queue("SELECT n FROM tea_seq WHERE name = 'ltm' FOR UPDATE")
			b.Queue("SELECT tea_number()")
		} else {
			take(b, feed, len(writes)+1, x.last[feed])
		}
		a := &args{}
		sql := fmt.Sprintf(locked[feed], a.named(feed, column(writes, func(w *store.RowWrite) store.RecordName { return w.RecordName })))
		b.Queue(sql, a.list...).Query(func(rows pgx.Rows) error {
			var space, key []byte
			var e existing
			_, err := pgx.ForEachRow(rows, []any{&space, &key, &e.seq, &e.version, &e.created, &e.expires, &e.hash, &e.metadata}, func() error {
				x.have[store.RecordName{Feed: feed, Space: string(space), Key: string(key)}] = e
				return nil
			})
			return err
		})
		if feed == store.VectorFeed {
			b.Queue("SELECT name, dimension FROM vector_collections WHERE name = ANY($1)", toBytes(spacesOf(writes))).Query(func(rows pgx.Rows) error {
				var name []byte
				var dimension int
				_, err := pgx.ForEachRow(rows, []any{&name, &dimension}, func() error { x.dimensions[string(name)] = dimension; return nil })
				return err
			})
		}
	}
	return x.d.transaction(ctx, c, b)
}

// write checks the conditions, writes and commits.
func (x *lockedBatch) write(ctx context.Context, c conn) error {
	if x.check() && x.b.Atomic {
		_, err := c.Exec(ctx, "ROLLBACK")
		return err
	}
	b, commit := &pgx.Batch{}, &pgx.Batch{}
	x.remove(b)
	x.writeDocuments(b)
	x.writeVectors(b)
	if commit.Queue("COMMIT"); !x.writeEntries(b) {
		b.Queue("COMMIT")
		commit = nil
	}
	err := x.d.transaction(ctx, c, b)
	if err == nil && commit != nil { // the result must be known before
		err = x.d.transaction(ctx, c, commit)
	}
	return err
}

// check sets the results of the writes, without the new numbers, and reports whether one is refused.
func (x *lockedBatch) check() (refused bool) {
	for _, w := range x.b.Writes {
		have, exists := x.have[w.RecordName]
		live := exists && (have.expires == nil || *have.expires > x.b.Now)
		w.Result = store.RowResult{Seq: have.seq, Live: live, Version: have.version, Unmet: !w.If.Met(exists, have.seq, have.version)}
		if w.Result.Unmet || w.Deleted {
			refused = refused || w.Result.Unmet
			continue
		}
		switch w.Feed {
		case store.VectorFeed:
			got := len(w.Body) / 4
			if x.dimensions[w.Space] == 0 {
				x.dimensions[w.Space] = got
			}
			if dimension := x.dimensions[w.Space]; dimension != got {
				w.Result.Dimension, refused = dimension, true
			}
		case store.EntryFeed:
			w.Result.Same = w.Deduplicate && live && have.expires == nil && w.Expires == 0 && orZero(have.hash) == w.Hash && orZero(have.metadata) == w.Metadata
		}
	}
	return refused
}

// chosen returns the accepted writes of a feed.
func (x *lockedBatch) chosen(feed store.Feed, deleted bool) []*store.RowWrite {
	return slices.DeleteFunc(x.of(feed), func(w *store.RowWrite) bool {
		return w.Deleted != deleted || w.Result.Unmet || w.Result.Dimension != 0 || w.Result.Same
	})
}

func (x *lockedBatch) remove(b *pgx.Batch) {
	for _, feed := range store.Feeds() {
		writes := x.chosen(feed, true)
		if len(writes) == 0 {
			continue
		}
		a := &args{}
		where := a.named(feed, column(writes, func(w *store.RowWrite) store.RecordName { return w.RecordName }))
		sql := "DELETE FROM " + feeds[feed].name + " WHERE " + where
		if feed == store.VectorFeed { // removals are numbered after the written rows
			sql = "WITH gone AS (" + sql + " RETURNING collection, id) INSERT INTO vectors_gone SELECT " + a.add(*x.last[feed]+int64(len(x.of(feed))-len(writes))) + "::bigint + row_number() OVER (), collection, id FROM gone"
		}
		b.Queue(sql, a.list...)
		for _, w := range writes {
			w.Result.Seq = 0
		}
	}
}

// numbers assigns the numbers of writes and returns them.
func (x *lockedBatch) numbers(writes []*store.RowWrite) []int64 {
	return column(writes, func(w *store.RowWrite) int64 {
		*x.last[w.Feed]++
		w.Result.Seq = *x.last[w.Feed]
		return w.Result.Seq
	})
}

func (x *lockedBatch) writeDocuments(b *pgx.Batch) {
	writes := x.chosen(store.DocumentFeed, false)
	if len(writes) == 0 {
		return
	}
	versions := column(writes, func(w *store.RowWrite) int64 {
		if w.Version != 0 {
			return w.Version
		}
		return w.Result.Version + 1
	})
	b.Queue(`INSERT INTO documents (kind, id, body, fields, version, seq)
		SELECT i.kind, i.id, i.body, i.fields::jsonb, i.version, i.seq
		FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[]) AS i (kind, id, body, fields, version, seq)
		ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body, fields = excluded.fields, version = excluded.version, seq = excluded.seq`,
		spacesOf(writes), keysOf(writes), bodiesOf(writes), column(writes, func(w *store.RowWrite) string { return fieldsOf(w.Body) }), versions, x.numbers(writes))
}

func (x *lockedBatch) writeVectors(b *pgx.Batch) {
	writes := x.chosen(store.VectorFeed, false)
	if len(writes) == 0 {
		return
	}
	spaces := toBytes(spacesOf(writes))
	b.Queue("INSERT INTO vector_collections SELECT DISTINCT c.n, c.d, $3::bigint FROM unnest($1::bytea[], $2::integer[]) AS c (n, d) ON CONFLICT DO NOTHING",
		spaces, column(writes, func(w *store.RowWrite) int { return len(w.Body) / 4 }), *x.last[store.VectorFeed]+int64(len(x.of(store.VectorFeed)))+1)
	b.Queue(`INSERT INTO vectors (hash, collection, name, seq, text, embedding, metadata)
		SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bytea[], $6::bytea[], $7::text[])
		ON CONFLICT (hash) DO UPDATE SET seq = excluded.seq, text = excluded.text, embedding = excluded.embedding, metadata = excluded.metadata`,
		hashesOf(writes), spaces, toBytes(keysOf(writes)), x.numbers(writes), toBytes(column(writes, func(w *store.RowWrite) string { return w.Text })),
		column(writes, func(w *store.RowWrite) []byte { return w.Body }), column(writes, metadataOf))
}

// writeEntries adds the statements that write entries, and reports whether there are any.
func (x *lockedBatch) writeEntries(b *pgx.Batch) bool {
	writes := sorted(x.chosen(store.EntryFeed, false))
	if len(writes) == 0 {
		return false
	}
	hashes := hashesOf(writes)
	byHash := make(map[string]*store.RowWrite, len(writes))
	replaced := [][]byte{}
	for i, w := range writes {
		if byHash[string(hashes[i])] = w; w.Result.Seq != 0 {
			replaced = append(replaced, hashes[i])
		}
	}
	created := column(writes, func(w *store.RowWrite) *store.RowWrite {
		with := *w
		if w.Created == 0 && w.Result.Live {
			with.Created = x.have[w.RecordName].created
		}
		return &with
	})
	b.Queue(putSQL, append(x.d.entryArgs(created, x.b.Now), replaced)...).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != int64(len(writes)) {
			return errChanged
		}
		return nil
	})
	b.Queue("SELECT tea_number()")
	b.Queue("SELECT hash, seq FROM ltm WHERE hash = ANY($1)", hashes).Query(func(rows pgx.Rows) error {
		var hash []byte
		var seq int64
		_, err := pgx.ForEachRow(rows, []any{&hash, &seq}, func() error { byHash[string(hash)].Result.Seq = seq; return nil })
		return err
	})
	return true
}
