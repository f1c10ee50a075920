package serve

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

// callStream is a stream of calls.
type callStream struct {
	server *server
	stream grpc.BidiStreamingServer[pb.CallsRequest, pb.CallsResponse]
	// work passes calls to goroutines that wait for one, see workers.
	work    chan *streamedCall
	running sync.WaitGroup
	// sending allows one sender at a time.
	sending sync.Mutex

	mu      sync.Mutex
	cancels map[string]context.CancelFunc // by the call's id
}

// streamedCall is a call that came in a stream.
type streamedCall struct {
	ctx context.Context
	req *pb.InvokeRequest
}

// Calls runs the actions that are called in a stream until the host ends it.
func (s *server) Calls(stream grpc.BidiStreamingServer[pb.CallsRequest, pb.CallsResponse]) error {
	c := &callStream{server: s, stream: stream, work: make(chan *streamedCall), cancels: map[string]context.CancelFunc{}}
	for range workers {
		go func() {
			for call := range c.work {
				c.run(call)
			}
		}()
	}
	defer c.running.Wait() // they use the stream
	defer close(c.work)
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if msg := req.GetInvoke(); msg != nil {
			c.begin(msg, time.Duration(req.GetTimeoutUs())*time.Microsecond)
		} else {
			c.cancel(req.GetCancel())
		}
	}
}

// begin starts a call.
func (c *callStream) begin(req *pb.InvokeRequest, timeout time.Duration) {
	call := &streamedCall{req: req}
	var cancel context.CancelFunc
	if timeout > 0 {
		call.ctx, cancel = context.WithTimeout(c.stream.Context(), timeout)
	} else {
		call.ctx, cancel = context.WithCancel(c.stream.Context())
	}
	c.mu.Lock()
	c.cancels[req.GetCallId()] = cancel
	c.mu.Unlock()
	c.running.Add(1)
	select {
	case c.work <- call:
	default: // all are busy
		go c.run(call)
	}
}

// cancel cancels a call, if it is running.
func (c *callStream) cancel(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.cancels[id]; cancel != nil {
		cancel()
	}
}

// run runs an action and answers.
func (c *callStream) run(call *streamedCall) {
	defer c.running.Done()
	id := call.req.GetCallId()
	answer := &pb.CallsResponse{CallId: id}
	var err error
	answer.Response, err = c.server.invoke(call.ctx, call.req, c.server.back.host(id))
	if err == nil && proto.Size(answer) > handshake.MaxMessage { // it would end the stream
		err = status.Errorf(codes.ResourceExhausted, "trying to send message larger than max (%d vs. %d)", proto.Size(answer), handshake.MaxMessage)
	}
	if err != nil {
		s := status.Convert(err)
		answer.Response, answer.Status, answer.Message = nil, int32(s.Code()), s.Message()
	}
	c.mu.Lock()
	c.cancels[id]()
	delete(c.cancels, id)
	c.mu.Unlock()
	c.sending.Lock()
	defer c.sending.Unlock()
	_ = c.stream.Send(answer) // a broken stream has no reader
}
