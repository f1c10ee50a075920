package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

// The defaults of the serve section.
const (
	defaultMaxRunning = 8
	defaultMaxQueue   = 1000
	defaultKeyTime    = 24 * time.Hour
	// maxQueuedBytes bounds the input of all queued runs.
	maxQueuedBytes = 64 << 20
	// maxKeys is how many deduplication keys are kept.
	maxKeys = 100_000
	// maxDrops is how many runs that were stopped before they began are kept.
	maxDrops = 10_000
)

// line is the queue of a workflow.
type line struct {
	ready []*item
	// entering counts the items that are being written to the ledger.
	entering int
	running  map[string]*live
	// waiting holds the ids of runs that wait for an answer. Each counts as running
	// unless the workflow says otherwise.
	waiting map[string]bool
	// done are the kept runs that succeeded, failed those that failed or were stopped;
	// oldest first.
	done, failed []endedRun
	// warned is the day on which the end of the budget was last logged.
	warned string
}

// endedRun is an ended run, with the time of its end.
type endedRun struct {
	id string
	at time.Time
}

// addEnded adds an ended run.
func (ln *line) addEnded(id string, status flow.Status, at time.Time) {
	switch status {
	case flow.Done:
		ln.done = append(ln.done, endedRun{id, at})
	case flow.Failed, flow.Stopped:
		ln.failed = append(ln.failed, endedRun{id, at})
	}
}

// removeEnded removes a run that continues.
func (ln *line) removeEnded(id string) {
	same := func(r endedRun) bool { return r.id == id }
	ln.done, ln.failed = slices.DeleteFunc(ln.done, same), slices.DeleteFunc(ln.failed, same)
}

// live is a running run.
type live struct {
	it     *item
	v      *version
	cancel context.CancelCauseFunc
	hub    *hub
	since  time.Time
	// canceled reports whether a request stopped the run, so it is not retried.
	canceled bool
	// attempts is the number of attempts before this one.
	attempts int
}

// request asks for a run.
type request struct {
	workflow string
	trigger  string
	input    map[string]any
	// key is the deduplication key, "" for none; hash identifies the input that
	// requests with the same key must share.
	key, hash string
	// replay is a second key, for requests that a third party may send again, and
	// replayTime how long it is kept.
	replay     string
	replayTime time.Duration
	// also are changes that are recorded with the run: the position of a schedule, a
	// processed file. once records them even if the run is refused in a way that
	// retrying would not change.
	also []*entry
	once bool
	// id and depth are set for a run that follows another one.
	id    string
	depth int
}

// The reasons why a request is refused.
var (
	errStopping    = errors.New("the server is stopping")
	errNoWorkflow  = errors.New("there is no such workflow")
	errQueueFull   = errors.New("the queue is full")
	errBudgetSpent = errors.New("the workflow has used its daily budget")
	errSkipped     = errors.New("a run is running or waits for an answer, and overlap is skip")
	errKeyReused   = errors.New("the idempotency key was used with another input")
)

func noWorkflow(name string) error { return fmt.Errorf("%w: %.100q", errNoWorkflow, name) }

// accepted is the answer to a request.
type accepted struct {
	id string
	// replayed reports whether the run belongs to an earlier request with the same key.
	replayed bool
	// done is closed when the run has ended or waits; nil if it already has.
	done <-chan struct{}
	item *item
}

// accept makes a request durable: after it returns, the run exists even if the
// server ends.
func (s *server) accept(r request) (accepted, error) {
	input, err := s.seal(r.input)
	if err != nil {
		return accepted{}, fmt.Errorf("input: %w", err)
	}
	s.mu.Lock()
	a, entries, err := s.admit(r, input)
	if err != nil && !(r.once && (errors.Is(err, errSkipped) || errors.Is(err, errQueueFull))) {
		s.mu.Unlock()
		return accepted{}, err
	}
	if err != nil || a.replayed {
		b, addErr := s.led.add(true, r.also...)
		s.mu.Unlock()
		if addErr == nil {
			addErr = b.wait() // the earlier request may be in the same batch
		}
		if err = cmp.Or(err, addErr); err == nil && a.item != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			err = a.item.refused // the earlier request was not recorded, so its run does not exist
		}
		return a, err
	}
	undo := s.led.state.before(r.also)
	b, err := s.led.add(true, entries...)
	if err != nil {
		s.mu.Unlock()
		return accepted{}, err
	}
	ln := s.line(r.workflow)
	ln.entering++
	s.count(a.item)
	s.mu.Unlock()
	err = b.wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	ln.entering--
	if err != nil {
		s.removeCount(a.item)
		delete(s.led.state.items, a.id)
		for _, key := range []string{r.key, r.replay} {
			delete(s.led.state.keys, s.keyName(r.workflow, key))
		}
		for _, e := range undo { // so that the file or time is retried
			s.led.state.apply(e)
		}
		a.item.refused = err
		a.item.finish(nil, err)
		return accepted{}, err
	}
	if s.led.state.items[a.id] == a.item { // otherwise it was cancelled meanwhile
		s.enqueue(a.item)
	}
	return a, nil
}

