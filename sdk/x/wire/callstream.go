package wire

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/the-edge-agent/tea/sdk/internal/pb"
)

const (
	// maxUnanswered bounds the size of the calls in a stream that are not
	// answered. gRPC takes this much without waiting for the plugin, so that no
	// call waits for another one.
	maxUnanswered = 48 << 10
	// maxShared is the size from which a call gets its own stream: it would occupy
	// the shared one.
	maxShared = 16 << 10
	// cancelSize is more than the size of a cancellation.
	cancelSize = 64
)

// errOccupied is the error of a call for which the stream has no room.
var errOccupied = errors.New("the stream has no room for the call")

// callStreams is the stream of a plugin process that calls share. A stream that
// has failed is replaced by another one for the next call.
type callStreams struct {
	plugin pb.PluginCallsClient

	mu      sync.Mutex
	current *callStream
}

// callStream is one stream.
type callStream struct {
	// sending allows one sender at a time.
	sending sync.Mutex
	stream  grpc.BidiStreamingClient[pb.CallsRequest, pb.CallsResponse]

	mu      sync.Mutex
	waiting map[string]*sharedCall
	// unanswered is the size of all calls in waiting.
	unanswered int
	failure    error
}

// sharedCall is a call that is not answered. It is kept when it is canceled.
type sharedCall struct {
	answer chan *pb.CallsResponse // nil stands for the failure of the stream
	size   int
}

// call makes a call. The error is that of gRPC's unary call, or errOccupied.
func (c *callStreams) call(ctx context.Context, msg *pb.InvokeRequest) (*pb.InvokeResponse, error) {
	if ctx.Err() != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	req := &pb.CallsRequest{Request: &pb.CallsRequest_Invoke{Invoke: msg}}
	if deadline, ok := ctx.Deadline(); ok {
		req.TimeoutUs = max(1, time.Until(deadline).Microseconds())
	}
	size := proto.Size(req) + cancelSize
	if size > maxShared {
		return nil, errOccupied
	}
	s, err := c.open()
	if err != nil {
		return nil, err
	}
	call, err := s.begin(msg.GetCallId(), size)
	if err != nil {
		return nil, err
	}
	s.send(req)
	select {
	case answer := <-call.answer:
		return s.outcome(answer)
	case <-ctx.Done():
		s.send(&pb.CallsRequest{Request: &pb.CallsRequest_Cancel{Cancel: msg.GetCallId()}})
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// open returns the stream. It opens one if there is none.
func (c *callStreams) open() (*callStream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil && c.current.broken() == nil {
		return c.current, nil
	}
	stream, err := c.plugin.Calls(context.Background())
	if err != nil {
		return nil, err
	}
	c.current = &callStream{stream: stream, waiting: map[string]*sharedCall{}}
	go c.current.receive()
	return c.current, nil
}

func (s *callStream) broken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// begin makes room for a call.
func (s *callStream) begin(id string, size int) (*sharedCall, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.failure != nil:
		return nil, s.failure
	case s.unanswered+size > maxUnanswered:
		return nil, errOccupied
	}
	call := &sharedCall{answer: make(chan *pb.CallsResponse, 1), size: size}
	s.waiting[id] = call
	s.unanswered += size
	return call, nil
}

// send sends a request. If the stream is broken, receive ends the calls.
func (s *callStream) send(req *pb.CallsRequest) {
	s.sending.Lock()
	defer s.sending.Unlock()
	_ = s.stream.Send(req)
}

// receive distributes the answers until the stream ends.
func (s *callStream) receive() {
	for {
		answer, err := s.stream.Recv()
		s.mu.Lock()
		if err != nil {
			s.failure = err
			for _, call := range s.waiting {
				call.answer <- nil
			}
			s.mu.Unlock()
			return
		}
		if call := s.waiting[answer.GetCallId()]; call != nil {
			delete(s.waiting, answer.GetCallId())
			s.unanswered -= call.size
			call.answer <- answer
		}
		s.mu.Unlock()
	}
}

// outcome returns what the unary call would.
func (s *callStream) outcome(answer *pb.CallsResponse) (*pb.InvokeResponse, error) {
	if answer == nil {
		err := s.broken()
		if status.Code(err) == codes.Unknown { // the plugin has ended the stream
			err = status.Error(codes.Internal, "the plugin has ended the stream of calls")
		}
		return nil, err
	}
	if code := codes.Code(answer.GetStatus()); code != codes.OK {
		return nil, status.Error(code, answer.GetMessage())
	}
	return answer.GetResponse(), nil
}
