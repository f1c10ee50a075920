package wire_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/internal/pb"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/wire"
)

// streamer is a plugin that accepts calls in a stream.
type streamer struct {
	scriptedPlugin
	pb.UnimplementedPluginCallsServer
	calls func(callsOfHost) error
}

type callsOfHost = grpc.BidiStreamingServer[pb.CallsRequest, pb.CallsResponse]

func (*streamer) Configure(context.Context, *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	return &pb.ConfigureResponse{Capabilities: []string{"calls"}}, nil
}

func (s *streamer) Calls(stream callsOfHost) error { return s.calls(stream) }

// share returns a client whose calls share a stream.
func share(t *testing.T, calls func(callsOfHost) error) *wire.Client {
	t.Helper()
	s := &streamer{calls: calls}
	s.invoke = func(*pb.InvokeRequest) (*pb.InvokeResponse, error) { return result(`"unary"`), nil }
	client := meet(t, s, nil)
	client.ShareStream()
	if err := client.Configure(t.Context(), "1", nil); err != nil {
		t.Fatal(err)
	}
	return client
}

// outcome is what a call returns.
type outcome struct {
	value any
	err   error
}

// begin makes a call in the background.
func begin(ctx context.Context, client *wire.Client, action string, params any) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		resp, err := client.Invoke(ctx, "1", &tea.Request{Action: action, Params: tea.ValuePayload(params), Host: &teatest.Host{}}, false)
		if err != nil {
			done <- outcome{err: err}
			return
		}
		v, err := resp.Result.Value()
		done <- outcome{v, err}
	}()
	return done
}

func TestAnswersInAStreamReachTheirCalls(t *testing.T) {
	t.Parallel()
	client := share(t, func(s callsOfHost) error {
		ids := map[string]string{}
		for range 3 {
			req, err := s.Recv()
			if err != nil {
				return err
			}
			ids[req.GetInvoke().GetAction()] = req.GetId()
		}
		for _, answer := range []*pb.CallsResponse{
			{Id: "unknown", Response: result(`0`)},
			{Id: ids["a.two"], Response: result(`2`)},
			{Id: ids["a.bad"], Status: int32(codes.FailedPrecondition), Message: "no such instance"},
			{Id: ids["a.one"], Response: result(`1`)},
			{Id: ids["a.one"], Response: result(`7`)},
		} {
			if err := s.Send(answer); err != nil {
				return err
			}
		}
		_, err := s.Recv()
		return err
	})
	one, two, bad := begin(t.Context(), client, "a.one", nil), begin(t.Context(), client, "a.two", nil), begin(t.Context(), client, "a.bad", nil)
	if diff := cmp.Diff([]any{int64(1), int64(2)}, []any{(<-one).value, (<-two).value}); diff != "" {
		t.Error(diff)
	}
	var broken *wire.BrokenError
	if err := (<-bad).err; !errors.As(err, &broken) || broken.Gone || !strings.Contains(err.Error(), "no such instance") {
		t.Errorf("got %v", err)
	}
}

func TestCanceledCallInAStream(t *testing.T) {
	t.Parallel()
	begun, canceled := make(chan struct{}), make(chan bool, 1)
	client := share(t, func(s callsOfHost) error {
		first, err := s.Recv()
		if err != nil {
			return err
		}
		close(begun)
		end, err := s.Recv()
		if err != nil {
			return err
		}
		canceled <- end.GetCancel() && end.GetId() == first.GetId()
		next, err := s.Recv()
		if err != nil {
			return err
		}
		if next.GetTimeoutUs() <= 0 || next.GetTimeoutUs() > time.Hour.Microseconds() {
			t.Errorf("the deadline of a call is %d us away", next.GetTimeoutUs())
		}
		for id, text := range map[string]string{first.GetId(): `"late"`, next.GetId(): `"next"`} {
			if err := s.Send(&pb.CallsResponse{Id: id, Response: result(text)}); err != nil {
				return err
			}
		}
		_, err = s.Recv()
		return err
	})
	ctx, cancel := context.WithCancel(t.Context())
	first := begin(ctx, client, "a.slow", nil)
	<-begun
	cancel()
	var late *wire.LateError
	if err := (<-first).err; !errors.As(err, &late) || tea.AsError(err).Type != tea.Canceled {
		t.Errorf("got %v", err)
	}
	if !<-canceled {
		t.Error("the plugin was not asked to cancel the call")
	}
	limited, stop := context.WithTimeout(t.Context(), time.Hour)
	defer stop()
	if next := <-begin(limited, client, "a.fast", nil); next.value != "next" {
		t.Errorf("got %v", next)
	}
}

// Calls must not wait for the plugin to read others.
func TestCallsWithoutRoomInTheStream(t *testing.T) {
	t.Parallel()
	client := share(t, func(s callsOfHost) error {
		<-s.Context().Done() // it reads nothing
		return s.Context().Err()
	})
	if large := <-begin(t.Context(), client, "a.large", strings.Repeat("x", 1<<16)); large.value != "unary" {
		t.Errorf("got %v", large)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	all := make(chan outcome)
	const calls = 10
	for range calls {
		one := begin(ctx, client, "a.medium", strings.Repeat("x", 10<<10))
		go func() { all <- <-one }()
	}
	for range 6 { // of 48 KB, four have room
		if one := <-all; one.value != "unary" {
			t.Errorf("got %v", one)
		}
	}
	cancel()
	for range calls - 6 {
		if one := <-all; one.err == nil {
			t.Errorf("got %v", one)
		}
	}
}

func TestEndOfTheStreamEndsItsCalls(t *testing.T) {
	t.Parallel()
	streams := 0
	client := share(t, func(s callsOfHost) error {
		streams++
		req, err := s.Recv()
		if err != nil || streams == 1 {
			return err
		}
		return s.Send(&pb.CallsResponse{Id: req.GetId(), Response: result(`true`)})
	})
	var broken *wire.BrokenError
	if first := <-begin(t.Context(), client, "a.b", nil); !errors.As(first.err, &broken) || broken.Gone {
		t.Errorf("got %v", first.err)
	}
	if second := <-begin(t.Context(), client, "a.b", nil); second.value != true {
		t.Errorf("got %v", second)
	}
}
