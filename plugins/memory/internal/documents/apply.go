package documents

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/deletion"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// lookUp is the maximum number of documents that one statement finds or removes.
const lookUp = 500

// Apply applies changes in order and atomically.
func (d *Documents) Apply(ctx context.Context, changes ...store.Change) error {
	return d.engine.Write(ctx, func(ctx context.Context, tx store.Tx) error { return d.ApplyIn(ctx, tx, changes...) })
}

// ApplyIn is Apply in a transaction of the caller, which commits the changes.
func (d *Documents) ApplyIn(ctx context.Context, tx store.Tx, changes ...store.Change) error {
	_, err := d.applyIn(ctx, tx, changes...)
	return err
}

// applyIn is ApplyIn, and returns the sequence numbers of the documents, 0 for removed
// ones.
func (d *Documents) applyIn(ctx context.Context, tx store.Tx, changes ...store.Change) (map[name]int64, error) {
	for _, c := range changes {
		if err := check(c); err != nil {
			return nil, err
		}
	}
	if err := d.readSeq(ctx); err != nil {
		return nil, err
	}
	b := &batch{tx: tx, dialect: d.engine.Dialect(), now: d.clock.Micro(), versions: map[name]int64{}, last: map[name]*written{}}
	if err := b.readVersions(ctx, changes); err != nil {
		return nil, fmt.Errorf("read the documents' versions: %w", err)
	}
	for _, c := range changes {
		if err := b.change(c, d.next); err != nil {
			return nil, fmt.Errorf("write %s %s: %w", c.Kind, c.ID, err)
		}
	}
	numbers := make(map[name]int64, len(b.order))
	for _, w := range b.order {
		if w.body != nil {
			numbers[w.name] = w.seq
		}
	}
	return numbers, b.write(ctx)
}

// check refuses changes that databases would treat differently.
func check(c store.Change) error {
	switch {
	case c.Kind == "" || c.ID == "" || !utf8.ValidString(c.Kind) || !utf8.ValidString(c.ID) || strings.ContainsRune(c.Kind+c.ID, 0):
		return tea.Errorf(tea.ValidationError, "%q %q is not a valid name of a document", c.Kind, c.ID)
	case c.Body == nil:
		return nil
	case !utf8.Valid(c.Body) || !json.Valid(c.Body) || !strings.HasPrefix(strings.TrimLeft(string(c.Body), " \t\r\n"), "{"):
		return tea.Errorf(tea.ValidationError, "the body of %s %s is not a JSON object", c.Kind, c.ID)
	}
	return nil
}

// Name is the name of a document.
type Name struct{ Kind, ID string }

// Written is a document after its changes.
type Written struct {
	Name
	Body    json.RawMessage // nil for a removed document
	Version int64
	// Before is the version before the changes, 0 for a document that did not exist.
	Before int64
}

// Merge applies changes to documents with these versions. It returns each document once,
// in the order of the last changes. The error of a condition that is not met wraps
// [store.ErrConflict].
func Merge(changes []store.Change, versions map[Name]int64) ([]Written, error) {
	b := &batch{versions: map[name]int64{}, last: map[name]*written{}}
	for n, version := range versions {
		b.versions[name{n.Kind, n.ID}] = version
	}
	for i, c := range changes {
		if err := b.change(c, func() int64 { return int64(i) }); err != nil {
			return nil, fmt.Errorf("write %s %s: %w", c.Kind, c.ID, err)
		}
	}
	slices.SortStableFunc(b.order, func(x, y *written) int { return cmp.Compare(x.seq, y.seq) })
	all := make([]Written, len(b.order))
	for i, w := range b.order {
		all[i] = Written{Name: Name{w.kind, w.id}, Body: w.body, Version: w.version, Before: b.versions[w.name]}
	}
	return all, nil
}

// Check returns a validation_error for an invalid change.
func Check(c store.Change) error { return check(c) }

type name struct{ kind, id string }

// written is a document at the end of the transaction.
type written struct {
	name
	body    json.RawMessage // nil for a removed document
	version int64
	seq     int64
}

// batch is a call of Apply in its transaction. It writes each document once.
type batch struct {
	tx       store.Tx
	dialect  store.Dialect
	now      int64
	versions map[name]int64    // in the database; absent = no such document
	last     map[name]*written // the last state of each changed document
	order    []*written
}

