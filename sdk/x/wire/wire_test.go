package wire_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/internal/pb"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scriptedPlugin is a plugin that answers as the test says.
type scriptedPlugin struct {
	pb.UnimplementedPluginServer
	manifest *pb.Manifest
	invoke   func(*pb.InvokeRequest) (*pb.InvokeResponse, error)
	events   []*pb.InvokeEvent
}

func (s *scriptedPlugin) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return &pb.DescribeResponse{Manifest: s.manifest}, nil
}

func (s *scriptedPlugin) Configure(_ context.Context, req *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	switch req.GetInstanceId() {
	case "refused":
		return &pb.ConfigureResponse{Error: &pb.Error{Type: "validation_error"}}, nil
	case "keeper":
		return &pb.ConfigureResponse{Capabilities: []string{"handover", "stream"}}, nil
	}
	return &pb.ConfigureResponse{Capabilities: []string{"teleport.v9", "stream"}}, nil
}

func (s *scriptedPlugin) Invoke(_ context.Context, req *pb.InvokeRequest) (*pb.InvokeResponse, error) {
	return s.invoke(req)
}

func (s *scriptedPlugin) Shutdown(context.Context, *pb.ShutdownRequest) (*pb.ShutdownResponse, error) {
	return &pb.ShutdownResponse{}, nil
}

func (s *scriptedPlugin) InvokeStream(_ *pb.InvokeRequest, stream grpc.ServerStreamingServer[pb.InvokeEvent]) error {
	for _, event := range s.events {
		if err := stream.Send(event); err != nil {
			return err
		}
	}
	return nil
}

// connect returns a client of the scripted plugin.
func connect(t *testing.T, s *scriptedPlugin) *wire.Client {
	t.Helper()
	client := meet(t, s, nil)
	if err := client.Configure(t.Context(), "1", nil); err != nil {
		t.Fatal(err)
	}
	return client
}

