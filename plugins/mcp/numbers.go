package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/sdk/value"
)

// The SDK decodes structured content into float64, in which integers of more than
// 53 bits lose digits. Where a message has such an integer, its structured content
// is replaced by a string with the JSON text before the SDK sees it.

// exactMark begins that string.
const exactMark = "\x00exact "

// longInteger is what can be an integer of more than 53 bits.
var longInteger = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9]{16}`) })

// exact returns a message with the structured content of its result as text; nil
// if that has no long integers.
func exact(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"structuredContent"`)) || !longInteger().Match(message) {
		return nil
	}
	var fields, result map[string]json.RawMessage
	if json.Unmarshal(message, &fields) != nil || json.Unmarshal(fields["result"], &result) != nil || result["structuredContent"] == nil {
		return nil // the SDK reports what is wrong
	}
	var err1, err2 error
	result["structuredContent"], err1 = json.Marshal(exactMark + string(result["structuredContent"]))
	fields["result"], err2 = json.Marshal(result)
	changed, err3 := json.Marshal(fields)
	if errors.Join(err1, err2, err3) != nil {
		return nil
	}
	return changed
}

// structured returns the structured content of a result in the value model.
func structured(content any) (any, error) {
	if text, isText := content.(string); isText {
		if raw, ok := strings.CutPrefix(text, exactMark); ok {
			decoded, err := value.Decode([]byte(raw))
			return whole(decoded), err
		}
	}
	return whole(content), nil
}

// exactReader passes messages on through [exact]: those of a stream of lines, also
// one of events, or, if whole is set, a single one.
type exactReader struct {
	io.Closer
	from  *bufio.Reader
	whole bool
	see   func(message []byte) // is told of each message of a stream
	ready []byte
	err   error
}

func newExactReader(from io.ReadCloser, whole bool, see func([]byte)) *exactReader {
	return &exactReader{Closer: from, from: bufio.NewReaderSize(from, 64<<10), whole: whole, see: see}
}

// exactAnswer changes the body of an answer, whose kind is in its header.
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

// fill reads the next message. One that is too long is passed on in parts: the
// SDK refuses it.
func (r *exactReader) fill() {
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
	const field = "data:"
	text, isEvent := bytes.CutPrefix(r.ready, []byte(field))
	r.see(text)
	changed := exact(text)
	if changed == nil {
		return
	}
	if isEvent {
		changed = append([]byte(field), changed...)
	}
	changed = append(changed, '\n')
	r.ready = changed
}