// count adds the input of an item to the size of the queued input. The caller holds
// the mutex.
func (s *server) count(it *item) {
	if !it.counted {
		it.counted = true
		s.queuedBytes += len(it.Input)
	}
}

// removeCount reverts count.
func (s *server) removeCount(it *item) {
	if it.counted {
		it.counted = false
		s.queuedBytes -= len(it.Input)
	}
}

func (s *server) keyName(workflow, key string) string {
	return workflow + "\x00" + s.secrets.Seal(key).(string)
}

// keyed returns the run of an earlier request with the same key; replayed is false if
// there is none. The caller holds the mutex.
func (s *server) keyed(workflow, key, hash string) (accepted, error) {
	k := s.led.state.key(s.keyName(workflow, key))
	if key == "" || k == nil {
		return accepted{}, nil
	}
	if k.Hash != hash {
		return accepted{}, errKeyReused
	}
	a := accepted{id: k.Run, replayed: true}
	if it := s.led.state.items[k.Run]; it != nil && it.Parked == "" && !it.Waiting {
		a.item, a.done = it, it.done()
	}
	return a, nil
}

// admit accepts or refuses a request. The caller holds the mutex.
func (s *server) admit(r request, input []byte) (accepted, []*entry, error) {
	now := time.Now()
	if s.ctx.Err() != nil && r.id == "" { // a follow-up run waits for the next start
		return accepted{}, nil, errStopping
	}
	for _, key := range []string{r.key, r.replay} {
		if a, err := s.keyed(r.workflow, key, r.hash); err != nil || a.replayed {
			return a, nil, err
		}
	}
	v := s.catalog.use(r.workflow)
	if v == nil {
		return accepted{}, nil, noWorkflow(r.workflow)
	}
	defer v.uses.Done()
	c, ln := v.serving.Config(), s.line(r.workflow)
	waiting := len(ln.ready) + ln.entering
	switch busy := ln.usedSlots(c)+ln.fresh()+ln.entering >= maxRunning(c); {
	case busy && c.Overlap == "skip":
		return accepted{}, nil, errSkipped
	case waiting >= orDefault(c.MaxQueue, defaultMaxQueue) && (busy || s.running+waiting >= s.maxRunning), s.queuedBytes+len(input) > maxQueuedBytes:
		return accepted{}, nil, errQueueFull
	}
	it := &item{ID: cmp.Or(r.id, host.NewRunID()), Workflow: r.workflow, Trigger: r.trigger, Input: input, At: now, Depth: r.depth, recovered: r.id != ""}
	it.progress.ID = it.ID
	entries := append([]*entry{{Item: it}}, r.also...)
	if r.key != "" {
		entries = append(entries, &entry{Key: &keyUse{Key: s.keyName(r.workflow, r.key), Run: it.ID, Hash: r.hash, At: now.Round(0), Until: now.Add(keyTime(c))}})
	}
	if r.replay != "" {
		entries = append(entries, &entry{Key: &keyUse{Key: s.keyName(r.workflow, r.replay), Run: it.ID, At: now.Round(0), Until: now.Add(r.replayTime)}})
	}
	s.forgetKeys(now)
	return accepted{id: it.ID, item: it, done: it.done()}, entries, nil
}

// forgetKeys removes expired keys, and those that expire next if there are too many.
// The caller holds the mutex.
func (s *server) forgetKeys(now time.Time) {
	keys := s.led.state.keys
	if len(keys) < maxKeys {
		return
	}
	var list []*keyUse
	for name, k := range keys {
		if now.Before(k.Until) {
			list = append(list, k)
		} else {
			delete(keys, name)
		}
	}
	slices.SortFunc(list, func(a, b *keyUse) int { return a.Until.Compare(b.Until) })
	for _, k := range list[:max(0, len(list)-maxKeys*3/4)] {
		delete(keys, k.Key)
	}
}

// drop returns the record of a run that is stopped before it begins. It is kept as
// long as the keys of the run. The caller holds the mutex.
func (s *server) drop(it *item) *dropped {
	d := &dropped{ID: it.ID, Workflow: it.Workflow, Trigger: it.Trigger, At: it.At, Until: time.Now().Add(defaultKeyTime)}
	for _, k := range s.led.state.keys {
		if k.Run == it.ID && k.Until.After(d.Until) {
			d.Until = k.Until
		}
	}
	drops := s.led.state.drops
	if len(drops) < maxDrops {
		return d
	}
	list := slices.SortedFunc(maps.Values(drops), func(a, b *dropped) int { return a.Until.Compare(b.Until) })
	for _, old := range list[:len(list)-maxDrops*3/4] {
		delete(drops, old.ID)
	}
	return d
}

func keyTime(c *host.ServeConfig) time.Duration {
	if c.KeyTime != nil {
		return *c.KeyTime
	}
	return defaultKeyTime
}

