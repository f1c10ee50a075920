package server

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

const (
	// maxAlerts is how many alerts wait for their delivery.
	maxAlerts = 1000
	// alertTimeout is how long the receiver has to answer.
	alertTimeout = 30 * time.Second
	// alertAttempts is how often an alert is sent, over about two hours.
	alertAttempts = 30
	// maxSending is how many alerts are sent concurrently, so that a slow answer does not
	// delay the next alert.
	maxSending = 4
)

// alert reports a run that needs attention.
type alert struct {
	// Type is run.failed, run.parked or run.waiting.
	Type     string    `json:"type"`
	At       time.Time `json:"at"`
	Run      string    `json:"run_id"`
	Workflow string    `json:"workflow"`
	Trigger  string    `json:"trigger,omitempty"`
	Error    string    `json:"error,omitempty"`
	Pending  []any     `json:"pending,omitempty"`
}

// alerts sends alerts to the address of --alert-url. The first attempts are in order;
// a failed one does not delay those after it. It is safe for concurrent use.
type alerts struct {
	s      *server
	url    string
	secret []byte
	client *http.Client

	mu    sync.Mutex
	queue []*delivery
	// more receives a value when the queue has changed.
	more chan struct{}
}

// delivery is an alert that waits for its next attempt.
type delivery struct {
	alert
	attempts int
	due      time.Time
}

// newAlerts returns nil if alerts are not configured.
func newAlerts(s *server) (*alerts, error) {
	c := s.flags
	if c.AlertURL == "" {
		if c.AlertSecret != "" {
			return nil, teacmd.UsageErrorf("--alert-secret has no effect without --alert-url")
		}
		return nil, nil
	}
	u, err := url.Parse(c.AlertURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, teacmd.UsageErrorf("--alert-url: expected http://HOST/PATH or https://HOST/PATH, without a user name")
	}
	a := &alerts{s: s, url: c.AlertURL, more: make(chan struct{}, 1), client: &http.Client{
		Transport:     httpapi.Once{Transport: http.DefaultTransport.(*http.Transport)},
		Timeout:       alertTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // only call the configured address
	}}
	if c.AlertSecret != "" {
		secret, ok := s.svc.Secret(c.AlertSecret)
		if !ok || secret == "" {
			return nil, teacmd.UsageErrorf("--alert-secret: the secret %q is not set; pass it with --secrets", c.AlertSecret)
		}
		a.secret = []byte(secret)
	}
	return a, nil
}

// alert reports the end of a run if it needs attention. The caller holds the
// mutex.
func (s *server) alert(lv *live, res *flow.Result, err error) {
	if s.alerts == nil || s.runs.Err() != nil && (res == nil || res.Status == flow.Stopped) {
		return // the run continues at the next start
	}
	it := lv.it
	a := alert{At: time.Now().UTC(), Run: it.ID, Workflow: it.Workflow, Trigger: it.Trigger}
	mask := func(text string) string {
		if lv.v != nil {
			text = lv.v.mask.Text(text)
		}
		return s.svc.Hide(text)
	}
	switch {
	case res == nil && it.unresumed == flow.Waiting: // already reported
		return
	case it.Parked != "":
		a.Type, a.Error = "run.parked", mask(it.Parked)
	case res != nil && (res.Status == flow.Done || res.Status == flow.Stopped):
		return
	case res != nil && res.Status == flow.Waiting:
		a.Type = "run.waiting"
		m := host.Mask{}
		if lv.v != nil {
			m = lv.v.mask
		}
		for _, i := range res.Pending {
			a.Pending = append(a.Pending, runview.Describe(m, i))
		}
	default:
		if res != nil {
			err = errors.Join(res.Err, err)
		}
		a.Type, a.Error = "run.failed", mask(fmt.Sprint(err))
	}
	s.alerts.put(a)
}

func (a *alerts) put(next alert) { a.enqueue(&delivery{alert: next}) }

// enqueue adds an alert. If too many wait, the alert with the most attempts is lost:
// its receiver has had the most time.
func (a *alerts) enqueue(next *delivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = append(a.queue, next)
	if len(a.queue) > maxAlerts {
		at := 0
		for i, d := range a.queue {
			if d.attempts > a.queue[at].attempts {
				at = i
			}
		}
		a.lost(a.queue[at].alert, errors.New("too many alerts are pending"))
		a.queue = slices.Delete(a.queue, at, at+1)
	}
	a.wake()
}

func (a *alerts) wake() {
	select {
	case a.more <- struct{}{}:
	default:
	}
}

// lost records an alert that was not delivered.
func (a *alerts) lost(lost alert, err error) {
	a.s.metrics.alerts.WithLabelValues("lost").Inc()
	a.s.svc.Log.Error("the alert "+lost.Type+" of run "+lost.Run+" was not delivered", "run", lost.Run, "workflow", lost.Workflow, "error", a.s.svc.Hide(err.Error()))
}

// next removes the first due alert from the queue. If there is none, it returns how
// long to wait for one.
func (a *alerts) next(now time.Time) (_ *delivery, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	wait = time.Hour
	for i, d := range a.queue {
		if left := d.due.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		a.queue = slices.Delete(a.queue, i, i+1)
		return d, 0
	}
	return nil, wait
}

// run sends alerts until the context is done. The remaining alerts are lost.
func (a *alerts) run(ctx context.Context) {
	var sending sync.WaitGroup
	slots := make(chan struct{}, maxSending)
	for ctx.Err() == nil {
		d, wait := a.next(time.Now())
		if d == nil {
			timer := time.NewTimer(wait)
			select {
			case <-a.more:
			case <-timer.C:
			case <-ctx.Done():
			}
			timer.Stop()
			continue
		}
		slots <- struct{}{}
		sending.Go(func() {
			a.deliver(ctx, d)
			<-slots
		})
	}
	sending.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range a.queue {
		a.lost(d.alert, errClosed)
	}
	a.queue = nil
}

// alertBackoff is how long an alert waits for its next attempt.
var alertBackoff = backoff.Policy{Base: time.Second, Max: 5 * time.Minute, Multiplier: 2, Jitter: 0.2}

// deliver sends an alert, and queues it again if the receiver does not accept it.
func (a *alerts) deliver(ctx context.Context, d *delivery) {
	text, err := json.Marshal(d.alert)
	again := false
	if err == nil {
		again, err = a.send(ctx, text)
	}
	d.attempts++
	switch {
	case err == nil:
		a.s.metrics.alerts.WithLabelValues("delivered").Inc()
	case again && d.attempts < alertAttempts && ctx.Err() == nil:
		if d.attempts == 1 {
			a.s.svc.Log.Warn("an alert cannot be delivered and is retried", "run", d.Run, "error", a.s.svc.Hide(err.Error()))
		}
		d.due = time.Now().Add(alertBackoff.Wait(d.attempts))
		a.enqueue(d)
	default:
		a.lost(d.alert, err)
	}
}

// send sends a text. again reports whether to retry after an error.
func (a *alerts) send(ctx context.Context, text []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(text))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "tea-serve")
	if a.secret != nil {
		mac := hmac.New(sha256.New, a.secret)
		mac.Write(text)
		req.Header.Set("X-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	res, err := a.client.Do(req)
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return true, failed.Err // without the address, which may contain a secret
	}
	if err != nil {
		return true, err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so the connection can be reused
	_ = res.Body.Close()                                         // it was only read
	if res.StatusCode < http.StatusMultipleChoices {
		return false, nil
	}
	again = res.StatusCode >= http.StatusInternalServerError || res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusRequestTimeout
	return again, fmt.Errorf("the receiver answered with status %d", res.StatusCode)
}
