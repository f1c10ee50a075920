package serve

import (
	"context"
	"fmt"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/internal/callstream"
	"github.com/the-edge-agent/tea/sdk/internal/pb"
)

// Invoke runs an action and returns its outcome.
func (s *server) Invoke(ctx context.Context, req *pb.InvokeRequest) (*pb.InvokeResponse, error) {
	return s.invoke(ctx, req, s.back.host(req.GetCallId()))
}

// Calls runs the actions that are called in a stream until the host ends it.
func (s *server) Calls(stream grpc.BidiStreamingServer[pb.CallsRequest, pb.CallsResponse]) error {
	return callstream.Serve(stream, func(ctx context.Context, req *pb.CallsRequest) (*pb.InvokeResponse, error) {
		return s.Invoke(ctx, req.GetInvoke())
	})
}

// InvokeStream runs an action and sends its events, then its outcome.
func (s *server) InvokeStream(req *pb.InvokeRequest, stream grpc.ServerStreamingServer[pb.InvokeEvent]) error {
	host := s.back.host(req.GetCallId())
	host.stream = stream
	resp, err := s.invoke(stream.Context(), req, host)
	if err != nil {
		return err
	}
	if e := resp.GetError(); e != nil {
		return stream.Send(&pb.InvokeEvent{Event: &pb.InvokeEvent_Error{Error: e}})
	}
	return stream.Send(&pb.InvokeEvent{Event: &pb.InvokeEvent_Result{Result: resp.GetResult()}})
}

// invoke runs the action. The error is a gRPC status that reports a violation of the
// protocol by the host.
func (s *server) invoke(ctx context.Context, req *pb.InvokeRequest, host *callHost) (*pb.InvokeResponse, error) {
	if !s.calls.begin(req.GetCallId()) {
		return nil, status.Error(codes.Unavailable, "the plugin is shutting down")
	}
	defer s.calls.end(req.GetCallId())
	inst := s.instances.find(req.GetInstanceId())
	if inst == nil {
		return nil, status.Errorf(codes.FailedPrecondition, "instance %q is not configured", req.GetInstanceId())
	}
	action := req.GetAction()
	params, err := pb.ToParams(req.GetParams(), "parameters of "+action)
	if err != nil {
		return pb.FromOutcome(action, nil, err), nil
	}
	returned := false
	defer func() {
		// The action has ended the goroutine, so the host would wait for an answer
		// forever. A separate goroutine for each call, as in [tea.Instance.Invoke],
		// would more than double tea's overhead for a call.
		if !returned {
			fmt.Fprintf(os.Stderr, "fatal error: %s called runtime.Goexit\n", action)
			os.Exit(2)
		}
	}()
	resp, err := inst.InvokeHere(ctx, &tea.Request{
		Action: action,
		Params: params,
		Host:   host,
		Call: tea.Call{
			RunID:          req.GetRunId(),
			Node:           req.GetNode(),
			Attempt:        int(req.GetAttempt()),
			IdempotencyKey: req.GetIdempotencyKey(),
			Traceparent:    req.GetTraceparent(),
			Tracestate:     req.GetTracestate(),
			DryRun:         req.GetDryRun(),
		},
	})
	returned = true
	host.end(ctx)
	return pb.FromOutcome(action, resp, err), nil
}
