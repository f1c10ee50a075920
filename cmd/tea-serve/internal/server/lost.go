package server

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
)

// byServer is how a run records that a server started it; the name of the trigger
// follows.
const byServer = "serve"

func startedBy(it *item) string { return strings.TrimSuffix(byServer+" "+it.Trigger, " ") }

// triggerOf returns the trigger of a run, and whether a server started it.
func triggerOf(e checkpoints.Entry) (trigger string, served bool) {
	who, trigger, _ := strings.Cut(e.StartedBy, " ")
	return trigger, who == byServer
}

// hasPriorState reports whether a server has stored its state in the directory before. The
// lock file records this, since the state file itself may be lost.
func (s *server) hasPriorState() bool {
	if info, err := s.lock.Stat(); err == nil && info.Size() > 0 {
		return true
	}
	s.led.mu.Lock() // the writer may have synced already
	failed := s.led.failed
	s.led.mu.Unlock()
	if failed == nil {
		_, _ = s.lock.WriteAt([]byte("its state is in state.jsonl\n"), 0) // the journals record it too
	}
	return false
}

// rebuild recreates the missing state from the journals of the runs: unfinished runs
// continue, questions are decided at their deadlines, and schedules continue after
// their last runs.
func (s *server) rebuild(runs *checkpoints.Dir) {
	list, err := runs.List()
	if err != nil || !s.led.fresh {
		return // listEnded reports it
	}
	var items []*entry
	fired := map[string]time.Time{}
	continued, waiting := 0, 0
	for _, e := range list {
		trigger, served := triggerOf(e)
		if !served || !s.catalog.Owns(e.WorkflowFile) {
			continue
		}
		s.lost = true
		if id := e.Workflow + "\x00" + trigger; fired[id].Before(e.StartedAt) {
			fired[id] = e.StartedAt
		}
		it := &item{ID: e.ID, Workflow: e.Workflow, Trigger: trigger, At: e.StartedAt}
		it.progress.ID = e.ID
		continues, err := s.unfinished(runs, e, it)
		switch {
		case err != nil:
			s.svc.Log.Warn("run "+e.ID+" of "+e.Workflow+" is not continued: its checkpoint cannot be read", "run", e.ID, "error", s.svc.Hide(err.Error()))
			continue
		case !continues:
			continue
		case it.Waiting:
			waiting++
		default:
			continued++
		}
		items = append(items, &entry{Item: it, Try: new(it.progress)})
	}
	if !s.lost {
		return
	}
	for _, t := range s.catalog.triggers(host.TriggerCron, host.TriggerEvery) {
		if at, ok := fired[t.id]; ok {
			items = append(items, &entry{Fired: &firing{t.id, at}})
		}
	}
	s.mu.Lock()
	_, err = s.led.add(true, items...)
	s.mu.Unlock()
	if err != nil {
		s.svc.Log.Error("the state that was rebuilt cannot be recorded", "error", err)
	}
	s.svc.Log.Warn(fmt.Sprintf("the state of the server, %s, is missing. According to the journals %d runs continue and %d wait for the deadlines of their questions. "+
		"The following is lost: runs that had not begun, further attempts of failed and parked runs, deduplication keys, the record of processed files, which values have started a run, and the usage per day", s.led.path, continued, waiting))
}

// unfinished reports whether a run must continue: the end of the server interrupted
// it, or it waits for a time.
func (s *server) unfinished(runs *checkpoints.Dir, e checkpoints.Entry, it *item) (bool, error) {
	if e.Status != flow.Stopped && e.Status != flow.Waiting {
		return false, nil
	}
	contents, err := runs.Show(e.ID + ".tea")
	if err != nil {
		return false, err
	}
	if e.Status == flow.Stopped {
		// A killed run has no final status.
		end, err := checkpoints.FailureOf(&checkpoints.Contents{Records: contents.Records[max(0, len(contents.Records)-1):]})
		return cmp.Or(end.Error, errClosed.Error()) == errClosed.Error(), err
	}
	pending, err := checkpoints.Pending(contents)
	it.NotBefore = deadline(&flow.Result{Pending: pending})
	it.Waiting = !it.NotBefore.IsZero()
	return it.Waiting, err
}
