package records

import (
	"context"

	"github.com/the-edge-agent/tea/plugins/memory/internal/mirror"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// copyRows is the number of rows that a copy reads together.
const copyRows = 5000

// source is the source that copies of collections read.
type source struct {
	driver store.Driver
	items  bool // the copies have the items
}

var _ mirror.Source = source{}

// Changes reads changes of a collection. If it is dropped or tombstones are removed meanwhile, the next call returns a
// new Born.
func (s source) Changes(ctx context.Context, collection string, after int64) (mirror.Page, error) {
	for {
		read, err := s.driver.Changes(ctx, store.RowChanges{Feed: store.VectorFeed, Space: collection, After: after, Limit: copyRows})
		if err != nil || read.Space.Dimension == 0 {
			return mirror.Page{}, err
		}
		if after = read.Last; len(read.Rows) == 0 && read.More {
			continue
		}
		page := mirror.Page{Dimension: read.Space.Dimension, Born: max(read.Space.Born, read.Forgotten), Last: read.Last, More: read.More}
		for _, r := range read.Rows {
			c := mirror.Change{Seq: r.Seq, ID: r.ID, Metadata: r.Metadata}
			if !r.Deleted {
				c.Embedding = r.Body
				if s.items && r.Damaged == nil {
					item := toItem(&r, true)
					c.Item = &item
				}
			}
			page.Changes = append(page.Changes, c)
		}
		return page, nil
	}
}

// Items reads rows by their ids.
func (s source) Items(ctx context.Context, ids []int64, embeddings bool) (map[int64]store.VectorItem, error) {
	rows, err := s.driver.Get(ctx, store.RowQuery{Feed: store.VectorFeed, IDs: ids, NoBody: !embeddings})
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]store.VectorItem, len(rows))
	for i := range rows {
		if r := &rows[i]; !r.Deleted && r.Damaged == nil {
			byID[r.ID] = toItem(r, embeddings)
		}
	}
	return byID, nil
}
