package callstream

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/the-edge-agent/tea/sdk/internal/handshake"
	"github.com/the-edge-agent/tea/sdk/internal/pb"
)

// Workers is the number of goroutines that wait for calls. A new goroutine must
// grow its stack, which takes a tenth of a small call; only calls beyond the
// workers get new goroutines.
const Workers = 4

// Run makes a call. The error is a gRPC status.
type Run func(ctx context.Context, req *pb.CallsRequest) (*pb.InvokeResponse, error)

// served is a stream of calls.
type served struct {
	run    Run
	stream grpc.BidiStreamingServer[pb.CallsRequest, pb.CallsResponse]
	// work passes calls to the workers.
	work    chan *received
	running sync.WaitGroup
	// sending allows one sender at a time.
	sending sync.Mutex

	mu      sync.Mutex
	cancels map[string]context.CancelFunc // by the call's id
}

// received is a call that has arrived in a stream.
type received struct {
	ctx context.Context
	req *pb.CallsRequest
}

// Serve makes the calls of a stream, concurrently, until the other side ends it.
func Serve(stream grpc.BidiStreamingServer[pb.CallsRequest, pb.CallsResponse], run Run) error {
	s := &served{run: run, stream: stream, work: make(chan *received), cancels: map[string]context.CancelFunc{}}
	for range Workers {
		go func() {
			for c := range s.work {
				s.answer(c)
			}
		}()
	}
	defer s.running.Wait() // the calls use the stream
	defer close(s.work)
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if req.GetCancel() {
			s.cancel(req.GetId())
		} else {
			s.begin(req)
		}
	}
}

// begin starts a call.
func (s *served) begin(req *pb.CallsRequest) {
	c := &received{req: req}
	var cancel context.CancelFunc
	if timeout := time.Duration(req.GetTimeoutUs()) * time.Microsecond; timeout > 0 {
		c.ctx, cancel = context.WithTimeout(s.stream.Context(), timeout)
	} else {
		c.ctx, cancel = context.WithCancel(s.stream.Context())
	}
	s.mu.Lock()
	s.cancels[req.GetId()] = cancel
	s.mu.Unlock()
	s.running.Add(1)
	select {
	case s.work <- c:
	default: // all are busy
		go s.answer(c)
	}
}

// cancel cancels a call, if it is running.
func (s *served) cancel(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.cancels[id]; cancel != nil {
		cancel()
	}
}

// answer makes a call and answers it.
func (s *served) answer(c *received) {
	defer s.running.Done()
	id := c.req.GetId()
	answer := &pb.CallsResponse{Id: id}
	var err error
	answer.Response, err = s.run(c.ctx, c.req)
	if err == nil && proto.Size(answer) > handshake.MaxMessage { // it would end the stream
		err = status.Errorf(codes.ResourceExhausted, "trying to send message larger than max (%d vs. %d)", proto.Size(answer), handshake.MaxMessage)
	}
	if err != nil {
		failed := status.Convert(err)
		answer.Response, answer.Status, answer.Message = nil, int32(failed.Code()), failed.Message()
	}
	s.mu.Lock()
	s.cancels[id]()
	delete(s.cancels, id)
	s.mu.Unlock()
	s.sending.Lock()
	defer s.sending.Unlock()
	_ = s.stream.Send(answer) // a broken stream has no reader
}
