package objects

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/the-edge-agent/tea/plugins/memory/internal/keyed"
)

// write is a Write in progress.
type write struct {
	d    *DB
	from *snapshot
	next snapshot
	made []string
}

// Write adds the operations to the state that Lock has read.
func (d *DB) Write(ctx context.Context, ops []keyed.Op) error {
	d.mu.Lock()
	w := &write{d: d, from: d.locked}
	d.mu.Unlock()
	if w.from == nil {
		return errors.New("write without a lock") // a mistake in the program
	}
	changes, err := w.changes(ctx, ops)
	if err == nil {
		err = w.prepare(ctx, changes)
	}
	if errors.Is(err, ErrNotFound) { // merged by another device
		w.remove(ctx, w.made)
		return fmt.Errorf("%w: %w", keyed.ErrChanged, err)
	}
	if err != nil {
		w.remove(ctx, w.made)
		return err
	}
	switch err := w.publish(ctx); {
	case err == errContinued:
		return nil
	case err != nil:
		return err
	}
	d.set(&w.next)
	d.mu.Lock()
	d.locked = &w.next
	d.mu.Unlock()
	used := w.next.names()
	var unused []string
	for name := range w.from.names() {
		if !used[name] {
			unused = append(unused, name)
		}
	}
	w.remove(ctx, unused)
	return nil
}

// changes returns the result of operations, sorted by key. The last operation on a key wins.
func (w *write) changes(ctx context.Context, ops []keyed.Op) (pairs, error) {
	last := map[string][]byte{}
	for _, op := range ops {
		if op.To == "" {
			last[op.Key] = op.Value
			continue
		}
		for key := range last {
			if key >= op.Key && key < op.To {
				last[key] = nil
			}
		}
		for i := max(0, w.from.leafAt(op.Key)); i < len(w.from.Leaves) && string(w.from.Leaves[i].From) < op.To; i++ {
			p, err := w.d.leaf(ctx, w.from, i)
			if err != nil {
				return nil, err
			}
			for _, one := range p.between(op.Key, op.To) {
				last[one.Key] = nil
			}
		}
		for _, one := range w.from.changes.between(op.Key, op.To) {
			last[one.Key] = nil
		}
	}
	all := make(pairs, 0, len(last))
	for key, value := range last {
		all = append(all, keyed.Pair{Key: key, Value: value})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Key < all[j].Key })
	return all, nil
}

// prepare writes the objects of the next state, which no head lists yet.
func (w *write) prepare(ctx context.Context, changes pairs) error {
	from := w.from
	w.next.head = head{Format: format, Version: version, Write: rand.Text(), Leaves: from.Leaves, Deltas: from.Deltas}
	if from.Write != "" {
		w.next.Earlier = append(slices.Clone(from.Earlier[max(0, len(from.Earlier)-keptWrites+1):]), from.Write)
	}
	w.next.deltas = from.deltas
	w.next.changes = merge(from.changes, changes)
	stored := 0
	for _, l := range from.Leaves {
		stored += l.Bytes
	}
	if w.next.changes.size() > max(leafBytes, stored/4) {
		return w.fold(ctx)
	}
	// Each delta has at least twice the size of the next one, so there are few.
	size := changes.size()
	for n := len(w.next.Deltas); n > 0 && w.next.Deltas[n-1].Bytes <= 2*size; n-- {
		changes = merge(w.next.deltas[n-1], changes)
		size = changes.size()
		w.next.Deltas, w.next.deltas = w.next.Deltas[:n-1:n-1], w.next.deltas[:n-1:n-1]
	}
	name, err := w.add(ctx, "deltas/", changes)
	w.next.Deltas = append(w.next.Deltas[:len(w.next.Deltas):len(w.next.Deltas)], delta{name, size})
	w.next.deltas = append(w.next.deltas[:len(w.next.deltas):len(w.next.deltas)], changes)
	return err
}

// fold writes all changes to the leaves.
func (w *write) fold(ctx context.Context) error {
	changes := w.next.changes
	w.next.Leaves, w.next.Deltas, w.next.deltas, w.next.changes = nil, nil, nil, nil
	old := w.from.Leaves
	for i := range max(1, len(old)) {
		start, end := "", ""
		if i > 0 {
			start = string(old[i].From)
		}
		if i+1 < len(old) {
			end = string(old[i+1].From)
		}
		changed := changes.between(start, end)
		if len(changed) == 0 && len(old) > 0 {
			w.next.Leaves = append(w.next.Leaves, old[i])
			continue
		}
		p, err := w.d.leaf(ctx, w.from, i-b2i(len(old) == 0))
		if err != nil {
			return err
		}
		for _, part := range merge(p, changed).live().split() {
			name, err := w.add(ctx, "leaves/", part)
			if err != nil {
				return err
			}
			w.d.keep(name, part)
			w.next.Leaves = append(w.next.Leaves, leaf{name, []byte(part[0].Key), part.size()})
		}
	}
	return nil
}

func (w *write) add(ctx context.Context, folder string, p pairs) (name string, err error) {
	data, err := p.encode()
	if err != nil {
		return "", err
	}
	name = folder + rand.Text()
	w.made = append(w.made, name)
	if _, err := w.d.storage.Put(ctx, name, data, ""); err != nil {
		return "", fmt.Errorf("write to the shared memory: %w", err)
	}
	return name, nil
}

func (w *write) publish(ctx context.Context) error {
	data, err := json.Marshal(w.next.head)
	if err != nil {
		return err
	}
	w.next.version, err = w.d.storage.Put(ctx, headName, data, w.from.version)
	if err == nil {
		return nil
	}
	// The write may have succeeded although its response was lost.
	raw, v, readErr := w.d.storage.Get(ctx, headName, "")
	var now head
	if readErr == nil {
		readErr = json.Unmarshal(raw, &now)
	}
	switch {
	case readErr == nil && now.Write == w.next.Write:
		w.next.version = v
		return nil
	case readErr == nil && slices.Contains(now.Earlier, w.next.Write):
		return errContinued
	case readErr != nil && !errors.Is(readErr, ErrNotFound):
		return fmt.Errorf("write to the shared memory: %w", readErr) // the caller can retry
	case !errors.Is(err, ErrConflict):
		return fmt.Errorf("write to the shared memory: %w", err) // the write can still arrive, so its objects stay
	case now.Write != w.from.Write:
		w.remove(ctx, w.made)
	}
	return fmt.Errorf("%w: %w", keyed.ErrChanged, err)
}

// errContinued reports that another device has already continued the write.
var errContinued = errors.New("the write is done")

// remove removes unused objects. An object that cannot be removed only costs space.
func (w *write) remove(ctx context.Context, names []string) {
	for _, name := range names {
		_ = w.d.storage.Delete(ctx, name)
	}
}
