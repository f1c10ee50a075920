package callstream

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/the-edge-agent/tea/sdk/internal/pb"
)

const (
	// maxUnanswered bounds the size of the unanswered calls in a stream. gRPC
	// accepts this much without waiting for the other side, so that no call
	// waits for another one.
	maxUnanswered = 48 << 10
	// maxShared is the size from which a call gets a separate stream, because it
	// would occupy the shared one.
	maxShared = 16 << 10
	// cancelSize is more than the size of a cancellation.
	cancelSize = 64
)

// ErrStreamFull is the error of a call for which the stream has no room. The caller
// uses a unary call instead.
var ErrStreamFull = errors.New("the stream has no room for the call")

// Caller makes calls in one stream. A failed stream is replaced for the next
// call. Streams end with their connection. It is safe for concurrent use.
type Caller struct {
	begin func(context.Context, ...grpc.CallOption) (stream, error)

	mu      sync.Mutex
	current *shared
}

type stream = grpc.BidiStreamingClient[pb.CallsRequest, pb.CallsResponse]

// NewCaller returns a caller for the streams that begin opens.
func NewCaller(begin func(context.Context, ...grpc.CallOption) (stream, error)) *Caller {
	return &Caller{begin: begin}
}

// shared is one stream.
type shared struct {
	// sending allows one sender at a time.
	sending sync.Mutex
	stream  stream

	mu      sync.Mutex
	calls   uint64 // so far
	waiting map[string]*call
	// unanswered is the size of all calls in waiting.
	unanswered int
	failure    error
}

// call is an unanswered call. It is kept when it is canceled.
type call struct {
	answer chan *pb.CallsResponse // nil stands for the failure of the stream
	size   int
}

// Call makes a call; it sets the id and the deadline of the request. The error is
// the same as for a unary gRPC call, or ErrStreamFull.
func (c *Caller) Call(ctx context.Context, req *pb.CallsRequest) (*pb.InvokeResponse, error) {
	if ctx.Err() != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if deadline, ok := ctx.Deadline(); ok {
		req.TimeoutUs = max(1, time.Until(deadline).Microseconds())
	}
	size := proto.Size(req) + cancelSize
	if size > maxShared {
		return nil, ErrStreamFull
	}
	s, err := c.open()
	if err != nil {
		return nil, err
	}
	waiting, err := s.begin(req, size)
	if err != nil {
		return nil, err
	}
	s.send(req)
	select {
	case answer := <-waiting.answer:
		return s.outcome(answer)
	case <-ctx.Done():
		s.send(&pb.CallsRequest{Id: req.GetId(), Request: &pb.CallsRequest_Cancel{Cancel: true}})
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// open returns the stream. It opens one if there is none.
func (c *Caller) open() (*shared, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil && c.current.broken() == nil {
		return c.current, nil
	}
	stream, err := c.begin(context.Background())
	if err != nil {
		return nil, err
	}
	c.current = &shared{stream: stream, waiting: map[string]*call{}}
	go c.current.receive()
	return c.current, nil
}

func (s *shared) broken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// begin makes room for a call and sets its id.
func (s *shared) begin(req *pb.CallsRequest, size int) (*call, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.failure != nil:
		return nil, s.failure
	case s.unanswered+size > maxUnanswered:
		return nil, ErrStreamFull
	}
	s.calls++
	req.Id = strconv.FormatUint(s.calls, 36)
	waiting := &call{answer: make(chan *pb.CallsResponse, 1), size: size}
	s.waiting[req.Id] = waiting
	s.unanswered += size
	return waiting, nil
}

// send sends a request. If the stream is broken, receive ends the calls.
func (s *shared) send(req *pb.CallsRequest) {
	s.sending.Lock()
	defer s.sending.Unlock()
	_ = s.stream.Send(req)
}

// receive distributes the answers until the stream ends.
func (s *shared) receive() {
	for {
		answer, err := s.stream.Recv()
		s.mu.Lock()
		if err != nil {
			s.failure = err
			for _, waiting := range s.waiting {
				waiting.answer <- nil
			}
			s.mu.Unlock()
			return
		}
		if waiting := s.waiting[answer.GetId()]; waiting != nil {
			delete(s.waiting, answer.GetId())
			s.unanswered -= waiting.size
			waiting.answer <- answer
		}
		s.mu.Unlock()
	}
}

// outcome returns the same as a unary call.
func (s *shared) outcome(answer *pb.CallsResponse) (*pb.InvokeResponse, error) {
	if answer == nil {
		err := s.broken()
		if status.Code(err) == codes.Unknown { // the other side has ended the stream
			err = status.Error(codes.Internal, "the stream of calls was ended")
		}
		return nil, err
	}
	if code := codes.Code(answer.GetStatus()); code != codes.OK {
		return nil, status.Error(code, answer.GetMessage())
	}
	return answer.GetResponse(), nil
}