func meet(t *testing.T, s pb.PluginServer, broker wire.Broker) *wire.Client {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterPluginServer(server, s)
	if calls, ok := s.(pb.PluginCallsServer); ok {
		pb.RegisterPluginCallsServer(server, calls)
	}
	go server.Serve(l)
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("unix:"+l.Addr().String(), append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	client := wire.Connect(conn, broker)
	t.Cleanup(client.Close)
	return client
}

// switchboard is a broker that counts the listeners it was asked for.
type switchboard struct {
	dir   string
	asked uint32
}

func (s *switchboard) NextId() uint32 { return s.asked + 1 }

func (s *switchboard) Accept(id uint32) (net.Listener, error) {
	s.asked = id
	return net.Listen("unix", filepath.Join(s.dir, "back"))
}

// A plugin forgets the id of the host's services when it does not use it at
// once, and a host may describe a plugin long before it configures it.
func TestCallbacksAreOpenedWithTheFirstInstance(t *testing.T) {
	t.Parallel()
	broker := &switchboard{dir: t.TempDir()}
	client := meet(t, &scriptedPlugin{}, broker)
	if _, err := client.Describe(t.Context()); err == nil {
		t.Fatal("a stranger has a manifest")
	}
	if broker.asked != 0 {
		t.Fatal("the way back was opened before the plugin was told of it")
	}
	for _, instance := range []string{"1", "2"} {
		if err := client.Configure(t.Context(), instance, nil); err != nil {
			t.Fatal(err)
		}
		if broker.asked != 1 {
			t.Errorf("instance %s: the way back has the number %d, want 1", instance, broker.asked)
		}
	}
}

// A plugin hands state over as soon as one of its instances has some, whatever
// the later ones say.
func TestCapabilitiesOfAnInstanceStay(t *testing.T) {
	t.Parallel()
	client := connect(t, &scriptedPlugin{})
	if client.HandsOver() {
		t.Error("no instance has state")
	}
	if err := client.Configure(t.Context(), "keeper", nil); err != nil {
		t.Fatal(err)
	}
	if err := client.Configure(t.Context(), "2", nil); err != nil {
		t.Fatal(err)
	}
	if err := client.Configure(t.Context(), "refused", nil); err == nil {
		t.Fatal("no error")
	}
	if !client.HandsOver() {
		t.Error("the instance with state is forgotten")
	}
}

func request(host tea.Host) *tea.Request {
	return &tea.Request{Action: "a.b", Params: tea.RawPayload([]byte(`{}`)), Host: host}
}

func result(text string) *pb.InvokeResponse {
	return &pb.InvokeResponse{Outcome: &pb.InvokeResponse_Result{Result: []byte(text)}}
}

// The reader checks the result, once.
func TestResultThatIsNotJSONCannotBeRead(t *testing.T) {
	t.Parallel()
	client := connect(t, &scriptedPlugin{invoke: func(*pb.InvokeRequest) (*pb.InvokeResponse, error) { return result(`{"a":`), nil }})
	resp, err := client.Invoke(t.Context(), "1", request(&teatest.Host{}), false)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := resp.Result.Value(); err == nil {
		t.Errorf("read %v", v)
	}
}

func TestAnswersThatViolateTheProtocol(t *testing.T) {
	t.Parallel()
	newer := result(`1`)
	newer.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), "new"))
	for _, c := range []struct {
		name   string
		answer *pb.InvokeResponse
		err    error
		want   any           // where it succeeds
		fails  tea.ErrorType // where it is an action's error
		broken bool          // where the plugin is
		gone   bool
	}{
		{name: "unknown fields are ignored", answer: newer, want: int64(1)},
		{name: "no bytes are null", answer: result(``), want: nil},
		{name: "no outcome", answer: &pb.InvokeResponse{}, broken: true},
		{name: "error without a type", answer: &pb.InvokeResponse{Outcome: &pb.InvokeResponse_Error{Error: &pb.Error{Message: "no"}}}, fails: tea.InternalError},
		{name: "details that are not an object", answer: &pb.InvokeResponse{Outcome: &pb.InvokeResponse_Error{Error: &pb.Error{Type: "x", DetailsJson: []byte(`[`)}}}, fails: "x"},
		{name: "message too large", err: status.Error(codes.ResourceExhausted, "too large"), fails: tea.ValidationError},
		{name: "deadline", err: status.Error(codes.DeadlineExceeded, "late"), fails: tea.Timeout},
		{name: "connection lost", err: status.Error(codes.Unavailable, "EOF"), broken: true, gone: true},
		{name: "exception", err: status.Error(codes.Unknown, "Exception calling application"), broken: true},
		{name: "not implemented", err: status.Error(codes.Unimplemented, "unknown method"), broken: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			client := connect(t, &scriptedPlugin{invoke: func(*pb.InvokeRequest) (*pb.InvokeResponse, error) { return c.answer, c.err }})
			resp, err := client.Invoke(t.Context(), "1", request(&teatest.Host{}), false)
			var broken *wire.BrokenError
			var failed *tea.Error
			switch {
			case c.broken:
				if !errors.As(err, &broken) || broken.Gone != c.gone {
					t.Errorf("got %v (%T), want a broken plugin, gone: %t", err, err, c.gone)
				}
			case c.fails != "":
				if !errors.As(err, &failed) || failed.Type != c.fails {
					t.Errorf("got %v, want %s", err, c.fails)
				}
			case err != nil:
				t.Error(err)
			default:
				got, err := resp.Result.Value()
				if err != nil || got != c.want {
					t.Errorf("got %v, %v, want %v", got, err, c.want)
				}
			}
		})
	}
}

// A message is printed and kept more than once, so a message of a plugin is bounded.
func TestMessagesThatViolateTheProtocol(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		"":                         "without a message",
		strings.Repeat("ä", 1<<20): "... (2080768 more bytes)",
	} {
		client := connect(t, &scriptedPlugin{invoke: func(*pb.InvokeRequest) (*pb.InvokeResponse, error) {
			return &pb.InvokeResponse{Outcome: &pb.InvokeResponse_Error{Error: &pb.Error{Message: sent}}}, nil
		}})
		_, err := client.Invoke(t.Context(), "1", request(&teatest.Host{}), false)
		if e := tea.AsError(err); e == nil || !strings.HasSuffix(e.Message, want) || len(e.Message) > 17<<10 {
			t.Errorf("got %.100v", err)
		}
	}
}

