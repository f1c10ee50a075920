package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

const (
	// sendAction sends the message that announces a question.
	sendAction = "notify.send"
	// sendTimeout bounds it.
	sendTimeout = 5 * time.Minute
	// recheck is how often an announced question is looked at.
	recheck = time.Hour
	// defaultExpiry is the default of expire_seconds.
	defaultExpiry = 7 * 24 * time.Hour
)

// questions are settings.notify.questions.
type questions struct {
	To            []string  `json:"to"`
	Escalate      []askNext `json:"escalate"`
	Priority      string    `json:"priority"`
	ExpireSeconds float64   `json:"expire_seconds"`
}

// askNext says who is asked after a time without an answer.
type askNext struct {
	AfterSeconds float64  `json:"after_seconds"`
	To           []string `json:"to"`
}

// announcement is how far a question was announced.
type announcement struct {
	Run      string    `json:"run"`
	Question string    `json:"question"`
	AskedAt  time.Time `json:"asked_at"`
	// Step counts escalations, and Since is when the last one was due.
	Step  int       `json:"step,omitempty"`
	Since time.Time `json:"since"`
	// Told are the targets of the step that have the message, or will not get it.
	Told []string `json:"told,omitempty"`
	// Pushed are the browsers to which the message was sent, or that refused it.
	Pushed []string `json:"pushed,omitempty"`
	// Gone removes the announcement: the question was answered.
	Gone bool `json:"gone,omitempty"`
}

func (a *announcement) key() string { return a.Run + "\x00" + a.Question }

// lookAt has the questions of a waiting run announced. The caller holds the mutex.
func (s *server) lookAt(run string) {
	s.unseen[run] = true
	select {
	case s.asked <- struct{}{}:
	default:
	}
}

// base returns the address of links.
func (c *serveCmd) base(listening string) (string, error) {
	if c.PublicURL == "" {
		if u, err := url.Parse(listening); err != nil || u.Host == "" {
			return "", nil
		}
		return listening, nil
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return "", teacmd.UsageErrorf("--public-url: expected http://HOST or https://HOST, with a path if a proxy adds one")
	}
	return strings.TrimRight(c.PublicURL, "/"), nil
}

