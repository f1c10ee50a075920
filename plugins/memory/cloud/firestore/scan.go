package firestore

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// scan selects entries, those that expired among them.
type scan struct {
	namespace, prefix, after string
	// fields are what is read of each; nil = all.
	fields []string
	// limit is the number of entries that are probably needed; 0 = unknown.
	limit int
}

// scan calls use with entries in the order of their keys until it returns false.
func (m *Memory) scan(ctx context.Context, s scan, use func(*entry) (bool, error)) error {
	space := spaceOf(s.namespace)
	first, inclusive, end := space.bounds(s.prefix, s.after)
	q := structured{From: []from{{m.d.prefix + entriesName}}, Where: join(nil, m.d.between(entriesName, first, inclusive, end)...), Limit: s.limit}
	if s.fields != nil {
		q.Select = selected(s.fields)
	}
	g := grouped[entry]{key: func(e *entry) string { return e.Key }, use: func(e *entry) (bool, error) {
		if !strings.HasPrefix(e.Key, s.prefix) || e.Key <= s.after {
			return true, nil
		}
		return use(e)
	}}
	err := m.d.all(ctx, "", q, func(d document) bool {
		if !isPart(d) {
			return g.take(space, toEntry(d))
		}
		if last := g.last(); last != nil && strings.HasPrefix(d.Name, last.documents[0].Name+partMark) {
			last.add(d)
		}
		return true
	})
	if err == nil && !g.ended {
		g.flush()
	}
	if err != nil {
		return err
	}
	return g.err
}

// grouped passes documents on in the order of their keys: those with long keys
// that share a part of their ids come in the order of the ids.
type grouped[T any] struct {
	key   func(*T) string
	use   func(*T) (more bool, err error)
	group []*T   // at least the last one
	part  string // that of the group's keys, "" for a key that is in its id
	ended bool
	err   error
}

// last returns the last one that was taken, nil for none.
func (g *grouped[T]) last() *T {
	if len(g.group) == 0 {
		return nil
	}
	return g.group[len(g.group)-1]
}

// take adds a document and reports whether further ones are needed.
func (g *grouped[T]) take(s space, one *T) bool {
	part, long := s.cut(g.key(one))
	if !long || part != g.part {
		if !g.flush() {
			return false
		}
		if g.part = part; !long {
			g.part = ""
		}
	}
	g.group = append(g.group, one)
	return true
}

// flush passes the group on and reports whether further ones are needed.
func (g *grouped[T]) flush() bool {
	slices.SortFunc(g.group, func(a, b *T) int { return strings.Compare(g.key(a), g.key(b)) })
	for _, one := range g.group {
		more, err := g.use(one)
		if err != nil || !more {
			g.ended, g.err = true, err
			return false
		}
	}
	g.group = nil
	return true
}

// List returns live entries in the order of their keys.
func (m *Memory) List(ctx context.Context, l store.List) (store.Page, error) {
	found, more, err := m.page(ctx, l, nil)
	return store.Page{Entries: found, More: more}, err
}

// Search returns the live entries that match a query without a text.
func (m *Memory) Search(ctx context.Context, q store.Search) (store.Results, error) {
	if err := m.closed.check(ctx); err != nil {
		return store.Results{}, err
	}
	if err := longterm.CheckPrefix(q.Namespace, q.Prefix); err != nil {
		return store.Results{}, err
	}
	if strings.TrimSpace(q.Text) != "" {
		return store.Results{}, store.Unsupported(Name, store.FullText, "list the entries by a prefix or by their metadata, find them with vector.query, or use an engine with full-text search such as postgres")
	}
	found, more, err := m.page(ctx, store.List{Namespace: q.Namespace, Prefix: q.Prefix, After: q.After, Limit: q.Limit, KeysOnly: q.KeysOnly, MaxBytes: q.MaxBytes}, q.Metadata)
	r := store.Results{More: more}
	for _, e := range found {
		r.Found = append(r.Found, store.Found{Memory: e})
	}
	return r, err
}

// page returns the live entries of a list that pass a filter.
func (m *Memory) page(ctx context.Context, l store.List, wanted filter.Filter) (found []store.Memory, more bool, err error) {
	if err := m.closed.check(ctx); err != nil {
		return nil, false, err
	}
	if err := longterm.CheckPrefix(l.Namespace, l.Prefix); err != nil {
		return nil, false, err
	}
	if err := longterm.CheckPrefix(l.Namespace, l.After); err != nil {
		return nil, false, err
	}
	if l.Limit < 1 {
		return nil, false, nil
	}
	s := scan{namespace: l.Namespace, prefix: l.Prefix, after: l.After}
	if len(wanted) == 0 {
		s.limit = min(l.Limit, pageDocuments) + 2 // one more, and the one behind it that ends its group
	}
	if l.KeysOnly {
		s.fields = keyFields
		if len(wanted) > 0 {
			s.fields = append(slices.Clone(keyFields), metadataField)
		}
	}
	now, bytes := m.d.now(), int64(0)
	err = m.scan(ctx, s, func(e *entry) (bool, error) {
		if !e.live(now) || len(wanted) > 0 && !filter.Matches(e.Metadata, wanted) {
			return true, nil
		}
		if l.KeysOnly {
			e.Value, e.Metadata = nil, nil
		} else if err := e.complete(); err != nil || e.Metadata != nil && !json.Valid(e.Metadata) {
			m.d.logger.Error("an entry is damaged", "key", e.Key)
			e.Value, e.Damaged = nil, true
		}
		bytes += e.JSONBytes()
		if len(found) == l.Limit || len(found) > 0 && l.MaxBytes > 0 && bytes > l.MaxBytes {
			more = true
			return false, nil
		}
		found = append(found, e.Memory)
		return true, nil
	})
	return found, more, err
}
