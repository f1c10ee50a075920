package teacmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/the-edge-agent/tea/cmd/internal/checkup"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// output is stdout. After the first error it writes nothing and returns that
// error, so that a command that ignores write errors does not succeed.
type output struct {
	file   *os.File
	failed error
}

func (o *output) Write(text []byte) (n int, err error) {
	if o.failed == nil {
		n, o.failed = o.file.Write(text)
	}
	return n, o.failed
}

// lost returns the error by which output was lost; nil if the reader has gone.
func (o *output) lost() error {
	if errors.Is(o.failed, syscall.EPIPE) {
		return nil
	}
	return o.failed
}

// writeState writes a state as JSON: sorted keys, two spaces, a newline.
func writeState(w io.Writer, state any) error {
	raw, err := value.Encode(state)
	if err != nil {
		return fmt.Errorf("encode the state: %w", err)
	}
	var text bytes.Buffer
	if err := json.Indent(&text, append(raw, '\n'), "", "  "); err != nil {
		return fmt.Errorf("indent the state: %w", err)
	}
	_, err = w.Write(escapeJSON(text.Bytes()))
	return err
}

// writeJSON writes any Go value in the same form.
func writeJSON(w io.Writer, v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escapeJSON(text.Bytes()))
	return err
}

// checkOutput returns errors of [writeFile] before the work is done.
func checkOutput(path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return &os.PathError{Op: "write", Path: absolute(path), Err: syscall.EISDIR}
	}
	var err error
	if special(path) {
		err = checkup.CheckFile(path)
	} else {
		err = checkup.CheckWritable(filepath.Dir(path))
	}
	if err != nil {
		return &os.PathError{Op: "write", Path: absolute(path), Err: err}
	}
	return nil
}

// special reports whether a path exists and is not a regular file, such as a
// device or a link. Such a path must not be replaced.
func special(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && !info.Mode().IsRegular()
}

// writeFile replaces a regular file atomically, and writes into anything else.
// It returns errors of write unchanged; others are an [*os.PathError] with the
// path.
func writeFile(path string, perm fs.FileMode, write func(io.Writer) error) error {
	var out failingWriter
	var fault error
	content := func(w io.Writer) error {
		out.w = w
		fault = write(&out)
		return errors.Join(fault, out.failed)
	}
	var err error
	if special(path) {
		err = writeInto(path, content)
	} else {
		err = atomicfile.Write(path, perm, content)
	}
	switch {
	case err == nil:
		return nil
	case fault != nil && out.failed == nil:
		return fault
	}
	return unwritable(path, err)
}

// unwritable returns a write error for path, without the name of the temporary
// file that err may contain.
func unwritable(path string, err error) error {
	var (
		inner *os.PathError
		link  *os.LinkError
	)
	switch {
	case errors.As(err, &inner):
		err = inner.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return &os.PathError{Op: "write", Path: path, Err: err}
}

// failingWriter keeps the first error of a writer.
type failingWriter struct {
	w      io.Writer
	failed error
}

func (f *failingWriter) Write(text []byte) (int, error) {
	n, err := f.w.Write(text)
	if f.failed == nil {
		f.failed = err
	}
	return n, err
}

func writeInto(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

const (
	// streamDelay is how long events wait to share a write.
	streamDelay = 5 * time.Millisecond
	// maxStreamBytes is the size of waiting events that triggers a write.
	maxStreamBytes = 64 << 10
)

// eventStream prints events as JSON lines to w; nil prints nothing. Events at
// about the same time share a write. The last event waits for the final state,
// which it includes.
type eventStream struct {
	w    io.Writer
	last *flow.Event

	mu      sync.Mutex // guards the following fields
	waiting []byte
	soon    bool // a flush is scheduled
	failed  error
}

func (s *eventStream) event(e flow.Event) {
	if e.Type == flow.EventRunEnd {
		s.last = &e
		return
	}
	s.print(e)
}

// end prints the last event with the state. It returns the first error of any
// event.
func (s *eventStream) end(state any) error {
	if s.last != nil {
		s.last.Fields = append(slices.Clip(s.last.Fields), flow.Field{Key: "state", Value: state})
		s.print(*s.last)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	return s.failed
}

// print ignores errors: the run continues.
func (s *eventStream) print(e flow.Event) {
	if s.w == nil {
		return
	}
	line, err := e.MarshalJSON()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
	}
	if s.failed != nil {
		return
	}
	s.waiting = append(append(s.waiting, escapeJSON(line)...), '\n')
	switch {
	case len(s.waiting) >= maxStreamBytes, e.Type == flow.EventRunStart, e.Type == flow.EventInterrupt:
		s.flush()
	case !s.soon:
		s.soon = true
		time.AfterFunc(streamDelay, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.soon = false
			s.flush()
		})
	}
}

// flush writes the waiting events. The caller holds mu.
func (s *eventStream) flush() {
	if len(s.waiting) > 0 && s.failed == nil {
		_, s.failed = s.w.Write(s.waiting)
	}
	s.waiting = s.waiting[:0]
}

// checkRules checks the values of --fail-on-state.
func checkRules(rules []string) error {
	for _, rule := range rules {
		key, value, ok := strings.Cut(rule, "=")
		if !ok || key == "" || strings.ContainsAny(key[len(key)-1:], "!<>~") || strings.HasPrefix(value, "=") {
			return usageErrorf("--fail-on-state %s: expected KEY=VALUE", rule)
		}
	}
	return nil
}

// holds reports whether a state has a value at a dotted key. The value is
// compared as JSON and as text.
func holds(state map[string]any, key, want string) bool {
	v, ok := state[key]
	if !ok {
		var at any = state
		for part := range strings.SplitSeq(key, ".") {
			object, _ := at.(map[string]any)
			if at, ok = object[part]; !ok {
				return false
			}
		}
		v = at
	}
	if text, isText := v.(string); isText && text == want {
		return true
	}
	wanted, err := value.Decode([]byte(want))
	return err == nil && value.Equal(v, wanted)
}
