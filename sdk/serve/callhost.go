package serve

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/internal/callstream"
	"github.com/the-edge-agent/tea/sdk/internal/handshake"
	"github.com/the-edge-agent/tea/sdk/internal/pb"
	"github.com/the-edge-agent/tea/sdk/value"
)

// errCallEnded is the error of the host's methods after the call has ended.
var errCallEnded = errors.New("the call has ended")

// callHost is the [tea.Host] of one call. Tokens, progress and logs are sent in the
// call's stream if it has one, otherwise through callbacks; everything else is a
// callback.
type callHost struct {
	id string
	// back is nil if the host offers no callbacks, calls if it does not accept
	// calls in a stream.
	back  pb.HostClient
	calls *callstream.Caller
	// templates reports whether the host evaluates templates for an action, batches
	// whether it accepts several tokens in one message.
	templates, batches bool

	// mu guards the following fields, and serializes sending to the stream.
	mu     sync.Mutex
	over   bool
	stream grpc.ServerStreamingServer[pb.InvokeEvent]
	// waiting are the tokens for the next message, waitingBytes their size. pause
	// is the timer until it is sent, nil before the first token; paused is set
	// while it runs.
	waiting      []string
	waitingBytes int
	pause        *time.Timer
	paused       bool

	// tokens guards partial and the order of tokens.
	tokens sync.Mutex
	// partial is the incomplete character at the end of the last token.
	partial string
}

// end ends the call: goroutines that a handler left behind can no longer reach
// the host.
func (h *callHost) end(ctx context.Context) {
	h.tokens.Lock()
	if h.partial != "" {
		h.send(ctx, h.partial)
		h.partial = ""
	}
	h.tokens.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.flush()
	h.over = true
	if h.pause != nil {
		h.pause.Stop()
	}
}

// emit sends an event in the stream and reports whether there is one. A broken
// stream is reported by the end of the call.
func (h *callHost) emit(event *pb.InvokeEvent) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || h.stream == nil {
		return h.over
	}
	h.flush()
	_ = h.stream.Send(event)
	return true
}

const (
	// tokenPause is the minimum time between two messages with tokens.
	tokenPause = time.Millisecond
	// maxWaitingBytes bounds the size of the waiting tokens.
	maxWaitingBytes = 32 << 10
)

// emitToken is emit for a token. The first token is sent immediately; tokens that
// follow shortly share a message, which costs about as much as a message with a
// single token.
func (h *callHost) emitToken(text string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || h.stream == nil {
		return h.over
	}
	h.waiting = append(h.waiting, text)
	h.waitingBytes += len(text)
	if h.paused && h.waitingBytes < maxWaitingBytes {
		return true
	}
	h.flush()
	if h.batches && !h.paused {
		h.rest()
	}
	return true
}

// rest begins a pause. The caller holds mu.
func (h *callHost) rest() {
	h.paused = true
	if h.pause != nil {
		h.pause.Reset(tokenPause)
		return
	}
	h.pause = time.AfterFunc(tokenPause, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.paused = false
		if len(h.waiting) > 0 && !h.over {
			h.flush()
			h.rest()
		}
	})
}

// flush sends the waiting tokens. The caller holds mu.
func (h *callHost) flush() {
	if len(h.waiting) == 0 {
		return
	}
	token := &pb.Token{Text: pb.Text(h.waiting[0])}
	for _, text := range h.waiting[1:] {
		token.More = append(token.More, pb.Text(text))
	}
	_ = h.stream.Send(&pb.InvokeEvent{Event: &pb.InvokeEvent_Token{Token: token}})
	clear(h.waiting)
	h.waiting, h.waitingBytes = h.waiting[:0], 0
}

// client returns the client for callbacks, or the error if there is none.
func (h *callHost) client() (pb.HostClient, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.flush() // the callback can emit events
	switch {
	case h.over:
		return nil, tea.Errorf(tea.Canceled, "%w", errCallEnded)
	case h.back == nil:
		return nil, tea.Errorf(tea.DependencyMissing, "this host offers no callbacks")
	}
	return h.back, nil
}

