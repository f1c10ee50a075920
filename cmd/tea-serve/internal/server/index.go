package server

import (
	"slices"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/host/checkpoints"
)

const (
	// quickScan is how long a scan may take to be made for each list of runs. Longer
	// ones are made in the background, at most once in rescanFactor times their duration.
	quickScan    = 20 * time.Millisecond
	rescanFactor = 20
	// maxTouched is the number of changed runs that are remembered.
	maxTouched = 10_000
)

// touched has the version of the ledger at which each run changed last.
type touched struct {
	versions map[string]int64
	// floor is the version up to which changes are forgotten.
	floor int64
}

// add records changes of runs at a version.
func (t *touched) add(version int64, ids ...string) {
	if len(t.versions) > maxTouched {
		t.versions, t.floor = nil, version-1
	}
	if t.versions == nil {
		t.versions = map[string]int64{}
	}
	for _, id := range ids {
		if id != "" {
			t.versions[id] = version
		}
	}
}

// since reports whether a run may have changed after a version.
func (t *touched) since(id string, version int64) bool {
	return version < t.floor || t.versions[id] > version
}

// ids returns the runs that an entry changes.
func (e *entry) ids() []string {
	ids := []string{e.End, e.Gone}
	if e.Item != nil {
		ids = append(ids, e.Item.ID)
	}
	if e.Try != nil {
		ids = append(ids, e.Try.ID)
	}
	if e.Drop != nil {
		ids = append(ids, e.Drop.ID)
	}
	if e.Over != nil {
		ids = append(ids, e.Over.ID)
	}
	return ids
}

// runIndex has the runs of the directory. Runs that this server changes are current;
// what other processes do in a large directory appears later.
type runIndex struct {
	mu       sync.Mutex
	index    *checkpoints.Index
	version  int64 // of the ledger
	took     time.Duration
	scanned  time.Time
	scanning bool
}

// entries returns the runs of the directory, the newest first.
func (s *server) entries() ([]*checkpoints.Entry, error) {
	runs, err := s.openRuns()
	if err != nil {
		return nil, err
	}
	x := &s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	s.mu.Lock()
	before, version := x.version, s.led.version
	var ids []string
	for id, at := range s.led.touched.versions {
		if at > before {
			ids = append(ids, id)
		}
	}
	for id := range s.live {
		ids = append(ids, id)
	}
	forgotten := before < s.led.touched.floor
	s.mu.Unlock()
	x.version = version
	if x.index == nil {
		x.index = runs.Index()
	}
	if x.scanned.IsZero() || x.took < quickScan || forgotten {
		err := s.scan(x.index, x.scanned.IsZero(), &x.took)
		x.scanned = time.Now()
		return x.index.List(), err
	}
	for _, id := range ids {
		x.index.Update(id)
	}
	if !x.scanning && time.Since(x.scanned) > rescanFactor*x.took {
		x.scanning = true
		s.background.Go(func() {
			var took time.Duration
			err := s.scan(x.index, false, &took)
			x.mu.Lock()
			defer x.mu.Unlock()
			x.took, x.scanned, x.scanning = took, time.Now(), false
			if err != nil {
				x.scanned = time.Time{} // the next list reports it
			}
		})
	}
	return x.index.List(), nil
}

// scan reads the directory, and records what other processes have changed since the first scan.
func (s *server) scan(index *checkpoints.Index, first bool, took *time.Duration) error {
	begin := time.Now()
	ids, err := index.Scan()
	*took = time.Since(begin)
	s.mu.Lock()
	defer s.mu.Unlock()
	ids = slices.DeleteFunc(ids, func(id string) bool { return s.live[id] != nil })
	if len(ids) > 0 && !first {
		s.led.touch(ids)
	}
	return err
}

// update reads a run that this server has removed.
func (x *runIndex) update(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.index != nil {
		x.index.Update(id)
	}
}
