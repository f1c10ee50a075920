package documents

import (
	"context"
	"iter"
	"slices"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// pageSize is the number of documents that All reads at a time.
const pageSize = 500

// All returns the documents that a query selects and whose ids are greater than after, in the order of their ids. It
// ignores OrderBy and Limit of the query, and ends with the first error.
func All(ctx context.Context, s store.MetadataStore, q store.DocumentQuery, after string) iter.Seq2[store.Document, error] {
	q.OrderBy, q.Limit = IDField, pageSize
	where := q.Where
	return func(yield func(store.Document, error) bool) {
		for {
			if after != "" {
				q.Where = append(slices.Clip(where), store.Condition{Field: IDField, Op: store.Gt, Value: after})
			}
			page, err := s.Query(ctx, q)
			if err != nil {
				yield(store.Document{}, err)
				return
			}
			for _, d := range page {
				if after = d.ID; !yield(d, nil) {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
		}
	}
}
