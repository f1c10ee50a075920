package wire

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/internal/callstream"
	"github.com/the-edge-agent/tea/sdk/internal/handshake"
	"github.com/the-edge-agent/tea/sdk/internal/pb"
)

// callbacks serves the Host service to one plugin process.
type callbacks struct {
	pb.UnimplementedHostServer
	pb.UnimplementedHostCallsServer
	server *grpc.Server
	done   sync.WaitGroup

	mu    sync.Mutex
	calls map[string]*activeCall
}

// activeCall is a running call with the host for its callbacks.
type activeCall struct {
	ctx  context.Context
	host tea.Host
	// end ends the callbacks; nil before the first one.
	end context.CancelFunc
}

func serveCallbacks(l net.Listener) *callbacks {
	c := &callbacks{calls: map[string]*activeCall{}}
	c.server = grpc.NewServer(grpc.MaxRecvMsgSize(handshake.MaxMessage), grpc.MaxSendMsgSize(handshake.MaxMessage),
		grpc.InitialWindowSize(handshake.Window), grpc.InitialConnWindowSize(handshake.Window), grpc.NumStreamWorkers(callstream.Workers))
	pb.RegisterHostServer(c.server, c)
	pb.RegisterHostCallsServer(c.server, c)
	c.done.Go(func() { _ = c.server.Serve(l) }) // ends with close
	return c
}

func (c *callbacks) close() {
	c.server.Stop()
	c.done.Wait()
}

// admit allows the callbacks of a call until leave.
func (c *callbacks) admit(ctx context.Context, id string, host tea.Host) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[id] = &activeCall{ctx: ctx, host: host}
}

// leave ends the callbacks of a call.
func (c *callbacks) leave(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if end := c.calls[id].end; end != nil {
		end()
	}
	delete(c.calls, id)
}

// enter returns the call of a callback. The context is the call's, and ends early if the
// callback's context ends; leave must be called.
func (c *callbacks) enter(ctx context.Context, id string) (call activeCall, leave func(), err error) {
	c.mu.Lock()
	active := c.calls[id]
	if active == nil {
		c.mu.Unlock()
		return activeCall{}, nil, tea.Errorf(tea.Canceled, "the call %q has ended", id)
	}
	if active.end == nil { // most calls have no callbacks
		active.ctx, active.end = context.WithCancel(active.ctx)
	}
	call = *active
	c.mu.Unlock()
	inner, cancel := context.WithCancel(call.ctx)
	stop := context.AfterFunc(ctx, cancel)
	call.ctx = inner
	return call, func() { stop(); cancel() }, nil
}

// Calls calls other actions for the plugin.
func (c *callbacks) Calls(stream grpc.BidiStreamingServer[pb.CallsRequest, pb.CallsResponse]) error {
	return callstream.Serve(stream, func(ctx context.Context, req *pb.CallsRequest) (*pb.InvokeResponse, error) {
		return c.InvokeAction(ctx, req.GetInvokeAction())
	})
}

// InvokeAction calls another action for the plugin.
func (c *callbacks) InvokeAction(ctx context.Context, req *pb.InvokeActionRequest) (*pb.InvokeResponse, error) {
	action := req.GetAction()
	call, leave, err := c.enter(ctx, req.GetCallId())
	if err != nil {
		return pb.FromOutcome(action, nil, err), nil
	}
	defer leave()
	params, err := pb.ToPayload(req.GetParams(), "parameters of "+action)
	if err != nil {
		return pb.FromOutcome(action, nil, err), nil
	}
	wanted := tea.Invocation{Action: action, Params: params, Key: req.GetKey(), Attempt: int(req.GetAttempt())}
	if raw := req.GetRoots(); len(raw) > 0 {
		if wanted.Roots, err = roots(raw, action); err != nil {
			return pb.FromOutcome(action, nil, err), nil
		}
	}
	if raw := req.GetOutput(); len(raw) > 0 {
		output, err := pb.ToPayload(raw, "output of "+action)
		if err != nil {
			return pb.FromOutcome(action, nil, err), nil
		}
		wanted.Output = output
	}
	caller := tea.Request{Host: call.host}
	resp, err := caller.Invoke(call.ctx, wanted)
	return pb.FromOutcome(action, resp, err), nil
}

