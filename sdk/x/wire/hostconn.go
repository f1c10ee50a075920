package wire

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// Broker opens a listener that the plugin can reach under an id, such as go-plugin's
// GRPCBroker.
type Broker interface {
	NextId() uint32
	Accept(id uint32) (net.Listener, error)
}

// hostConn is the connection of a plugin to the host's services. It is opened when the first
// instance is configured, because the plugin discards an id that it does not use within a few
// seconds.
type hostConn struct {
	broker Broker // nil without callbacks

	mu        sync.Mutex
	asked     bool
	service   uint32 // the broker's id; 0 for none
	callbacks *callbacks
}

// open returns the id of the host's services; 0 if the plugin has no broker.
func (w *hostConn) open(ctx context.Context) (uint32, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked || w.broker == nil {
		return w.service, nil
	}
	id := w.broker.NextId()
	listener, err := accept(ctx, w.broker, id)
	if err != nil {
		return 0, err
	}
	w.asked = true
	if listener != nil {
		w.callbacks, w.service = serveCallbacks(listener), id
	}
	return w.service, nil
}

// calls returns the callbacks; nil without a broker.
func (w *hostConn) calls() *callbacks {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.callbacks
}

func (w *hostConn) close() {
	if c := w.calls(); c != nil {
		c.close()
	}
}

// accept opens the listener. If the plugin has no broker, the broker's call hangs or fails;
// both mean that there are no callbacks.
func accept(ctx context.Context, broker Broker, id uint32) (net.Listener, error) {
	type accepted struct {
		listener net.Listener
		err      error
	}
	done := make(chan accepted, 1)
	go func() {
		l, err := broker.Accept(id)
		done <- accepted{l, err}
	}()
	select {
	case a := <-done:
		if a.err != nil {
			return nil, nil
		}
		return a.listener, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("open the host's services for a plugin: %w", ctx.Err())
	}
}
