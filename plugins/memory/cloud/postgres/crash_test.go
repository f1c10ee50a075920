package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// TestAcknowledgedWritesSurviveAKilledServer kills the server under load and
// starts it again. What was acknowledged must be there, and nothing twice.
func TestAcknowledgedWritesSurviveAKilledServer(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it starts a PostgreSQL server")
	own, err := startServer(t.Context())
	requireServer(t, err)
	defer func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	}()
	stores, err := Open(t.Context(), configFor(own.URL(), "tea", time.Now))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := (&backend[any]{nil, stores}).Close(); err != nil {
			t.Error(err)
		}
	}()
	const writers = 4
	stop := make(chan struct{})
	progress := make(chan struct{}, 1024)
	results := make([]written, writers)
	var group sync.WaitGroup
	finish := sync.OnceFunc(func() { close(stop); group.Wait() })
	defer finish()
	some := func() { // waits for 40 writes
		t.Helper()
		timeout := time.After(5 * time.Minute)
		for range 40 {
			select {
			case <-progress:
			case <-timeout:
				t.Fatal("nothing is written")
			}
		}
	}
	for w := range writers {
		group.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				results[w].write(t, stores, fmt.Sprintf("%d/%05d", w, i))
				select {
				case progress <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 3 {
		some()
		if err := own.Kill(); err != nil {
			t.Error(err)
		}
		if err := own.Restart(t.Context()); err != nil {
			t.Error(err)
		}
	}
	some()
	finish()
	for _, r := range results {
		r.check(t, stores)
	}
}

// written are the writes of a goroutine.
type written struct {
	stored, created []string
}

func (w *written) write(t *testing.T, s *store.Stores, key string) {
	value := json.RawMessage(fmt.Sprintf(`"value of %s"`, key))
	switch _, err := s.LongTerm.Store(t.Context(), store.Entry{Key: key, Value: value}); {
	case err == nil:
		w.stored = append(w.stored, key)
	case !unanswered(err):
		t.Errorf("store: %v", err)
	}
	err := s.Metadata.Apply(t.Context(), store.Change{Kind: "event", ID: key, Body: json.RawMessage(`{}`), If: store.New})
	switch {
	case err == nil:
		w.created = append(w.created, key)
	case !unanswered(err):
		t.Errorf("apply: %v", err) // a conflict would mean that it was done twice
	}
}

// unanswered reports whether an error says that the answer was lost, and that the
// caller can try again.
func unanswered(err error) bool {
	e := tea.AsError(err)
	return e.Type == tea.ConnectionError && e.Retryable
}

func (w *written) check(t *testing.T, s *store.Stores) {
	t.Helper()
	if len(w.stored) == 0 || len(w.created) == 0 {
		t.Error("a writer has written nothing")
	}
	for _, key := range w.stored {
		found, err := s.LongTerm.Retrieve(t.Context(), "", key)
		if want := fmt.Sprintf(`"value of %s"`, key); err != nil || string(found.Value) != want {
			t.Errorf("the acknowledged entry %s is %s, %v", key, found.Value, err)
		}
	}
	for _, key := range w.created {
		found, err := s.Metadata.Get(t.Context(), "event", key)
		if err != nil || found.Version != 1 {
			t.Errorf("the acknowledged document %s has version %d, %v", key, found.Version, err)
		}
	}
}

// TestManyProcessesCreateTheTables opens new schemas from many pools.
func TestManyProcessesCreateTheTables(t *testing.T) {
	t.Parallel()
	config := configOf(t, time.Now)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			stores, err := Open(t.Context(), config)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := stores.LongTerm.Store(t.Context(), store.Entry{Key: fmt.Sprint(i), Value: json.RawMessage("1")}); err != nil {
				t.Error(err)
			}
			if err := (&backend[any]{nil, stores}).Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestErrorsOfTheServerHaveTypes(t *testing.T) {
	t.Parallel()
	url := server.URL(t)
	at := func(change func(c *store.Config)) store.Config {
		c := configFor(url, server.Schema(t), time.Now)
		c.Timeout = 3 * time.Second
		change(&c)
		return c
	}
	for name, test := range map[string]struct {
		config store.Config
		want   tea.ErrorType
	}{
		"no server":            {at(func(c *store.Config) { c.URL = "postgres:///postgres?host=/tmp/tea-there-is-none" }), tea.ConnectionError},
		"no database":          {at(func(c *store.Config) { c.URL = url + "&dbname=none" }), tea.NotFound},
		"no user":              {at(func(c *store.Config) { c.URL = url + "&user=nobody" }), tea.PermissionDenied},
		"read-only, no tables": {at(func(c *store.Config) { c.ReadOnly, c.Options = "it is", []byte(`{"schema": "none"}`) }), tea.NotFound},
		"without TLS":          {at(func(c *store.Config) { c.URL = "postgres://user:hunter2@db.example/tea?sslmode=disable" }), tea.ValidationError},
		"another scheme":       {at(func(c *store.Config) { c.URL = "mysql://user:hunter2@db.example/tea" }), tea.ValidationError},
		"not a URL":            {at(func(c *store.Config) { c.URL = "postgres://user:hunter2@db.example:port/tea" }), tea.ValidationError},
		"a wrong schema":       {at(func(c *store.Config) { c.Options = []byte(`{"schema": "a\"b"}`) }), tea.ValidationError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stores, err := Open(t.Context(), test.config)
			if err == nil {
				_, err = stores.LongTerm.Retrieve(t.Context(), "", "a")
				if failed := stores.Close(); failed != nil {
					t.Error(failed)
				}
			}
			if e := tea.AsError(err); e == nil || e.Type != test.want || strings.Contains(e.Message, "hunter2") {
				t.Errorf("%v, want a %s without the password", err, test.want)
			}
		})
	}
}

// TestAStatementTimeoutIsATimeout blocks a write by a lock of another session.
func TestAStatementTimeoutIsATimeout(t *testing.T) {
	t.Parallel()
	config := configOf(t, time.Now)
	config.Timeout = time.Second
	d, err := open(t.Context(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	m := d.stores(config).LongTerm
	entry := store.Entry{Key: "a", Value: json.RawMessage("1")}
	if _, err := m.Store(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	err = d.do(t.Context(), writing, func(ctx context.Context, c conn) error {
		if _, err := c.Exec(ctx, "BEGIN"); err != nil {
			return err
		}
		if _, err := c.Exec(ctx, "LOCK TABLE ltm"); err != nil {
			return err
		}
		_, blocked := m.Store(ctx, entry)
		_, err := c.Exec(ctx, "ROLLBACK")
		return errors.Join(blocked, err)
	})
	if e := tea.AsError(err); e == nil || e.Type != tea.Timeout || !e.Retryable {
		t.Errorf("%v, want a retryable timeout", err)
	}
	if _, err := m.Store(t.Context(), entry); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestAUserWithoutPermissionToCreateSchemas uses a schema that an administrator
// has created.
func TestAUserWithoutPermissionToCreateSchemas(t *testing.T) {
	t.Parallel()
	config := configOf(t, time.Now)
	schema := server.Schema(t)
	admin, err := open(t.Context(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = admin.do(t.Context(), writing, func(ctx context.Context, c conn) error {
		_, err := c.Exec(ctx, "DROP SCHEMA "+schema+" CASCADE")
		if err == nil {
			_, err = c.Exec(ctx, "CREATE ROLE user_"+schema+" LOGIN")
		}
		if err == nil {
			_, err = c.Exec(ctx, "CREATE SCHEMA "+schema+" AUTHORIZATION user_"+schema)
		}
		return err
	})
	if err = errors.Join(err, admin.Close()); err != nil {
		t.Fatal(err)
	}
	config.URL += "&user=user_" + schema
	stores, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stores.LongTerm.Store(t.Context(), store.Entry{Key: "a", Value: json.RawMessage("1")}); err != nil {
		t.Error(err)
	}
	if err := (&backend[any]{nil, stores}).Close(); err != nil {
		t.Error(err)
	}
}
