package firestore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/servertest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// cutProxy forwards connections to a server until Cut closes those that are open. It
// then accepts new ones: the emulator has its data in memory, so killing it would
// lose them.
type cutProxy struct {
	address string

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

func startProxy(t *testing.T, server string) *cutProxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &cutProxy{address: l.Addr().String(), open: map[net.Conn]bool{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // closed
			}
			running.Go(func() { p.forward(client, server) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.Cut()
		running.Wait()
	})
	return p
}

func (p *cutProxy) forward(client net.Conn, server string) {
	defer client.Close()
	to, err := (&net.Dialer{}).Dial("tcp", server)
	if err != nil {
		return
	}
	defer to.Close()
	p.mu.Lock()
	p.open[client], p.open[to] = true, true
	closed := p.closed
	p.mu.Unlock()
	if closed {
		p.Cut()
	}
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.Copy(to, client); _ = to.Close() }() // a cut is what the test wants
	_, _ = io.Copy(client, to)
	_ = client.Close()
	<-done
	p.mu.Lock()
	delete(p.open, client)
	delete(p.open, to)
	p.mu.Unlock()
}

// Cut closes all connections.
func (p *cutProxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
}

// TestConnectionsCutUnderLoad cuts all connections while devices count up a document
// each and store entries. Every acknowledged write is there, and none was done
// twice.
func TestConnectionsCutUnderLoad(t *testing.T) {
	t.Parallel()
	d := newDatabases(t)
	proxy := startProxy(t, d.server.Address)
	c := config(d.url(t))
	const devices, each, every = 4, 30, 5
	var written atomic.Int64
	var group sync.WaitGroup
	for device := range devices {
		stores := openAt(t, proxy.address, c, func(h *http.Client) *http.Client { return h })
		group.Go(func() {
			id := fmt.Sprint(device)
			for n := 1; n <= each; n++ {
				change := store.Change{Kind: "k", ID: id, Body: fmt.Appendf(nil, `{"n":%d}`, n), If: int64(n - 1)}
				if n == 1 {
					change.If = store.New
				}
				if err := stores.Metadata.Apply(t.Context(), change); err != nil {
					t.Errorf("device %s, change %d: %v", id, n, err)
				}
				stored, err := stores.LongTerm.Store(t.Context(), store.Entry{Key: fmt.Sprintf("%s/%02d", id, n), Value: json.RawMessage(`"kept"`)})
				if err != nil || !stored[0].Created {
					t.Errorf("device %s, entry %d: %v, %v", id, n, stored, err)
				}
				if written.Add(1)%every == 0 {
					proxy.Cut()
				}
			}
		})
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

func TestErrorsAreTyped(t *testing.T) {
	t.Parallel()
	failure := func(status string) string {
		return `{"error":{"code":400,"message":"refused very-secret-token","status":"` + status + `"}}`
	}
	for name, test := range map[string]struct {
		status int
		body   string
		want   tea.ErrorType
		says   string
	}{
		"an expired token":        {401, failure("UNAUTHENTICATED"), tea.PermissionDenied, "settings.memory.token"},
		"no right":                {403, failure("PERMISSION_DENIED"), tea.PermissionDenied, "roles/datastore.user"},
		"an error in a list":      {403, "[" + failure("PERMISSION_DENIED") + "\n]", tea.PermissionDenied, "roles/datastore.user"},
		"a full quota":            {429, failure("RESOURCE_EXHAUSTED"), tea.ResourceExhausted, "refused"},
		"an unknown database":     {404, failure("NOT_FOUND"), tea.NotFound, "settings.memory.url"},
		"a server that is away":   {503, failure("UNAVAILABLE"), tea.ConnectionError, "refused"},
		"a slow server":           {504, failure("DEADLINE_EXCEEDED"), tea.Timeout, "refused"},
		"a page of a proxy":       {502, "<html><title>Bad gateway</title></html>", tea.ConnectionError, "Bad gateway"},
		"half an answer":          {200, `[{"document":`, tea.ConnectionError, "complete list"},
		"an answer that is empty": {200, ``, tea.ConnectionError, "complete list"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := config("firestore://project")
			c.Token = "very-secret-token"
			trips := &servertest.Trips{Around: func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error) {
				return servertest.Answer(test.status, "application/json", test.body), nil
			}}
			stores, err := open(c, trips.Wrap)
			if err != nil {
				t.Fatal(err)
			}
			_, err = stores.LongTerm.Retrieve(t.Context(), "", "a")
			if e := tea.AsError(err); e == nil || e.Type != test.want || !strings.Contains(e.Message, test.says) {
				t.Errorf("%v, want a %s that says %q", err, test.want, test.says)
			}
			if err != nil && strings.Contains(err.Error(), "very-secret") {
				t.Errorf("the error has the token: %v", err)
			}
		})
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	t.Parallel()
	trips := &servertest.Trips{Around: func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		return nil, errors.New("connection refused")
	}}
	c := config("firestore://project")
	c.Token = "token"
	stores, err := open(c, trips.Wrap)
	if err != nil {
		t.Fatal(err)
	}
	_, err = stores.LongTerm.Retrieve(t.Context(), "", "a")
	if e := tea.AsError(err); e == nil || e.Type != tea.ConnectionError || !e.Retryable {
		t.Errorf("%v, want a connection_error that can be retried", err)
	}
	if n := trips.Count(); n < 2 {
		t.Errorf("%d tries", n)
	}
}

