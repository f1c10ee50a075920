package storekit_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storekit"
)

// openJSON opens a memory in one JSON file, as an example of a store: it is what the
// field Open of a store.Backend calls. Only one process can use the file.
func openJSON(_ context.Context, c store.Config) (*store.Stores, error) {
	u, err := store.ParseURL("memory.url", c.URL, "jsonfile")
	if err != nil {
		return nil, err
	}
	if c.Blobs == nil {
		return nil, tea.Errorf(tea.ValidationError, "the engine jsonfile needs settings.memory.blobs")
	}
	f := &file{path: filepath.FromSlash(u.Path), config: c}
	return &store.Stores{LongTerm: &entries{file: f}, Metadata: &documents{f}, Vectors: &vectors{file: f}, Blobs: c.Blobs, Close: func() error { return nil }}, nil
}

type entry struct {
	ID                        int64
	Namespace, Key            string
	Value, Metadata, Hash     string
	Created, Updated, Expires time.Time
}

type collection struct {
	Dimension int
	Items     map[string]item
}

type item struct {
	Text, Metadata string
	Embedding      []float32
}

type document struct {
	Kind, ID, Body string // a json.RawMessage would be compacted
	Version, Seq   int64
}

func (d document) document() store.Document {
	return store.Document{Kind: d.Kind, ID: d.ID, Body: json.RawMessage(d.Body), Version: d.Version, Seq: d.Seq}
}

type content struct {
	Entries     map[string]entry // by namespace NUL key
	Documents   map[string]document
	Collections map[string]*collection
	Seq         int64
}

// file has the contents of the stores.
type file struct {
	path   string
	config store.Config
	mu     sync.Mutex
	cached *content
}

func (f *file) read(ctx context.Context, fn func(*content) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.load()
	if err != nil {
		return err
	}
	return fn(c)
}

func (f *file) load() (*content, error) {
	if f.cached != nil {
		return f.cached, nil
	}
	c := &content{Entries: map[string]entry{}, Documents: map[string]document{}, Collections: map[string]*collection{}}
	raw, err := os.ReadFile(f.path)
	if err == nil {
		err = json.Unmarshal(raw, c)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, store.SystemError(err)
	}
	f.cached = c
	return c, nil
}

func (f *file) write(ctx context.Context, fn func(*content) error) error {
	if f.config.ReadOnly != "" {
		return tea.Errorf(tea.PermissionDenied, "the memory is %w: %s", store.ErrReadOnly, f.config.ReadOnly)
	}
	return f.read(ctx, func(c *content) error {
		if err := fn(c); err != nil {
			f.cached = nil // what fn has changed is not valid
			return err
		}
		raw, err := json.Marshal(c)
		if err == nil {
			err = os.WriteFile(f.path+".new", raw, 0o600)
		}
		if err == nil {
			err = os.Rename(f.path+".new", f.path)
		}
		if err != nil {
			f.cached = nil
			return store.SystemError(err)
		}
		return nil
	})
}

type entries struct {
	file   *file
	closed bool
}

var errClosed = tea.Errorf(tea.ConnectionError, "the memory is closed") //nolint:gochecknoglobals // a constant

func (m *entries) Close() error { m.closed = true; return nil }

func name(namespace, key string) string { return namespace + "\x00" + key }

func (e entry) live(now time.Time) bool { return e.Expires.IsZero() || e.Expires.After(now) }

func (e entry) memory() store.Memory {
	m := store.Memory{ID: e.ID, Namespace: e.Namespace, Key: e.Key, Value: json.RawMessage(e.Value), ContentHash: e.Hash, CreatedAt: e.Created, UpdatedAt: e.Updated, ExpiresAt: e.Expires}
	if e.Metadata != "" {
		m.Metadata = json.RawMessage(e.Metadata)
	}
	sum := sha256.Sum256([]byte(e.Value))
	if hex.EncodeToString(sum[:]) != e.Hash {
		m.Value, m.Damaged = nil, true
	}
	return m
}

