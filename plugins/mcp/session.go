package mcp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/the-edge-agent/tea/plugins/mcp/internal/process"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

// wordsGrace bounds the time from the end of a connection to the end of its process,
// whose last words are part of the error.
const wordsGrace = 5 * time.Second

// maxMessage is the maximum size in bytes of one message of a server.
const maxMessage = 32 << 20

// logLevel is the lowest level of log records that a server sends. From the protocol
// version levelInCalls on, each call specifies it.
const (
	logLevel     = "info"
	levelInCalls = "2026-07-28"
)

// session is a connection to a server.
type session struct {
	*mcp.ClientSession
	calls *calls
	// tools is the last listing; stale is set when the server reports a change.
	tools atomic.Pointer[listing]
	stale atomic.Bool

	process *process.Process // nil for a server at an address
	network *network         // nil for a process
	done    chan struct{}    // closed when the connection has ended
	broken  atomic.Bool      // a request failed because of the connection
	closing sync.Once
}

// connect starts the server, or connects to it.
func (s *server) connect(ctx context.Context) (*session, error) {
	se := &session{calls: &calls{server: s}, done: make(chan struct{})}
	transport, err := s.transport(se)
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancelCause(s.life)
	defer cancel(nil)
	late := time.AfterFunc(s.config.startTimeout(), func() { cancel(errStart) })
	defer late.Stop()
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer stop()
	client := mcp.NewClient(&mcp.Implementation{Name: "tea", Version: version}, s.options(se))
	client.AddReceivingMiddleware(se.calls.count)
	se.ClientSession, err = client.Connect(life, transport, &mcp.ClientSessionOptions{ProtocolVersion: s.config.ProtocolVersion})
	if err == nil {
		if r := se.InitializeResult(); r.Capabilities != nil && r.Capabilities.Logging != nil && r.ProtocolVersion < levelInCalls {
			// A server that refuses the request chooses the level itself.
			go func() { _ = se.SetLoggingLevel(s.life, &mcp.SetLoggingLevelParams{Level: logLevel}) }()
		}
		go func() {
			_ = se.Wait() // the error of a call has the reason
			close(se.done)
		}()
		return se, nil
	}
	close(se.done)
	se.release()
	switch cause := context.Cause(life); {
	case errors.Is(cause, errStart):
		return nil, s.errorf(tea.Timeout, "it was not ready within %s (start_timeout_seconds)%s", s.config.startTimeout(), se.exitReason("; "))
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case s.life.Err() != nil:
		return nil, s.errorf(tea.Canceled, "the client is closed")
	}
	return nil, s.failure(se, "connect", err)
}

var errStart = errors.New("the server was not ready in time")

// transport returns the transport of a session, and starts its process.
func (s *server) transport(se *session) (mcp.Transport, error) {
	if s.config.URL != "" {
		return s.remote(se)
	}
	log := slog.Default().With("mcp_server", s.name)
	p, err := s.client.group.Start(process.Command{
		Path: s.config.Command, Args: s.config.Args, Env: s.config.Env, Dir: s.config.Dir, Memory: int64(s.config.MemoryMB) << 20, CPU: s.config.CPU,
		Log: func(line string) { log.Debug(line) },
	})
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return nil, s.errorf(tea.DependencyMissing, "command %q not found; install it or correct settings.mcp.servers.%s.command", s.config.Command, s.name)
	case err != nil:
		return nil, s.errorf(tea.DependencyMissing, "cannot start %q: %w", s.config.Command, err)
	}
	se.process = p
	messages := newExactReader(p.Stdout, false, se.calls.arrived)
	messages.skip = p.Log
	return &mcp.IOTransport{Reader: messages, Writer: p.Stdin, MaxLineLength: maxMessage}, nil
}

// options are the client's options for the server.
func (s *server) options(se *session) *mcp.ClientOptions {
	o := &mcp.ClientOptions{
		Capabilities:                &mcp.ClientCapabilities{}, // without roots
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { se.stale.Store(true) },
		ProgressNotificationHandler: se.calls.progress,
		LoggingMessageHandler:       se.calls.log,
	}
	if s.config.Elicitation != "decline" {
		o.ElicitationHandler = se.calls.elicit
	}
	if s.config.Sampling.Enabled {
		o.CreateMessageHandler = se.calls.sample
	}
	return o
}

// ended reports whether the connection has ended.
func (se *session) ended() bool {
	select {
	case <-se.done:
		return true
	default:
		return se.broken.Load()
	}
}

// fresh returns the listing unless the server has reported a change.
func (se *session) fresh() *listing {
	if se.stale.Load() {
		return nil
	}
	return se.tools.Load()
}

