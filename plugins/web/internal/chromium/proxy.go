package chromium

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
	"github.com/the-edge-agent/tea/sdk/x/safenet"
)

// proxy is the HTTP proxy through which a page reaches the network. The guard makes
// each connection, and the bytes of all connections count towards one limit.
type proxy struct {
	dial    dialFunc
	limit   int64
	used    atomic.Int64
	address string

	server    *http.Server
	transport *http.Transport
	ctx       context.Context // ends with the proxy
	cancel    context.CancelFunc

	mu       sync.Mutex
	failures map[string]*tea.Error // by host and port
	exceeded *tea.Error
}

// discard drops messages of net/http about broken connections.
var discard = log.New(io.Discard, "", 0)

// maxFailures bounds the number of failures that are kept.
const maxFailures = 100

// dialFunc connects to an address of the form host:port and refuses addresses
// that are not allowed, as [safenet.Guard.Dial] does.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

func startProxy(guard *safenet.Guard, dial dialFunc, limit int64) (*proxy, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, tea.Errorf(tea.ConnectionError, "open a port for the browser's proxy: %w", err)
	}
	p := &proxy{dial: dial, limit: limit, address: listener.Addr().String(), failures: map[string]*tea.Error{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.transport = guard.Transport()
	p.transport.DialContext = dial
	forward := &httputil.ReverseProxy{
		Rewrite:       func(*httputil.ProxyRequest) {}, // the request's URL is absolute
		Transport:     httpapi.Once{Transport: p.transport},
		FlushInterval: -1,
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			p.failed(r.URL.Host, "80", err)
			panic(http.ErrAbortHandler) // an error page of the proxy would look like the server's
		},
		ModifyResponse: func(resp *http.Response) error {
			resp.Body = &counted{ReadCloser: resp.Body, proxy: p}
			return nil
		},
		ErrorLog: discard,
	}
	p.server = &http.Server{
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          discard,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodConnect:
				p.connect(w, r)
			case r.URL.Scheme == "http" && r.URL.Host != "":
				forward.ServeHTTP(w, r)
			default:
				http.Error(w, "this is a proxy", http.StatusBadRequest)
			}
		}),
	}
	go p.server.Serve(listener) //nolint:errcheck // it returns when the proxy is closed
	return p, nil
}

// Close ends all connections.
func (p *proxy) Close() {
	p.cancel()
	_ = p.server.Close() // closing a listener loses nothing
	p.transport.CloseIdleConnections()
}

// connect makes a tunnel for HTTPS and WebSockets.
func (p *proxy) connect(w http.ResponseWriter, r *http.Request) {
	remote, err := p.dial(r.Context(), "tcp", r.Host)
	if err != nil {
		p.failed(r.Host, "443", err)
		http.Error(w, "refused", http.StatusForbidden)
		return
	}
	defer remote.Close()
	local, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer local.Close()
	stop := context.AfterFunc(p.ctx, func() { remote.Close(); local.Close() })
	defer stop()
	if _, err := io.WriteString(local, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.copy(remote, buffered)
		closeWrite(remote)
	}()
	p.copy(local, remote)
	closeWrite(local)
	<-done
}

// copy copies until one side ends or the limit is reached.
func (p *proxy) copy(to io.Writer, from io.Reader) {
	io.Copy(to, &counted{ReadCloser: io.NopCloser(from), proxy: p}) //nolint:errcheck // the browser reports what broke
}

func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // the other side may be gone
	}
}

// counted counts what is read against the limit.
type counted struct {
	io.ReadCloser
	proxy *proxy
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	if c.proxy.used.Add(int64(n)) > c.proxy.limit {
		return 0, c.proxy.exceed()
	}
	return n, err
}

// exceed ends all connections of the page.
func (p *proxy) exceed() error {
	e := tea.Errorf(tea.ResourceExhausted, "the page loads more than %d bytes with its scripts and images (settings.web.chromium.max_page_bytes)", p.limit)
	p.mu.Lock()
	p.exceeded = e
	p.mu.Unlock()
	p.cancel()
	return e
}

// failed records the error of a connection.
func (p *proxy) failed(host, port string, err error) {
	var failure *tea.Error
	if !errors.As(err, &failure) {
		failure = tea.Errorf(tea.ConnectionError, "connect to %s: %w", host, err)
		failure.Source = host
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.failures) < maxFailures {
		p.failures[withPort(host, port)] = failure
	}
}

// failure returns why the page cannot be complete: the exceeded limit, or the error of
// a connection to a host; nil if there is none.
func (p *proxy) failure(host, port string) *tea.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exceeded != nil {
		return p.exceeded
	}
	return p.failures[withPort(host, port)]
}

// refused returns the number of hosts whose addresses the guard refused.
func (p *proxy) refused() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, failure := range p.failures {
		if failure.Type == tea.PermissionDenied {
			n++
		}
	}
	return n
}

func withPort(host, port string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(host, port)
}