// change applies one change to the document.
func (b *batch) change(c store.Change, next func() int64) error {
	n := name{c.Kind, c.ID}
	have := b.versions[n]
	w := b.last[n]
	if w != nil {
		have = w.version
	}
	if (c.If == store.New && have != 0) || (c.If > 0 && c.If != have) {
		return fmt.Errorf("%w (version %d, not %d)", store.ErrConflict, have, max(c.If, 0))
	}
	if w == nil {
		w = &written{name: n}
		b.last[n] = w
		b.order = append(b.order, w)
	}
	w.seq = next()
	if w.body = c.Body; c.Body == nil {
		w.version = 0
		return nil
	}
	w.version = have + 1
	return nil
}

// readVersions reads the versions of the documents.
func (b *batch) readVersions(ctx context.Context, changes []store.Change) error {
	byKind := map[string][]any{}
	for _, c := range changes {
		if n := (name{c.Kind, c.ID}); !b.asked(n) {
			byKind[c.Kind] = append(byKind[c.Kind], c.ID)
		}
	}
	for kind, ids := range byKind {
		for len(ids) > 0 {
			n := min(len(ids), lookUp)
			if err := b.readSome(ctx, kind, ids[:n]); err != nil {
				return err
			}
			ids = ids[n:]
		}
	}
	return nil
}

// asked reports whether the document was added before, and adds it.
func (b *batch) asked(n name) bool {
	_, there := b.versions[n]
	b.versions[n] = 0
	return there
}

func (b *batch) readSome(ctx context.Context, kind string, ids []any) error {
	some, with := in(idField, ids), withIDs(b.dialect, store.Condition{Field: idField, Op: store.In, Value: ids})
	n := name{kind: kind}
	var version int64
	rows, err := b.tx.Query(ctx, with.sql+"SELECT id, version FROM documents WHERE kind = ? AND "+some.sql, slices.Concat(with.args, []any{kind}, some.args)...)
	return store.Scan(rows, err, func() { b.versions[n] = version }, &n.id, &version)
}

// write writes the documents to the database.
func (b *batch) write(ctx context.Context) error {
	gone := map[string][]any{}
	var added, deleted [][]any
	for _, w := range b.order {
		have := b.versions[w.name]
		switch {
		case w.body == nil && have != 0:
			gone[w.kind] = append(gone[w.kind], w.id)
			deleted = append(deleted, deletion.Row(store.DocumentFeed, w.seq, w.kind, w.id, b.now))
		case w.body == nil:
		case have == 0:
			added = append(added, []any{w.kind, w.id, string(w.body), w.version, w.seq})
		default:
			if _, err := b.tx.Exec(ctx, "UPDATE documents SET body = ?, version = ?, seq = ? WHERE kind = ? AND id = ?", string(w.body), w.version, w.seq, w.kind, w.id); err != nil {
				return fmt.Errorf("write %s %s: %w", w.kind, w.id, err)
			}
		}
	}
	if err := b.remove(ctx, gone); err != nil {
		return fmt.Errorf("remove documents: %w", err)
	}
	if err := b.tx.Append(ctx, deletion.Table, deleted...); err != nil {
		return fmt.Errorf("add deletions: %w", err)
	}
	if err := b.tx.Append(ctx, "documents", added...); err != nil {
		return fmt.Errorf("add documents: %w", err)
	}
	return nil
}

func (b *batch) remove(ctx context.Context, gone map[string][]any) error {
	for kind, ids := range gone {
		for len(ids) > 0 {
			n := min(len(ids), lookUp)
			some := in(idField, ids[:n])
			if _, err := b.tx.Exec(ctx, "DELETE FROM documents WHERE kind = ? AND "+some.sql, append([]any{kind}, some.args...)...); err != nil {
				return err
			}
			ids = ids[n:]
		}
	}
	return nil
}

func (d *Documents) next() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seq++
	return d.seq
}

// readSeq reads the last number at the first write.
func (d *Documents) readSeq(ctx context.Context) error {
	d.mu.Lock()
	known := d.seq > 0
	d.mu.Unlock()
	if known {
		return nil
	}
	last, err := store.Int(d.engine.Query(ctx, "SELECT coalesce(max(seq), 0) FROM documents"))
	if err != nil {
		return fmt.Errorf("read the last number: %w", err)
	}
	deleted, err := deletion.Last(ctx, d.engine, store.DocumentFeed)
	if err != nil {
		return fmt.Errorf("read the last number: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seq = max(d.seq, last, deleted)
	return nil
}
