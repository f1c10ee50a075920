package checkpoint

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
)

// Index keeps the descriptions of a store's runs in memory. [Index.Scan] reads the
// directory, and only the journals that have changed; [Index.Update] reads one of them.
// An Index is safe for concurrent use, and other processes can change the store.
type Index struct {
	store *Store

	mu   sync.Mutex
	runs map[string]indexed // nil before the first scan
	// list has the descriptions, newest first. They are never changed.
	list []*Info
	// scans counts the scans that have begun.
	scans int
	texts map[string]string
}

// indexed is a run that was read during a scan, or after it.
type indexed struct {
	cachedRun
	scan int
}

// NewIndex returns an empty index.
func NewIndex(s *Store) *Index { return &Index{store: s, texts: map[string]string{}} }

// List returns the runs of the last scan and of later updates, newest first. They are
// shared and must not be changed.
func (x *Index) List() []*Info {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.list)
}

// maxPlaced is the number of changes up to which the list is not sorted again.
const maxPlaced = 1000

// Scan reads the directory, and the journals whose size or time differs. It returns the
// ids of the runs that are new, gone, or described differently.
func (x *Index) Scan() (changed []string, err error) {
	x.mu.Lock()
	x.scans++
	scan := x.scans
	x.mu.Unlock()
	ids, err := x.store.ids()
	if err != nil {
		return nil, err
	}
	journals := make([]fs.FileInfo, len(ids))
	for i, id := range ids {
		journals[i], _ = os.Lstat(x.store.journalPath(id)) // nil if it was removed meanwhile
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	first := x.runs == nil
	if first {
		x.load()
	}
	var stale []string
	exists := make(map[string]bool, len(ids))
	for i, id := range ids {
		exists[id] = journals[i] != nil
		if old, ok := x.runs[id]; journals[i] != nil && old.scan < scan && !(ok && old.lasts() && old.applies(journals[i])) {
			stale = append(stale, id)
		}
	}
	for id, old := range x.runs {
		if !exists[id] && old.scan < scan {
			stale = append(stale, id)
		}
	}
	if first || len(stale) > maxPlaced {
		x.list = nil
	}
	for _, id := range stale {
		before := x.runs[id].info
		x.update(id, scan)
		if after := x.runs[id].info; before == nil || after == nil || *before != *after {
			changed = append(changed, id)
		}
	}
	if x.list == nil {
		x.list = make([]*Info, 0, len(x.runs))
		for _, r := range x.runs {
			x.list = append(x.list, r.info)
		}
		sort.Slice(x.list, func(i, j int) bool { return newest(x.list[i], x.list[j]) < 0 })
	}
	if first && len(stale) >= statusCacheMin || len(stale) > maxPlaced {
		x.save()
	}
	return changed, nil
}

// Update reads the journal of a run.
func (x *Index) Update(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.runs != nil && checkRunID(id) == nil {
		x.update(id, x.scans)
	}
}

// newest compares runs by their start.
func newest(a, b *Info) int {
	return cmp.Or(b.StartedAt.Compare(a.StartedAt), strings.Compare(b.ID, a.ID))
}

func (x *Index) update(id string, scan int) {
	if old, ok := x.runs[id]; ok && x.list != nil {
		if at, ok := slices.BinarySearchFunc(x.list, old.info, newest); ok {
			x.list = slices.Delete(x.list, at, at+1)
		}
	}
	delete(x.runs, id)
	journal, err := os.Lstat(x.store.journalPath(id))
	if err != nil {
		return
	}
	r, err := x.store.readRun(id, journal)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	x.share(r.info)
	x.runs[id] = indexed{r, scan}
	if x.list != nil {
		at, _ := slices.BinarySearchFunc(x.list, r.info, newest)
		x.list = slices.Insert(x.list, at, r.info)
	}
}

// load reads the cache of the store.
func (x *Index) load() {
	known := x.store.readStatusCache()
	x.runs = make(map[string]indexed, len(known))
	for id, c := range known {
		if c.decode(id, x.store.journalPath(id)); c.info != nil {
			x.share(c.info)
			x.runs[id] = indexed{c, 0}
		}
	}
}

// save writes the cache of the store. On failure, the next process reads the journals.
func (x *Index) save() {
	all := make(map[string]cachedRun, len(x.runs))
	for id, r := range x.runs {
		if r.lasts() {
			all[id] = r.cachedRun
		}
	}
	_ = x.store.writeStatusCache(all)
}

// share replaces texts that many runs have by one copy.
func (x *Index) share(i *Info) {
	for _, text := range []*string{&i.Workflow, &i.WorkflowFile, &i.Digest, &i.StartedBy} {
		known, ok := x.texts[*text]
		if !ok {
			known = *text
			x.texts[known] = known
		}
		*text = known
	}
}
