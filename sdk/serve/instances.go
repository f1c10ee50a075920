package serve

import (
	"context"
	"errors"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/internal/handshake"
	"github.com/the-edge-agent/tea/sdk/internal/pb"
)

// instances are the opened bundles by the id that the host chose.
type instances struct {
	mu   sync.RWMutex
	byID map[string]*tea.Instance
}

func (i *instances) find(id string) *tea.Instance {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.byID[id]
}

// put stores inst under id and returns the one it replaces, if any.
func (i *instances) put(id string, inst *tea.Instance) *tea.Instance {
	i.mu.Lock()
	defer i.mu.Unlock()
	old := i.byID[id]
	i.byID[id] = inst
	return old
}

func (i *instances) remove(id string) *tea.Instance {
	i.mu.Lock()
	defer i.mu.Unlock()
	inst := i.byID[id]
	delete(i.byID, id)
	return inst
}

func (i *instances) closeAll() error {
	i.mu.Lock()
	all := i.byID
	i.byID = map[string]*tea.Instance{}
	i.mu.Unlock()
	var errs []error
	for _, inst := range all {
		errs = append(errs, inst.Close())
	}
	return errors.Join(errs...)
}

// Configure opens the bundle for the given settings.
func (s *server) Configure(ctx context.Context, req *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	resp := &pb.ConfigureResponse{Capabilities: []string{handshake.Stream, handshake.Callbacks}}
	if err := s.back.connect(req.GetHostService()); err != nil {
		resp.Error = pb.FromError(err)
		return resp, nil
	}
	settings := tea.Settings{}
	for key, raw := range req.GetSettingsJson() {
		settings[key] = raw
	}
	inst, err := s.bundle.NewInstance(ctx, settings)
	if err != nil {
		resp.Error = pb.FromError(err)
		return resp, nil
	}
	if old := s.instances.put(req.GetInstanceId(), inst); old != nil {
		resp.Error = pb.FromError(old.Close())
	}
	return resp, nil
}

// Release closes an instance. Releasing it again does nothing.
func (s *server) Release(_ context.Context, req *pb.ReleaseRequest) (*pb.ReleaseResponse, error) {
	inst := s.instances.remove(req.GetInstanceId())
	if inst == nil {
		return &pb.ReleaseResponse{}, nil
	}
	return &pb.ReleaseResponse{Error: pb.FromError(inst.Close())}, nil
}