// broken returns the error of a callback that failed.
func broken(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return tea.AsError(ctx.Err())
	}
	return tea.Errorf(tea.ConnectionError, "%s: the host did not answer: %w", what, err)
}

// Invoke calls another action through the host.
func (h *callHost) Invoke(ctx context.Context, action string, params any) (*tea.Response, error) {
	return h.InvokeAs(ctx, tea.Invocation{Action: action, Params: params})
}

// InvokeAs is Invoke with the key and the roots of templates.
func (h *callHost) InvokeAs(ctx context.Context, call tea.Invocation) (*tea.Response, error) {
	req := &pb.InvokeActionRequest{CallId: h.id, Action: pb.Text(call.Action), Key: pb.Text(call.Key), Attempt: int32(call.Attempt)}
	var err error
	if req.Params, err = pb.FromPayload(tea.AsPayload(call.Params), "parameters of "+call.Action); err != nil {
		return nil, err
	}
	back, err := h.client()
	if err != nil {
		return nil, err
	}
	if (call.Roots != nil || call.Output != nil) && !h.templates {
		return nil, tea.Errorf(tea.DependencyMissing, "%s: this host cannot evaluate templates for an action; use a newer tea", call.Action)
	}
	if call.Roots != nil {
		if req.Roots, err = pb.FromPayload(tea.ValuePayload(call.Roots), "names for templates of "+call.Action); err != nil {
			return nil, err
		}
	}
	if call.Output != nil {
		if req.Output, err = pb.FromPayload(tea.AsPayload(call.Output), "output of "+call.Action); err != nil {
			return nil, err
		}
	}
	resp, err := h.invoke(ctx, back, req)
	if err != nil {
		return nil, broken(ctx, "call "+call.Action, err)
	}
	return pb.ToOutcome(call.Action, resp)
}

func (h *callHost) invoke(ctx context.Context, back pb.HostClient, req *pb.InvokeActionRequest) (*pb.InvokeResponse, error) {
	if h.calls != nil {
		resp, err := h.calls.Call(ctx, &pb.CallsRequest{Request: &pb.CallsRequest_InvokeAction{InvokeAction: req}})
		if !errors.Is(err, callstream.ErrStreamFull) {
			return resp, err
		}
	}
	return back.InvokeAction(ctx, req)
}

// Describe returns the host's description of an action.
func (h *callHost) Describe(ctx context.Context, action string) (*tea.ActionInfo, error) {
	back, err := h.client()
	if err != nil {
		return nil, err
	}
	resp, err := back.DescribeAction(ctx, &pb.DescribeActionRequest{CallId: h.id, Action: pb.Text(action)})
	if err != nil {
		return nil, broken(ctx, "describe "+action, err)
	}
	if e := resp.GetError(); e != nil {
		return nil, pb.ToError(e)
	}
	info, err := pb.ToAction(resp.GetAction())
	if err != nil {
		return nil, tea.Errorf(tea.InternalError, "%w", err)
	}
	return &info, nil
}

// Log sends a record to the run's log, or to stderr if the host cannot be
// reached.
func (h *callHost) Log(ctx context.Context, level slog.Level, message string, fields map[string]any) {
	record := pb.FromLog(level, message, fields)
	if h.emit(&pb.InvokeEvent{Event: &pb.InvokeEvent_Log{Log: record}}) {
		return
	}
	back, err := h.client()
	if err == nil {
		_, err = back.Log(ctx, &pb.LogRequest{CallId: h.id, Log: record})
	}
	if err != nil {
		slog.Log(context.Background(), level, message, "fields", fields)
	}
}

// Token sends a piece of text. On failure it is dropped: the result has the complete
// text. An incomplete character at its end waits for the next piece.
func (h *callHost) Token(ctx context.Context, text string) {
	h.tokens.Lock()
	defer h.tokens.Unlock()
	text = h.partial + text
	whole := value.WholeRunes(text)
	h.partial = text[whole:]
	if whole > 0 || text == "" {
		h.send(ctx, text[:whole])
	}
}

func (h *callHost) send(ctx context.Context, text string) {
	if h.emitToken(text) {
		return
	}
	if back, err := h.client(); err == nil {
		_, _ = back.Token(ctx, &pb.TokenRequest{CallId: h.id, Token: &pb.Token{Text: pb.Text(text)}})
	}
}

