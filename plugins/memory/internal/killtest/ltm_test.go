package killtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

const ltmKeys = 6 // of each worker

// ltmArea stores small and large entries, alone and together, some for an hour
// and some for no time at all.
type ltmArea struct {
	gens    generations
	cells   [workers][ltmKeys]cell
	batches [workers]batch
}

type entry struct {
	Key      string `json:"key"`
	Value    any    `json:"value"`
	Metadata any    `json:"metadata,omitempty"`
	TTL      any    `json:"ttl,omitempty"`
}

func ltmKey(worker, key int) string { return fmt.Sprintf("ltm/%d/%d", worker, key) }

// word is what finds one generation of an entry.
func word(gen int64) string { return fmt.Sprintf("word%dx", gen) }

// ltmEntry is the entry of a generation; every fourth is a blob.
func ltmEntry(worker, key int, gen int64) entry {
	size := 50
	switch gen / workers % 8 {
	case 3:
		size = 1500
	case 6:
		size = 40_000
	}
	e := entry{
		Key: ltmKey(worker, key), Value: map[string]any{"gen": gen, "text": "common " + word(gen) + " " + filler(gen, size)},
		Metadata: map[string]any{"gen": gen, "kind": "kept"},
	}
	if gen%5 == 0 {
		e.TTL = 3600
	}
	return e
}

func (a *ltmArea) write(ctx context.Context, p *plugin, worker int, r *rand.Rand) error {
	cells, key := &a.cells[worker], r.IntN(ltmKeys)
	c := &cells[key]
	switch n := r.IntN(20); {
	case n < 3:
		c.send(0)
		if err := p.change(ctx, "ltm.delete", map[string]any{"key": ltmKey(worker, key)}, nil); err != nil {
			return err
		}
		c.ack()
	case n < 6:
		b := &a.batches[worker]
		var items []entry
		for _, k := range r.Perm(ltmKeys)[:3] {
			gen := a.gens.next(worker)
			b.send(&cells[k], gen)
			items = append(items, ltmEntry(worker, k, gen))
		}
		if err := p.change(ctx, "ltm.store", map[string]any{"items": items}, nil); err != nil {
			return err
		}
		b.ack()
	case n == 6: // it has expired before anybody can see it
		e := entry{Key: fmt.Sprintf("ltm/%d/gone", worker), Value: "common expired " + filler(1, r.IntN(500)), TTL: 1e-6}
		return p.change(ctx, "ltm.store", e, nil)
	default:
		gen := a.gens.next(worker)
		if n == 7 && c.acked != 0 {
			gen = c.acked // the same again
		}
		c.send(gen)
		if err := p.change(ctx, "ltm.store", ltmEntry(worker, key, gen), nil); err != nil {
			return err
		}
		c.ack()
	}
	return nil
}

type ltmListed struct {
	Key      string         `json:"key"`
	Value    map[string]any `json:"value"`
	Metadata map[string]any `json:"metadata"`
}

func (a *ltmArea) check(ctx context.Context, p *plugin) error {
	var list struct {
		Entries []ltmListed `json:"entries"`
	}
	if err := p.call(ctx, "ltm.list", map[string]any{"prefix": "ltm/", "limit": 1000}, &list); err != nil {
		return err
	}
	there := map[string]ltmListed{}
	live := []string{}
	for _, e := range list.Entries {
		there[e.Key] = e
		live = append(live, e.Key)
	}
	for worker := range workers {
		for key := range ltmKeys {
			e, found := there[ltmKey(worker, key)]
			if err := a.checkOne(ctx, p, worker, key, e, found); err != nil {
				return fmt.Errorf("key %s: %w", ltmKey(worker, key), err)
			}
			delete(there, ltmKey(worker, key))
		}
		if err := a.batches[worker].see(); err != nil {
			return fmt.Errorf("ltm.store of worker %d: %w", worker, err)
		}
	}
	if len(there) > 0 {
		return fmt.Errorf("%.300s was never stored", text(there))
	}
	return sameKeys(ctx, p, live)
}

// checkOne compares an entry with its cell, and what the index finds with that.
func (a *ltmArea) checkOne(ctx context.Context, p *plugin, worker, key int, e ltmListed, found bool) error {
	c := &a.cells[worker][key]
	var gen int64
	if found {
		gen, _ = e.Value["gen"].(int64)
		want := ltmEntry(worker, key, gen)
		if diff := cmp.Diff(want.Value, map[string]any{"gen": gen, "text": e.Value["text"]}); diff != "" {
			return fmt.Errorf("its value is mixed up: %.300s", diff)
		}
		if e.Metadata["gen"] != e.Value["gen"] {
			return fmt.Errorf("the metadata are those of %v, the value is that of %d", e.Metadata["gen"], gen)
		}
	}
	before, touched := c.acked, c.doubtful
	other, err := c.see(gen)
	if err != nil {
		return err
	}
	if !touched && gen != 0 && gen%3 != 0 {
		return nil // not all of them each time
	}
	for _, g := range []int64{gen, other, before} {
		if g == 0 {
			continue
		}
		want := []string{}
		if g == gen {
			want = append(want, ltmKey(worker, key))
		}
		got, err := searched(ctx, p, word(g))
		if err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("%d is there, and the word of %d finds %v", gen, g, got)
		}
	}
	return nil
}

// sameKeys compares the list with the results of the index.
func sameKeys(ctx context.Context, p *plugin, live []string) error {
	found, err := searched(ctx, p, "common")
	if err != nil {
		return err
	}
	slices.Sort(found)
	if diff := cmp.Diff(live, found); diff != "" {
		return fmt.Errorf("list (-) and search (+) differ:\n%s", diff)
	}
	return nil
}

func searched(ctx context.Context, p *plugin, query string) ([]string, error) {
	var found struct {
		Results []ltmListed `json:"results"`
	}
	if err := p.call(ctx, "ltm.search", map[string]any{"query": query, "limit": 1000}, &found); err != nil {
		return nil, err
	}
	keys := []string{}
	for _, r := range found.Results {
		keys = append(keys, r.Key)
		if text, _ := r.Value["text"].(string); !strings.Contains(text, query) {
			return nil, fmt.Errorf("%q finds %s with %.100q", query, r.Key, text)
		}
	}
	return keys, nil
}

func (a *ltmArea) blobs(ctx context.Context, p *plugin) (names []string, err error) {
	for worker := range workers {
		for key := range ltmKeys {
			var r struct {
				Value       map[string]any `json:"value"`
				ContentHash string         `json:"content_hash"`
			}
			if err := p.call(ctx, "ltm.retrieve", map[string]any{"key": ltmKey(worker, key)}, &r); err != nil {
				return nil, err
			}
			if text, _ := r.Value["text"].(string); len(text) > 1024 {
				names = append(names, "ltm/"+r.ContentHash[:2]+"/"+r.ContentHash)
			}
		}
	}
	return names, nil
}
