package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// broken fails with a message that has a secret.
const broken = `
nodes: [{name: n, uses: file.read, with: {path: "broken by {{ secrets.HOOK }}"}}]
`

// receiver gets alerts. It fails to answer to the first one.
type receiver struct {
	*httptest.Server
	got chan map[string]any
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{got: make(chan map[string]any, 100)}
	first := true
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		text, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		if first { // alerts are sent one after the other
			first = false
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		mac := hmac.New(sha256.New, []byte(hookSecret))
		mac.Write(text)
		if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); req.Header.Get("X-Signature") != want {
			t.Errorf("signature %q, expected %q", req.Header.Get("X-Signature"), want)
		}
		var a map[string]any
		if err := json.Unmarshal(text, &a); err != nil {
			t.Error(err)
		}
		if strings.Contains(string(text), hookSecret) {
			t.Errorf("the alert has a secret: %s", text)
		}
		r.got <- a
	}))
	t.Cleanup(r.Close)
	return r
}

func TestAlertsOfRuns(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	s := newProject(t, map[string]string{
		"ask.yaml": ask, "broken.yaml": broken, "greet.yaml": greet,
		"park.yaml": broken + "serve: {retry: {max_retries: 10, backoff_base_ms: 1}}\n",
	}).serve("--secrets", `{"HOOK": "`+hookSecret+`"}`, "--alert-url", r.URL+"/alerts", "--alert-secret", "HOOK")
	next := func() map[string]any {
		t.Helper()
		select {
		case a := <-r.got:
			return a
		case <-time.After(5 * time.Minute):
			t.Fatalf("no alert\n%s", s.log)
		}
		return nil
	}
	s.run("greet", `{"name": "x"}`) // nothing to report
	for _, c := range []struct{ workflow, kind, want string }{
		{"broken", "run.failed", "broken by"}, {"ask", "run.waiting", "Go on?"}, {"park", "run.parked", "3 times in a row"},
	} {
		run := s.run(c.workflow, "{}")
		got := next()
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if got["run_id"] != run["id"] || got["workflow"] != c.workflow || !strings.Contains(string(text), c.want) {
			t.Errorf("alert %s of run %v, expected %q", text, run["id"], c.want)
		}
		if diff := cmp.Diff(c.kind, got["type"]); diff != "" {
			t.Errorf("type (-want +got):\n%s", diff)
		}
	}
	s.interrupt()
}

// Only the configured address is called, and it is not logged.
func TestAlertsDoNotFollowRedirects(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	s := newProject(t, map[string]string{"ask.yaml": ask}).serve("--alert-url", server.URL+"/key-of-the-receiver")
	s.run("ask", "{}")
	s.log.await(t, "was not delivered")
	if !strings.Contains(s.log.String(), "status 307") || strings.Contains(s.log.String(), "key-of-the-receiver") {
		t.Errorf("log:\n%s", s.log)
	}
}

func TestOptionsOfAlerts(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet})
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--alert-url", "ftp://h"}, "expected http://HOST/PATH"},
		{[]string{"--alert-url", "https://me:pass@h/"}, "without a user name"},
		{[]string{"--alert-secret", "HOOK"}, "has no effect without --alert-url"},
		{[]string{"--check", "--alert-url", "https://h/", "--alert-secret", "HOOK"}, `the secret "HOOK" is not set`},
	} {
		log := newLogs()
		cmd := p.command(log, append([]string{"serve", p.dir}, c.args...)...)
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(log.String(), c.want) {
			t.Errorf("%v: %v\n%s", c.args, err, log)
		}
	}
}

// An alert that the receiver does not take does not delay the others.
func TestAlertsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	got, release := make(chan string, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var a map[string]any
		if err := json.NewDecoder(req.Body).Decode(&a); err != nil {
			t.Error(err)
		}
		switch workflow, _ := a["workflow"].(string); workflow {
		case "refused":
			w.WriteHeader(http.StatusBadGateway)
		case "slow":
			<-release
		default:
			got <- workflow
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	fails := "nodes: [{name: n, run: 'error(\"broken\")'}]\n"
	s := newProject(t, map[string]string{"refused.yaml": fails, "slow.yaml": fails, "last.yaml": fails}).serve("--alert-url", server.URL)
	for _, workflow := range []string{"refused", "slow", "last"} {
		s.run(workflow, "{}")
	}
	select {
	case workflow := <-got:
		if workflow != "last" {
			t.Errorf("alert of %s", workflow)
		}
	case <-time.After(20 * time.Second): // less than a receiver has to answer
		t.Errorf("no alert\n%s", s.log)
	}
}

// A run that waits has not failed if an answer cannot continue it.
func TestWaitingRunThatCannotContinueIsNotReportedAsFailed(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	s := newProject(t, map[string]string{"ask.yaml": "state_schema: {n: int}" + ask, "broken.yaml": broken}).serve("--secrets", `{"HOOK": "`+hookSecret+`"}`, "--alert-url", r.URL, "--alert-secret", "HOOK")
	id := s.run("ask", "{}")["id"].(string)
	if a := <-r.got; a["type"] != "run.waiting" {
		t.Errorf("alert: %v", a)
	}
	if r := s.request("POST", "/v1/runs/"+id+"/resume?wait=600", `{"answers": {"q": "no"}, "input": {"n": "text"}}`); r.body["status"] != "waiting" || r.body["error"] == nil {
		t.Errorf("resume: %s\n%s", r, s.log)
	}
	failed := s.run("broken", "{}")
	if a := <-r.got; a["run_id"] != failed["id"] {
		t.Errorf("alert: %v", a)
	}
}
