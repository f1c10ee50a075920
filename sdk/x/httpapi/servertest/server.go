package servertest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Reply is the server's response to one request.
type Reply struct {
	Status int // 0 is 200
	Header map[string]string
	// Chunks are flushed one by one.
	Chunks []string
	// Then is the ending after the chunks.
	Then Ending
}

// Ending is how a response ends.
type Ending int

// The endings of a response.
const (
	// Close ends the response as HTTP requires.
	Close Ending = iota
	// Break breaks the connection.
	Break
	// Hang sends nothing more until the client disconnects.
	Hang
)

// Seen is a request as received.
type Seen struct {
	Path, Query string
	Header      http.Header
	Body        map[string]any
}

// Server is a running server.
type Server struct {
	URL string
	// Gone receives a value each time that a client disconnects from a hanging
	// response.
	Gone chan struct{}

	mu      sync.Mutex
	seen    []Seen
	replies []Reply
}

// HTTP returns a client for a test's servers, which is closed at the end of the test.
func HTTP(t testing.TB) *http.Client {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Start runs a server until the test ends. Each request gets the next reply; the last one is
// repeated.
func Start(t testing.TB, replies ...Reply) *Server {
	t.Helper()
	s := &Server{Gone: make(chan struct{}, 16), replies: replies}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Seen returns the requests received so far.
func (s *Server) Seen() []Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Seen(nil), s.seen...)
}

// ServeHTTP sends the next reply.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body) // a broken request has an empty body
	var body map[string]any
	_ = json.Unmarshal(raw, &body)
	s.mu.Lock()
	s.seen = append(s.seen, Seen{Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: r.Header.Clone(), Body: body})
	reply := s.replies[min(len(s.seen), len(s.replies))-1]
	s.mu.Unlock()
	s.play(w, r, reply)
}

func (s *Server) play(w http.ResponseWriter, r *http.Request, reply Reply) {
	for name, text := range reply.Header {
		w.Header().Set(name, text)
	}
	if reply.Status != 0 {
		w.WriteHeader(reply.Status)
	}
	flush := http.NewResponseController(w)
	for _, chunk := range reply.Chunks {
		_, _ = io.WriteString(w, chunk) // the test notices a client that disconnects
		_ = flush.Flush()
	}
	switch reply.Then {
	case Break:
		panic(http.ErrAbortHandler)
	case Hang:
		_ = flush.Flush()
		<-r.Context().Done()
		s.Gone <- struct{}{}
	}
}
