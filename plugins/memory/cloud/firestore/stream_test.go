package firestore

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// answering is the client of a server that gives one answer, which the emulator never
// does.
func answering(t *testing.T, body string) *client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return &client{server: httpapi.Server{HTTP: server.Client(), Base: server.URL, Header: http.Header{}}, timeout: time.Minute, root: "projects/p/databases/(default)/documents"}
}

// An error after the first results is not the end of them.
func TestErrorsWithinAnAnswer(t *testing.T) {
	t.Parallel()
	const failed = `[{"document": {"name": "a"}}, {"error": {"code": 429, "message": "quota exceeded", "status": "RESOURCE_EXHAUSTED"}}]`
	c := answering(t, failed)
	err := c.all(t.Context(), "", structured{From: []from{{"c"}}}, func(document) bool { return true })
	if e := tea.AsError(err); err == nil || e.Type != tea.ResourceExhausted {
		t.Errorf("a query: %v", err)
	}
	if _, err := c.get(t.Context(), nil, "a"); err == nil {
		t.Error("a read: no error")
	}
}

// Writes that failed for another reason than their preconditions are not done.
func TestErrorsOfSingleWrites(t *testing.T) {
	t.Parallel()
	writes := []write{{Delete: "a"}, {Delete: "b"}}
	done, err := answering(t, `{"writeResults": [{}, {}], "status": [{}, {"code": 9, "message": "changed"}]}`).eachWrite(t.Context(), writes)
	if err != nil || !done[0] || done[1] {
		t.Errorf("%v %v", done, err)
	}
	for _, body := range []string{`{"writeResults": [{}, {}], "status": [{}, {"code": 14, "message": "busy"}]}`, `{"writeResults": [{}], "status": [{}]}`} {
		if _, err := answering(t, body).eachWrite(t.Context(), writes); err == nil || tea.AsError(err).Type != tea.ConnectionError {
			t.Errorf("%s: %v", body, err)
		}
	}
}
