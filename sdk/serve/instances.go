package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
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

// put stores inst under id and returns the instance that it replaces, if any.
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
	resp := &pb.ConfigureResponse{Capabilities: []string{handshake.Stream, handshake.Callbacks, handshake.Calls}}
	if err := s.back.connect(req.GetHostService()); err != nil {
		resp.Error = pb.FromError(err)
		return resp, nil
	}
	s.back.declared(req.GetCapabilities())
	settings := tea.Settings{}
	for key, raw := range req.GetSettingsJson() {
		settings[key] = raw
	}
	inst, err := s.bundle.NewInstance(ctx, settings)
	if err != nil {
		resp.Error = pb.FromError(err)
		return resp, nil
	}
	if inst.Handover() != nil {
		resp.Capabilities = append(resp.Capabilities, handshake.Handover)
	}
	if path := req.GetImportPath(); path != "" && inst.Handover() != nil {
		if err := importState(ctx, inst.Handover(), path); err != nil {
			resp.Error = pb.FromError(errors.Join(err, inst.Close()))
			return resp, nil
		}
	}
	if old := s.instances.put(req.GetInstanceId(), inst); old != nil {
		resp.Error = pb.FromError(old.Close())
	}
	return resp, nil
}

// Release closes an instance. Releasing it again does nothing.
func (s *server) Release(ctx context.Context, req *pb.ReleaseRequest) (*pb.ReleaseResponse, error) {
	inst := s.instances.find(req.GetInstanceId())
	if inst == nil {
		return &pb.ReleaseResponse{}, nil
	}
	if path := req.GetExportPath(); path != "" && inst.Handover() != nil {
		if err := exportState(ctx, inst.Handover(), path); err != nil {
			return &pb.ReleaseResponse{Error: pb.FromError(err)}, nil
		}
	}
	if s.instances.remove(req.GetInstanceId()) == nil {
		return &pb.ReleaseResponse{}, nil
	}
	return &pb.ReleaseResponse{Error: pb.FromError(inst.Close())}, nil
}

// exportState writes the state of an instance to a new file.
func exportState(ctx context.Context, from tea.Handover, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("export the state: %w", err)
	}
	w := bufio.NewWriter(f)
	err = from.Export(ctx, w)
	if err = errors.Join(err, w.Flush(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// importState reads the state of an instance.
func importState(ctx context.Context, into tea.Handover, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("import the state: %w", err)
	}
	defer f.Close()
	return into.Import(ctx, bufio.NewReader(f))
}
