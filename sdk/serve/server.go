package serve

import (
	"context"
	"log/slog"
	"time"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/internal/pb"
)

// server is the plugin's side of the protocol for one bundle.
type server struct {
	pb.UnimplementedPluginServer
	pb.UnimplementedPluginCallsServer
	bundle    *tea.Bundle
	instances instances
	calls     calls
	back      hostLink
	stop      func()
}

func newServer(bundle *tea.Bundle) *server {
	return &server{bundle: bundle, instances: instances{byID: map[string]*tea.Instance{}}}
}

// Describe returns the bundle's manifest.
func (s *server) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	manifest, err := pb.FromManifest(s.bundle.Manifest())
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &pb.DescribeResponse{Manifest: manifest}, nil
}

// Health reports that the plugin accepts calls, and the state of a call.
func (s *server) Health(_ context.Context, req *pb.HealthRequest) (*pb.HealthResponse, error) {
	resp := &pb.HealthResponse{Ready: !s.calls.isDraining()}
	switch id := req.GetCallId(); {
	case id == "":
	case s.calls.isRunning(id):
		resp.Call = pb.CallState_CALL_STATE_RUNNING
	default:
		resp.Call = pb.CallState_CALL_STATE_ENDED
	}
	return resp, nil
}

// Shutdown ends the plugin within the grace period.
func (s *server) Shutdown(ctx context.Context, req *pb.ShutdownRequest) (*pb.ShutdownResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(req.GetGraceMs())*time.Millisecond)
	defer cancel()
	drained := s.drain(ctx)
	// The host closes the connection after the answer. If it does not, the process
	// ends anyway.
	time.AfterFunc(time.Second, s.stop)
	if !drained {
		return nil, status.Error(codes.DeadlineExceeded, "calls are still running")
	}
	return &pb.ShutdownResponse{}, nil
}

// drain refuses new calls, waits for the running ones within ctx and closes the
// instances. It reports whether all calls have ended.
func (s *server) drain(ctx context.Context) (drained bool) {
	select {
	case <-s.calls.drain():
		drained = true
	case <-ctx.Done():
	}
	if err := s.instances.closeAll(); err != nil {
		slog.Error("close an instance at shutdown", "error", err)
	}
	return drained
}

// adapter connects the server to go-plugin.
type adapter struct {
	plugin.NetRPCUnsupportedPlugin
	server *server
}

// GRPCServer registers the service.
func (a *adapter) GRPCServer(broker *plugin.GRPCBroker, g *grpc.Server) error {
	a.server.back.broker = broker
	a.server.stop = g.Stop
	pb.RegisterPluginServer(g, a.server)
	pb.RegisterPluginCallsServer(g, a.server)
	return nil
}

// GRPCClient is not used: the host is the client.
func (*adapter) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, status.Error(codes.Unimplemented, "a plugin is not a host")
}
