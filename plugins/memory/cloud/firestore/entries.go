package firestore

import (
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	jsonvalue "github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Memory is a LongTermMemory. An entry is a document. A value that is too large for
// it is in parts, documents whose ids follow the entry's: one query reads all.
type Memory struct {
	d      *db
	closed closed
}

var _ store.LongTermMemory = (*Memory)(nil)

// Close ends the use of the memory. The connections stay open.
func (m *Memory) Close() error { m.closed.Store(true); return nil }

const (
	// partBytes is the size of a part of a large value.
	partBytes = 900_000
	// maxMetadata is the size of the metadata of an entry.
	maxMetadata = 512 << 10
	// maxNumber bounds the numbers of entries: they are exact in a float64.
	maxNumber = 1 << 53
)

// The fields without which an entry can be listed.
const (
	valueField    = "value"
	metadataField = "metadata"
)

// stateFields are what a write has to read.
var stateFields = []string{"id", "content_hash", metadataField, "created_at", "expires_at", "content", "parts"}

// keyFields are the fields of a list without values.
var keyFields = []string{"id", "namespace", "key", "content_hash", "created_at", "updated_at", "expires_at"}

// entry is an entry and its documents.
type entry struct {
	store.Memory
	documents []document
	parts     []string
	hasParts  bool
}

func toEntry(d document) *entry {
	f := d.Fields
	e := &entry{documents: []document{d}, hasParts: f["parts"].int() > 0}
	e.ID, e.Namespace, e.Key, e.ContentHash = f["id"].int(), f["namespace"].text(), f["key"].text(), f["content_hash"].text()
	e.CreatedAt, e.UpdatedAt, e.ExpiresAt = clock.FromMicro(f["created_at"].micro()), clock.FromMicro(f["updated_at"].micro()), clock.FromMicro(f["expires_at"].micro())
	if v, ok := f[valueField]; ok {
		e.Value = json.RawMessage(v.text())
	}
	if v, ok := f[metadataField]; ok {
		e.Metadata = json.RawMessage(v.text())
	}
	return e
}

// add adds a document that follows the entry's. It is a part of the value, or of one
// that is being uploaded.
func (e *entry) add(d document) {
	if content := e.documents[0].Fields["content"].text(); content != "" && strings.HasPrefix(d.Name, e.documents[0].Name+partMark+content) {
		e.documents = append(e.documents, d)
		e.parts = append(e.parts, d.Fields["data"].text())
	}
}

// complete puts the value together and reports what is wrong with it.
func (e *entry) complete() error {
	if e.hasParts {
		e.Value = json.RawMessage(strings.Join(e.parts, ""))
	}
	if content.Hash(e.Value) != e.ContentHash {
		return longterm.Damaged(e.Key, "its hash is another one")
	}
	return nil
}

func (e *entry) live(now time.Time) bool { return e.ExpiresAt.IsZero() || e.ExpiresAt.After(now) }

func isPart(d document) bool {
	return strings.Contains(d.Name[strings.LastIndexByte(d.Name, '/')+1:], partMark)
}

// Retrieve returns the live entry under key.
func (m *Memory) Retrieve(ctx context.Context, namespace, key string) (store.Memory, error) {
	if err := m.closed.check(ctx); err != nil {
		return store.Memory{}, err
	}
	if err := longterm.CheckNamespace(namespace); err != nil {
		return store.Memory{}, err
	}
	if !longterm.Storable(key) {
		return store.Memory{}, longterm.Missing(key)
	}
	var found *entry
	id := spaceOf(namespace).id(key)
	q := structured{From: []from{{m.d.prefix + entriesName}}, Where: join(nil, m.d.between(entriesName, id, true, id+afterParts)...)}
	err := m.d.all(ctx, "", q, func(d document) bool {
		switch {
		case !isPart(d):
			found = toEntry(d)
		case found != nil:
			found.add(d)
		}
		return true
	})
	if err != nil {
		return store.Memory{}, err
	}
	if found == nil || !found.live(m.d.now()) {
		return store.Memory{}, longterm.Missing(key)
	}
	err = found.complete()
	return found.Memory, err
}

// Store writes the entries atomically.
func (m *Memory) Store(ctx context.Context, entries ...store.Entry) ([]store.Stored, error) {
	if err := m.closed.check(ctx); err != nil {
		return nil, err
	}
	now := m.d.now()
	contents, err := longterm.ToCanonical(entries, m.d.inline, now)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = m.d.name(entriesName, spaceOf(e.Namespace).id(e.Key))
		if n := len(contents[i].Metadata); n > maxMetadata {
			return nil, metadataTooLarge(e.Key, n)
		}
	}
	if err := m.d.writable(); err != nil {
		return nil, err
	}
	large, err := m.upload(ctx, names, entries, contents)
	if err != nil {
		return nil, err
	}
	return change(ctx, m.d, stateFields, names, func(found map[string]document) (a attempt[[]store.Stored], err error) {
		for i, c := range contents {
			stored := store.Stored{Inlined: c.Inline, ContentHash: c.Hash, ByteSize: int64(len(c.Value))}
			before, exists := found[names[i]]
			old := &entry{}
			if exists {
				old = toEntry(before)
			}
			stored.Created = !exists || !old.live(now)
			stored.Deduplicated = !stored.Created && c.ExpiresAt == 0 && old.ExpiresAt.IsZero() && old.ContentHash == c.Hash && string(old.Metadata) == c.Metadata
			a.result = append(a.result, stored)
			if !stored.Deduplicated {
				a.writes = append(a.writes, m.writes(names[i], entries[i], c, large[names[i]], before, stored.Created, now.UnixMicro())...)
			}
		}
		return a, nil
	})
}

