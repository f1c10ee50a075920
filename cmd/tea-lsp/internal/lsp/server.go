package lsp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/host"
)

// Limits on the open documents.
const (
	maxDocuments = 1000
	maxText      = 256 << 20
)

// server is one session with an editor.
type server struct {
	*conn
	host   *host.Host
	strict bool

	initialized, shutdown bool

	mu sync.Mutex
	// open are the documents by URI.
	open map[string]*document
	// workflows are the URIs of the documents that are checked; one stays a workflow
	// while it is open, whatever is typed.
	workflows map[string]bool
	// published are the findings of each open workflow, by the URI they are about.
	published map[string]map[string][]diagnostic
	// ofHost are the actions of every workflow, ofWorkflow those of the open ones with
	// their modules, as far as they were valid.
	ofHost     []host.ActionEntry
	ofWorkflow map[string][]host.ActionEntry
	// outlines are those of the open documents, by URI; schema is the one of the file.
	outlines map[string]*outline
	schema   shape
	// dirty wakes the checker after a change; it has room for one signal.
	dirty chan struct{}
}

// serve talks to a client until it sends exit or closes its end.
func serve(h *host.Host, in io.Reader, out io.Writer, strict bool) error {
	s := &server{
		conn: &conn{in: bufio.NewReader(in), out: out}, host: h, strict: strict,
		open: map[string]*document{}, workflows: map[string]bool{}, published: map[string]map[string][]diagnostic{}, dirty: make(chan struct{}, 1),
		ofWorkflow: map[string][]host.ActionEntry{}, outlines: map[string]*outline{},
	}
	schema, err := h.Schema()
	if err != nil {
		return err
	}
	s.schema = newShape(schema)
	if s.ofHost, err = h.Actions(); err != nil {
		return err
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		s.checkChanges(stop)
	}()
	err = s.loop()
	close(stop)
	<-done
	return err
}

func (s *server) loop() error {
	for {
		m, err := s.read()
		failure, ok := errors.AsType[*rpcError](err)
		switch {
		case ok:
			if err := s.reply(nil, nil, failure); err != nil {
				return err
			}
			continue
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return fmt.Errorf("read a message: %w", err)
		}
		if m.Method == "exit" {
			if !s.shutdown {
				return errors.New("the client sent exit without shutdown")
			}
			return nil
		}
		if m.Method == "" { // the response to a request that was not made
			continue
		}
		result, err := s.handle(m)
		if m.ID == nil {
			continue // the errors of notifications have no receiver
		}
		if err := s.reply(m.ID, result, err); err != nil {
			return fmt.Errorf("answer a request: %w", err)
		}
	}
}

// handler answers a request.
type handler func(s *server, params json.RawMessage) (any, error)

// on returns the handler that decodes the parameters for f.
func on[P any](f func(*server, *P) (any, error)) handler {
	return func(s *server, params json.RawMessage) (any, error) {
		p := new(P)
		if params != nil {
			if err := json.Unmarshal(params, p); err != nil {
				return nil, rpcErrorf(codeInvalidParams, "invalid parameters: %v", err)
			}
		}
		return f(s, p)
	}
}

// handlers returns the methods of the server.
func handlers() map[string]handler {
	return map[string]handler{
		"initialize":                       on((*server).initialize),
		"initialized":                      ignore,
		"shutdown":                         on((*server).end),
		"$/cancelRequest":                  ignore,
		"$/setTrace":                       ignore,
		"textDocument/didOpen":             on((*server).didOpen),
		"textDocument/didChange":           on((*server).didChange),
		"textDocument/didClose":            on((*server).didClose),
		"textDocument/completion":          on((*server).complete),
		"textDocument/hover":               on((*server).hover),
		"textDocument/definition":          on((*server).definition),
		"textDocument/references":          on((*server).references),
		"textDocument/prepareRename":       on((*server).prepareRename),
		"textDocument/rename":              on((*server).rename),
		"textDocument/documentSymbol":      on((*server).symbols),
		"textDocument/codeAction":          on((*server).fixes),
		"textDocument/didSave":             on((*server).filesChanged),
		"workspace/didChangeWatchedFiles":  on((*server).filesChanged),
		"workspace/didChangeConfiguration": ignore,
	}
}

func ignore(*server, json.RawMessage) (any, error) { return nil, nil }

