package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/client"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

// The codes for an invalid value, and for keys that exclude each other.
const (
	codeValue    = "TEA1104"
	codeConflict = "TEA1108"
)

// trigger is a trigger of a version of a workflow.
type trigger struct {
	*host.TriggerConfig
	v        *version
	workflow string
	index    int
	// id is the trigger's name in the ledger.
	id string
	// next returns the first time of the schedule after a time.
	next func(time.Time) time.Time
	// dir is the directory of watch, and eventDir its name in events: relative to the
	// directory of the workflow if it is configured so, as file actions expect.
	dir, eventDir string
	// secret is the secret of a webhook, or the password for the broker.
	secret string
	broker *url.URL
}

// triggersOf returns the triggers of a workflow. The error is a
// [host.Diagnostics].
func (s *server) triggersOf(wf *host.Workflow, serving *host.Serving) ([]*trigger, error) {
	var list []*trigger
	var diags host.Diagnostics
	configs := serving.Config().Triggers
	for i := range configs {
		c := &configs[i]
		t := &trigger{TriggerConfig: c, workflow: wf.Name(), index: i, id: wf.Name() + "\x00" + c.Name}
		var hint string
		var err error
		switch c.Kind {
		case host.TriggerCron:
			hint, err = t.cron()
		case host.TriggerEvery:
			t.next = func(after time.Time) time.Time { return after.Add(c.Timer.Every) }
		case host.TriggerWebhook:
			hint, err = s.webhook(t)
		case host.TriggerWatch:
			t.watch(wf.Dir())
		case host.TriggerOnRun:
			if c.OnRun.Workflow == wf.Name() {
				hint, err = "use a schedule", fmt.Errorf("on_run: the workflow may trigger itself endlessly")
			}
		case host.TriggerMQTT:
			hint, err = s.checkMQTT(t)
		}
		if err == nil && c.Kind == host.TriggerWebhook && slices.ContainsFunc(list, func(other *trigger) bool {
			return other.Kind == c.Kind && other.Webhook.HookPath() == t.Webhook.HookPath()
		}) {
			hint, err = "use another path", fmt.Errorf("webhook: another trigger of the workflow has the path %q", t.Webhook.HookPath())
		}
		if err != nil {
			diags.Errorf(codeValue, c.Pos, hint, "%v", err)
		}
		list = append(list, t)
	}
	return list, diags.Err()
}

// cron checks the time zone.
func (t *trigger) cron() (hint string, err error) {
	zone := time.Local
	if name := t.Timer.Zone; name != "" {
		if zone, err = time.LoadLocation(name); err != nil {
			return "use a name such as Europe/Berlin or UTC", fmt.Errorf("timezone: %q is not a time zone", name)
		}
	}
	t.next = func(after time.Time) time.Time { return t.Timer.Schedule.Next(after.In(zone)) }
	return "", nil
}

func (t *trigger) watch(dir string) {
	if t.dir = t.Watch.Dir; !filepath.IsAbs(t.dir) {
		t.dir = filepath.Join(dir, t.dir)
	}
	if t.eventDir = t.dir; filepath.IsLocal(t.Watch.Dir) {
		t.eventDir = t.Watch.Dir
	}
}

// event returns the members of an event, with those that all triggers share.
func (t *trigger) event(members map[string]any) map[string]any {
	event := map[string]any{"type": string(t.Kind), "trigger": t.Name, "at": time.Now().UTC().Format(time.RFC3339Nano)}
	for k, v := range members {
		event[k] = v
	}
	return event
}

// request returns the request for the run of an event.
func (t *trigger) request(ctx context.Context, s *server, event map[string]any) (request, error) {
	r := request{workflow: t.workflow, trigger: t.Name}
	env := s.svc.Environment()
	input, mapped, err := t.v.serving.Input(ctx, t.index, event, env)
	if err != nil {
		return r, err
	}
	body, isObject := event["body"].(map[string]any)
	switch {
	case mapped:
		r.input = input
	case isObject:
		r.input = body
	default:
		r.input = map[string]any{"event": event}
	}
	if r.key, err = t.v.serving.Key(ctx, t.index, event, env); err != nil {
		return r, err
	}
	return r, s.svc.CheckInput(t.v.Workflow, r.input)
}