// close ends the session and its process.
func (se *session) close() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = se.Close() // the server is ended in any case
	}()
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
	se.release()
	<-closed
	<-se.done
}

// release ends the process or closes the network connections.
func (se *session) release() {
	se.closing.Do(func() {
		if se.process != nil {
			se.process.Stop(stopGrace)
		}
		if se.network != nil {
			se.network.close()
		}
	})
}

// exitReason describes how the process ended, after a separator; "" if it runs.
func (se *session) exitReason(separator string) string {
	if se.process == nil {
		return ""
	}
	if words := se.process.LastWords(); words != "" {
		return separator + words
	}
	return ""
}

// explain returns the error of a request.
func (s *server) explain(ctx context.Context, se *session, what string, err error) error {
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), errCall):
		return s.errorf(tea.Timeout, "it did not %s within %s (settings.mcp.servers.%s.timeout_seconds)", what, s.config.timeout(), s.name)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return s.failure(se, what, err)
}

// expiredError is the error of a request in an expired session. The server has not
// processed the request.
type expiredError struct{ error }

func (e *expiredError) Unwrap() error { return e.error }

// expire marks the session as expired, so that the next call begins a new one.
func (se *session) expire(err error) error {
	se.broken.Store(true)
	return &expiredError{err}
}

// again repeats a request in a new session if its session had expired.
func again[T any](do func() (T, error)) (T, error) {
	result, err := do()
	if errors.As(err, new(*expiredError)) {
		result, err = do()
	}
	return result, err
}

// errCall is the cancellation cause of a call that took too long.
var errCall = errors.New("the call took too long")

// failure returns the error of a request that the server refused, or that did not
// reach it.
func (s *server) failure(se *session, what string, err error) error {
	if refused := se.network.refusal(); refused != nil {
		return s.errorf(refused.kind, "%s: %s", what, refused.text)
	}
	var typed *tea.Error
	var answer *jsonrpc.Error
	switch {
	case errors.As(err, &typed):
		return typed
	case errors.As(err, &answer) && answer.Code == codeNoResult:
		return s.errorf(tea.ConnectionError, "%s: %s", what, answer.Message) // only this response is invalid
	case errors.As(err, &answer) && answer.Code != codeRejected:
		return s.errorf(errorType(answer.Code), "%s: %s", what, plaintext.Cut(answer.Message, 2000))
	}
	if se.answers(s.life) {
		return s.errorf(tea.ConnectionError, "%s: %s", what, plaintext.Cut(fmt.Sprint(err), 500)) // only this response is invalid
	}
	se.broken.Store(true)
	text := fmt.Sprint(err)
	if problem := se.network.problem(); problem != "" {
		text = problem
	}
	words := ""
	if se.process != nil {
		// The connection may end shortly before the process.
		timer := time.NewTimer(wordsGrace)
		defer timer.Stop()
		select {
		case <-se.process.Exited():
		case <-timer.C:
		}
		words = se.exitReason("; ")
	}
	return s.errorf(tea.ConnectionError, "%s: %s%s", what, plaintext.Cut(text, 500), words)
}

// answers reports whether a process still follows the protocol after a failed request:
// only the response could not be decoded.
func (se *session) answers(life context.Context) bool {
	if se.process == nil || se.ClientSession == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(life, wordsGrace)
	defer cancel()
	err := se.Ping(ctx, nil)
	var answer *jsonrpc.Error
	return err == nil || errors.As(err, &answer) && answer.Code == jsonrpc.CodeMethodNotFound
}

// resourceError is the error of a request with only the address of a resource: if the
// server refuses it, the resource does not exist.
func (s *server) resourceError(uri string, err error) error {
	var answer *jsonrpc.Error
	if errors.As(err, &answer) && (answer.Code == jsonrpc.CodeInvalidParams || answer.Code == codeResourceNotFound) {
		return s.errorf(tea.NotFound, "unknown resource %s: %s", quoted(uri), plaintext.Cut(answer.Message, 500))
	}
	return err
}

// codeRejected is the SDK's error code for a message that could not be sent.
const codeRejected = -32005

// codeResourceNotFound is the code in protocol versions before 2026-07-28.
const codeResourceNotFound = -32002

// errorType converts the code of a JSON-RPC error.
func errorType(code int64) tea.ErrorType {
	switch code {
	case jsonrpc.CodeInvalidParams:
		return tea.ValidationError
	case jsonrpc.CodeMethodNotFound, codeResourceNotFound:
		return tea.NotFound
	}
	return tea.InternalError
}