func (s *server) handle(m *message) (result any, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n%s", m.Method, fault, debug.Stack())
			result, err = nil, rpcErrorf(codeInternal, "%s: %v", m.Method, fault)
		}
	}()
	h := handlers()[m.Method]
	switch {
	case s.shutdown:
		return nil, rpcErrorf(codeInvalidRequest, "%s after shutdown", m.Method)
	case !s.initialized && m.Method != "initialize":
		return nil, rpcErrorf(codeNotInitialized, "%s before initialize", m.Method)
	case h == nil:
		return nil, rpcErrorf(codeUnknownMethod, "unknown method %q", m.Method)
	}
	return h(s, m.Params)
}

func (s *server) initialize(*struct{}) (any, error) {
	s.initialized = true
	return map[string]any{
		"serverInfo": map[string]any{"name": "tea"},
		"capabilities": map[string]any{
			"positionEncoding":   "utf-16",
			"textDocumentSync":   map[string]any{"openClose": true, "change": 2, "save": true},
			"completionProvider": map[string]any{"triggerCharacters": []string{".", ":", " ", "-", "{", "["}},
			"hoverProvider":      true, "definitionProvider": true, "referencesProvider": true, "documentSymbolProvider": true,
			"renameProvider":     map[string]any{"prepareProvider": true},
			"codeActionProvider": map[string]any{"codeActionKinds": []string{"quickfix"}},
		},
	}, nil
}

func (s *server) end(*struct{}) (any, error) {
	s.shutdown = true
	return nil, nil
}

func (s *server) didOpen(p *documentParams) (any, error) {
	s.mu.Lock()
	size := len(p.TextDocument.Text)
	for _, d := range s.open {
		size += len(d.text)
	}
	full := size > maxText || len(s.open) >= maxDocuments
	if !full {
		s.store(newDocument(p.TextDocument.URI, p.TextDocument.Version, p.TextDocument.Text))
		if p.TextDocument.LanguageID == "tea" {
			s.workflows[p.TextDocument.URI] = true
		}
	}
	s.mu.Unlock()
	if full {
		return nil, s.notify("window/showMessage", map[string]any{"type": 2, "message": fmt.Sprintf("tea does not check %s: more than %d documents or %d MB are open", p.TextDocument.URI, maxDocuments, maxText>>20)})
	}
	s.wake()
	return nil, nil
}

func (s *server) didChange(p *changeParams) (any, error) {
	s.mu.Lock()
	if d := s.open[p.TextDocument.URI]; d != nil {
		s.store(d.edit(p.TextDocument.Version, p.Changes))
	}
	s.mu.Unlock()
	s.wake()
	return nil, nil
}

// store keeps a document. s.mu is locked.
func (s *server) store(d *document) {
	s.open[d.uri] = d
	if isWorkflow.MatchString(d.text) {
		s.workflows[d.uri] = true
	}
}

func (s *server) didClose(p *documentParams) (any, error) {
	s.mu.Lock()
	delete(s.open, p.TextDocument.URI)
	delete(s.workflows, p.TextDocument.URI)
	delete(s.ofWorkflow, p.TextDocument.URI)
	delete(s.outlines, p.TextDocument.URI)
	s.mu.Unlock()
	s.wake()
	return nil, nil
}

// filesChanged checks again, because a file on disk can be part of an open workflow.
func (s *server) filesChanged(*struct{}) (any, error) {
	s.wake()
	return nil, nil
}

// wake tells the checker that something changed.
func (s *server) wake() {
	select {
	case s.dirty <- struct{}{}:
	default: // it has not yet taken the last signal
	}
}

// pause is how long the checker waits after a change for the next one; maxPause bounds
// the wait while someone types without a break.
const (
	pause    = 150 * time.Millisecond
	maxPause = time.Second
)

// checkChanges checks the open workflows after each change. The last version is always
// checked: a signal that comes during a check starts another one.
func (s *server) checkChanges(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-s.dirty:
		}
		quiet, latest := time.NewTimer(pause), time.NewTimer(maxPause)
		for waiting := true; waiting; {
			select {
			case <-stop:
				return
			case <-s.dirty:
				quiet.Reset(pause)
			case <-quiet.C:
				waiting = false
			case <-latest.C:
				waiting = false
			}
		}
		quiet.Stop()
		latest.Stop()
		s.checkAll()
	}
}