// fireWhenRoom is fire, and waits while the queue is full. The error is errStopping if
// ctx ends or the server stops.
func (s *server) fireWhenRoom(ctx context.Context, t *trigger, event map[string]any, with request) error {
	for {
		err := s.fire(t, event, with)
		switch {
		case errors.Is(err, errLedgerClosed):
			return errStopping
		case !errors.Is(err, errQueueFull) && !errors.As(err, new(*unwritable)):
			return err
		}
		if backoff.Sleep(ctx, refusedWait) != nil {
			return errStopping
		}
	}
}

// fire starts a run for an event. with has the fields also, once and depth of the
// request, and workflow if it differs from the trigger's.
func (s *server) fire(t *trigger, event map[string]any, with request) error {
	r, err := request{workflow: with.workflow, trigger: t.Name, input: map[string]any{"event": event}}, error(nil)
	if with.workflow == "" {
		r, err = t.request(s.ctx, s, event)
	}
	r.also, r.once, r.depth = with.also, with.once, with.depth
	if err == nil && r.depth > maxDepth {
		err = errCircle
	}
	if err != nil {
		s.refuse(t, err)
		s.mu.Lock()
		defer s.mu.Unlock()
		_, addErr := s.led.add(false, r.also...) // the run would be refused again
		return errors.Join(err, addErr)
	}
	_, err = s.accept(r)
	if err != nil && !errors.Is(err, errStopping) {
		s.refuse(t, err)
	}
	return err
}

// refuse logs and records why an event does not start a run.
func (s *server) refuse(t *trigger, err error) {
	s.skips.add(t.id, client.Skip{At: time.Now(), Reason: s.svc.Hide(err.Error())})
	s.metrics.refused.WithLabelValues(s.metrics.workflow(t.workflow)).Inc()
	s.svc.Log.Warn(fmt.Sprintf("the trigger %q of %s starts no run: %s", t.Name, t.workflow, s.svc.Hide(err.Error())), "workflow", t.workflow)
}

// maxDepth is how many runs may follow each other by on_run and by messages with
// their results.
const maxDepth = 16

var errCircle = fmt.Errorf("%d runs followed each other; do triggers form a cycle?", maxDepth)

// follow adds the runs that the end of a run starts. The caller holds the mutex. The
// runs are recorded with the end in one entry, so they exist if and only if it is
// recorded. Their ids derive from the id of the run, so that a run that begins before
// the end is recorded is not started twice.
func (s *server) follow(lv *live, res *flow.Result, entries *[]*entry) {
	for _, t := range s.catalog.triggers(host.TriggerOnRun) {
		if t.OnRun.Workflow != lv.it.Workflow || !slices.Contains(t.statuses(), string(res.Status)) {
			continue
		}
		members := map[string]any{"run_id": lv.it.ID, "workflow": lv.it.Workflow, "status": string(res.Status), "state": lv.v.mask.Value(res.State)}
		if res.Err != nil {
			members["error"] = lv.v.mask.Text(res.Err.Error())
		}
		r, err := t.request(s.runs, s, t.event(members))
		r.id, r.depth = followerID(lv.it, t.id, res.Status), lv.it.Depth+1
		if err == nil && r.depth > maxDepth {
			err = errCircle
		}
		var input []byte
		if err == nil {
			input, err = s.seal(r.input)
		}
		var a accepted
		var more []*entry
		if s.led.state.items[r.id] != nil {
			continue // a resumed run ends again
		}
		if err == nil {
			a, more, err = s.admit(r, input)
		}
		if err != nil {
			s.refuse(t, err)
			continue
		}
		if a.replayed {
			continue
		}
		*entries = append(*entries, more...)
		s.followers = append(s.followers, a.item)
	}
}

// followerID returns the id of the run that a trigger starts at the end of a run. A
// resumed run has another end.
func followerID(it *item, trigger string, status flow.Status) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", it.ID, trigger, status, it.At.UnixNano()))
	const timeSize = len("20061102-150405-")
	return it.ID[:min(timeSize, len(it.ID))] + hex.EncodeToString(sum[:5])
}

func (t *trigger) statuses() []string {
	if len(t.OnRun.Statuses) == 0 {
		return []string{string(flow.Done)}
	}
	return t.OnRun.Statuses
}

// triggers returns the triggers of a kind.
func (c *catalog) triggers(kinds ...host.TriggerKind) []*trigger {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*trigger
	for _, v := range c.workflows {
		for _, t := range v.triggers {
			if slices.Contains(kinds, t.Kind) {
				list = append(list, t)
			}
		}
	}
	return list
}
