package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/the-edge-agent/tea/plugins/memory/internal/mirror"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// source is what the mirrors of collections read.
type source struct{ d *database }

var _ mirror.Source = source{}

// changesAtOnce is the number of changes that one request reads, and numbersAtOnce that
// of the numbers in their vectors.
const (
	changesAtOnce = 5000
	numbersAtOnce = 4 << 20
)

// Changes reads changes of a collection.
func (s source) Changes(ctx context.Context, collection string, after int64) (page mirror.Page, err error) {
	limit := 0
	err = s.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		page = mirror.Page{}
		name := []byte(collection)
		b := &pgx.Batch{}
		b.Queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
		b.Queue("SELECT dimension, born, n, greatest(16, least($2, $3 / dimension)) FROM vector_collections, tea_seq WHERE vector_collections.name = $1 AND tea_seq.name = 'vectors'", name, changesAtOnce, numbersAtOnce).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&page.Dimension, &page.Born, &page.Last, &limit}, func() error { return nil })
			return err
		})
		b.Queue(`SELECT seq, id, embedding, coalesce(metadata, '') FROM vectors WHERE collection = $1 AND seq > $2
			UNION ALL SELECT seq, id, NULL, '' FROM vectors_gone WHERE collection = $1 AND seq > $2 ORDER BY 1
			LIMIT (SELECT greatest(16, least($3, $4 / dimension)) FROM vector_collections WHERE name = $1)`, name, after, changesAtOnce, numbersAtOnce).Query(func(rows pgx.Rows) error {
			var one mirror.Change
			_, err := pgx.ForEachRow(rows, []any{&one.Seq, &one.ID, &one.Embedding, &one.Metadata}, func() error {
				page.Changes = append(page.Changes, one)
				one.Embedding = nil
				return nil
			})
			return err
		})
		b.Queue("COMMIT")
		return s.d.transaction(ctx, c, b)
	})
	page.More = len(page.Changes) > 0 && len(page.Changes) == limit
	return page, err
}

// Items reads rows by their ids.
func (s source) Items(ctx context.Context, ids []int64, embeddings bool) (byID map[int64]store.VectorItem, err error) {
	columns := itemColumns
	if embeddings {
		columns = withVector
	}
	err = s.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		rows, err := c.Query(ctx, "SELECT "+columns+" FROM vectors WHERE id = ANY($1)", ids)
		if err != nil {
			return err
		}
		rowIDs, items, _, err := scanItems(rows, embeddings, false)
		byID = make(map[int64]store.VectorItem, len(items))
		for i, item := range items {
			byID[rowIDs[i]] = item
		}
		return err
	})
	return byID, err
}
