package conform

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/the-edge-agent/tea/sdk/internal/pb"
	"github.com/the-edge-agent/tea/sdk/x/wire"
)

// serveAny answers the calls of a connection with a function.
func serveAny(t *testing.T, l net.Listener, answer func(ctx context.Context, method string, request proto.Message) (proto.Message, error)) {
	t.Helper()
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		request, _ := messages(method)
		if err := stream.RecvMsg(request); err != nil {
			return err
		}
		reply, err := answer(stream.Context(), method, request)
		if err != nil {
			return err
		}
		return stream.SendMsg(reply)
	}))
	go server.Serve(l)
	t.Cleanup(server.Stop)
}

// switchboard is the broker of a host whose plugin is a recording: it listens
// at a path.
type switchboard struct{ path string }

func newSwitchboard(t *testing.T) switchboard {
	t.Helper()
	return switchboard{filepath.Join(t.TempDir(), "host")}
}

func (switchboard) NextId() uint32 { return 1 }

func (s switchboard) Accept(uint32) (net.Listener, error) { return net.Listen("unix", s.path) }

func (s switchboard) dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+s.path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// tap is a broker that records the callbacks of a plugin on their way to the
// host.
type tap struct {
	wire.Broker
	t *testing.T

	mu    sync.Mutex
	calls []exchange
}

// Accept returns a listener of the host's, to which the real one's calls go.
func (b *tap) Accept(id uint32) (net.Listener, error) {
	real, err := b.Broker.Accept(id)
	if err != nil {
		return nil, err
	}
	inner := newSwitchboard(b.t)
	host := inner.dial(b.t)
	serveAny(b.t, real, func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
		_, reply := messages(method)
		err := host.Invoke(ctx, method, request, reply)
		x := exchange{Method: method, Request: encode(request), Status: status.Code(err)}
		x.Text = append(x.Text, text(request))
		if err == nil {
			x.Answers, x.Text = [][]byte{encode(reply)}, append(x.Text, text(reply))
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.calls = append(b.calls, x)
		return reply, err
	})
	return inner.Accept(id)
}

// take returns the callbacks since the last time.
func (b *tap) take() []exchange {
	b.mu.Lock()
	defer b.mu.Unlock()
	calls := b.calls
	b.calls = nil
	return calls
}

// broker returns the broker of a process.
func (p *Process) broker(t *testing.T) wire.Broker {
	t.Helper()
	protocol, err := p.plugin.Client()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := protocol.Dispense(wire.Service)
	if err != nil {
		t.Fatal(err)
	}
	return raw.(*dispenser).broker
}

// callBack makes the callbacks of a recorded call at the present host, and
// returns what its answers lack.
func callBack(ctx context.Context, host *grpc.ClientConn, x exchange, callID string) error {
	for _, c := range x.Callbacks {
		request, reply := messages(c.Method)
		if err := proto.Unmarshal(c.Request, request); err != nil {
			return err
		}
		m := request.ProtoReflect()
		m.Set(m.Descriptor().Fields().ByName("call_id"), protoreflect.ValueOfString(callID))
		err := host.Invoke(ctx, c.Method, request, reply)
		if code := status.Code(err); code != c.Status {
			return fmt.Errorf("%s: status %s, want %s", c.Method, code, c.Status)
		}
		if err != nil {
			continue
		}
		if missing, err := missingOf(c.Answers[0], reply); err != nil || missing != "" {
			return fmt.Errorf("%s: %s %w", c.Method, missing, err)
		}
	}
	return nil
}

// olderHost is the host of a recording: it answers callbacks as recorded.
type olderHost struct {
	t *testing.T

	mu   sync.Mutex
	left []exchange // of the current call
}

// expect sets the callbacks of the next call and returns those that the last one
// has not made.
func (h *olderHost) expect(callbacks []exchange) (unmade []exchange) {
	h.mu.Lock()
	defer h.mu.Unlock()
	unmade, h.left = h.left, callbacks
	return unmade
}

func (h *olderHost) answer(_ context.Context, method string, request proto.Message) (proto.Message, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.left) == 0 || h.left[0].Method != method {
		h.t.Errorf("%s %s was not recorded here", method, text(request))
		return nil, status.Error(codes.Unimplemented, method)
	}
	c := h.left[0]
	h.left = h.left[1:]
	if missing, err := missingOf(c.Request, request); err != nil || missing != "" {
		h.t.Errorf("%s: %s %v", method, missing, err)
	}
	if c.Status != codes.OK {
		return nil, status.Error(c.Status, "as recorded")
	}
	_, reply := messages(method)
	return reply, proto.Unmarshal(c.Answers[0], reply)
}

// serve offers the host to a process under the id that a recorded request names.
func (h *olderHost) serve(broker wire.Broker, x exchange) {
	h.t.Helper()
	request := &pb.ConfigureRequest{}
	if err := proto.Unmarshal(x.Request, request); err != nil {
		h.t.Fatal(err)
	}
	l, err := broker.Accept(request.GetHostService())
	if err != nil {
		h.t.Fatal(err)
	}
	serveAny(h.t, l, h.answer)
}
