package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
)

// codeNoResult is the code of the error that replaces a null result.
const codeNoResult = -32098

// foreignMark begins the text that replaces content of a type that the SDK does not
// know. The JSON of the content follows.
const foreignMark = "\x00foreign "

// kinds are the types of content that [budget.item] converts.
var kinds = []string{"text", "image", "audio", "resource", "resource_link"}

// adapted converts a server's message to a form that the SDK passes on without loss; nil
// if it already has that form. See numbers.go for structured content. A null result,
// which the SDK would treat as empty, becomes an error. Content of an unknown type, for
// which the SDK would refuse the whole result, becomes text.
func adapted(message []byte) []byte {
	var fields map[string]json.RawMessage
	exact := bytes.Contains(message, []byte(`"structuredContent"`)) && longInteger().Match(message)
	if !exact && !bytes.Contains(message, []byte(`"content"`)) && !bytes.Contains(message, []byte("null")) {
		return nil
	}
	if json.Unmarshal(message, &fields) != nil || fields["result"] == nil {
		return nil // the SDK reports the error
	}
	if string(fields["result"]) == "null" {
		if fields["error"] != nil || fields["method"] != nil {
			return nil
		}
		delete(fields, "result")
		fields["error"] = encoded(map[string]any{"code": codeNoResult, "message": "the result is null, expected an object"})
		return encoded(fields)
	}
	var result map[string]json.RawMessage
	if json.Unmarshal(fields["result"], &result) != nil {
		return nil
	}
	if exact = exact && result["structuredContent"] != nil; exact {
		result["structuredContent"] = encoded(exactMark + string(result["structuredContent"]))
	}
	foreign := replaceForeign(result)
	if !exact && !foreign {
		return nil
	}
	fields["result"] = encoded(result)
	return encoded(fields)
}

// encoded returns a value of strings and JSON texts as JSON.
func encoded(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // such values can always be encoded
	}
	return text
}

// replaceForeign replaces content of unknown types in the result of a tool or in the
// messages of a prompt, and reports whether there was any.
func replaceForeign(result map[string]json.RawMessage) (replaced bool) {
	replace := func(item *json.RawMessage) bool {
		var c struct{ Type string }
		if json.Unmarshal(*item, &c) == nil && slices.Contains(kinds, c.Type) {
			return false
		}
		*item = encoded(map[string]string{"type": "text", "text": foreignMark + string(*item)})
		return true
	}
	var content []json.RawMessage
	if json.Unmarshal(result["content"], &content) == nil {
		for i := range content {
			replaced = replace(&content[i]) || replaced
		}
		if replaced {
			result["content"] = encoded(content)
		}
	}
	var messages []map[string]json.RawMessage
	if json.Unmarshal(result["messages"], &messages) == nil {
		again := false
		for _, m := range messages {
			if item := m["content"]; item != nil && replace(&item) {
				m["content"], again = item, true
			}
		}
		if again {
			result["messages"], replaced = encoded(messages), true
		}
	}
	return replaced
}

// maxNoise limits the text that a process may print to its standard output between
// messages.
const maxNoise = 8 << 20

var errNoise = errors.New("the server printed more than 8 MiB of text to its standard output, where only messages are allowed; make it write logs to standard error")

// isMessage reports whether a line of a process may be a message, even a damaged one.
// Servers also print banners and logs, some of them in JSON.
func isMessage(line []byte) bool {
	if len(line) == 0 || !bytes.Contains(line, []byte(`"jsonrpc"`)) {
		return false
	}
	return line[0] == '{' || line[0] == '[' && json.Valid(line)
}

// exactReader passes messages through [adapted]. It reads a stream of lines or of
// events, or, if whole is set, a single message.
type exactReader struct {
	io.Closer
	from  *bufio.Reader
	whole bool
	see   func(message []byte) // called with each message of a stream
	// skip is called with each line that is not a message; nil passes such lines on.
	skip  func(line string)
	noise int // bytes skipped since the last message
	ready []byte
	err   error
}

func newExactReader(from io.ReadCloser, whole bool, see func([]byte)) *exactReader {
	return &exactReader{Closer: from, from: bufio.NewReaderSize(from, 64<<10), whole: whole, see: see}
}

// exactAnswer adapts the messages in the body of a response, by content type.
func exactAnswer(resp *http.Response, see func([]byte)) {
	kind := resp.Header.Get("Content-Type")
	if events := strings.HasPrefix(kind, "text/event-stream"); events || strings.HasPrefix(kind, "application/json") {
		resp.Body = newExactReader(resp.Body, !events, see)
		resp.ContentLength = -1
	}
}

// Read implements [io.Reader].
func (r *exactReader) Read(p []byte) (int, error) {
	if len(r.ready) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.fill()
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	if n == 0 {
		return 0, r.err
	}
	return n, nil
}

// fill reads the next message.
func (r *exactReader) fill() {
	for r.next(); r.skip != nil && len(r.ready) > 0 && !isMessage(bytes.TrimSpace(r.ready)); r.next() {
		if r.noise += len(r.ready); r.noise > maxNoise {
			r.ready, r.err = nil, errNoise
			return
		}
		r.skip(string(r.ready))
		if r.ready = nil; r.err != nil {
			return
		}
	}
	r.noise = 0
	r.adapt()
}

// next reads a line, or the whole body. It passes on a line that is too long in parts,
// which the SDK refuses.
func (r *exactReader) next() {
	r.ready = nil
	for len(r.ready) <= maxMessage {
		var part []byte
		part, r.err = r.from.ReadSlice('\n')
		r.ready = append(r.ready, part...)
		if r.err == nil && !r.whole || r.err != nil && !errors.Is(r.err, bufio.ErrBufferFull) {
			break
		}
		r.err = nil
	}
	if errors.Is(r.err, bufio.ErrBufferFull) {
		r.err = nil
	}
}

// adapt adapts the current message.
func (r *exactReader) adapt() {
	const field = "data:"
	text, isEvent := bytes.CutPrefix(r.ready, []byte(field))
	r.see(text)
	changed := adapted(text)
	if changed == nil {
		return
	}
	if isEvent {
		changed = append([]byte(field), changed...)
	}
	changed = append(changed, '\n')
	r.ready = changed
}
