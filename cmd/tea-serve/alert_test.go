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
		case <-t.Context().Done():
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
		{[]string{"--alert-secret", "HOOK"}, "has no use without --alert-url"},
		{[]string{"--check", "--alert-url", "https://h/", "--alert-secret", "HOOK"}, `the secret "HOOK" is not set`},
	} {
		log := newLogs()
		cmd := p.command(log, append([]string{"serve", p.dir}, c.args...)...)
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(log.String(), c.want) {
			t.Errorf("%v: %v\n%s", c.args, err, log)
		}
	}
}