func maxRunning(c *host.ServeConfig) int { return orDefault(c.MaxRunning, defaultMaxRunning) }

func orDefault(p *int, otherwise int) int {
	if p != nil {
		return *p
	}
	return otherwise
}

// line returns the queue of a workflow. The caller holds the mutex.
func (s *server) line(workflow string) *line {
	ln := s.lines[workflow]
	if ln == nil {
		ln = &line{running: map[string]*live{}, waiting: map[string]bool{}}
		s.lines[workflow] = ln
	}
	return ln
}

// enqueue puts an item into its queue, now or when it is due. The caller holds
// the mutex.
func (s *server) enqueue(it *item) {
	if wait := s.wait(it); wait > 0 {
		due := it.NotBefore
		time.AfterFunc(wait, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.led.state.items[it.ID] == it && it.NotBefore.Equal(due) && s.live[it.ID] == nil {
				it.NotBefore = time.Time{}
				s.enqueue(it)
			}
		})
		return
	}
	it.NotBefore = time.Time{}
	ln := s.line(it.Workflow)
	ln.ready = append(ln.ready, it)
	s.dispatch()
}

// wait returns how long an item waits for its time. If the clock was set back, an
// attempt does not wait longer than its policy allows. The caller holds the mutex.
func (s *server) wait(it *item) time.Duration {
	wait := time.Until(it.NotBefore)
	if it.Waiting || wait <= maxEqual*startRetry {
		return wait
	}
	v := s.catalog.use(it.Workflow)
	if v == nil {
		return wait
	}
	defer v.uses.Done()
	policy, _ := retryPolicy(v.serving.Config())
	return min(wait, 2*policy.Max) // jitter may exceed Max
}

// resetTimers recomputes the waits of all items: timers do not notice that the clock was
// set.
func (s *server) resetTimers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.led.state.items {
		if !it.NotBefore.IsZero() && it.Parked == "" && s.live[it.ID] == nil && !slices.Contains(s.suspects, it) {
			s.enqueue(it)
		}
	}
}

// changed starts the runs that a new version of a workflow allows.
func (s *server) changed(workflow string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatch()
	select {
	case s.triggersChanged <- workflow:
	default:
	}
}

// dispatch starts the next runs. The caller holds the mutex.
func (s *server) dispatch() {
	if s.diskFull.waits() {
		return
	}
	for name, ln := range s.lines {
		if len(ln.ready) == 0 || s.ctx.Err() != nil {
			continue
		}
		v := s.catalog.use(name)
		if v == nil {
			continue // until it is served again
		}
		c := v.serving.Config()
		for len(ln.ready) > 0 && s.running < s.maxRunning && !s.budgetSpent(v) && !s.diskFull.waits() {
			at := ln.next(c)
			if at < 0 && c.Overlap == "cancel_running" {
				if s.replaceWaiting(ln) {
					continue
				}
				ln.cancelOldest(len(ln.ready))
			}
			if at < 0 {
				break
			}
			it := ln.ready[at]
			ln.ready = slices.Delete(ln.ready, at, at+1)
			s.start(it, ln, v)
		}
		v.uses.Done()
	}
}

// cancelOldest cancels the n runs that have run longest.
func (ln *line) cancelOldest(n int) {
	list := make([]*live, 0, len(ln.running))
	for _, lv := range ln.running {
		list = append(list, lv)
	}
	slices.SortFunc(list, func(a, b *live) int { return a.since.Compare(b.since) })
	for _, lv := range list[:min(n, len(list))] {
		lv.cancel(errReplaced)
	}
}

// start begins an item. The caller holds the mutex.
func (s *server) start(it *item, ln *line, v *version) {
	ctx, cancel := context.WithCancelCause(s.runs)
	lv := &live{it: it, v: v, cancel: cancel, hub: &hub{}, since: time.Now(), attempts: it.Attempts}
	ln.running[it.ID], s.live[it.ID] = lv, lv
	delete(ln.waiting, it.ID)
	s.running++
	it.move()
	s.wake(it.ID)
	s.removeCount(it)
	s.probing(it)
	v.uses.Add(1)
	s.executing.Go(func() { s.execute(ctx, lv) })
}

// budgetSpent reports whether a workflow has spent its daily budget. The caller holds the
// mutex.
func (s *server) budgetSpent(v *version) bool {
	c := v.serving.Config()
	if c.Tokens == 0 && c.USD == 0 {
		return false
	}
	u := s.led.state.used[v.Name()].on(day(time.Now()))
	if (c.Tokens == 0 || u.Tokens < c.Tokens) && (c.USD == 0 || u.USD < c.USD) {
		return false
	}
	if ln := s.line(v.Name()); ln.warned != u.Day {
		ln.warned = u.Day
		s.svc.Log.Warn("the workflow "+v.Name()+" has used its daily budget; its runs wait until tomorrow", "workflow", v.Name(), "tokens", u.Tokens, "usd", u.USD)
	}
	return true
}

func day(t time.Time) string { return t.Format(time.DateOnly) }
