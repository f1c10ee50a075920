package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/cmd/tea-serve/internal/webpush"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/x/plaintext"
	"github.com/the-edge-agent/tea/sdk/x/safenet"
)

const (
	// maxBrowsers is the maximum number of subscribed browsers.
	maxBrowsers = 100
	// welcomeTTL is how long a push service keeps the message that confirms a
	// subscription.
	welcomeTTL = time.Minute
	// browserTarget is the prefix of targets that are browsers. The names of targets in
	// settings do not contain this character.
	browserTarget = "~"
)

// browser is a browser whose owner gets questions as push messages.
type browser struct {
	ID string `json:"id"`
	owner
	At time.Time `json:"at,omitzero"`
	webpush.Subscription
	// Gone marks a browser that was removed.
	Gone bool `json:"gone,omitempty"`
}

// note is a notification of the page's worker. It replaces an earlier one with its tag.
type note struct {
	Title string `json:"title"`
	Body  string `json:"body"`
	Tag   string `json:"tag"`
	// Path is opened by a click.
	Path string `json:"path"`
}

// pushSender returns the sender. Its key is created on first use.
func (s *server) pushSender() (*webpush.Sender, error) {
	s.sending.Lock()
	defer s.sending.Unlock()
	if s.sender != nil {
		return s.sender, nil
	}
	made, err := webpush.NewKey()
	if err != nil {
		return nil, err
	}
	key, err := s.keyOf(&s.led.state.pushKey, made, &entry{PushKey: made})
	if err != nil {
		return nil, err
	}
	contact := "mailto:tea@localhost"
	if strings.HasPrefix(s.base, "https://") {
		contact = s.base
	}
	s.sender, err = webpush.NewSender(key, contact, &safenet.Guard{AllowPrivate: s.flags.AllowPrivatePush, Remedy: "start the server with --allow-private-push to allow it"})
	return s.sender, err
}

// getPush returns the key with which browsers subscribe.
func (s *server) getPush(w http.ResponseWriter, _ *http.Request) error {
	sender, err := s.pushSender()
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, map[string]any{"key": sender.PublicKey()})
}

// subscription reads the subscription in the body of a request.
func (s *server) subscription(r *http.Request) (*browser, error) {
	_, text, err := readObject(r, "endpoint", "keys", "expirationTime")
	if err != nil {
		return nil, err
	}
	b := &browser{owner: s.access.ownerOf(r), At: time.Now().UTC()}
	if err := json.Unmarshal(text, &b.Subscription); err != nil {
		return nil, badRequest(fmt.Errorf("body: expected a subscription of a browser: %w", err))
	}
	id := sha256.Sum256([]byte(b.Endpoint))
	b.ID = hex.EncodeToString(id[:8])
	return b, nil
}

// postSubscribe adds a browser once a message to it was accepted. Otherwise, a browser
// that cannot be reached would look as if no question was ever asked.
func (s *server) postSubscribe(w http.ResponseWriter, r *http.Request) error {
	b, err := s.subscription(r)
	if err != nil {
		return err
	}
	sender, err := s.pushSender()
	if err != nil {
		return err
	}
	if err := sender.Check(b.Subscription); err != nil {
		return &statusError{http.StatusUnprocessableEntity, err}
	}
	s.mu.Lock()
	known := s.led.state.browsers[b.ID]
	s.mu.Unlock()
	if known != nil && known.Keys == b.Keys && known.owner == b.owner { // the page subscribes on each visit
		return reply(w, http.StatusOK, map[string]any{"id": b.ID})
	}
	if known == nil && len(s.browsers()) >= maxBrowsers {
		return &statusError{http.StatusTooManyRequests, fmt.Errorf("too many browsers get notifications (limit %d); turn them off in another browser", maxBrowsers)}
	}
	welcome := note{Title: "tea", Body: "Questions of runs will be shown here.", Tag: "welcome", Path: "/"}
	if err := s.push(r.Context(), b, welcome, time.Now().Add(welcomeTTL)); err != nil {
		return &statusError{http.StatusBadGateway, err}
	}
	if err := s.record(&entry{Browser: b}); err != nil {
		return err
	}
	return reply(w, http.StatusCreated, map[string]any{"id": b.ID})
}