// Progress sends a progress report. On failure it is dropped.
func (h *callHost) Progress(ctx context.Context, fraction float64, message string) {
	progress := &pb.Progress{Fraction: fraction, Message: pb.Text(message)}
	if h.emit(&pb.InvokeEvent{Event: &pb.InvokeEvent_Progress{Progress: progress}}) {
		return
	}
	if back, err := h.client(); err == nil {
		_, _ = back.Progress(ctx, &pb.ProgressRequest{CallId: h.id, Progress: progress})
	}
}

// Note reads a durable note.
func (h *callHost) Note(ctx context.Context, key string) (tea.Payload, bool, error) {
	back, err := h.client()
	if err != nil {
		return tea.Payload{}, false, err
	}
	resp, err := back.GetNote(ctx, &pb.GetNoteRequest{CallId: h.id, Key: pb.Text(key)})
	if err != nil {
		return tea.Payload{}, false, broken(ctx, "read note "+key, err)
	}
	if e := resp.GetError(); e != nil || !resp.GetFound() {
		return tea.Payload{}, false, asError(e)
	}
	note, err := pb.ToPayload(resp.GetNote(), "note "+key)
	return note, err == nil, err
}

// SetNote stores a durable note.
func (h *callHost) SetNote(ctx context.Context, key string, note any) error {
	raw, err := pb.FromPayload(tea.AsPayload(note), "note "+key)
	if err != nil {
		return err
	}
	back, err := h.client()
	if err != nil {
		return err
	}
	resp, err := back.SetNote(ctx, &pb.SetNoteRequest{CallId: h.id, Key: pb.Text(key), Note: raw})
	if err != nil {
		return broken(ctx, "store note "+key, err)
	}
	return asError(resp.GetError())
}

// ReportUsage counts usage against the run's budget. A host without callbacks, or
// without this callback, has no budget.
func (h *callHost) ReportUsage(ctx context.Context, u tea.Usage) error {
	back, err := h.client()
	if err != nil {
		if h.back == nil {
			return nil
		}
		return err
	}
	resp, err := back.ReportUsage(ctx, &pb.ReportUsageRequest{CallId: h.id, Tokens: u.Tokens, Usd: u.USD})
	if status.Code(err) == codes.Unimplemented {
		return nil
	}
	if err != nil {
		return broken(ctx, "report usage", err)
	}
	return asError(resp.GetError())
}

// asError is [pb.ToError] as an error that is nil if e is.
func asError(e *pb.Error) error {
	if e == nil {
		return nil
	}
	return pb.ToError(e)
}

// hostLink is the connection of the process to the host's services.
type hostLink struct {
	broker *plugin.GRPCBroker

	mu        sync.RWMutex
	conn      *grpc.ClientConn // nil before connect
	client    pb.HostClient
	calls     *callstream.Caller
	templates bool
	batches   bool
}

// connect connects to the host's services with the first id that it gets. An id of 0
// means that the host offers no services.
func (l *hostLink) connect(id uint32) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client != nil || id == 0 {
		return nil
	}
	conn, err := l.broker.DialWithOptions(id,
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(handshake.MaxMessage), grpc.MaxCallSendMsgSize(handshake.MaxMessage)),
		grpc.WithInitialWindowSize(handshake.Window), grpc.WithInitialConnWindowSize(handshake.Window))
	if err != nil {
		return tea.Errorf(tea.ConnectionError, "connect to the host's services: %w", err)
	}
	l.conn, l.client = conn, pb.NewHostClient(conn)
	return nil
}

// declared stores the host's capabilities.
func (l *hostLink) declared(capabilities []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.templates = slices.Contains(capabilities, handshake.Templates)
	l.batches = slices.Contains(capabilities, handshake.Tokens)
	if l.conn != nil && l.calls == nil && slices.Contains(capabilities, handshake.Calls) {
		l.calls = callstream.NewCaller(pb.NewHostCallsClient(l.conn).Calls)
	}
}

// host returns the host of a call.
func (l *hostLink) host(call string) *callHost {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return &callHost{id: call, back: l.client, calls: l.calls, templates: l.templates, batches: l.batches}
}
