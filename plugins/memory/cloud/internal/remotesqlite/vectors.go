package remotesqlite

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/mirror"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Vectors is a VectorIndex in a database. The database cannot compare vectors:
// the first search of a collection reads all of its vectors into memory, later
// ones read what has changed.
type Vectors struct {
	d       *database
	closed  closed
	mirrors *mirror.Collections
}

var _ store.VectorIndex = (*Vectors)(nil)

func newVectors(d *database) *Vectors { return &Vectors{d: d, mirrors: mirror.New(source{d})} }

// Close frees the vectors in memory. The connections stay open.
func (x *Vectors) Close() error {
	x.closed.Store(true)
	return x.mirrors.Close()
}

// Search returns the items nearest to the query.
func (x *Vectors) Search(ctx context.Context, collection string, q store.VectorQuery) ([]store.VectorHit, error) {
	if err := x.closed.check(ctx); err != nil {
		return nil, err
	}
	return x.mirrors.Search(ctx, collection, q)
}

const lastVector = "(SELECT n FROM tea_seq WHERE name = 'vectors')"

// Store writes the items atomically.
func (x *Vectors) Store(ctx context.Context, collection string, items ...store.VectorItem) error {
	if err := x.closed.check(ctx); err != nil {
		return err
	}
	metadata, err := vectors.Check(collection, items)
	if err != nil || len(items) == 0 {
		return err
	}
	dimension := len(items[0].Embedding)
	rows := make([][]any, len(items))
	for i, item := range items {
		if len(item.Embedding) != dimension {
			return vectors.WrongDimension(collection, len(item.Embedding), dimension)
		}
		rows[i] = []any{escape(item.ID), escape(item.Text), base64.StdEncoding.EncodeToString(vectors.Encode(item.Embedding)), orNull(metadata[i])}
	}
	lists, err := chunks(rows)
	if err != nil {
		return err
	}
	name := escape(collection)
	w := write{
		refused: "EXISTS (SELECT 1 FROM vector_collections WHERE name = ?2 AND dimension <> CAST(?3 AS INTEGER))",
		before:  "(SELECT dimension FROM vector_collections WHERE name = ?2)",
		args:    []string{name, integer(int64(dimension))},
	}
	w.add("INSERT INTO vector_collections SELECT ?2, CAST(?3 AS INTEGER), "+lastVector+" + 1 WHERE "+pending+" ON CONFLICT DO NOTHING", name, integer(int64(dimension)))
	for _, rows := range lists {
		w.add(`INSERT INTO vectors (collection, name, seq, text, embedding, metadata)
			SELECT ?3, json_extract(j.value, '$[0]'), `+lastVector+` + j.key + 1, json_extract(j.value, '$[1]'), json_extract(j.value, '$[2]'), json_extract(j.value, '$[3]')
			FROM json_each(?2) AS j WHERE `+pending+`
			ON CONFLICT (collection, name) DO UPDATE SET seq = excluded.seq, text = excluded.text, embedding = excluded.embedding, metadata = excluded.metadata`, rows, name)
		w.add("UPDATE tea_seq SET n = n + json_array_length(?2) WHERE name = 'vectors' AND "+pending, rows)
	}
	_, err = x.d.do(ctx, w)
	if refused := (*refusedError)(nil); errors.As(err, &refused) {
		have, _ := strconv.Atoi(refused.before)
		return vectors.WrongDimension(collection, dimension, have)
	}
	return err
}

// Delete removes items and returns how many existed.
func (x *Vectors) Delete(ctx context.Context, collection string, ids ...string) (int, error) {
	if err := x.closed.check(ctx); err != nil {
		return 0, err
	}
	if ids = vectors.Storable(ids); !vectors.Named(collection) || len(ids) == 0 {
		return 0, x.d.prepare(ctx)
	}
	name := escape(collection)
	deleted := 0
	for part := range slices.Chunk(ids, removeBatch/4) { // 4 KB each at most
		w := write{
			before: "(SELECT json_group_array(id) FROM vectors WHERE collection = ?2 AND name IN (SELECT value FROM json_each(?3)))",
			args:   []string{name, list(escapeAll(part))},
		}
		w.add("INSERT INTO vectors_gone SELECT "+lastVector+" + j.key + 1, ?2, j.value FROM json_each("+before+") AS j WHERE "+pending, name)
		w.add("DELETE FROM vectors WHERE id IN (SELECT value FROM json_each(" + before + ")) AND " + pending)
		w.add("UPDATE tea_seq SET n = n + json_array_length(" + before + ") WHERE name = 'vectors' AND " + pending)
		w.add(fmt.Sprintf("DELETE FROM vectors_gone WHERE seq <= %s - %d AND %s", lastVector, mirror.KeepGone, pending))
		results, err := x.d.do(ctx, w)
		if err != nil {
			return deleted, err
		}
		var gone []int64
		if err := json.Unmarshal([]byte(results[0]), &gone); err != nil {
			return deleted, fmt.Errorf("read the result of a write: %w", err)
		}
		deleted += len(gone)
	}
	return deleted, nil
}

