package lsp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// maxMessage bounds a message; a longer one is skipped. A workflow file has at most 4 MB.
const maxMessage = 32 << 20

// Error codes of JSON-RPC and LSP.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeUnknownMethod  = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeNotInitialized = -32002
	codeRequestFailed  = -32803
)

// message is a request, a notification or a response.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// rpcError is the error of a response.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

func rpcErrorf(code int, format string, args ...any) error {
	return &rpcError{code, fmt.Sprintf(format, args...)}
}

// conn reads and writes messages. Its writing methods are safe for concurrent use.
type conn struct {
	in  *bufio.Reader
	mu  sync.Mutex
	out io.Writer
}

// read returns the next message. The error is an [rpcError] if the message is unusable
// and the next one can be read; otherwise the input has ended.
func (c *conn) read() (*message, error) {
	length, err := c.header()
	if err != nil {
		return nil, err
	}
	if length > maxMessage {
		if _, err := io.CopyN(io.Discard, c.in, length); err != nil {
			return nil, err
		}
		return nil, rpcErrorf(codeInvalidRequest, "the message has more than %d MB", maxMessage>>20)
	}
	// The buffer grows with what arrives, not with what the header promises.
	var body bytes.Buffer
	if _, err := io.CopyN(&body, c.in, length); err != nil {
		return nil, err
	}
	m := new(message)
	if !json.Valid(body.Bytes()) {
		return nil, rpcErrorf(codeParse, "the message is not JSON")
	}
	if err := json.Unmarshal(body.Bytes(), m); err != nil {
		return nil, rpcErrorf(codeInvalidRequest, "the message is not a request: %v", err)
	}
	return m, nil
}

// header returns the length of the next message. It skips lines that are no header.
func (c *conn) header() (int64, error) {
	length := int64(-1)
	for {
		line, err := c.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return 0, err
		}
		text := strings.TrimSpace(string(line))
		if text == "" && length >= 0 {
			return length, nil
		}
		name, value, _ := strings.Cut(text, ":")
		if strings.EqualFold(name, "Content-Length") {
			if n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil && n >= 0 {
				length = n
			}
		}
	}
}

// write sends a message.
func (c *conn) write(fields map[string]any) error {
	fields["jsonrpc"] = "2.0"
	body, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = fmt.Fprintf(c.out, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return err
}

// notify sends a notification.
func (c *conn) notify(method string, params any) error {
	return c.write(map[string]any{"method": method, "params": params})
}

// reply answers a request. A null id stands for a request that could not be read.
func (c *conn) reply(id json.RawMessage, result any, err error) error {
	if id == nil {
		id = json.RawMessage("null")
	}
	if err == nil {
		return c.write(map[string]any{"id": id, "result": result})
	}
	failure, ok := errors.AsType[*rpcError](err)
	if !ok {
		failure = &rpcError{codeRequestFailed, err.Error()}
	}
	return c.write(map[string]any{"id": id, "error": failure})
}
