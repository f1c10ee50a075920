package mcp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

// openAt returns a client with the agent a at an address.
func openAt(t *testing.T, address string) *client {
	t.Helper()
	return open(t, map[string]any{"a2a": map[string]any{"agents": map[string]any{"a": map[string]any{"url": address}}}})
}

const completed = `{"result": {"id": "t1", "status": {"state": "TASK_STATE_COMPLETED"}}}`

// Servers redirect an address without its slash at the end, and no redirect is followed.
// Credentials in the address of the settings are for the address of the card, too.
func TestAgentIsReachedAtTheAddressOfItsCard(t *testing.T) {
	t.Parallel()
	var host string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ops" || password != "pass" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch r.URL.Path {
		case "/colors/.well-known/agent-card.json":
			_, _ = fmt.Fprintf(w, `{"url": "http://%s/colors/"}`, host)
		case "/colors/":
			_, _ = io.WriteString(w, completed)
		default:
			http.Redirect(w, r, "/colors/", http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(s.Close)
	host = s.Listener.Addr().String()
	if _, err := openAt(t, "http://ops:pass@"+host+"/colors").send(t, map[string]any{"text": "go"}); err != nil {
		t.Error(err)
	}
}

// A call that waits for another one, which reads the card, can be canceled.
func TestConcurrentCallsWaitForTheCard(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	var cards atomic.Int32
	var address string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			if cards.Add(1) == 1 {
				close(asked)
			}
			<-answer
			_, _ = io.WriteString(w, strings.ReplaceAll(cardNew, "URL", address))
			return
		}
		_, _ = io.WriteString(w, completed)
	}))
	t.Cleanup(s.Close)
	address = s.URL
	c := openAt(t, s.URL)
	done := make(chan error, 1)
	go func() {
		_, err := c.send(t, map[string]any{"text": "go"})
		done <- err
	}()
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.call(ctx, "a2a.send", map[string]any{"agent": "a", "text": "go"}); err == nil {
		t.Error("a canceled call succeeded")
	}
	close(answer)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := c.send(t, map[string]any{"text": "go"}); err != nil || cards.Load() != 1 {
		t.Errorf("%v; the card was read %d times", err, cards.Load())
	}
}

// An agent that was updated can have another address. The card is read again after a failure.
func TestCardIsReadAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	var moved atomic.Bool
	var address string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := "/old"
		if moved.Load() {
			at = "/new"
		}
		switch r.URL.Path {
		case "/.well-known/agent-card.json":
			_, _ = fmt.Fprintf(w, `{"url": "%s"}`, address+at)
		case at:
			_, _ = io.WriteString(w, completed)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	address = s.URL
	c := openAt(t, s.URL)
	send := func() error {
		_, err := c.send(t, map[string]any{"text": "go"})
		return err
	}
	if err := send(); err != nil {
		t.Fatal(err)
	}
	moved.Store(true)
	refused(t, send(), tea.NotFound, "agent a: ")
	if err := send(); err != nil {
		t.Error(err)
	}
}

// A task survives an agent that is away longer than the retries of other requests.
func TestTaskSurvivesAnOutageOfItsAgent(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	var address string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n := requests.Add(1); {
		case r.Method == http.MethodGet:
			_, _ = io.WriteString(w, strings.ReplaceAll(cardNew, "URL", address))
		case n == 2:
			_, _ = io.WriteString(w, `{"result": {"task": {"id": "t1", "status": {"state": "TASK_STATE_WORKING"}}}}`)
		case n < 10:
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(http.StatusBadGateway)
		default:
			_, _ = io.WriteString(w, completed)
		}
	}))
	t.Cleanup(s.Close)
	address = s.URL
	if got, err := openAt(t, s.URL).send(t, map[string]any{"text": "go"}); err != nil || got["state"] != "completed" {
		t.Errorf("%v %v", got, err)
	}
}

func TestHostileAgent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	working := `{"result": {"task": {"id": "t1", "status": {"state": "TASK_STATE_WORKING", "message": {"parts": [{"text": "` + long + `"}]}}}}}`
	for name, replies := range map[string][]string{
		"agent a: the task t1 is failed: xxx": {strings.ReplaceAll(working, "WORKING", "FAILED")},
		"agent a: xxx":                        {`{"error": {"code": -32603, "message": "` + long + `"}}`},
		"agent a: the task t1 is working: the answer to GetTask is not this task": {working, `{"result": {"id": "t2", "status": {"state": "TASK_STATE_COMPLETED"}}}`},
		"agent a: the result of the task t1 cannot be read":                       {`{"result": {"id": "t1", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [1e999]}}`},
	} {
		c := newAgent(t, cardNew, replies...).open(t)
		_, err := c.send(t, map[string]any{"text": "go"})
		if err == nil || !strings.HasPrefix(tea.AsError(err).Message, name) || len(err.Error()) > 4000 {
			t.Errorf("%s: %.200v", name, err)
		}
		for _, p := range c.host.Recorded().Progress {
			if len(p.Message) > 4000 {
				t.Errorf("progress of %d bytes", len(p.Message))
			}
		}
	}
}