func metadataTooLarge(key string, size int) error {
	return tea.Errorf(tea.ValidationError, "the metadata of key %q has %d bytes, more than %d; store them as a part of the value", key, size, maxMetadata)
}

// writes are the changes that store an entry in place of the document before, which
// has no name if there is none.
func (m *Memory) writes(name string, e store.Entry, c longterm.Canonical, large *upload, before document, created bool, now int64) []write {
	id, since := integer(rand.Int64N(maxNumber)+1), timestamp(now) //nolint:gosec // not a secret
	if !created {
		id, since = before.Fields["id"], before.Fields["created_at"]
	}
	f := map[string]value{
		"id": id, "namespace": text(e.Namespace), "key": text(e.Key), "content_hash": text(c.Hash), "size": integer(int64(len(c.Value))),
		"created_at": since, "updated_at": timestamp(now), "part": boolean(false),
	}
	if c.Metadata != "" {
		f[metadataField] = text(c.Metadata)
	}
	if c.ExpiresAt != 0 {
		f["expires_at"] = timestamp(c.ExpiresAt)
	}
	if large == nil {
		f[valueField] = text(c.Value)
	} else {
		f["content"], f["parts"] = text(large.content), integer(int64(large.parts))
	}
	all := []write{{Update: &document{Name: name, Fields: f}, CurrentDocument: unchanged(before.UpdateTime)}}
	if large != nil {
		for i := range large.parts { // they stay
			all = append(all, write{Update: &document{Name: partName(name, large.content, int64(i))}, UpdateMask: &mask{[]string{uploadedField}}, CurrentDocument: present()})
		}
	}
	return append(all, partsOf(before)...)
}

// upload is a large value that was sent before its entry.
type upload struct {
	content string
	parts   int
}

const (
	// uploadedField is the time of the upload of a part without an entry.
	uploadedField = "uploaded_at"
	// uploadBytes is the size of the parts that are sent together.
	uploadBytes = 3 << 20
	// entryBytes bounds what an entry takes besides its value, metadata and names.
	entryBytes = 1 << 10
)

// upload sends the values that do not fit into their entries, and returns them by
// the names of the entries.
func (m *Memory) upload(ctx context.Context, names []string, entries []store.Entry, contents []longterm.Canonical) (map[string]*upload, error) {
	sent := map[string]*upload{}
	var writes []write
	size := 0
	for i, c := range contents {
		if len(c.Value)+len(c.Metadata)+len(entries[i].Namespace)+len(entries[i].Key)+entryBytes <= maxDocument {
			continue
		}
		u := &upload{content: crand.Text()}
		sent[names[i]] = u
		for rest := c.Value; rest != ""; u.parts++ {
			n := len(rest)
			if n > partBytes {
				n = jsonvalue.WholeRunes(rest[:partBytes])
			}
			if size += n; size > uploadBytes {
				if err := m.d.commit(ctx, writes); err != nil {
					return nil, err
				}
				writes, size = nil, n
			}
			writes = append(writes, write{Update: &document{Name: partName(names[i], u.content, int64(u.parts)), Fields: map[string]value{
				"data": text(rest[:n]), "part": boolean(true), uploadedField: timestamp(time.Now().UnixMicro()),
			}}})
			rest = rest[n:]
		}
	}
	if len(writes) == 0 {
		return sent, nil
	}
	return sent, m.d.commit(ctx, writes)
}

// partName returns the name of the i-th part of an entry's value.
func partName(name, content string, i int64) string {
	return fmt.Sprintf("%s%s%s-%05d", name, partMark, content, i)
}

