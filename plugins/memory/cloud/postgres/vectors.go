package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/mirror"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// vectorIndex is a VectorIndex. It is safe for concurrent use.
type vectorIndex struct {
	d       *database
	closed  closed
	near    *extension
	mirrors *mirror.Collections
}

var _ store.VectorIndex = (*vectorIndex)(nil)

func newVectors(d *database) *vectorIndex {
	return &vectorIndex{d: d, near: newExtension(d), mirrors: mirror.New(source{d})}
}

// Close frees the vectors in memory, and ends the work in the background. The
// connections stay open.
func (x *vectorIndex) Close() error {
	x.closed.Store(true)
	x.near.close()
	return x.mirrors.Close()
}

// Search returns the items nearest to the query. The server compares them if it has
// the extension vector, otherwise the plugin does.
func (x *vectorIndex) Search(ctx context.Context, collection string, q store.VectorQuery) ([]store.VectorHit, error) {
	if err := x.closed.check(); err != nil {
		return nil, err
	}
	if hits, ok, err := x.near.search(ctx, collection, q); ok || err != nil {
		return hits, err
	}
	return x.mirrors.Search(ctx, collection, q)
}

// itemHash returns the primary key of an item.
func itemHash(collection, id string) []byte {
	first := sha256.Sum256([]byte(collection)) // which can contain any character
	sum := sha256.Sum256(append(first[:], id...))
	return sum[:]
}

// lockVectors begins a transaction, locks the last number of a change for n changes and
// returns it.
func lockVectors(b *pgx.Batch, n int, last *int64) {
	b.Queue("BEGIN")
	b.Queue("UPDATE tea_seq SET n = n + $1 WHERE name = 'vectors' RETURNING n", n).QueryRow(func(row pgx.Row) error { return row.Scan(last) })
}

// Store writes the items atomically.
func (x *vectorIndex) Store(ctx context.Context, collection string, items ...store.VectorItem) error {
	if err := x.closed.check(); err != nil {
		return err
	}
	metadata, err := vectors.Check(collection, items)
	if err != nil || len(items) == 0 {
		return err
	}
	dimension := len(items[0].Embedding)
	var hashes, names, texts, embeddings [][]byte
	var objects []*string
	for i, item := range items {
		if len(item.Embedding) != dimension {
			return vectors.WrongDimension(collection, len(item.Embedding), dimension)
		}
		hashes, names = append(hashes, itemHash(collection, item.ID)), append(names, []byte(item.ID))
		texts, embeddings, objects = append(texts, []byte(item.Text)), append(embeddings, vectors.Encode(item.Embedding)), append(objects, orNull(metadata[i]))
	}
	_, err = x.d.write(ctx, func(ctx context.Context, c conn, id []byte) ([]string, error) {
		var last int64
		have := dimension
		begin := &pgx.Batch{}
		lockVectors(begin, len(items)+1, &last)
		begin.Queue(noteSQL, id)
		begin.Queue("INSERT INTO vector_collections SELECT $1, $2, n FROM tea_seq WHERE name = 'vectors' ON CONFLICT DO NOTHING", []byte(collection), dimension)
		begin.Queue("SELECT dimension FROM vector_collections WHERE name = $1", []byte(collection)).QueryRow(func(row pgx.Row) error { return row.Scan(&have) })
		if err := x.d.transaction(ctx, c, begin); err != nil {
			return nil, err
		}
		if have != dimension {
			_, failed := c.Exec(ctx, "ROLLBACK")
			return nil, errors.Join(vectors.WrongDimension(collection, dimension, have), failed)
		}
		write := &pgx.Batch{}
		write.Queue(`INSERT INTO vectors (hash, collection, name, seq, text, embedding, metadata)
			SELECT i.hash, $1, i.name, $2 + i.n, i.text, i.embedding, i.metadata
			FROM unnest($3::bytea[], $4::bytea[], $5::bytea[], $6::bytea[], $7::text[]) WITH ORDINALITY AS i (hash, name, text, embedding, metadata, n)
			ON CONFLICT (hash) DO UPDATE SET seq = excluded.seq, text = excluded.text, embedding = excluded.embedding, metadata = excluded.metadata`,
			[]byte(collection), last-int64(len(items))-1, hashes, names, texts, embeddings, objects)
		write.Queue("COMMIT")
		return nil, x.d.transaction(ctx, c, write)
	})
	return err
}

// Delete removes items and returns how many existed.
func (x *vectorIndex) Delete(ctx context.Context, collection string, ids ...string) (deleted int, err error) {
	if err := x.closed.check(); err != nil {
		return 0, err
	}
	if ids = vectors.Storable(ids); !vectors.Named(collection) || len(ids) == 0 {
		return 0, ctx.Err()
	}
	hashes := make([][]byte, len(ids))
	for i, id := range ids {
		hashes[i] = itemHash(collection, id)
	}
	results, err := x.d.write(ctx, func(ctx context.Context, c conn, id []byte) ([]string, error) {
		var last int64
		var result string
		b := &pgx.Batch{}
		lockVectors(b, len(ids), &last)
		b.Queue(`WITH gone AS (DELETE FROM vectors WHERE hash = ANY($2) RETURNING id),
			noted AS (INSERT INTO vectors_gone SELECT (SELECT n FROM tea_seq WHERE name = 'vectors') - $3 + row_number() OVER (), $4, id FROM gone)
			INSERT INTO tea_writes (id, result) SELECT $1::bytea, count(*) FROM gone RETURNING result`, id, hashes, len(ids), []byte(collection)).QueryRow(func(row pgx.Row) error { return row.Scan(&result) })
		b.Queue("DELETE FROM vectors_gone WHERE seq <= (SELECT n FROM tea_seq WHERE name = 'vectors') - $1", mirror.KeepGone)
		b.Queue("COMMIT")
		err := x.d.transaction(ctx, c, b)
		return []string{result}, err
	})
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(results[0])
}

