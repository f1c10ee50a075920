package server

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
)

const (
	// sweepInterval is how often old runs are removed.
	sweepInterval = time.Hour
	// sweepEnds is the number of ended runs after which unfinished runs are pruned.
	sweepEnds = 1000
	// The defaults of keep_runs and keep_seconds.
	defaultKeepRuns = 100
	defaultKeepTime = 30 * 24 * time.Hour
)

// byAge returns the items in the order of acceptance.
func byAge(items map[string]*item) []*item {
	list := make([]*item, 0, len(items))
	for _, it := range items {
		list = append(list, it)
	}
	slices.SortFunc(list, func(a, b *item) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	return list
}

// listEnded finds the ended runs of the workflows.
func (s *server) listEnded(runs *checkpoints.Dir) {
	list, err := runs.List()
	if err != nil {
		s.svc.Log.Warn("the runs cannot be listed", "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	exists := map[string]bool{}
	for _, e := range list {
		exists[e.ID] = true
	}
	maps.DeleteFunc(s.led.state.over, func(id string, _ *overRun) bool { return !exists[id] })
	for _, e := range slices.Backward(list) {
		if _, served := triggerOf(e); e.Status == flow.Waiting && s.catalog.Owns(e.WorkflowFile) && (served || s.led.state.over[e.ID] != nil) {
			s.line(e.Workflow).waiting[e.ID] = true
			s.lookAt(e.ID)
		}
		if s.led.state.items[e.ID] == nil && s.catalog.Owns(e.WorkflowFile) {
			s.line(e.Workflow).addEnded(e.ID, e.Status, e.UpdatedAt)
		}
	}
}

// sweep removes old runs when runs have ended, and once per interval.
func (s *server) sweep() {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	young := time.NewTimer(0) // at the start, too
	defer young.Stop()
	counted := 0
	for {
		select {
		case <-s.endings:
		case <-young.C:
		case <-ticker.C:
			counted -= sweepEnds
		case <-s.ctx.Done():
			return
		}
		runs, err := s.openRuns()
		if err != nil {
			continue // no run has a checkpoint
		}
		ids, again := s.obsolete(time.Now())
		s.remove(runs, ids)
		if again {
			young.Reset(settleTime)
		}
		s.mu.Lock()
		ends := s.ends
		s.mu.Unlock()
		if ends-counted >= sweepEnds {
			counted = ends
			s.prune(runs)
		}
	}
}

// prune removes runs that were unfinished for long, and sources that no run needs.
func (s *server) prune(runs *checkpoints.Dir) {
	policy := checkpoints.DefaultPolicy()
	policy.MaxCount, policy.MaxAge, policy.MaxBytes = 0, 0, 0 // finished runs have separate limits
	if _, err := runs.Prune(policy); err != nil {
		s.svc.Log.Warn("old runs cannot be removed", "error", err)
	}
	if err := host.RemoveSources(runs, s.sources()); err != nil {
		s.svc.Log.Warn("the sources of old workflows cannot be removed", "error", err)
	}
}

// sources returns the sources of served and running workflows.
func (s *server) sources() (list []*host.Source) {
	s.mu.Lock()
	for _, lv := range s.live {
		list = append(list, lv.v.source)
	}
	s.mu.Unlock()
	for _, name := range s.catalog.names() {
		if v := s.catalog.use(name); v != nil {
			list = append(list, v.source)
			v.uses.Done()
		}
	}
	return list
}

func (s *server) remove(runs *checkpoints.Dir, ids []string) {
	for _, id := range ids {
		if err := runs.Remove(id); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.svc.Log.Warn("an old run cannot be removed", "run", id, "error", err)
		}
		s.index.update(id)
	}
}

// settleTime is the age at which the end of a run is synced; if the run were removed
// earlier, it could run again.
const settleTime = 2 * lazySync

// obsolete returns the ended runs that need not be kept, and forgets them. again
// reports whether there are more, whose ends are not synced yet.
func (s *server) obsolete(now time.Time) (ids []string, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, ln := range s.lines {
		keep, age := defaultKeepRuns, defaultKeepTime
		if v := s.catalog.use(name); v != nil {
			c := v.serving.Config()
			keep, age = cmp.Or(c.KeepRuns, keep), cmp.Or(c.KeepTime, age)
			v.uses.Done()
		}
		for _, list := range []*[]endedRun{&ln.done, &ln.failed} {
			for ; len(*list) > 0; *list = (*list)[1:] {
				old := now.Sub((*list)[0].at)
				if len(*list) <= keep && old <= age {
					break
				}
				if old < settleTime && old >= 0 { // unless the clock was set back
					again = true
					break
				}
				ids = append(ids, (*list)[0].id)
				_, _ = s.led.add(false, &entry{Gone: (*list)[0].id}) // if it fails, the next start forgets it
			}
		}
	}
	return ids, again
}
