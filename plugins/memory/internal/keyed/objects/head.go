package objects

import (
	"context"
	"encoding/json"
	"errors"
	"sort"

	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	headName = "head.json"
	format   = "tea-memory-pairs"
	version  = 1
	// keptWrites is the number of earlier writes that a head lists.
	keptWrites = 32
)

// head names the objects that make up the database.
type head struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Write identifies the write of this head.
	Write string `json:"write"`
	// Earlier are the last writes before it.
	Earlier []string `json:"earlier,omitempty"`

	Leaves []leaf  `json:"leaves"`
	Deltas []delta `json:"deltas"`
}

// leaf is an object with the pairs from a key up to the first key of the next leaf.
type leaf struct {
	Name  string `json:"name"`
	From  []byte `json:"from"`
	Bytes int    `json:"bytes"`
}

// delta is an object with changes; later ones replace earlier ones.
type delta struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
}

// snapshot is a state of the database. It never changes.
type snapshot struct {
	head
	version string // of the head's object; "" = there is none
	lockID  int64
	deltas  []pairs // of head.Deltas
	changes pairs   // all of them merged
}

// leafAt returns the number of the leaf whose range includes a key, -1 if there are no leaves.
func (s *snapshot) leafAt(key string) int {
	return max(0, sort.Search(len(s.Leaves), func(i int) bool { return string(s.Leaves[i].From) > key })-1) - b2i(len(s.Leaves) == 0)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (h *head) names() map[string]bool {
	all := make(map[string]bool, len(h.Leaves)+len(h.Deltas))
	for _, l := range h.Leaves {
		all[l.Name] = true
	}
	for _, d := range h.Deltas {
		all[d.Name] = true
	}
	return all
}

func (d *DB) refresh(ctx context.Context) (*snapshot, error) {
	d.refreshing.Lock()
	defer d.refreshing.Unlock()
	for range maxTries {
		old := d.current()
		data, v, err := d.storage.Get(ctx, headName, old.version)
		switch {
		case errors.Is(err, ErrNotFound):
			if old.version == "" {
				return old, nil
			}
			return d.set(&snapshot{}), nil
		case err != nil:
			return nil, err
		case data == nil:
			return old, nil
		}
		s := &snapshot{version: v}
		if err := json.Unmarshal(data, &s.head); err != nil || s.Format != format {
			return nil, tea.Errorf(tea.ValidationError, "%s in the object storage does not belong to a memory; set another url", headName)
		}
		if s.Version != version {
			return nil, tea.Errorf(tea.DependencyMissing, "the memory in the object storage was written by a newer version (format %d, this one supports %d); install that version of the memory plugin", s.Version, version)
		}
		err = d.readDeltas(ctx, s, old)
		if errors.Is(err, ErrNotFound) { // they were merged meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		return d.set(s), nil
	}
	return nil, errContended
}

var errContended = tea.Errorf(tea.ConnectionError, "other devices changed the memory during each attempt; try again later") //nolint:gochecknoglobals // a constant

// readDeltas reads the deltas that the earlier snapshot does not have.
func (d *DB) readDeltas(ctx context.Context, s, old *snapshot) error {
	known := map[string]pairs{}
	for i, one := range old.Deltas {
		known[one.Name] = old.deltas[i]
	}
	for _, one := range s.Deltas {
		p, ok := known[one.Name]
		if !ok {
			var err error
			if p, err = d.object(ctx, one.Name); err != nil {
				return err
			}
		}
		s.deltas, s.changes = append(s.deltas, p), merge(s.changes, p)
	}
	return nil
}

func (d *DB) object(ctx context.Context, name string) (pairs, error) {
	data, _, err := d.storage.Get(ctx, name, "")
	if err != nil {
		return nil, err
	}
	return decode(name, data)
}
