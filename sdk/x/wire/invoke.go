package wire

import (
	"context"
	"errors"
	"io"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/internal/callstream"
	"github.com/the-edge-agent/tea/sdk/internal/handshake"
	"github.com/the-edge-agent/tea/sdk/internal/pb"
)

// Invoke calls an action on a configured instance. While it runs, the plugin can reach
// req.Host, which must not be nil. With stream, tokens, progress and logs arrive in order with
// the result; a plugin that does not support streaming is called without it.
//
// The error is a [*tea.Error], either the action's or timeout, canceled and validation_error
// (too large) of the transport, or a [*BrokenError]. Invoke returns as soon as ctx is done,
// with a [*LateError]: the plugin's handler may still be running.
func (c *Client) Invoke(ctx context.Context, instance string, req *tea.Request, stream bool) (*tea.Response, error) {
	params, err := pb.FromPayload(req.Params, "parameters of "+req.Action)
	if err != nil {
		return nil, err
	}
	msg := &pb.InvokeRequest{
		InstanceId:     instance,
		CallId:         c.nextCall(),
		Action:         req.Action,
		Params:         params,
		RunId:          req.RunID,
		Node:           req.Node,
		Attempt:        int32(req.Attempt),
		IdempotencyKey: req.IdempotencyKey,
		Traceparent:    req.Traceparent,
		Tracestate:     req.Tracestate,
		DryRun:         req.DryRun,
	}
	c.open.add(1)
	defer c.open.add(-1)
	if callbacks := c.back.calls(); callbacks != nil {
		callbacks.admit(ctx, msg.CallId, req.Host)
		defer callbacks.leave(msg.CallId)
	}
	if stream && c.can(handshake.Stream) {
		resp, err := c.stream(ctx, msg, req.Host)
		return resp, toLate(ctx, msg.CallId, err)
	}
	resp, err := c.unary(ctx, msg)
	if err != nil {
		return nil, toLate(ctx, msg.CallId, toBroken(ctx, req.Action, err))
	}
	if resp.GetOutcome() == nil {
		return nil, violation(req.Action, "the answer has neither a result nor an error")
	}
	return pb.ToOutcome(req.Action, resp)
}

// unary makes a call without streaming. The error is gRPC's.
func (c *Client) unary(ctx context.Context, msg *pb.InvokeRequest) (*pb.InvokeResponse, error) {
	if c.shared != nil && c.can(handshake.Calls) {
		req := &pb.CallsRequest{Request: &pb.CallsRequest_Invoke{Invoke: msg}}
		if resp, err := c.shared.Call(ctx, req); !errors.Is(err, callstream.ErrStreamFull) {
			return resp, err
		}
	}
	return c.plugin.Invoke(ctx, msg)
}

func (c *Client) stream(ctx context.Context, msg *pb.InvokeRequest, host tea.Host) (*tea.Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // frees the stream if it is not read to its end
	events, err := c.plugin.InvokeStream(ctx, msg)
	if err != nil {
		return nil, toBroken(ctx, msg.Action, err)
	}
	for {
		event, err := events.Recv()
		if errors.Is(err, io.EOF) {
			return nil, violation(msg.Action, "the stream ended without a result")
		}
		if err != nil {
			return nil, toBroken(ctx, msg.Action, err)
		}
		switch e := event.GetEvent().(type) {
		case *pb.InvokeEvent_Token:
			emit(ctx, host, e.Token)
		case *pb.InvokeEvent_Progress:
			host.Progress(ctx, e.Progress.GetFraction(), e.Progress.GetMessage())
		case *pb.InvokeEvent_Log:
			level, message, fields := pb.ToLog(e.Log)
			host.Log(ctx, level, message, fields)
		case *pb.InvokeEvent_Error:
			return nil, pb.ToError(e.Error)
		case *pb.InvokeEvent_Result:
			return pb.ToOutcome(msg.Action, &pb.InvokeResponse{Outcome: &pb.InvokeResponse_Result{Result: e.Result}})
		}
		// Unknown events come from a newer plugin and are ignored.
	}
}

// emit emits the tokens of a message.
func emit(ctx context.Context, host tea.Host, t *pb.Token) {
	host.Token(ctx, t.GetText())
	for _, text := range t.GetMore() {
		host.Token(ctx, text)
	}
}