func (m *entries) Store(ctx context.Context, all ...store.Entry) ([]store.Stored, error) {
	if m.closed {
		return nil, errClosed
	}
	now := m.file.config.Now()
	contents, err := storekit.Entries(all, m.file.config.InlineBytes, now)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	results := make([]store.Stored, len(all))
	err = m.file.write(ctx, func(c *content) error {
		for i, s := range contents {
			id := name(all[i].Namespace, all[i].Key)
			old, there := c.Entries[id]
			r := store.Stored{Inlined: s.Inline, ContentHash: s.Hash, ByteSize: int64(len(s.Value)), Created: !there || !old.live(now)}
			r.Deduplicated = !r.Created && old.Expires.IsZero() && s.Expires.IsZero() && old.Hash == s.Hash && old.Metadata == s.Metadata
			if results[i] = r; r.Deduplicated {
				continue
			}
			e := entry{ID: rand.Int64N(1 << 53), //nolint:gosec // not a secret
				Namespace: all[i].Namespace, Key: all[i].Key, Value: s.Value, Metadata: s.Metadata, Hash: s.Hash, Created: now, Updated: now, Expires: s.Expires}
			if !r.Created {
				e.ID, e.Created = old.ID, old.Created
			}
			c.Entries[id] = e
		}
		return nil
	})
	return results, err
}

func (m *entries) Retrieve(ctx context.Context, namespace, key string) (found store.Memory, err error) {
	if m.closed {
		return found, errClosed
	}
	if err := storekit.CheckNamespace(namespace); err != nil {
		return found, err
	}
	err = m.file.read(ctx, func(c *content) error {
		e, ok := c.Entries[name(namespace, key)]
		if !ok || !e.live(m.file.config.Now()) {
			return storekit.NoEntry(key)
		}
		if found = e.memory(); found.Damaged {
			return storekit.DamagedEntry(key, "its hash is another one")
		}
		return nil
	})
	return found, err
}

func (m *entries) Delete(ctx context.Context, namespace, key string) (live bool, err error) {
	if m.closed {
		return false, errClosed
	}
	if err := storekit.CheckNamespace(namespace); err != nil {
		return false, err
	}
	err = m.file.write(ctx, func(c *content) error {
		e, ok := c.Entries[name(namespace, key)]
		live = ok && e.live(m.file.config.Now())
		delete(c.Entries, name(namespace, key))
		return nil
	})
	return live, err
}

func (m *entries) DeletePrefix(ctx context.Context, namespace, prefix string) (n int, err error) {
	if m.closed {
		return 0, errClosed
	}
	if err := storekit.CheckPrefix(namespace, prefix); err != nil {
		return 0, err
	}
	err = m.file.write(ctx, func(c *content) error {
		for id, e := range c.Entries {
			if e.Namespace == namespace && strings.HasPrefix(e.Key, prefix) {
				if e.live(m.file.config.Now()) {
					n++
				}
				delete(c.Entries, id)
			}
		}
		return nil
	})
	return n, err
}

func (m *entries) Search(ctx context.Context, q store.Search) (r store.Results, err error) {
	if m.closed {
		return r, errClosed
	}
	if strings.TrimSpace(q.Text) != "" {
		return r, store.Unsupported("jsonfile", store.FullText, "search by a prefix")
	}
	page, err := m.page(ctx, store.List{Namespace: q.Namespace, Prefix: q.Prefix, After: q.After, Limit: q.Limit, KeysOnly: q.KeysOnly, MaxBytes: q.MaxBytes}, func(e entry) bool {
		decoded, _ := value.Decode([]byte(e.Metadata))
		object, _ := decoded.(map[string]any)
		return q.Metadata.MatchesObject(object)
	})
	for _, e := range page.Entries {
		r.Found = append(r.Found, store.Found{Memory: e})
	}
	r.More = page.More
	return r, err
}