func escapeAll(all []string) []string {
	escaped := make([]string, len(all))
	for i, s := range all {
		escaped[i] = escape(s)
	}
	return escaped
}

// Drop removes a collection with all its items.
func (x *Vectors) Drop(ctx context.Context, collection string) (items int, existed bool, err error) {
	if err := x.closed.check(ctx); err != nil {
		return 0, false, err
	}
	name := escape(collection)
	w := write{
		before: "(SELECT json_array((SELECT count(*) FROM vector_collections WHERE name = ?2), (SELECT count(*) FROM vectors WHERE collection = ?2)))",
		args:   []string{name},
	}
	w.add("DELETE FROM vectors WHERE collection = ?2 AND "+pending, name)
	w.add("DELETE FROM vectors_gone WHERE collection = ?2 AND "+pending, name)
	w.add("DELETE FROM vector_collections WHERE name = ?2 AND "+pending, name)
	// A collection that is created again is born later.
	w.add("UPDATE tea_seq SET n = n + 1 WHERE name = 'vectors' AND " + pending)
	results, err := x.d.do(ctx, w)
	if err != nil {
		return 0, false, err
	}
	var counts [2]int
	if err := json.Unmarshal([]byte(results[0]), &counts); err != nil {
		return 0, false, fmt.Errorf("read the result of a write: %w", err)
	}
	return counts[1], counts[0] > 0, nil
}

// Collections describes all collections.
func (x *Vectors) Collections(ctx context.Context) ([]store.Collection, error) {
	if err := x.closed.check(ctx); err != nil {
		return nil, err
	}
	rows, err := x.d.query(ctx, "SELECT name, dimension, (SELECT count(*) FROM vectors WHERE collection = c.name) FROM vector_collections AS c ORDER BY name")
	var all []store.Collection
	for _, row := range rows {
		all = append(all, store.Collection{Name: unescape(text(row, 0)), Dimension: int(number(row, 1)), Count: int(number(row, 2))})
	}
	return all, err
}

const (
	itemColumns = "id, name, text, metadata"
	withVector  = ", embedding"
	// readItems is the number of items that one request reads.
	readItems = 1000
)

func toItem(row []any) (store.VectorItem, error) {
	item := store.VectorItem{ID: unescape(text(row, 1)), Text: unescape(text(row, 2))}
	if row[3] != nil {
		decoded, err := value.Decode([]byte(text(row, 3)))
		item.Metadata, _ = decoded.(map[string]any)
		item.Damaged = err != nil || item.Metadata == nil
	}
	if len(row) < 5 {
		return item, nil
	}
	raw, err := base64.StdEncoding.DecodeString(text(row, 4))
	if err != nil || len(raw)%4 != 0 {
		return item, tea.Errorf(tea.InternalError, "the embedding of item %q is damaged; store it again or delete it", item.ID)
	}
	item.Embedding = vectors.Decode(raw)
	return item, nil
}

// Get returns the items with these ids that exist.
func (x *Vectors) Get(ctx context.Context, collection string, ids ...string) ([]store.VectorItem, error) {
	if err := x.closed.check(ctx); err != nil {
		return nil, err
	}
	if ids = vectors.Storable(ids); !vectors.Named(collection) || len(ids) == 0 {
		return nil, x.d.prepare(ctx)
	}
	byID := map[string]store.VectorItem{}
	for part := range slices.Chunk(ids, removeBatch/4) {
		rows, err := x.d.query(ctx, "SELECT "+itemColumns+withVector+" FROM vectors WHERE collection = ?1 AND name IN (SELECT value FROM json_each(?2))", escape(collection), list(escapeAll(part)))
		if err != nil {
			return nil, fmt.Errorf("read collection %q: %w", collection, err)
		}
		for _, row := range rows {
			item, err := toItem(row)
			if err != nil {
				return nil, err
			}
			byID[item.ID] = item
		}
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
func (x *Vectors) List(ctx context.Context, collection string, page store.VectorPage) ([]store.VectorItem, error) {
	if err := x.closed.check(ctx); err != nil {
		return nil, err
	}
	if page.Limit < 1 || !vectors.Named(collection) {
		return nil, x.d.prepare(ctx)
	}
	columns := itemColumns
	if page.Embeddings {
		columns += withVector
	}
	var items []store.VectorItem
	for len(items) < page.Limit {
		limit := min(page.Limit-len(items), readItems)
		rows, err := x.d.query(ctx, fmt.Sprintf("SELECT %s FROM vectors WHERE collection = ?1 AND name > ?2 ORDER BY name LIMIT %d", columns, limit), escape(collection), escape(page.After))
		if err != nil {
			return nil, fmt.Errorf("list collection %q: %w", collection, err)
		}
		for _, row := range rows {
			item, err := toItem(row)
			if err != nil {
				return nil, err
			}
			items, page.After = append(items, item), item.ID
		}
		if len(rows) < limit {
			break
		}
	}
	return items, nil
}