func TestWaitsThatViolateTheProtocol(t *testing.T) {
	t.Parallel()
	for ms, want := range map[int64]time.Duration{-5: 0, 1500: 1500 * time.Millisecond, 1 << 62: 24 * time.Hour} {
		client := connect(t, &scriptedPlugin{invoke: func(*pb.InvokeRequest) (*pb.InvokeResponse, error) {
			return &pb.InvokeResponse{Outcome: &pb.InvokeResponse_Error{Error: &pb.Error{Message: "later", RetryAfterMs: ms}}}, nil
		}})
		_, err := client.Invoke(t.Context(), "1", request(&teatest.Host{}), false)
		if e := tea.AsError(err); e == nil || e.RetryAfter != want {
			t.Errorf("%d ms: got %v, want %s", ms, err, want)
		}
	}
}

// The answer of a call can arrive after the answer of the shutdown that it has
// delayed. The connection must not be closed before.
func TestShutdownWaitsForTheAnswersOfCalls(t *testing.T) {
	t.Parallel()
	begun, answer := make(chan struct{}), make(chan struct{})
	client := connect(t, &scriptedPlugin{invoke: func(*pb.InvokeRequest) (*pb.InvokeResponse, error) {
		close(begun)
		<-answer
		return result(`1`), nil
	}})
	ended := make(chan error, 1)
	go func() {
		_, err := client.Invoke(t.Context(), "1", request(&teatest.Host{}), false)
		ended <- err
	}()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := client.Shutdown(ctx, time.Minute); err == nil {
		t.Error("it did not wait for the call")
	}
	close(answer)
	if err := client.Shutdown(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestStreamsThatViolateTheProtocol(t *testing.T) {
	t.Parallel()
	token := &pb.InvokeEvent{Event: &pb.InvokeEvent_Token{Token: &pb.Token{Text: "t"}}}
	unknown := &pb.InvokeEvent{}
	unknown.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
	done := &pb.InvokeEvent{Event: &pb.InvokeEvent_Result{Result: []byte(`true`)}}

	host := &teatest.Host{}
	several := &pb.InvokeEvent{Event: &pb.InvokeEvent_Token{Token: &pb.Token{Text: "a", More: []string{"b", "c"}}}}
	client := connect(t, &scriptedPlugin{events: []*pb.InvokeEvent{token, unknown, token, several, done, token}})
	if _, err := client.Invoke(t.Context(), "1", request(host), true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"t", "t", "a", "b", "c"}, host.Recorded().Tokens); diff != "" {
		t.Errorf("what comes behind the result must not count: %s", diff)
	}

	client = connect(t, &scriptedPlugin{events: []*pb.InvokeEvent{token}})
	_, err := client.Invoke(t.Context(), "1", request(&teatest.Host{}), true)
	var failed *tea.Error
	if !errors.As(err, &failed) || failed.Type != tea.InternalError {
		t.Errorf("a stream without a result gives %v", err)
	}
}

func TestWrongManifestsAreRefused(t *testing.T) {
	t.Parallel()
	action := &pb.Action{Name: "a.b"}
	for name, m := range map[string]*pb.Manifest{
		"none":           nil,
		"bad name":       {Name: "../up", Version: "1", Protocol: 1, Actions: []*pb.Action{action}},
		"other protocol": {Name: "a", Version: "1", Protocol: 2, Actions: []*pb.Action{action}},
		"twice":          {Name: "a", Version: "1", Protocol: 1, Actions: []*pb.Action{action, action}},
		"too large":      {Name: "a", Version: "1", Protocol: 1, Actions: []*pb.Action{{Name: "a.b", Summary: strings.Repeat("x", 4<<20)}}},
		"schema":         {Name: "a", Version: "1", Protocol: 1, Actions: []*pb.Action{{Name: "a.b", ParamsSchemaJson: []byte(`{"type":`)}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := connect(t, &scriptedPlugin{manifest: m}).Describe(t.Context())
			var failed *tea.Error
			if !errors.As(err, &failed) || failed.Type != tea.InternalError {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTooLargeParametersAreRefusedBeforeTheyAreSent(t *testing.T) {
	t.Parallel()
	client := connect(t, &scriptedPlugin{invoke: func(*pb.InvokeRequest) (*pb.InvokeResponse, error) {
		t.Error("they were sent")
		return result(`null`), nil
	}})
	req := request(&teatest.Host{})
	req.Params = tea.RawPayload(make([]byte, tea.MaxPayload+1))
	_, err := client.Invoke(t.Context(), "1", req, false)
	var failed *tea.Error
	if !errors.As(err, &failed) || failed.Type != tea.ValidationError {
		t.Errorf("got %v", err)
	}
}
