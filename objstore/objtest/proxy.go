package objtest

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy disturbs connections between a client and a server. It stops at the end of the
// test.
type Proxy struct {
	listener net.Listener
	target   string
	group    sync.WaitGroup

	mu     sync.Mutex
	conns  []net.Conn
	closed bool

	// cutAfter is the number of response bytes after which a connection is closed, and
	// hold the number after which it stalls; 0 = never.
	cutAfter, hold atomic.Int64
	cuts           atomic.Int64
	cutsLeft       atomic.Int64
}

// NewProxy starts a proxy for a server and returns the server with the proxy's address.
func NewProxy(t testing.TB, s *Server) (*Proxy, *Server) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, target: s.listen}
	p.group.Go(func() { p.serve() })
	t.Cleanup(func() {
		_ = l.Close()
		p.closeAll()
		p.group.Wait()
	})
	behind := *s
	behind.Settings.Endpoint = strings.Replace(s.Settings.Endpoint, s.listen, l.Addr().String(), 1)
	return p, &behind
}

// Cut closes the next connections, times of them, after some bytes of a response.
func (p *Proxy) Cut(after int64, times int) {
	p.cutsLeft.Store(int64(times))
	p.cutAfter.Store(after)
}

// Cuts returns the number of connections that were cut.
func (p *Proxy) Cuts() int { return int(p.cuts.Load()) }

// Hold stalls all responses after some bytes, without closing the connections. 0 stops
// stalling new connections.
func (p *Proxy) Hold(after int64) { p.hold.Store(after) }

func (p *Proxy) keep(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.Close()
	}
	p.conns = append(p.conns, c)
}

func (p *Proxy) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.conns {
		_ = c.Close()
	}
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.keep(client)
		p.keep(server)
		p.group.Go(func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
		})
		p.group.Go(func() { p.answer(client, server) })
	}
}

// answer copies the server's responses, with disturbances.
func (p *Proxy) answer(client, server net.Conn) {
	held := false
	defer func() {
		if !held {
			_ = client.Close()
			_ = server.Close()
		}
	}()
	buf := make([]byte, 4096)
	for sent := int64(0); ; {
		n, err := server.Read(buf)
		part := buf[:n]
		cut := p.cutAfter.Load()
		if cut > 0 && sent+int64(n) >= cut && p.cutsLeft.Add(-1) >= 0 {
			_, _ = client.Write(part[:max(cut-sent, 0)])
			p.cuts.Add(1)
			return
		}
		if hold := p.hold.Load(); hold > 0 && sent+int64(n) >= hold {
			_, _ = client.Write(part[:max(hold-sent, 0)])
			held = true
			return
		}
		sent += int64(n)
		if _, werr := client.Write(part); werr != nil || err != nil {
			return
		}
	}
}