// announceQuestions announces the questions of waiting runs until the server stops.
func (s *server) announceQuestions() {
	due, failures := map[string]time.Time{}, map[string]int{}
	timer := time.NewTimer(recheck)
	defer timer.Stop()
	for {
		select {
		case <-s.asked:
		case <-timer.C:
		case <-s.ctx.Done():
			return
		}
		s.mu.Lock()
		unseen := s.unseen
		s.unseen = map[string]bool{}
		s.mu.Unlock()
		for run := range unseen {
			s.findQuestions(run)
		}
		s.mu.Lock()
		list := maps.Clone(s.led.state.asked)
		s.mu.Unlock()
		maps.DeleteFunc(due, func(key string, _ time.Time) bool { return list[key] == nil })
		maps.DeleteFunc(failures, func(key string, _ int) bool { return list[key] == nil })
		var mu sync.Mutex
		var sending sync.WaitGroup
		slots := make(chan struct{}, maxSending)
		next := time.Now().Add(recheck)
		for key, a := range list {
			if at := due[key]; at.After(time.Now()) && !unseen[a.Run] {
				next = earlier(next, at)
				continue
			}
			failed := failures[key]
			slots <- struct{}{}
			sending.Go(func() {
				at, again := s.announce(*a, failed)
				mu.Lock()
				defer mu.Unlock()
				due[key], failures[key], next = at, again, earlier(next, at)
				<-slots
			})
		}
		sending.Wait()
		timer.Reset(max(time.Until(next), time.Millisecond))
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// findQuestions records the new questions of a run.
func (s *server) findQuestions(run string) {
	_, contents, err := s.contents(run)
	if err != nil {
		return // it is shown as damaged
	}
	v := s.catalog.use(contents.Header.Workflow)
	if v == nil {
		return
	}
	defer v.uses.Done()
	if q, err := s.questionsOf(v); err != nil || q == nil && len(s.browsers()) == 0 {
		return // a mistake in the settings fails the runs
	}
	pending, err := checkpoints.Pending(contents)
	for _, i := range pending {
		a := &announcement{Run: run, Question: i.ID, AskedAt: i.AskedAt, Since: time.Now().UTC()}
		s.mu.Lock()
		known := s.led.state.asked[a.key()]
		s.mu.Unlock()
		if i.Kind == flow.InterruptAsk && (known == nil || !known.AskedAt.Equal(a.AskedAt)) {
			s.keep(&entry{Asked: a})
		}
	}
	if err != nil {
		s.svc.Log.Warn("the questions of run "+run+" cannot be read", "run", run, "error", s.svc.Hide(err.Error()))
	}
}

// questionsOf returns the section of the settings; nil if there is none.
func (s *server) questionsOf(v *version) (*questions, error) {
	settings, err := v.Settings(s.svc.Secrets())
	if err != nil {
		return nil, err
	}
	notify, _ := settings["notify"].(map[string]any)
	if notify["questions"] == nil {
		return nil, nil
	}
	q := new(questions)
	if err := value.Into(notify["questions"], q); err != nil {
		return nil, err
	}
	targets, _ := notify["targets"].(map[string]any)
	for _, step := range append([]askNext{{To: q.To}}, q.Escalate...) {
		for _, name := range step.To {
			if targets[name] == nil {
				return nil, fmt.Errorf("%w %q%s", errNoTarget, name, diag.Ending(name, slices.Sorted(maps.Keys(targets))))
			}
		}
	}
	return q, nil
}

// errNoTarget reports questions that nobody would see.
var errNoTarget = errors.New("settings.notify.questions: settings.notify.targets has no target")

// record makes a change durable.
func (s *server) record(e *entry) error {
	s.mu.Lock()
	b, err := s.led.add(true, e)
	s.mu.Unlock()
	if err == nil {
		err = b.wait()
	}
	return err
}

// keep records a change of an announcement.
func (s *server) keep(e *entry) {
	if err := s.record(e); err != nil {
		s.svc.Log.Error("an announcement cannot be recorded and may be repeated", "error", err)
	}
}

// announce announces a question to those who are next, and returns when to do so again,
// and how often it failed.
func (s *server) announce(a announcement, failed int) (next time.Time, failures int) {
	now := time.Now()
	contents, i, err := s.pendingQuestion(a.Run, func(i flow.Interrupt) bool { return i.ID == a.Question && i.AskedAt.Equal(a.AskedAt) })
	if i == nil {
		if a.Gone = true; err == nil || errors.Is(err, errNoRun) {
			s.keep(&entry{Asked: &a})
		}
		return now.Add(recheck), 0
	}
	s.mu.Lock()
	it := s.led.state.items[a.Run]
	continues := it != nil && !it.Waiting // it was answered
	s.mu.Unlock()
	v := s.catalog.use(contents.Header.Workflow)
	if v == nil {
		return now.Add(time.Minute), failed
	}
	defer v.uses.Done()
	q, err := s.questionsOf(v)
	if continues || err != nil {
		return now.Add(time.Minute), failed
	}
	q = cmp.Or(q, &questions{}) // only browsers are notified
	steps := append([]askNext{{To: q.To}}, q.Escalate...)
	a.Step = min(a.Step, len(steps)-1)
	if at := a.escalation(steps); !at.IsZero() && !at.After(now) {
		a.Step, a.Since, a.Told, failed = a.Step+1, now.UTC(), nil, 0
		s.keep(&entry{Asked: new(a)})
	}
	next = now.Add(recheck)
	if at := a.escalation(steps); !at.IsZero() {
		next = earlier(next, at)
	}
	again, retry := s.send(v, q, a, *i, steps[a.Step].To)
	if !again.IsZero() {
		next = earlier(next, again)
	}
	if retry {
		failed++
		next = earlier(next, now.Add(alertBackoff.Wait(failed)))
	}
	return next, failed
}

// send sends a question to browsers and targets concurrently, so that one that does not
// answer does not delay the others. It returns the end of quiet hours, and whether some need
// another attempt.
func (s *server) send(v *version, q *questions, a announcement, i flow.Interrupt, targets []string) (again time.Time, retry bool) {
	var mu sync.Mutex // guards done and the results
	done := a
	change := func(apply func(a *announcement)) {
		mu.Lock()
		defer mu.Unlock()
		apply(&done)
		s.keep(&entry{Asked: new(done)})
	}
	var sending sync.WaitGroup
	sending.Go(func() {
		good := s.pushQuestion(v, q, a, i, change)
		mu.Lock()
		defer mu.Unlock()
		retry = retry || !good
	})
	for _, target := range targets {
		if slices.Contains(a.Told, target) {
			continue
		}
		sending.Go(func() {
			quiet, err := s.tell(v, q, &a, i, target)
			if err == nil && quiet.IsZero() {
				change(func(a *announcement) { a.Told = append(slices.Clone(a.Told), target) })
				s.svc.Log.Info("the question "+a.Question+" of run "+a.Run+" was announced to "+target, "run", a.Run)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				retry = true
				s.svc.Log.Warn("the question "+a.Question+" of run "+a.Run+" was not announced to "+target, "run", a.Run, "error", s.svc.Hide(err.Error()))
			} else if again.IsZero() || quiet.Before(again) {
				again = quiet
			}
		})
	}
	sending.Wait()
	return again, retry
}

// escalation returns when the next ones are asked; zero if there are none.
func (a *announcement) escalation(steps []askNext) time.Time {
	if a.Step+1 >= len(steps) {
		return time.Time{}
	}
	return a.Since.Add(time.Duration(steps[a.Step+1].AfterSeconds * float64(time.Second)))
}

// pendingQuestion returns the question of a run that matches; nil if it waits for no such
// answer.
func (s *server) pendingQuestion(run string, match func(flow.Interrupt) bool) (*checkpoints.Contents, *flow.Interrupt, error) {
	_, contents, err := s.contents(run)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	ended := s.led.state.items[run] == nil
	s.mu.Unlock()
	if ended { // also a run that was cancelled, whose questions are open in its checkpoint
		_, entry, err := s.entry(run)
		if err != nil || entry.Status != flow.Waiting {
			return contents, nil, err
		}
	}
	pending, err := checkpoints.Pending(contents)
	for _, i := range pending {
		if i.Kind == flow.InterruptAsk && match(i) {
			return contents, &i, nil
		}
	}
	return contents, nil, err
}

// expiry returns when the links of a question expire.
func (q *questions) expiry(i flow.Interrupt) time.Time {
	if !i.Deadline.IsZero() {
		return i.Deadline
	}
	return time.Now().Add(time.Duration(cmp.Or(q.ExpireSeconds, defaultExpiry.Seconds()) * float64(time.Second)))
}

// id returns the id of the message to a target. It is the same in all attempts, so that
// the target gets the message once.
func (a *announcement) id(target string) string {
	key := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%d\x00%s", a.Run, a.Question, a.AskedAt.UnixNano(), a.Step, target))
	return hex.EncodeToString(key[:16])
}

// tell sends the message to a target. quiet is the end of the quiet hours of the target,
// which then has no message.
func (s *server) tell(v *version, q *questions, a *announcement, i flow.Interrupt, target string) (quiet time.Time, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), sendTimeout) // finish sending even if the server stops
	defer cancel()
	actions, err := s.answerActions(a.Run, target, i, q.expiry(i))
	if err != nil {
		return quiet, err
	}
	id := a.id(target)
	params := map[string]any{
		"to": target, "title": plaintext.Cut("Question of "+v.Name(), 200), "message": plaintext.Cut(v.mask.Text(i.Question), 20000),
		"priority": cmp.Or(q.Priority, "high"), "key": id, "window_seconds": int64(365 * 24 * 60 * 60), "actions": actions,
	}
	call := tea.Call{RunID: a.Run, Node: i.Path, Attempt: 1, IdempotencyKey: id}
	res, err := v.Invoke(ctx, s.svc.Secrets(), &tea.Request{Action: sendAction, Params: tea.ValuePayload(params), Call: call})
	if err != nil {
		return quiet, err
	}
	var result struct {
		QuietUntil string `json:"quiet_until"`
	}
	if err := res.Result.Decode(&result); err != nil || result.QuietUntil == "" {
		return quiet, err
	}
	return time.Parse(time.RFC3339, result.QuietUntil)
}
