package protocoltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Key is the key that the servers accept.
const Key = "protocoltest-secret-key"

// Step is the answer to one request.
type Step struct {
	// Reasoning is signed or encrypted by the server, which requires it back unchanged.
	Reasoning string
	Text      string
	Calls     []Call
	// Status and Header make the answer an error; Code and Message describe it in the
	// protocol's form.
	Status        int
	Header        map[string]string
	Code, Message string
	// Cut ends a stream in the middle of the answer, FailLate with an error of Code.
	Cut, FailLate bool
}

// Call is a tool call of the model.
type Call struct{ ID, Name, Arguments string }

// Request is a request as the server understood it.
type Request struct {
	Header http.Header
	Path   string
	Body   map[string]any
	// Talk is the conversation: "system: text", "user: text", "think: text", "model: text",
	// "call: name arguments", "result: text", "image: type", "file: type name".
	Talk []string
}

// protocol is one vendor's form of requests and answers.
type protocol interface {
	// read checks a request and returns the conversation in it.
	read(s *Server, r *http.Request, body map[string]any) ([]string, error)
	// key returns the key in a request.
	key(r *http.Request) string
	// write sends an answer, in events if stream.
	write(w *writer, step Step, stream bool)
	// failure returns an error in the protocol's form.
	failure(status int, code, message string) any
	// streams reports whether a request asks for a stream.
	streams(r *http.Request, body map[string]any) bool
}

// Server is a running server.
type Server struct {
	URL string

	protocol protocol
	answer   func(seen []Request) Step
	mu       sync.Mutex
	seen     []Request
	issued   map[string]string // reasoning by its signature
	owed     map[string]string // signature by the id or name of the call that needs it
}

// Start runs a server that answers with the steps, until the test ends; the last one is
// repeated.
func Start(t testing.TB, name string, steps ...Step) *Server {
	t.Helper()
	return StartFunc(t, name, func(seen []Request) Step { return steps[min(len(seen), len(steps))-1] })
}

// StartFunc is [Start] with a function that chooses the answer to the last request seen.
func StartFunc(t testing.TB, name string, answer func(seen []Request) Step) *Server {
	t.Helper()
	p, ok := map[string]protocol{"anthropic": messages{}, "openai-responses": responses{}, "gemini": generate{}, "openai": completions{}}[name]
	if !ok {
		t.Fatalf("no protocol %q", name)
	}
	s := &Server{protocol: p, answer: answer, issued: map[string]string{}, owed: map[string]string{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Seen returns the requests so far.
func (s *Server) Seen() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.seen...)
}

// ServeHTTP answers with the next step.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body) // a broken request is no JSON
	var body map[string]any
	_ = json.Unmarshal(raw, &body)
	s.mu.Lock()
	defer s.mu.Unlock()
	talk, err := s.protocol.read(s, r, body)
	s.seen = append(s.seen, Request{Header: r.Header.Clone(), Path: r.URL.Path, Body: body, Talk: talk})
	step := s.answer(s.seen)
	out := &writer{ResponseWriter: w, server: s, turn: len(s.seen), cut: step.Cut}
	switch {
	case s.protocol.key(r) != Key:
		out.fail(http.StatusUnauthorized, "", "wrong key "+s.protocol.key(r))
	case err != nil:
		out.fail(http.StatusBadRequest, "", err.Error())
	case step.Status != 0:
		for name, text := range step.Header {
			w.Header().Set(name, text)
		}
		out.fail(step.Status, step.Code, step.Message)
	default:
		s.protocol.write(out, step, s.protocol.streams(r, body))
	}
}

// sign returns the signature of a reasoning text, which is required back with a call.
func (s *Server) sign(turn int, step Step) string {
	signature := fmt.Sprintf("c2lnbmF0dXJl%d", turn)
	s.issued[signature] = step.Reasoning
	for _, c := range step.Calls {
		s.owed[c.ID] = signature
	}
	return signature
}

// check reports whether a signed text is as the server sent it.
func (s *Server) check(signature, text string) error {
	want, ok := s.issued[signature]
	if !ok {
		return fmt.Errorf("invalid signature %q", signature)
	}
	if want != text {
		return errors.New("reasoning cannot be modified")
	}
	return nil
}

// writer writes an answer.
type writer struct {
	http.ResponseWriter
	server *Server
	turn   int
	cut    bool
	events int
}

func (w *writer) fail(status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.json(w.server.protocol.failure(status, code, message))
}

func (w *writer) json(v any) {
	raw, _ := json.Marshal(v)
	_, _ = w.Write(raw) // the test notices a client that disconnects
}

// event sends an event; the name is that of its type. A stream that is cut breaks off
// after its fourth event.
func (w *writer) event(name string, v any) {
	if w.cut && w.events == 4 {
		panic(http.ErrAbortHandler)
	}
	w.events++
	w.Header().Set("Content-Type", "text/event-stream")
	if name != "" {
		_, _ = io.WriteString(w, "event: "+name+"\n")
	}
	_, _ = io.WriteString(w, "data: ")
	w.json(v)
	_, _ = io.WriteString(w, "\n\n")
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// object is a JSON object.
type object = map[string]any

// list returns a list of objects in a JSON value.
func list(v any) []object {
	items, _ := v.([]any)
	out := make([]object, 0, len(items))
	for _, item := range items {
		o, _ := item.(object)
		out = append(out, o)
	}
	return out
}

func text(v any) string { s, _ := v.(string); return s }

// halves splits a text into two pieces.
func halves(s string) []string { return []string{s[:len(s)/2], s[len(s)/2:]} }

// compact returns the JSON of a value.
func compact(v any) string { raw, _ := json.Marshal(v); return string(raw) }
