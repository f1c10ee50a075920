package postgres

import (
	"encoding/json"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// proxy is between a client and the server, as a network with faults.
type proxy struct {
	listener net.Listener
	socket   string
	silent   atomic.Bool // what arrives is lost
	// answers forwards what the server sends.
	answers func(to, from net.Conn)
	mu      sync.Mutex
	open    []net.Conn
	closed  bool
	group   sync.WaitGroup
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	p := listen(t)
	p.answers = p.forward
	p.group.Go(p.accept)
	return p
}

// listen returns a proxy that does not accept connections.
func listen(t *testing.T) *proxy {
	t.Helper()
	at, err := url.Parse(server.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, socket: filepath.Join(at.Query().Get("host"), ".s.PGSQL.5432")}
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.cut()
		p.group.Wait()
	})
	return p
}

func (p *proxy) url() string {
	return "postgres://postgres@" + p.listener.Addr().String() + "/postgres?sslmode=disable"
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		upstream, err := net.Dial("unix", p.socket)
		if err != nil {
			_ = client.Close() // the client sees a lost connection
			continue
		}
		p.mu.Lock()
		p.open = append(p.open, client, upstream)
		closed := p.closed
		p.mu.Unlock()
		if closed {
			p.cut()
		}
		p.group.Go(func() { p.forward(upstream, client) })
		p.group.Go(func() { p.answers(client, upstream) })
	}
}

func (p *proxy) forward(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !p.silent.Load() {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		_ = c.Close() // it can be closed already
	}
	p.open = nil
}

func openThrough(t *testing.T, p *proxy, timeout time.Duration) *store.Stores {
	t.Helper()
	config := configFor(p.url(), server.Schema(t), time.Now)
	config.Timeout = timeout
	stores, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := (&backend[any]{nil, stores}).Close(); err != nil {
			t.Error(err)
		}
	})
	return stores
}

// TestAServerThatDoesNotAnswerIsATimeout lets the packets of a connection be
// lost, in both directions.
func TestAServerThatDoesNotAnswerIsATimeout(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	s := openThrough(t, p, 10*time.Second)
	if _, err := s.LongTerm.Store(t.Context(), store.Entry{Key: "a", Value: json.RawMessage("1")}); err != nil {
		t.Fatal(err)
	}
	p.silent.Store(true)
	_, err := s.LongTerm.Store(t.Context(), store.Entry{Key: "a", Value: json.RawMessage("2")})
	if e := tea.AsError(err); e == nil || e.Type != tea.Timeout && e.Type != tea.ConnectionError || !e.Retryable {
		t.Errorf("%v, want a retryable timeout or connection_error", err)
	}
	p.silent.Store(false)
	if _, err := s.LongTerm.Store(t.Context(), store.Entry{Key: "a", Value: json.RawMessage("3")}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// The error of a server that no longer answers has the settings' time-out and what
// happened first.
func TestATimeoutKeepsTheFirstCause(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	s := openThrough(t, p, 2*time.Second)
	if _, err := s.LongTerm.Store(t.Context(), store.Entry{Key: "a", Value: json.RawMessage("1")}); err != nil {
		t.Fatal(err)
	}
	p.silent.Store(true)
	p.cut()
	_, err := s.LongTerm.Retrieve(t.Context(), "", "a")
	e := tea.AsError(err)
	if e == nil || e.Type != tea.Timeout || !e.Retryable || !strings.Contains(e.Message, "settings.memory.timeout (2s); before: ") || strings.Contains(e.Message, "before: context") {
		t.Errorf("%v, want a timeout that names the setting and the first cause", err)
	}
}

// TestCallsSurviveACutConnection cuts the connections between calls and during
// them.
func TestCallsSurviveACutConnection(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	s := openThrough(t, p, time.Minute)
	if _, err := s.LongTerm.Store(t.Context(), store.Entry{Key: "a", Value: json.RawMessage("1")}); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		var cutting sync.WaitGroup
		cutting.Go(p.cut)
		found, err := s.LongTerm.Retrieve(t.Context(), "", "a")
		if cutting.Wait(); err != nil || string(found.Value) != "1" {
			t.Fatalf("%s, %v", found.Value, err)
		}
	}
	for range 20 {
		p.cut()
		if _, err := s.LongTerm.Store(t.Context(), store.Entry{Key: "a", Value: json.RawMessage("2")}); err != nil {
			t.Error(err)
		}
	}
}
