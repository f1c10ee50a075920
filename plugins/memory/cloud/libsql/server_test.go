package libsql

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/servertest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// TestServerKilledUnderLoad kills the server while devices count up a document
// each and store entries. Every acknowledged write is there, and none was done
// twice.
func TestServerKilledUnderLoad(t *testing.T) {
	t.Parallel()
	d := newDatabases(t)
	const devices, each, kills = 4, 40, 3
	var written atomic.Int64
	reached := make(chan struct{}, kills) // a further part of the work
	var group sync.WaitGroup
	for device := range devices {
		stores := d.open(t, nil)
		group.Go(func() {
			id := fmt.Sprint(device)
			for n := 1; n <= each; n++ {
				change := store.Change{Kind: "k", ID: id, Body: fmt.Appendf(nil, `{"n":%d}`, n), If: int64(n - 1)}
				if n == 1 {
					change.If = store.New
				}
				entry := store.Entry{Key: fmt.Sprintf("%s/%02d", id, n), Value: json.RawMessage(`"kept"`)}
				if err := stores.Metadata.Apply(t.Context(), change); err != nil {
					t.Errorf("device %s, change %d: %v", id, n, err)
				}
				stored, err := stores.LongTerm.Store(t.Context(), entry)
				if err != nil || !stored[0].Created {
					t.Errorf("device %s, entry %d: %v, %v", id, n, stored, err)
				}
				if written.Add(1)%(devices*each/(kills+1)) == 0 {
					select {
					case reached <- struct{}{}:
					default: // the last one
					}
				}
			}
		})
	}
	for range kills {
		<-reached
		d.server.Kill()
		d.server.start(t)
	}
	group.Wait()
	stores := d.open(t, nil)
	for device := range devices {
		doc, err := stores.Metadata.Get(t.Context(), "k", fmt.Sprint(device))
		if err != nil || doc.Version != each || string(doc.Body) != fmt.Sprintf(`{"n":%d}`, each) {
			t.Errorf("document %d has version %d and body %s, %v", device, doc.Version, doc.Body, err)
		}
	}
	page, err := stores.LongTerm.List(t.Context(), store.List{Limit: 1000})
	if err != nil || len(page.Entries) != devices*each {
		t.Errorf("%d entries, %v", len(page.Entries), err)
	}
}

// failing opens stores with a server whose answers are made by the test.
func failing(t *testing.T, answer func() *http.Response) *store.Stores {
	t.Helper()
	c := config("http://127.0.0.1:1")
	c.Token = "very-secret-token"
	trips := &servertest.Trips{Around: func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		return answer(), nil
	}}
	stores, err := open(c, trips.Wrap)
	if err != nil {
		t.Fatal(err)
	}
	return stores
}

func TestErrorsAreTyped(t *testing.T) {
	t.Parallel()
	failure := func(code string) string {
		return `{"baton":null,"base_url":null,"results":[{"type":"error","error":{"message":"refused very-secret-token","code":"` + code + `"}},{"type":"ok","response":{"type":"close"}}]}`
	}
	for name, test := range map[string]struct {
		status int
		body   string
		want   tea.ErrorType
	}{
		"a wrong token":        {401, `{"error":"Unauthorized: very-secret-token"}`, tea.PermissionDenied},
		"no right to write":    {403, `{"error":"Forbidden"}`, tea.PermissionDenied},
		"an unknown database":  {404, `{"error":"Namespace does not exist"}`, tea.NotFound},
		"a full server":        {200, failure("SQLITE_FULL"), tea.ResourceExhausted},
		"a large answer":       {200, failure("RESPONSE_TOO_LARGE"), tea.ResourceExhausted},
		"a read-only database": {200, failure("SQLITE_READONLY"), tea.PermissionDenied},
		"an empty answer":      {200, `{}`, tea.ConnectionError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stores := failing(t, func() *http.Response { return servertest.Answer(test.status, "application/json", test.body) })
			_, err := stores.LongTerm.Retrieve(t.Context(), "", "a")
			e := new(tea.Error)
			if !errors.As(err, &e) || e.Type != test.want {
				t.Errorf("%v, want a %s", err, test.want)
			}
			if e.Type == tea.PermissionDenied && !strings.Contains(e.Message, "settings.memory.token") {
				t.Errorf("%v names no remedy", err)
			}
			if err != nil && strings.Contains(err.Error(), "very-secret") {
				t.Errorf("the error has the token: %v", err)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"libsql://db-org.turso.io":                     "https://db-org.turso.io",
		"libsql://db-org.turso.io?authToken=abc":       "https://db-org.turso.io abc",
		"https://libsql.example/dev/db/":               "https://libsql.example/dev/db",
		"http://127.0.0.1:8080":                        "http://127.0.0.1:8080",
		"libsql://localhost:8080?tls=0":                "http://localhost:8080",
		"http://libsql.example":                        "needs TLS",
		"libsql://libsql.example?tls=0":                "needs TLS",
		"libsql://user:secret-password@libsql.example": "settings.memory.token",
		"libsql://libsql.example?token=secret":         "unknown parameter",
		"ws://libsql.example":                          "must begin with",
		"libsql://":                                    "HOST",
		"":                                             "not set",
	} {
		base, token, err := address(config(url))
		got := strings.TrimSpace(base + " " + token)
		if err != nil {
			if e := tea.AsError(err); e.Type != tea.ValidationError || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v", url, err)
			}
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%s is %s, want %s", url, got, want)
		}
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	t.Parallel()
	trips := &servertest.Trips{Around: func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		return nil, errors.New("connection refused")
	}}
	stores, err := open(config("http://127.0.0.1:1"), trips.Wrap)
	if err != nil {
		t.Fatal(err)
	}
	_, err = stores.LongTerm.Retrieve(t.Context(), "", "a")
	if e := new(tea.Error); !errors.As(err, &e) || e.Type != tea.ConnectionError {
		t.Errorf("%v, want a connection_error", err)
	}
	if n := trips.Count(); n < 2 {
		t.Errorf("%d tries", n)
	}
}
