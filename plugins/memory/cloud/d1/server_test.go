package d1

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/servertest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func TestErrorsAreTyped(t *testing.T) {
	t.Parallel()
	failure := func(code, message string) string {
		return `{"success":false,"errors":[{"code":` + code + `,"message":"` + message + `"}],"messages":[],"result":null}`
	}
	for name, test := range map[string]struct {
		status int
		body   string
		want   tea.ErrorType
	}{
		"a wrong token":       {401, failure("10000", "Authentication error: very-secret-token"), tea.PermissionDenied},
		"no right to write":   {403, failure("10000", "Forbidden"), tea.PermissionDenied},
		"an unknown database": {404, failure("7404", "The database could not be found"), tea.NotFound},
		"a full database":     {400, failure("7500", "D1_ERROR: database or disk is full: SQLITE_FULL"), tea.ResourceExhausted},
		"too many requests":   {429, failure("971", "slow down"), tea.RateLimited},
		"no envelope":         {200, `{}`, tea.QueryError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := config("d1://account/database")
			c.Token = "very-secret-token"
			trips := &servertest.Trips{Around: func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error) {
				return servertest.Answer(test.status, "application/json", test.body), nil
			}}
			stores, err := open(c, trips.Wrap)
			if err != nil {
				t.Fatal(err)
			}
			_, err = stores.LongTerm.Retrieve(t.Context(), "", "a")
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
		"d1://acc0/db-1": api + "acc0/d1/database/db-1",
		"https://proxy.example/a/d1/database/db1/": "https://proxy.example/a/d1/database/db1",
		"http://127.0.0.1:8787/a/d1/database/db1":  "http://127.0.0.1:8787/a/d1/database/db1",
		"http://proxy.example/a/d1/database/db1":   "needs TLS",
		"https://proxy.example/a/d1/database/../x": "ends with",
		"d1://account":                      "d1://ACCOUNT/DATABASE",
		"d1://account/data/base":            "d1://ACCOUNT/DATABASE",
		"d1://user:secret@account/database": "settings.memory.token",
		"libsql://account/database":         "must begin with",
	} {
		got, err := address(config(url))
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

// TestServerWithoutFullText has a server without the module fts5: what needs it is refused, everything else
// works.
func TestServerWithoutFullText(t *testing.T) {
	t.Parallel()
	d := newDatabases(t, 1)
	trips := &servertest.Trips{Around: func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		var s statement
		if err := json.NewDecoder(body).Decode(&s); err != nil {
			return nil, err
		}
		if strings.Contains(s.SQL, "fts5") {
			return servertest.Answer(400, "application/json", `{"success":false,"errors":[{"code":7500,"message":"no such module: fts5: SQLITE_ERROR"}]}`), nil
		}
		return send(r)
	}}
	stores := d.openWith(t, time.Now, trips)
	if _, err := stores.LongTerm.Store(t.Context(), store.Entry{Key: "a", Value: json.RawMessage(`"harbor"`)}); err != nil {
		t.Fatal(err)
	}
	_, err := stores.LongTerm.Search(t.Context(), store.Search{Text: "harbor", Limit: 1})
	if e := new(tea.Error); !errors.Is(err, store.ErrUnsupported) || !errors.As(err, &e) || e.Type != tea.DependencyMissing {
		t.Errorf("a search returns %v", err)
	}
	found, err := stores.LongTerm.Search(t.Context(), store.Search{Prefix: "a", Limit: 1})
	if err != nil || len(found.Found) != 1 {
		t.Errorf("a search without a text returns %v, %v", found, err)
	}
	if gone, err := stores.LongTerm.Delete(t.Context(), "", "a"); err != nil || !gone {
		t.Errorf("Delete returns %v, %v", gone, err)
	}
}

// TestDevicesShareAMemory stores with the actions of one device and reads with
// those of another one.
func TestDevicesShareAMemory(t *testing.T) {
	t.Parallel()
	d := newDatabases(t, 1)
	device := func() func(action string, params map[string]any) map[string]any {
		raw, err := json.Marshal(map[string]any{"url": d.url(t), "path": t.TempDir(), "engine": "d1"})
		if err != nil {
			t.Fatal(err)
		}
		instance, err := teatest.Linked(memory.Bundle(Option())).Open(t.Context(), tea.Settings{"memory": raw})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = instance.Close() })
		return func(action string, params map[string]any) map[string]any {
			resp, err := instance.Invoke(t.Context(), &tea.Request{Action: action, Params: tea.ValuePayload(params), Call: tea.Call{Attempt: 1}, Host: &teatest.Host{}})
			if err != nil {
				t.Fatalf("%s: %v", action, err)
			}
			v, err := resp.Result.Value()
			if err != nil {
				t.Fatal(err)
			}
			return v.(map[string]any)
		}
	}
	one, other := device(), device()
	one("ltm.store", map[string]any{"key": "harbor/1", "value": "the lights of the harbor", "metadata": map[string]any{"n": 1}})
	if got := other("ltm.retrieve", map[string]any{"key": "harbor/1"})["value"]; got != "the lights of the harbor" {
		t.Errorf("ltm.retrieve returns %v", got)
	}
	if got := other("ltm.search", map[string]any{"query": "light", "metadata_filter": map[string]any{"n": 1}})["count"]; got != int64(1) {
		t.Errorf("ltm.search finds %v", got)
	}
	session := one("session.create", map[string]any{"user_id": "ann"})["session_id"]
	one("memory.file_store", map[string]any{"path": "notes.md", "session_id": session, "content": "# Lights"})
	if got := other("memory.file_retrieve", map[string]any{"path": "notes.md", "session_id": session})["content"]; got != "# Lights" {
		t.Errorf("memory.file_retrieve returns %v", got)
	}
	one("vector.store", map[string]any{"ids": []any{"v"}, "texts": []any{"near"}, "embeddings": []any{[]any{1.0, 0.0}}})
	if got := other("vector.query", map[string]any{"embedding": []any{1.0, 0.1}})["count"]; got != int64(1) {
		t.Errorf("vector.query finds %v", got)
	}
}