// Drop removes a collection with all its items.
func (x *vectorIndex) Drop(ctx context.Context, collection string) (items int, existed bool, err error) {
	if err := x.closed.check(); err != nil {
		return 0, false, err
	}
	name := []byte(collection)
	results, err := x.d.write(ctx, func(ctx context.Context, c conn, id []byte) ([]string, error) {
		var last int64
		var result string
		b := &pgx.Batch{}
		lockVectors(b, 1, &last)
		b.Queue("DELETE FROM vectors_gone WHERE collection = $1", name)
		b.Queue(`WITH items AS (DELETE FROM vectors WHERE collection = $2 RETURNING 1), gone AS (DELETE FROM vector_collections WHERE name = $2 RETURNING 1)
			INSERT INTO tea_writes (id, result) SELECT $1::bytea, concat((SELECT count(*) FROM items), ' ', (SELECT count(*) > 0 FROM gone)) RETURNING result`, id, name).
			QueryRow(func(row pgx.Row) error { return row.Scan(&result) })
		b.Queue("COMMIT")
		err := x.d.transaction(ctx, c, b)
		return []string{result}, err
	})
	if err == nil {
		_, err = fmt.Sscan(results[0], &items, &existed)
	}
	return items, existed, err
}

// Collections describes all collections.
func (x *vectorIndex) Collections(ctx context.Context) (all []store.Collection, err error) {
	if err := x.closed.check(); err != nil {
		return nil, err
	}
	err = x.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		all = nil
		rows, err := c.Query(ctx, "SELECT name, dimension, (SELECT count(*) FROM vectors WHERE collection = c.name) FROM vector_collections AS c ORDER BY name")
		if err != nil {
			return err
		}
		var one store.Collection
		var name []byte
		_, err = pgx.ForEachRow(rows, []any{&name, &one.Dimension, &one.Count}, func() error {
			one.Name = string(name)
			all = append(all, one)
			return nil
		})
		return err
	})
	return all, err
}

const (
	itemColumns = "id, name, text, metadata"
	withVector  = itemColumns + ", embedding"
)

// scanItems reads rows of itemColumns, or withVector, and a distance if ranked.
func scanItems(rows pgx.Rows, withVectors, ranked bool) (ids []int64, items []store.VectorItem, distances []float64, err error) {
	var id int64
	var distance float64
	var name, text, embedding []byte
	var metadata *string
	into := []any{&id, &name, &text, &metadata}
	if withVectors {
		into = append(into, &embedding)
	}
	if ranked {
		into = append(into, &distance)
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		item := store.VectorItem{ID: string(name), Text: string(text)}
		if metadata != nil {
			decoded, err := value.Decode([]byte(*metadata))
			item.Metadata, _ = decoded.(map[string]any)
			item.Damaged = err != nil || item.Metadata == nil
		}
		if withVectors {
			if len(embedding)%4 != 0 {
				return errDamaged(item.ID)
			}
			item.Embedding = vectors.Decode(bytes.Clone(embedding))
		}
		ids, items, distances = append(ids, id), append(items, item), append(distances, distance)
		return nil
	})
	return ids, items, distances, err
}

// Get returns the items with these ids that exist.
func (x *vectorIndex) Get(ctx context.Context, collection string, ids ...string) ([]store.VectorItem, error) {
	if err := x.closed.check(); err != nil {
		return nil, err
	}
	if ids = vectors.Storable(ids); !vectors.Named(collection) || len(ids) == 0 {
		return nil, ctx.Err()
	}
	hashes := make([][]byte, len(ids))
	for i, id := range ids {
		hashes[i] = itemHash(collection, id)
	}
	var found []store.VectorItem
	err := x.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		rows, err := c.Query(ctx, "SELECT "+withVector+" FROM vectors WHERE hash = ANY($1)", hashes)
		if err != nil {
			return err
		}
		_, found, _, err = scanItems(rows, true, false)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read collection %q: %w", collection, err)
	}
	byID := make(map[string]store.VectorItem, len(found))
	for _, item := range found {
		byID[item.ID] = item
	}
	var items []store.VectorItem
	for _, id := range ids {
		if item, ok := byID[id]; ok {
			items = append(items, item)
		}
	}
	return items, nil
}

// List returns the items of a collection in the order of their ids.
func (x *vectorIndex) List(ctx context.Context, collection string, page store.VectorPage) (items []store.VectorItem, err error) {
	if err := x.closed.check(); err != nil {
		return nil, err
	}
	if page.Limit < 1 || !vectors.Named(collection) {
		return nil, ctx.Err()
	}
	columns := itemColumns
	if page.Embeddings {
		columns = withVector
	}
	after := []byte(page.After)
	const beginning = "substring(name FROM 1 FOR 1024)"
	err = x.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		rows, err := c.Query(ctx, "SELECT "+columns+" FROM vectors WHERE collection = $1 AND name > $2 AND "+beginning+" >= $3 ORDER BY "+beginning+", name LIMIT $4",
			[]byte(collection), after, after[:min(len(after), prefixBytes)], page.Limit)
		if err != nil {
			return err
		}
		_, items, _, err = scanItems(rows, page.Embeddings, false)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list collection %q: %w", collection, err)
	}
	return items, nil
}