func TestLimitsAreRefused(t *testing.T) {
	t.Parallel()
	d := newDatabases(t)
	stores := d.open(t, nil)
	text := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	many := make([]store.Entry, 12)
	for i := range many {
		many[i] = store.Entry{Key: fmt.Sprint(i), Value: json.RawMessage(text(900_000))}
	}
	for name, call := range map[string]func() error{
		"a document": func() error {
			return stores.Metadata.Apply(t.Context(), store.Change{Kind: "k", ID: "a", Body: json.RawMessage(`{"text": ` + text(600_000) + `}`)})
		},
		"an item": func() error {
			return stores.Vectors.Store(t.Context(), "c", store.VectorItem{ID: "a", Text: text(1_100_000), Embedding: []float32{1}})
		},
		"entries of a call": func() error { _, err := stores.LongTerm.Store(t.Context(), many...); return err },
	} {
		if e := tea.AsError(call()); e == nil || e.Type != tea.ResourceExhausted || !strings.Contains(e.Message, "Firestore") {
			t.Errorf("%s that is too large: %v, want a resource_exhausted", name, e)
		}
	}
	if n := must(t)(stores.Metadata.Count(t.Context(), store.DocumentQuery{Kind: "k"})); n != 0 {
		t.Errorf("%d documents were written", n)
	}
}

// must ends the test with an error.
func must(t *testing.T) func(n int, err error) int {
	return func(n int, err error) int {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

func TestNamesThatFirestoreReserves(t *testing.T) {
	t.Parallel()
	stores := newDatabases(t).open(t, nil)
	long := strings.Repeat("/lönger", 300)
	ids := []string{"..", ".", "__a__", "__a__\x01", "__init__/x", "a.b", "a/b", "a\x01b", "\x01", long + "a", long + "b", long}
	for _, id := range ids {
		body := fmt.Appendf(nil, `{"id_is": %q, "__x__": 1, "": 2, "list": [[1, [2]], {"__y__": 3}]}`, "x"+fmt.Sprint(len(id)))
		if err := stores.Metadata.Apply(t.Context(), store.Change{Kind: "k", ID: id, Body: body, If: store.New}); err != nil {
			t.Errorf("%.20q: %v", id, err)
		}
		doc, err := stores.Metadata.Get(t.Context(), "k", id)
		if err != nil || doc.ID != id || string(doc.Body) != string(body) {
			t.Errorf("%.20q is %.20q with %s, %v", id, doc.ID, doc.Body, err)
		}
	}
	var listed []string
	for after := ""; ; {
		page, err := stores.Metadata.Query(t.Context(), store.DocumentQuery{Kind: "k", OrderBy: "id", Limit: 2, Where: []store.Condition{{Field: "id", Op: store.Gt, Value: after}}})
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, d := range page {
			listed, after = append(listed, d.ID), d.ID
		}
	}
	for i := 1; i < len(listed); i++ {
		if listed[i-1] >= listed[i] {
			t.Errorf("%.20q comes before %.20q", listed[i-1], listed[i])
		}
	}
	if len(listed) != len(ids) {
		t.Errorf("%d of %d documents are listed", len(listed), len(ids))
	}
}