// roots decodes the names for the templates of a call.
func roots(raw []byte, action string) (map[string]any, error) {
	payload, err := pb.ToPayload(raw, "names for templates of "+action)
	if err != nil {
		return nil, err
	}
	names := map[string]any{}
	if err := payload.Decode(&names); err != nil {
		return nil, tea.Errorf(tea.ValidationError, "names for templates of %s: %w", action, err)
	}
	return names, nil
}

// DescribeAction describes an action.
func (c *callbacks) DescribeAction(ctx context.Context, req *pb.DescribeActionRequest) (*pb.DescribeActionResponse, error) {
	action, err := c.describe(ctx, req)
	if err != nil {
		return &pb.DescribeActionResponse{Outcome: &pb.DescribeActionResponse_Error{Error: pb.FromError(err)}}, nil
	}
	return &pb.DescribeActionResponse{Outcome: &pb.DescribeActionResponse_Action{Action: action}}, nil
}

func (c *callbacks) describe(ctx context.Context, req *pb.DescribeActionRequest) (*pb.Action, error) {
	call, leave, err := c.enter(ctx, req.GetCallId())
	if err != nil {
		return nil, err
	}
	defer leave()
	info, err := call.host.Describe(call.ctx, req.GetAction())
	if err != nil {
		return nil, err
	}
	return pb.FromAction(*info)
}

// Log writes a record to the run's log.
func (c *callbacks) Log(ctx context.Context, req *pb.LogRequest) (*pb.LogResponse, error) {
	if call, leave, err := c.enter(ctx, req.GetCallId()); err == nil {
		defer leave()
		level, message, fields := pb.ToLog(req.GetLog())
		call.host.Log(call.ctx, level, message, fields)
	}
	return &pb.LogResponse{}, nil
}

// Progress reports progress.
func (c *callbacks) Progress(ctx context.Context, req *pb.ProgressRequest) (*pb.ProgressResponse, error) {
	if call, leave, err := c.enter(ctx, req.GetCallId()); err == nil {
		defer leave()
		call.host.Progress(call.ctx, req.GetProgress().GetFraction(), req.GetProgress().GetMessage())
	}
	return &pb.ProgressResponse{}, nil
}

// Token emits a token.
func (c *callbacks) Token(ctx context.Context, req *pb.TokenRequest) (*pb.TokenResponse, error) {
	if call, leave, err := c.enter(ctx, req.GetCallId()); err == nil {
		defer leave()
		emit(call.ctx, call.host, req.GetToken())
	}
	return &pb.TokenResponse{}, nil
}

// GetNote reads a note.
func (c *callbacks) GetNote(ctx context.Context, req *pb.GetNoteRequest) (*pb.GetNoteResponse, error) {
	call, leave, err := c.enter(ctx, req.GetCallId())
	if err != nil {
		return &pb.GetNoteResponse{Error: pb.FromError(err)}, nil
	}
	defer leave()
	note, found, err := call.host.Note(call.ctx, req.GetKey())
	if err != nil || !found {
		return &pb.GetNoteResponse{Error: pb.FromError(err)}, nil
	}
	raw, err := pb.FromPayload(note, "note "+req.GetKey())
	return &pb.GetNoteResponse{Error: pb.FromError(err), Found: err == nil, Note: raw}, nil
}

// SetNote stores a note.
func (c *callbacks) SetNote(ctx context.Context, req *pb.SetNoteRequest) (*pb.SetNoteResponse, error) {
	call, leave, err := c.enter(ctx, req.GetCallId())
	if err != nil {
		return &pb.SetNoteResponse{Error: pb.FromError(err)}, nil
	}
	defer leave()
	note, err := pb.ToPayload(req.GetNote(), "note "+req.GetKey())
	if err == nil {
		err = call.host.SetNote(call.ctx, req.GetKey(), note)
	}
	return &pb.SetNoteResponse{Error: pb.FromError(err)}, nil
}

// ReportUsage counts usage against the run's budget.
func (c *callbacks) ReportUsage(ctx context.Context, req *pb.ReportUsageRequest) (*pb.ReportUsageResponse, error) {
	call, leave, err := c.enter(ctx, req.GetCallId())
	if err != nil {
		return &pb.ReportUsageResponse{Error: pb.FromError(err)}, nil
	}
	defer leave()
	report := tea.Request{Host: call.host}
	err = report.Usage(call.ctx, tea.Usage{Tokens: req.GetTokens(), USD: req.GetUsd()})
	return &pb.ReportUsageResponse{Error: pb.FromError(err)}, nil
}