func (m *entries) List(ctx context.Context, l store.List) (store.Page, error) {
	if m.closed {
		return store.Page{}, errClosed
	}
	return m.page(ctx, l, func(entry) bool { return true })
}

func (m *entries) page(ctx context.Context, l store.List, wanted func(entry) bool) (p store.Page, err error) {
	if err := errors.Join(storekit.CheckPrefix(l.Namespace, l.Prefix), storekit.CheckPrefix(l.Namespace, l.After)); err != nil {
		return p, err
	}
	err = m.file.read(ctx, func(c *content) error {
		var all []entry
		for _, e := range c.Entries {
			if e.Namespace == l.Namespace && strings.HasPrefix(e.Key, l.Prefix) && e.Key > l.After && e.live(m.file.config.Now()) && wanted(e) {
				all = append(all, e)
			}
		}
		slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.Key, b.Key) })
		bytes := int64(0)
		for _, e := range all {
			one := e.memory()
			if l.KeysOnly {
				one.Value, one.Metadata = nil, nil
			}
			bytes += one.JSONBytes()
			if len(p.Entries) >= l.Limit || len(p.Entries) > 0 && l.MaxBytes > 0 && bytes > l.MaxBytes {
				p.More = l.Limit > 0
				break
			}
			p.Entries = append(p.Entries, one)
		}
		return nil
	})
	return p, err
}

func (m *entries) Sweep(ctx context.Context, before time.Time) (n int, err error) {
	if m.closed {
		return 0, errClosed
	}
	err = m.file.write(ctx, func(c *content) error {
		for id, e := range c.Entries {
			if !e.Expires.IsZero() && e.Expires.Before(before) {
				n++
				delete(c.Entries, id)
			}
		}
		return nil
	})
	return n, err
}

type documents struct{ file *file }

func (s *documents) Get(ctx context.Context, kind, id string) (d store.Document, err error) {
	err = s.file.read(ctx, func(c *content) error {
		found, ok := c.Documents[name(kind, id)]
		if d = found.document(); !ok {
			return fmt.Errorf("%s %s: %w", kind, id, store.ErrNotFound)
		}
		return nil
	})
	return d, err
}

func (s *documents) Apply(ctx context.Context, changes ...store.Change) error {
	for _, c := range changes {
		if err := storekit.CheckChange(c); err != nil {
			return err
		}
	}
	return s.file.write(ctx, func(c *content) error {
		versions := map[storekit.Name]int64{}
		for _, d := range c.Documents {
			versions[storekit.Name{Kind: d.Kind, ID: d.ID}] = d.Version
		}
		merged, err := storekit.Merge(changes, versions)
		if err != nil {
			return err
		}
		for _, w := range merged {
			if w.Body == nil {
				delete(c.Documents, name(w.Kind, w.ID))
				continue
			}
			c.Seq++
			c.Documents[name(w.Kind, w.ID)] = document{Kind: w.Kind, ID: w.ID, Body: string(w.Body), Version: w.Version, Seq: c.Seq}
		}
		return nil
	})
}

func (s *documents) Query(ctx context.Context, q store.DocumentQuery) (found []store.Document, err error) {
	err = s.file.read(ctx, func(c *content) (err error) {
		var all []store.Document
		for _, d := range c.Documents {
			if d.Kind == q.Kind {
				all = append(all, d.document())
			}
		}
		found, err = storekit.Select(all, q)
		return err
	})
	return found, err
}

func (s *documents) Count(ctx context.Context, q store.DocumentQuery) (int, error) {
	q.Limit, q.Offset = 1<<30, 0
	found, err := s.Query(ctx, q)
	return len(found), err
}

type vectors struct {
	file   *file
	closed bool
}

func (x *vectors) Close() error { x.closed = true; return nil }

