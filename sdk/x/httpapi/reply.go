package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// MaxBody is the maximum size of a response without a configured limit, such as a list of
// embeddings.
const MaxBody = 64 << 20

// Reply is the successful response to one attempt.
type Reply struct {
	*http.Response
	limit  int // of the answer in bytes, 0 = none
	cancel context.CancelCauseFunc
}

// envelope is the allowed size of the JSON around an answer.
const envelope = 64 << 10

// Limit returns the maximum size of a body or of a record of a stream. An answer within its
// limit takes up to twice as many bytes in JSON, because characters are escaped.
func (r Reply) Limit() int {
	if r.limit <= 0 {
		return MaxBody
	}
	return 2*r.limit + envelope
}

// MaxAnswer returns the maximum size of an answer in bytes, 0 without a limit.
func (r Reply) MaxAnswer() int { return r.limit }

// ReadAll reads an answer that is not streamed.
func (r Reply) ReadAll() ([]byte, error) {
	limit := r.Limit()
	if r.ContentLength > int64(limit) {
		return nil, r.tooLarge(limit)
	}
	var body bytes.Buffer
	if r.ContentLength > 0 {
		body.Grow(int(r.ContentLength) + bytes.MinRead) // once, not by doubling
	}
	if _, err := body.ReadFrom(io.LimitReader(r.Body, int64(limit)+1)); err != nil {
		return nil, err
	}
	if body.Len() > limit {
		return nil, r.tooLarge(limit)
	}
	return body.Bytes(), nil
}

// Decode decodes a JSON answer. expected names the expected content, for the error.
func (r Reply) Decode(into any, expected string) error {
	body, err := r.ReadAll()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return NotAnAnswer(body, expected, err)
	}
	return nil
}

func (r Reply) tooLarge(limit int) error {
	if r.limit > 0 {
		return tea.Errorf(tea.ResourceExhausted, "the server's answer is larger than max_answer_bytes (%d bytes)", r.limit)
	}
	return tea.Errorf(tea.ResourceExhausted, "the server's answer is larger than %d MiB", limit>>20)
}

// streamFactor is the maximum ratio of a stream's size to the answer's: the JSON
// around a token is many times as long as the token.
const streamFactor = 64

// Stream returns the body of a streamed answer. Reading fails once the stream is far longer
// than an answer can be, to end the stream of a server that is stuck in a loop.
func (r Reply) Stream() io.Reader {
	return &bounded{in: r.Body, left: streamFactor * max(r.limit, envelope)}
}

type bounded struct {
	in   io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, tea.Errorf(tea.ResourceExhausted, "the server's stream is too long for an answer within max_answer_bytes")
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// Delimited reports whether the end of the body can be distinguished from a broken
// connection: by a length, by chunks, or by the checksum of a compressed body.
func (r Reply) Delimited() bool {
	return r.ContentLength >= 0 || len(r.TransferEncoding) > 0 || r.ProtoMajor >= 2 || r.Uncompressed
}

// TokenClock ends a stream in which no more tokens arrive. It runs only while the reader
// waits, so that a slow consumer of tokens does not count, and only after the first token:
// the total limit covers the time before. It is not safe for concurrent use.
type TokenClock struct {
	limit, left time.Duration
	cancel      context.CancelCauseFunc
	timer       *time.Timer
	since       time.Time
	started     bool
}

// TokenClock returns the clock for a streamed answer. Pause must be called at the end. A
// limit <= 0 never ends the stream.
func (r Reply) TokenClock(limit time.Duration) *TokenClock {
	return &TokenClock{limit: limit, cancel: r.cancel}
}

// Token restarts the limit. It is called for each piece of the answer, but not for anything
// else in the stream, such as keep-alive messages.
func (c *TokenClock) Token() { c.started, c.left = true, c.limit }

// Wait starts the clock. It is called before each read.
func (c *TokenClock) Wait() {
	if !c.started || c.limit <= 0 {
		return
	}
	c.since = time.Now()
	if c.timer == nil {
		c.timer = time.AfterFunc(c.left, func() {
			c.cancel(tea.Errorf(tea.Timeout, "no token arrived for %s (token_timeout_seconds)", c.limit))
		})
		return
	}
	c.timer.Reset(c.left)
}

// Pause stops the clock. It is called after each read and at the end.
func (c *TokenClock) Pause() {
	if c.timer != nil {
		c.timer.Stop()
		c.left = max(0, c.left-time.Since(c.since))
	}
}
