package mcpserver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/cmd/internal/webguard"
)

// The limits of the server for HTTP.
const (
	// maxSessions is how many client sessions are open at a time.
	maxSessions = 64
	// sessionIdle is how long a session lasts without a request.
	sessionIdle = 30 * time.Minute
	// maxReplay is the size of the messages that are kept for clients whose
	// connection breaks during a call.
	maxReplay = 32 << 20
	// maxRequests is how many requests are served concurrently, open streams
	// included.
	maxRequests = 512
	// maxHeader is the size of the header of a request.
	maxHeader = 64 << 10
	// readHeaderTimeout is how long a client has to send it.
	readHeaderTimeout = 10 * time.Second
	// path is the path of the endpoint.
	path = "/mcp"
)

// guard answers requests that fail a check.
var guard = webguard.Guard(http.Error)

// serveHTTP serves streamable HTTP until the service stops.
func (s *server) serveHTTP(addr, token string) error {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return teacmd.UsageErrorf("--http %s: expected HOST:PORT: %w", addr, err)
	}
	if !webguard.Loopback(addr) && token == "" {
		return teacmd.UsageErrorf("--http %s: other machines can reach this address; pass --token-file FILE with the token that clients need, or use localhost", addr)
	}
	listener, err := new(net.ListenConfig).Listen(s.ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("--http %s: %w", addr, err)
	}
	web := &http.Server{
		Handler: s.handler(token, webguard.Loopback(addr)), ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.svc.Log.Handler(), slog.LevelInfo),
	}
	s.svc.Announce(fmt.Sprintf("serving MCP at http://%s%s", listener.Addr(), path))
	stop := context.AfterFunc(s.ctx, func() { _ = listener.Close() }) // ends Serve
	defer stop()
	err = web.Serve(listener)
	stopped := s.svc.Context.Err() != nil
	s.close() // runs write their checkpoints before their connections end
	err = errors.Join(ifFailed(err, stopped), web.Close())
	return err
}

// ifFailed returns the error of a server unless the server was stopped.
func ifFailed(err error, stopped bool) error {
	if stopped || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// handler returns the endpoint with its checks, cheapest first.
func (s *server) handler(token string, local bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(path, guard.Read(s.endpoint(), maxMessage))
	var h http.Handler = mux
	h = guard.Bounded(h, maxRequests)
	if token != "" {
		h = authorized(h, token)
	}
	h = http.NewCrossOriginProtection().Handler(guard.SameOrigin(h))
	if local {
		h = guard.LocalHost(h)
	}
	return h
}

// endpoint serves old versions of the protocol with sessions, and new ones with
// independent requests.
func (s *server) endpoint() http.Handler {
	newSession := func(*http.Request) *mcp.Server { return s.mcp }
	sent := mcp.NewMemoryEventStore(nil)
	sent.SetMaxBytes(maxReplay)
	sessions := mcp.NewStreamableHTTPHandler(newSession, &mcp.StreamableHTTPOptions{
		Logger: s.svc.Log, SessionTimeout: sessionIdle, MaxRequestBodyBytes: maxMessage, EventStore: sent,
	})
	single := mcp.NewStreamableHTTPHandler(newSession, &mcp.StreamableHTTPOptions{
		Logger: s.svc.Log, Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxMessage,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= roundTrips {
			single.ServeHTTP(w, r)
			return
		}
		if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" && s.full() {
			http.Error(w, fmt.Sprintf("too many sessions are open (limit %d); end one, or wait until one has been idle for %s", maxSessions, sessionIdle), http.StatusServiceUnavailable)
			return
		}
		sessions.ServeHTTP(w, r)
	})
}

// full reports whether the limit of sessions is reached.
func (s *server) full() bool {
	n := 0
	for range s.mcp.Sessions() {
		n++
	}
	return n >= maxSessions
}

// authorized requires a bearer token.
func authorized(next http.Handler, token string) http.Handler {
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(given)))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the request needs the bearer token of the server", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
