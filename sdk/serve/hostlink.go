package serve

import (
	"sync"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/internal/handshake"
	"github.com/the-edge-agent/tea/sdk/internal/pb"
)

// hostLink is the process's one connection to the host's services.
type hostLink struct {
	broker *plugin.GRPCBroker

	mu   sync.RWMutex
	host pb.HostClient
}

// connect dials the host's services the first time it is told their id. An
// id of 0 says that the host offers none.
func (l *hostLink) connect(id uint32) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.host != nil || id == 0 {
		return nil
	}
	conn, err := l.broker.DialWithOptions(id, grpc.WithDefaultCallOptions(
		grpc.MaxCallRecvMsgSize(handshake.MaxMessage), grpc.MaxCallSendMsgSize(handshake.MaxMessage)))
	if err != nil {
		return tea.Errorf(tea.ConnectionError, "connect to the host's services: %w", err)
	}
	l.host = pb.NewHostClient(conn)
	return nil
}

// client is nil where the host takes no callbacks.
func (l *hostLink) client() pb.HostClient {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.host
}