// partsOf are the removals of the parts of an entry.
func partsOf(d document) (all []write) {
	for i := range d.Fields["parts"].int() {
		all = append(all, write{Delete: partName(d.Name, d.Fields["content"].text(), i)})
	}
	return all
}

// Delete removes the entry under key and reports whether it was live.
func (m *Memory) Delete(ctx context.Context, namespace, key string) (bool, error) {
	if err := m.closed.check(ctx); err != nil {
		return false, err
	}
	if err := longterm.CheckNamespace(namespace); err != nil {
		return false, err
	}
	if !longterm.Storable(key) {
		return false, m.d.writable()
	}
	name := m.d.name(entriesName, spaceOf(namespace).id(key))
	return change(ctx, m.d, []string{"expires_at", "content", "parts"}, []string{name}, func(found map[string]document) (a attempt[bool], err error) {
		before, exists := found[name]
		if !exists {
			return a, nil
		}
		a.result = toEntry(before).live(m.d.now())
		a.writes = removal(before)
		return a, nil
	})
}

// removal is the removal of an entry, if it has not changed.
func removal(d document) []write {
	return append([]write{{Delete: d.Name, CurrentDocument: unchanged(d.UpdateTime)}}, partsOf(d)...)
}

// DeletePrefix removes the entries whose keys begin with prefix.
func (m *Memory) DeletePrefix(ctx context.Context, namespace, prefix string) (int, error) {
	if err := m.closed.check(ctx); err != nil {
		return 0, err
	}
	if err := longterm.CheckPrefix(namespace, prefix); err != nil {
		return 0, err
	}
	if err := m.d.writable(); err != nil {
		return 0, err
	}
	now := m.d.now()
	n, live := 0, 0
	var waiting []write
	flush := func() error {
		if len(waiting) == 0 {
			return nil
		}
		_, err := change(ctx, m.d, nil, nil, func(map[string]document) (attempt[struct{}], error) { return attempt[struct{}]{writes: waiting}, nil })
		if err != nil {
			return err // some can be removed; the call can be repeated
		}
		n, live, waiting = n+live, 0, nil
		return nil
	}
	err := m.scan(ctx, scan{namespace: namespace, prefix: prefix, fields: []string{"namespace", "key", "expires_at", "content"}}, func(e *entry) (bool, error) {
		for _, d := range e.documents {
			waiting = append(waiting, write{Delete: d.Name})
		}
		if e.live(now) {
			live++
		}
		if len(waiting) < batch {
			return true, nil
		}
		return true, flush()
	})
	if err == nil {
		err = flush()
	}
	return n, err
}

// Sweep removes entries that expired before an instant, and parts of values whose
// upload did not end with an entry.
func (m *Memory) Sweep(ctx context.Context, before time.Time) (int, error) {
	if err := m.closed.check(ctx); err != nil {
		return 0, err
	}
	if err := m.d.writable(); err != nil {
		return 0, err
	}
	q := structured{
		From: []from{{m.d.prefix + entriesName}}, Limit: batch, Select: selected([]string{"content", "parts"}),
		Where: &filterOf{FieldFilter: &fieldFilter{field{"expires_at"}, "LESS_THAN", timestamp(before.UnixMicro())}},
	}
	n := 0
	for {
		p, err := m.d.query(ctx, "", q, "")
		if err != nil {
			return n, err
		}
		removed, err := m.sweep(ctx, p.documents)
		n += removed
		if err != nil {
			return n, err
		}
		if !p.more {
			return n, errors.Join(
				m.d.sweepOlder(ctx, entriesName, uploadedField, time.Now().Add(-keep)),
				m.d.sweepOlder(ctx, opsName, opExpiry, time.Now()),
				m.d.sweepOlder(ctx, callsName, opExpiry, time.Now()),
				m.d.forget(ctx),
			)
		}
	}
}

// sweep removes entries, those with parts one by one. One that has changed
// stays.
func (m *Memory) sweep(ctx context.Context, all []document) (n int, err error) {
	var small []write
	for _, d := range all {
		w := removal(d)
		if len(w) == 1 {
			small = append(small, w...)
			continue
		}
		switch err := m.d.commit(ctx, w); {
		case err == nil:
			n++
		case !conflicts(err):
			return n, err
		}
	}
	if len(small) == 0 {
		return n, nil
	}
	done, err := m.d.eachWrite(ctx, small)
	for _, ok := range done {
		if ok {
			n++
		}
	}
	return n, err
}

func selected(paths []string) *fields {
	all := &fields{}
	for _, path := range paths {
		all.Fields = append(all.Fields, field{path})
	}
	return all
}
