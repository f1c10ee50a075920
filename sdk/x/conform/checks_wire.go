package conform

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/the-edge-agent/tea/sdk/internal/pb"
)

// wireChecks send messages that this SDK never sends but a newer host could.
func wireChecks() []Check {
	return []Check{
		{Name: "health", Remedy: "answer health with ready: true once the plugin accepts calls", Remote: true, Run: checkHealth},
		{Name: "state of a call", Needs: []string{"probe.wait"}, Remedy: "answer health with the state of the call in call_id: running until its handler has ended, ended afterwards and for an unknown one", Remote: true, Run: checkCallState},
		{Name: "unknown fields and capabilities", Remedy: "ignore fields and capabilities that are not known", Remote: true, Run: checkUnknown},
		{Name: "instance not configured", Remedy: "answer a call of an unknown instance_id with the gRPC status FAILED_PRECONDITION", Remote: true, Run: checkNoInstance},
		{Name: "release", Remedy: "accept the release of an unknown instance_id, and refuse later calls of it", Remote: true, Run: checkRelease},
	}
}

// plugin returns a client for calls to the process without the package's own client.
func (s *Subject) plugin() pb.PluginClient {
	return pb.NewPluginClient(s.Target.(*Process).Conn())
}

func checkHealth(ctx context.Context, s *Subject) error {
	resp, err := s.plugin().Health(ctx, &pb.HealthRequest{})
	if err != nil {
		return err
	}
	if !resp.GetReady() {
		return fmt.Errorf("the plugin is not ready: %s", resp.GetMessage())
	}
	return nil
}

// checkCallState asks for the state of a call while it runs and after its cancellation.
func checkCallState(ctx context.Context, s *Subject) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := s.configure(ctx, "watched"); err != nil {
		return err
	}
	state := func() (pb.CallState, error) {
		resp, err := s.plugin().Health(ctx, &pb.HealthRequest{CallId: "watched"})
		return resp.GetCall(), err
	}
	callCtx, end := context.WithCancel(ctx)
	defer end()
	events, err := s.plugin().InvokeStream(callCtx, &pb.InvokeRequest{InstanceId: "watched", CallId: "watched", Action: "probe.wait", Params: []byte(`{}`)})
	if err != nil {
		return err
	}
	if _, err := events.Recv(); err != nil {
		return err
	}
	got, err := state()
	if err != nil {
		return err
	}
	if got != pb.CallState_CALL_STATE_RUNNING {
		return fmt.Errorf("the state of a running call is %s, want CALL_STATE_RUNNING", got)
	}
	end()
	for {
		got, err := state()
		if err != nil {
			return fmt.Errorf("the state of a canceled call is not that it has ended: %w", err)
		}
		if got == pb.CallState_CALL_STATE_ENDED {
			return nil
		}
	}
}

// newer adds unknown fields to a message.
func newer[M proto.Message](m M) M {
	unknown := protowire.AppendTag(nil, 1999, protowire.BytesType)
	unknown = protowire.AppendString(unknown, "from a newer host")
	unknown = protowire.AppendTag(unknown, 2000, protowire.VarintType)
	unknown = protowire.AppendVarint(unknown, 7)
	m.ProtoReflect().SetUnknown(unknown)
	return m
}

// configure opens another instance with a message that has unknown parts.
func (s *Subject) configure(ctx context.Context, id string) error {
	settings := map[string][]byte{}
	for key := range s.Manifest.Settings {
		if raw, ok := s.Settings[key]; ok {
			settings[key] = raw
		}
	}
	resp, err := s.plugin().Configure(ctx, newer(&pb.ConfigureRequest{
		InstanceId: id, SettingsJson: settings, Capabilities: []string{"stream", "teleport.v9", ""},
	}))
	if err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	if e := resp.GetError(); e != nil {
		return fmt.Errorf("configure: %w", pb.ToError(e))
	}
	return nil
}

func checkUnknown(ctx context.Context, s *Subject) error {
	if _, err := s.plugin().Describe(ctx, newer(&pb.DescribeRequest{})); err != nil {
		return fmt.Errorf("describe: %w", err)
	}
	if err := s.configure(ctx, "from-a-newer-host"); err != nil {
		return err
	}
	resp, err := s.plugin().Invoke(ctx, newer(&pb.InvokeRequest{
		InstanceId: "from-a-newer-host", CallId: "newer", Action: s.Manifest.Name + ".no_such_action", Params: []byte(`{}`),
	}))
	if err != nil {
		return fmt.Errorf("invoke: %w", err)
	}
	if got := resp.GetError().GetType(); got != "not_found" {
		return fmt.Errorf("invoke: error type %q, want not_found", got)
	}
	return nil
}

func checkNoInstance(ctx context.Context, s *Subject) error {
	_, err := s.plugin().Invoke(ctx, &pb.InvokeRequest{InstanceId: "never-configured", CallId: "none", Action: s.Manifest.Actions[0].Name, Params: []byte(`{}`)})
	if got := status.Code(err); got != codes.FailedPrecondition {
		return fmt.Errorf("status %s, want FailedPrecondition", got)
	}
	return nil
}

// checkRelease releases an instance twice; afterwards its calls fail as if it
// had never existed.
func checkRelease(ctx context.Context, s *Subject) error {
	if err := s.configure(ctx, "to-be-released"); err != nil {
		return err
	}
	for range 2 {
		resp, err := s.plugin().Release(ctx, &pb.ReleaseRequest{InstanceId: "to-be-released"})
		if err != nil {
			return fmt.Errorf("release: %w", err)
		}
		if e := resp.GetError(); e != nil {
			return fmt.Errorf("release: %w", pb.ToError(e))
		}
	}
	_, err := s.plugin().Invoke(ctx, &pb.InvokeRequest{InstanceId: "to-be-released", CallId: "none", Action: s.Manifest.Actions[0].Name, Params: []byte(`{}`)})
	if got := status.Code(err); got != codes.FailedPrecondition {
		return fmt.Errorf("status %s after release, want FailedPrecondition", got)
	}
	return nil
}
