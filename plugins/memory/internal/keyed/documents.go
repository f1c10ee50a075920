package keyed

import (
	"context"
	"encoding/json"
	"fmt"

	internal "github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storekit"
)

// documents is the metadata store. A query reads all documents of its kind.
type documents struct{ d *Database }

var _ store.MetadataStore = (*documents)(nil)

func documentName(kind, id string) store.RecordName {
	return store.RecordName{Feed: store.DocumentFeed, Space: kind, Key: id}
}

func (r *row) document(n store.RecordName) store.Document {
	return store.Document{Kind: n.Space, ID: n.Key, Body: json.RawMessage(r.body), Version: r.version, Seq: r.seq}
}

// Get returns a document.
func (s *documents) Get(ctx context.Context, kind, id string) (store.Document, error) {
	n := documentName(kind, id)
	found, err := s.d.slots(ctx, n)
	if err != nil {
		return store.Document{}, fmt.Errorf("read %s %s: %w", kind, id, err)
	}
	if found[0].row == nil {
		return store.Document{}, fmt.Errorf("%s %s: %w", kind, id, store.ErrNotFound)
	}
	return found[0].row.document(n), found[0].damaged
}

// Apply does changes.
func (s *documents) Apply(ctx context.Context, changes ...store.Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, c := range changes {
		if err := internal.Check(c); err != nil {
			return err
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return s.d.write(ctx, func(t *tx) error {
		at := map[store.RecordName]int{}
		var names []store.RecordName
		for _, c := range changes {
			n := documentName(c.Kind, c.ID)
			if _, twice := at[n]; !twice {
				at[n], names = len(names), append(names, n)
			}
		}
		slots, err := s.d.slots(ctx, names...)
		if err != nil {
			return err
		}
		versions := map[internal.Name]int64{}
		for _, one := range slots {
			if one.row != nil {
				versions[internal.Name{Kind: one.name.Space, ID: one.name.Key}] = one.row.version
			}
		}
		merged, err := internal.Merge(changes, versions)
		if err != nil {
			return err
		}
		for _, w := range merged {
			t.putDocument(slots[at[documentName(w.Kind, w.ID)]], w.Body, w.Version)
		}
		return nil
	})
}

// putDocument writes a document, or deletes it if body is nil.
func (t *tx) putDocument(s slot, body json.RawMessage, version int64) {
	if body != nil {
		t.put(s, &row{body: string(body), version: version})
	} else if s.row != nil {
		t.delete(s, false)
	}
}

func (s *documents) all(ctx context.Context, kind string) (all []store.Document, err error) {
	from := spaceKey(rowTable(store.DocumentFeed), kind)
	err = s.d.each(ctx, from, behind(from), func(p Pair) (bool, error) {
		n := nameOf(p.Key)
		r, err := decodeRow(p.Value)
		if err != nil {
			return false, damagedRow(n, err)
		}
		all = append(all, r.document(n))
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", kind, err)
	}
	return all, nil
}

// Query returns documents of one kind.
func (s *documents) Query(ctx context.Context, q store.DocumentQuery) ([]store.Document, error) {
	if err := storekit.CheckQuery(q); err != nil {
		return nil, err
	}
	all, err := s.all(ctx, q.Kind)
	if err != nil {
		return nil, err
	}
	return storekit.Select(all, q)
}

// Count returns the number of documents of a query.
func (s *documents) Count(ctx context.Context, q store.DocumentQuery) (int, error) {
	if err := storekit.CheckQuery(q); err != nil {
		return 0, err
	}
	all, err := s.all(ctx, q.Kind)
	n := 0
	for _, d := range all {
		if r := storekit.NewRow(d); r.Matches(q.Where) {
			n++
		}
	}
	return n, err
}