func (x *vectors) Store(ctx context.Context, collectionName string, items ...store.VectorItem) error {
	if x.closed {
		return errClosed
	}
	metadata, err := storekit.CheckItems(collectionName, items)
	if err != nil || len(items) == 0 {
		return err
	}
	return x.file.write(ctx, func(c *content) error {
		in := c.Collections[collectionName]
		if in == nil {
			in = &collection{Dimension: len(items[0].Embedding), Items: map[string]item{}}
			c.Collections[collectionName] = in
		}
		if got := len(items[0].Embedding); got != in.Dimension {
			return storekit.WrongDimension(collectionName, got, in.Dimension)
		}
		for i, one := range items {
			in.Items[one.ID] = item{one.Text, metadata[i], one.Embedding}
		}
		return nil
	})
}

func (x *vectors) Delete(ctx context.Context, collectionName string, ids ...string) (n int, err error) {
	if x.closed {
		return 0, errClosed
	}
	err = x.file.write(ctx, func(c *content) error {
		if in := c.Collections[collectionName]; in != nil {
			before := len(in.Items)
			for _, id := range ids {
				delete(in.Items, id)
			}
			n = before - len(in.Items)
		}
		return nil
	})
	return n, err
}

func (i item) item(id string, embedding bool) store.VectorItem {
	one := store.VectorItem{ID: id, Text: i.Text}
	if i.Metadata != "" {
		decoded, _ := value.Decode([]byte(i.Metadata))
		one.Metadata, _ = decoded.(map[string]any)
		one.Damaged = one.Metadata == nil
	}
	if embedding {
		one.Embedding = i.Embedding
	}
	return one
}

func (x *vectors) sorted(c *content, collectionName string, embeddings bool) (all []store.VectorItem) {
	if in := c.Collections[collectionName]; in != nil {
		for id, i := range in.Items {
			all = append(all, i.item(id, embeddings))
		}
	}
	slices.SortFunc(all, func(a, b store.VectorItem) int { return strings.Compare(a.ID, b.ID) })
	return all
}

func (x *vectors) Search(ctx context.Context, collectionName string, q store.VectorQuery) (hits []store.VectorHit, err error) {
	if x.closed {
		return nil, errClosed
	}
	err = x.file.read(ctx, func(c *content) (err error) {
		if in := c.Collections[collectionName]; in != nil {
			hits, err = storekit.Nearest(collectionName, in.Dimension, x.sorted(c, collectionName, true), q)
		}
		return err
	})
	return hits, err
}

func (x *vectors) Get(ctx context.Context, collectionName string, ids ...string) (all []store.VectorItem, err error) {
	if x.closed {
		return nil, errClosed
	}
	err = x.file.read(ctx, func(c *content) error {
		if in := c.Collections[collectionName]; in != nil {
			for _, id := range ids {
				if i, ok := in.Items[id]; ok {
					all = append(all, i.item(id, true))
				}
			}
		}
		return nil
	})
	return all, err
}

func (x *vectors) List(ctx context.Context, collectionName string, page store.VectorPage) (all []store.VectorItem, err error) {
	if x.closed {
		return nil, errClosed
	}
	err = x.file.read(ctx, func(c *content) error {
		for _, i := range x.sorted(c, collectionName, page.Embeddings) {
			if i.ID > page.After && len(all) < page.Limit {
				all = append(all, i)
			}
		}
		return nil
	})
	return all, err
}

func (x *vectors) Drop(ctx context.Context, collectionName string) (n int, existed bool, err error) {
	if x.closed {
		return 0, false, errClosed
	}
	err = x.file.write(ctx, func(c *content) error {
		if in := c.Collections[collectionName]; in != nil {
			n, existed = len(in.Items), true
			delete(c.Collections, collectionName)
		}
		return nil
	})
	return n, existed, err
}

func (x *vectors) Collections(ctx context.Context) (all []store.Collection, err error) {
	if x.closed {
		return nil, errClosed
	}
	err = x.file.read(ctx, func(c *content) error {
		for n, in := range c.Collections {
			all = append(all, store.Collection{Name: n, Dimension: in.Dimension, Count: len(in.Items)})
		}
		slices.SortFunc(all, func(a, b store.Collection) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
	return all, err
}
