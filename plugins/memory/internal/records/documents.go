package records

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"

	internal "github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storekit"
)

// documents is the metadata store.
type documents struct {
	m        *memory
	selector documentSelector // unless the driver is a DocumentFinder
}

var _ store.MetadataStore = (*documents)(nil)

func documentName(kind, id string) store.RecordName {
	return store.RecordName{Feed: store.DocumentFeed, Space: kind, Key: id}
}

func (s *documents) Get(ctx context.Context, kind, id string) (store.Document, error) {
	r, err := s.m.one(ctx, documentName(kind, id))
	if err == nil && r == nil {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Document{}, fmt.Errorf("read %s %s: %w", kind, id, err)
	}
	return r.Document(), r.Damaged
}

// Apply does changes. Several changes of one document are merged.
func (s *documents) Apply(ctx context.Context, changes ...store.Change) error {
	for _, c := range changes {
		if err := internal.Check(c); err != nil {
			return err
		}
	}
	b := toBatch(changes)
	if b == nil {
		return s.applyMerged(ctx, changes)
	}
	if err := s.m.write(ctx, b); err != nil || !conditionFailed(b) {
		return err
	}
	versions := map[internal.Name]int64{}
	for _, w := range b.Writes {
		if w.Result.Version != 0 {
			versions[internal.Name{Kind: w.Space, ID: w.Key}] = w.Result.Version
		}
	}
	_, err := internal.Merge(changes, versions)
	return cmp.Or(err, store.ErrConflict)
}

// toBatch returns a batch with the changes, nil if a document has more than one.
func toBatch(changes []store.Change) *store.Batch {
	seen := make(map[store.RecordName]bool, len(changes))
	b := &store.Batch{Atomic: true, Writes: make([]*store.RowWrite, len(changes))}
	for i, c := range changes {
		n := documentName(c.Kind, c.ID)
		if seen[n] {
			return nil
		}
		seen[n] = true
		b.Writes[i] = &store.RowWrite{Row: documentRow(n, c.Body, 0), If: store.Precondition{Absent: c.If == store.New, Version: max(c.If, 0)}}
	}
	return b
}

func documentRow(n store.RecordName, body json.RawMessage, version int64) store.Row {
	return store.Row{RecordName: n, Body: body, Deleted: body == nil, Version: version}
}

func conditionFailed(b *store.Batch) bool {
	return slices.ContainsFunc(b.Writes, func(w *store.RowWrite) bool { return w.Result.Unmet })
}

// applyMerged merges the changes of each document and writes the results on condition that the documents still have the
// versions that were read.
func (s *documents) applyMerged(ctx context.Context, changes []store.Change) error {
	names := make([]store.RecordName, len(changes))
	for i, c := range changes {
		names[i] = documentName(c.Kind, c.ID)
	}
	sort.Slice(names, func(i, j int) bool {
		return cmp.Or(cmp.Compare(names[i].Space, names[j].Space), cmp.Compare(names[i].Key, names[j].Key)) < 0
	})
	names = slices.Compact(names)
	for {
		rows, err := s.m.driver.Get(ctx, store.RowQuery{Feed: store.DocumentFeed, Names: names, NoBody: true})
		if err != nil {
			return fmt.Errorf("read the documents' versions: %w", err)
		}
		versions := map[internal.Name]int64{}
		for _, r := range rows {
			if !r.Deleted {
				versions[internal.Name{Kind: r.Space, ID: r.Key}] = r.Version
			}
		}
		merged, err := internal.Merge(changes, versions)
		if err != nil {
			return err
		}
		b := &store.Batch{Atomic: true}
		for _, w := range merged {
			b.Writes = append(b.Writes, &store.RowWrite{
				Row: documentRow(documentName(w.Kind, w.ID), w.Body, w.Version), If: store.Precondition{Absent: w.Before == 0, Version: w.Before},
			})
		}
		if err := s.m.write(ctx, b); err != nil || !conditionFailed(b) {
			return err
		}
	}
}

func (s *documents) Query(ctx context.Context, q store.DocumentQuery) ([]store.Document, error) {
	if err := storekit.CheckQuery(q); err != nil {
		return nil, err
	}
	finder, ok := s.m.driver.(store.DocumentFinder)
	if !ok {
		return s.selector.query(ctx, q)
	}
	rows, err := finder.FindDocuments(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", q.Kind, err)
	}
	found := make([]store.Document, len(rows))
	for i := range rows {
		found[i] = rows[i].Document()
	}
	return found, nil
}

func (s *documents) Count(ctx context.Context, q store.DocumentQuery) (n int, err error) {
	if err := storekit.CheckQuery(q); err != nil {
		return 0, err
	}
	finder, ok := s.m.driver.(store.DocumentFinder)
	if !ok {
		return s.selector.count(ctx, q)
	}
	if n, err = finder.CountDocuments(ctx, q); err != nil {
		return 0, fmt.Errorf("count %s: %w", q.Kind, err)
	}
	return n, nil
}

// selector finds documents among all documents of a kind.
type selector struct{ m *memory }

func (s selector) query(ctx context.Context, q store.DocumentQuery) ([]store.Document, error) {
	all, err := s.all(ctx, q.Kind)
	if err != nil {
		return nil, err
	}
	return storekit.Select(all, q)
}

func (s selector) count(ctx context.Context, q store.DocumentQuery) (n int, err error) {
	all, err := s.all(ctx, q.Kind)
	for _, d := range all {
		if r := storekit.NewRow(d); r.Matches(q.Where) {
			n++
		}
	}
	return n, err
}

func (s selector) all(ctx context.Context, kind string) (all []store.Document, err error) {
	err = s.m.each(ctx, store.RowRange{Feed: store.DocumentFeed, Space: kind}, func(r *store.Row) (bool, error) {
		all = append(all, r.Document())
		return true, r.Damaged
	})
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", kind, err)
	}
	return all, nil
}
