package graph

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
	"github.com/the-edge-agent/tea/plugins/graph/internal/words"
)

// reindexed is the last entity whose keys were stored again.
type reindexed struct {
	Namespace string `json:"namespace"`
	Entity    string `json:"entity"`
}

// maxReindexed is the number of entities that are indexed at once. Other changes wait
// meanwhile.
const maxReindexed = 500

// reindex stores the search keys of a graph again that another version of tea has
// written. Until it is done, searches read all entities; see [view.search].
type reindex struct {
	running atomic.Bool
	cancel  context.CancelFunc
	ended   chan struct{} // nil if it was never started
}

// begin starts to index if the keys are of another version.
func (r *reindex) begin(db *database, s store.Store) {
	m := db.marker
	if m.Words == words.Version() {
		return
	}
	log := slog.With("path", db.settings.Path)
	log.Warn("the search index of the graph is rebuilt in the background, because its words were split and stemmed by another version of tea; searches are slower until then",
		"version", cmp.Or(m.Words, "snowball-2"), "current", words.Version())
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel, r.ended = cancel, make(chan struct{})
	r.running.Store(true)
	go func() {
		defer close(r.ended)
		switch err := r.run(ctx, db, s); {
		case err == nil:
			log.Info("the search index of the graph is rebuilt")
			r.running.Store(false)
		case ctx.Err() == nil:
			log.Warn("the search index of the graph cannot be rebuilt; it is tried again when the graph is opened next", "error", err)
		}
	}()
}

// stop waits for the current batch. The next begin continues after it.
func (r *reindex) stop() {
	if r.ended != nil {
		r.cancel()
		<-r.ended
	}
	r.ended = nil
	r.running.Store(false)
}

func (r *reindex) run(ctx context.Context, db *database, s store.Store) error {
	stats, err := s.Stats(ctx, defaultNamespace)
	if err != nil {
		return err
	}
	var index words.Index
	from := reindexed{}
	if last := db.marker.Reindexed; last != nil && db.marker.Indexing == words.Version() {
		from = *last
	}
	for _, ns := range stats.Namespaces {
		if ns < from.Namespace {
			continue
		}
		after := ""
		if ns == from.Namespace {
			after = from.Entity
		}
		for more := true; more; {
			if more, after, err = db.reindexBatch(ctx, s, &index, ns, after); err != nil {
				return err
			}
		}
	}
	return db.mark(func(m *marker) { m.Words, m.Indexing, m.Reindexed = words.Version(), "", nil })
}

// reindexBatch indexes the entities after an ID. It returns the last of them.
func (db *database) reindexBatch(ctx context.Context, s store.Store, index *words.Index, ns, after string) (more bool, last string, err error) {
	db.writing.Lock()
	defer db.writing.Unlock()
	var batch []store.Entity
	scan := store.EntityScan{After: after, Embeddings: true, Facts: true}
	err = s.EachEntity(ctx, ns, scan, func(e *store.Entity) error {
		if len(batch) == maxReindexed {
			return errStopScan
		}
		batch = append(batch, *e)
		return nil
	})
	if err != nil && !errors.Is(err, errStopScan) || len(batch) == 0 {
		return false, after, err
	}
	more = err != nil
	for i := range batch {
		if batch[i].Words, err = storedKeys(index, &batch[i]); err != nil {
			return false, after, err
		}
	}
	if err := s.Apply(ctx, ns, store.Batch{Entities: batch}); err != nil {
		return false, after, err
	}
	last = batch[len(batch)-1].ID
	return more, last, db.mark(func(m *marker) { m.Indexing, m.Reindexed = words.Version(), &reindexed{ns, last} })
}

// storedKeys returns the keys of a stored entity.
func storedKeys(index *words.Index, e *store.Entity) ([]string, error) {
	values, h, err := readFacts(e)
	if err != nil {
		return nil, err
	}
	return keysOf(index, e, values, h), nil
}

// search returns the IDs of the best entities that have words of a query. While the stored
// keys are of another version, it reads all entities.
func (v *view) search(ctx context.Context, query *words.Query, q store.TextQuery) ([]string, error) {
	q.Words = query.Keys()
	if !v.reindexing {
		return v.Store.Search(ctx, v.ns, q)
	}
	var index words.Index
	counts := map[string]int{}
	err := v.EachEntity(ctx, v.ns, store.EntityScan{Types: q.Types, Facts: true}, func(e *store.Entity) error {
		keys, err := storedKeys(&index, e)
		for _, key := range q.Words {
			if _, ok := slices.BinarySearch(keys, key); ok {
				counts[e.ID]++
			}
		}
		return err
	})
	ids := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	return ids[:min(len(ids), q.Limit)], err
}