// postUnsubscribe removes a browser.
func (s *server) postUnsubscribe(w http.ResponseWriter, r *http.Request) error {
	b, err := s.subscription(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	known := s.led.state.browsers[b.ID] != nil
	s.mu.Unlock()
	if known {
		if err := s.record(&entry{Browser: &browser{ID: b.ID, Gone: true}}); err != nil {
			return err
		}
	}
	return reply(w, http.StatusOK, map[string]any{"id": b.ID})
}

// browsers returns the browsers whose owners may answer questions.
func (s *server) browsers() (list []*browser) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.led.state.browsers {
		if s.access.mayAnswer(b.owner) {
			list = append(list, b)
		}
	}
	return list
}

// answersAs returns the name under which a link of the target answers, and reports whether
// the link is valid: the links of a browser are, while its owner may answer.
func (s *server) answersAs(target string) (name string, allowed bool) {
	id, isBrowser := strings.CutPrefix(target, browserTarget)
	if !isBrowser {
		return target, true
	}
	for _, b := range s.browsers() {
		if b.ID == id {
			return cmp.Or(b.Name, "browser"), true
		}
	}
	return "", false
}

// pushQuestion sends a question to the browsers that were subscribed when it was asked,
// and reports whether no browser needs another attempt. change applies an update to the
// announcement and stores it; it is safe for concurrent use.
func (s *server) pushQuestion(v *version, q *questions, a announcement, i flow.Interrupt, change func(func(a *announcement))) bool {
	var list []*browser
	for _, b := range s.browsers() {
		if !slices.Contains(a.Pushed, b.ID) && b.At.Before(a.AskedAt) {
			list = append(list, b)
		}
	}
	first := a
	first.Step = 0 // an escalation does not change the tag
	errs := make([]error, len(list))
	var sending sync.WaitGroup
	for n, b := range list {
		sending.Go(func() {
			until := q.expiry(i)
			path, err := s.answerPath(a.Run, browserTarget+b.ID, i, until) // a new tab has no token
			if err == nil {
				ctx := context.WithoutCancel(s.ctx) // a message that has begun is sent even if the server stops
				err = s.push(ctx, b, note{Title: plaintext.Cut("Question of "+v.Name(), 200), Body: v.mask.Text(i.Question), Tag: first.id(b.ID), Path: path}, until)
			}
			errs[n] = err
		})
	}
	sending.Wait()
	var pushed []string
	good := true
	for n, b := range list {
		var refused *webpush.Refused
		switch err := errs[n]; {
		case errors.Is(err, webpush.ErrGone):
			s.keep(&entry{Browser: &browser{ID: b.ID, Gone: true}})
			s.svc.Log.Info("a browser is no longer subscribed", "name", b.Name)
			continue
		case err != nil:
			s.svc.Log.Warn("the question "+a.Question+" of run "+a.Run+" was not pushed to a browser", "run", a.Run, "name", b.Name, "error", s.svc.Hide(err.Error()))
			if !errors.As(err, &refused) || refused.Retryable() {
				good = false
				continue
			}
		}
		pushed = append(pushed, b.ID)
	}
	if len(pushed) > 0 {
		change(func(a *announcement) { a.Pushed = append(slices.Clip(a.Pushed), pushed...) })
	}
	return good
}

// push sends a message to a browser.
func (s *server) push(ctx context.Context, b *browser, n note, until time.Time) error {
	sender, err := s.pushSender()
	if err != nil {
		return err
	}
	body := n.Body
	for limit := 2000; ; limit /= 2 { // quotes and control characters take more space as JSON
		n.Body = plaintext.Cut(body, limit)
		text, err := json.Marshal(n)
		if err != nil {
			return err
		}
		if len(text) <= webpush.MaxText {
			return sender.Send(ctx, b.Subscription, webpush.Message{Text: text, Topic: n.Tag, TTL: time.Until(until)})
		}
	}
}
