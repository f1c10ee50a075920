package remotesqlite

import (
	"context"
	"encoding/base64"
	"slices"

	"github.com/the-edge-agent/tea/plugins/memory/internal/mirror"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// source is what the mirrors of collections read.
type source struct{ d *database }

var _ mirror.Source = source{}

// Changes reads changes of a collection, about 3 MB of vectors.
func (s source) Changes(ctx context.Context, collection string, after int64) (page mirror.Page, err error) {
	rows, err := s.d.query(ctx, `SELECT -1 AS seq, dimension, born, `+lastVector+` FROM vector_collections WHERE name = ?1
		UNION ALL SELECT seq, id, embedding, metadata FROM vectors WHERE collection = ?1 AND seq > CAST(?2 AS INTEGER)
		UNION ALL SELECT seq, id, NULL, NULL FROM vectors_gone WHERE collection = ?1 AND seq > CAST(?2 AS INTEGER)
		ORDER BY 1 LIMIT 1 + coalesce((SELECT max(16, 500000 / dimension) FROM vector_collections WHERE name = ?1), 1)`, escape(collection), integer(after))
	if err != nil || len(rows) == 0 || number(rows[0], 0) != -1 {
		return page, err // without a row of the collection there is none
	}
	page.Dimension, page.Born, page.Last = int(number(rows[0], 1)), number(rows[0], 2), number(rows[0], 3)
	page.More = len(rows)-1 >= max(16, 500_000/page.Dimension)
	for _, row := range rows[1:] {
		change := mirror.Change{Seq: number(row, 0), ID: number(row, 1), Metadata: text(row, 3)}
		if row[2] != nil {
			change.Embedding, _ = base64.StdEncoding.DecodeString(text(row, 2)) // what is damaged has another size
		}
		page.Changes = append(page.Changes, change)
	}
	return page, nil
}

// Items reads rows by their ids.
func (s source) Items(ctx context.Context, ids []int64, embeddings bool) (map[int64]store.VectorItem, error) {
	columns := itemColumns
	if embeddings {
		columns += withVector
	}
	byID := make(map[int64]store.VectorItem, len(ids))
	for part := range slices.Chunk(ids, readItems) {
		rows, err := s.d.query(ctx, "SELECT "+columns+" FROM vectors WHERE id IN (SELECT value FROM json_each(?1))", list(part))
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if byID[number(row, 0)], err = toItem(row); err != nil {
				return nil, err
			}
		}
	}
	return byID, nil
}
