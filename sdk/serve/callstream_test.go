package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/internal/callstream"
	"github.com/the-edge-agent/tea/sdk/internal/pb"
)

// openCalls serves a bundle with the instance "1" and opens a stream of calls.
func openCalls(ctx context.Context, t *testing.T, bundle *tea.Bundle) (pb.PluginClient, grpc.BidiStreamingClient[pb.CallsRequest, pb.CallsResponse]) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(bundle)
	g := grpc.NewServer()
	pb.RegisterPluginServer(g, s)
	pb.RegisterPluginCallsServer(g, s)
	go g.Serve(l)
	t.Cleanup(g.Stop)
	conn, err := grpc.NewClient("unix:"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	client := pb.NewPluginClient(conn)
	if _, err := client.Configure(t.Context(), &pb.ConfigureRequest{InstanceId: "1"}); err != nil {
		t.Fatal(err)
	}
	stream, err := pb.NewPluginCallsClient(conn).Calls(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return client, stream
}

func TestCallsOfAStreamRunConcurrently(t *testing.T) {
	t.Parallel()
	const calls = 3 * callstream.Workers
	begun, release := make(chan struct{}, calls), make(chan struct{})
	type none struct{}
	client, stream := openCalls(t.Context(), t, &tea.Bundle{Name: "held", Version: "1.0.0", Actions: []tea.Action{
		tea.NewAction("held.wait", "Waits.", func(ctx context.Context, req *tea.Request, _ none) (string, error) {
			begun <- struct{}{}
			select {
			case <-release:
				return req.Node, nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}),
	}})
	send := func(req *pb.CallsRequest) {
		t.Helper()
		if err := stream.Send(req); err != nil {
			t.Fatal(err)
		}
	}
	invoke := func(id, instance string, timeout int64) {
		t.Helper()
		send(&pb.CallsRequest{Id: id, Request: &pb.CallsRequest_Invoke{Invoke: &pb.InvokeRequest{
			InstanceId: instance, CallId: id, Action: "held.wait", Node: "node " + id,
		}}, TimeoutUs: timeout})
	}
	answers := func(n int) map[string]string {
		t.Helper()
		got := map[string]string{}
		for range n {
			answer, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			text := string(answer.GetResponse().GetResult()) + answer.GetResponse().GetError().GetType()
			if code := codes.Code(answer.GetStatus()); code != codes.OK {
				text = code.String()
			}
			got[answer.GetId()] = text
		}
		return got
	}
	want := map[string]string{}
	for i := range calls {
		id := fmt.Sprint(i)
		invoke(id, "1", 0)
		want[id] = fmt.Sprintf("%q", "node "+id)
	}
	for range calls {
		<-begun
	}
	health, err := client.Health(t.Context(), &pb.HealthRequest{CallId: "0"})
	if err != nil || health.GetCall() != pb.CallState_CALL_STATE_RUNNING {
		t.Errorf("the state of a call is %v, %v", health.GetCall(), err)
	}
	send(&pb.CallsRequest{Id: "0", Request: &pb.CallsRequest_Cancel{Cancel: true}})
	send(&pb.CallsRequest{Id: "unknown", Request: &pb.CallsRequest_Cancel{Cancel: true}})
	invoke("short", "1", 1)
	invoke("lost", "unknown", 0)
	if diff := cmp.Diff(map[string]string{"0": "canceled", "short": "timeout", "lost": "FailedPrecondition"}, answers(3)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	delete(want, "0")
	close(release)
	if diff := cmp.Diff(want, answers(calls-1)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEndOfAStreamEndsItsCalls(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan struct{}), make(chan error, 1)
	type none struct{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, stream := openCalls(ctx, t, &tea.Bundle{Name: "held", Version: "1.0.0", Actions: []tea.Action{
		tea.NewAction("held.wait", "Waits.", func(ctx context.Context, _ *tea.Request, _ none) (none, error) {
			close(begun)
			<-ctx.Done()
			ended <- ctx.Err()
			return none{}, ctx.Err()
		}),
	}})
	if err := stream.Send(&pb.CallsRequest{Id: "1", Request: &pb.CallsRequest_Invoke{Invoke: &pb.InvokeRequest{InstanceId: "1", CallId: "1", Action: "held.wait"}}}); err != nil {
		t.Fatal(err)
	}
	<-begun
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
}
