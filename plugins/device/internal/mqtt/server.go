package mqtt

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"
)

// message is a message that is published or received.
type message struct {
	topic   string
	payload []byte
	qos     byte
	retain  bool
	// The rest is nil in version 3.1.1.
	properties *Properties
	// responseTopic and correlation belong to a request.
	responseTopic string
	correlation   []byte
}

// delivery is the broker's acknowledgement.
type delivery struct {
	// unheard reports whether the broker had no subscriber for the message. Brokers with version 3.1.1 do not report it.
	unheard bool
}

// conn is a connection. Its methods return the errors below, and context errors.
type conn interface {
	// publish returns when the message has the acknowledgement of its QoS.
	publish(ctx context.Context, m *message) (delivery, error)
	subscribe(ctx context.Context, topic string, qos byte) error
	unsubscribe(ctx context.Context, topic string) error
	// done is closed when the connection has ended.
	done() <-chan struct{}
	close()
}

// refusedError is an error code of the broker, which has not accepted the packet.
type refusedError struct {
	code   byte
	reason string
}

func (e *refusedError) Error() string {
	if e.reason == "" {
		return fmt.Sprintf("reason code 0x%02x", e.code)
	}
	return fmt.Sprintf("%s (reason code 0x%02x)", e.reason, e.code)
}

// unsentError is an error before anything was sent.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// server has the connection to a broker, which is opened when it is needed. It is safe
// for concurrent use.
type server struct {
	name   string
	config Server
	// slot is held while connecting and while subscriptions change.
	slot chan struct{}
	open conn
	// ordered means that a message is received after the one before.
	ordered bool
	// topics counts the listeners for each subscription of the connection.
	topics map[string]int

	mu        sync.Mutex
	listeners map[*listener]bool
}

// listener receives the messages of a topic. receive must not block if the connection
// has other uses.
type listener struct {
	topic   string
	receive func(m *message)
}

func newServer(name string, config Server) *server {
	return &server{name: name, config: config, slot: make(chan struct{}, 1), listeners: map[*listener]bool{}}
}

func (s *server) String() string { return fmt.Sprintf("%q (%s)", s.name, s.config.URL) }

// lock takes the slot. The caller receives from it.
func (s *server) lock(ctx context.Context) error {
	select {
	case s.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return tea.Errorf(tea.AsError(ctx.Err()).Type, "connecting to the MQTT broker %s did not end before the call: %w", s, ctx.Err())
	}
}

// connection returns the open connection, or a new one.
func (s *server) connection(ctx context.Context) (conn, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer func() { <-s.slot }()
	return s.connectionLocked(ctx)
}

func (s *server) connectionLocked(ctx context.Context) (conn, error) {
	if s.open != nil {
		select {
		case <-s.open.done():
		default:
			return s.open, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.timeout())
	defer cancel()
	c, err := s.connect(ctx)
	if err != nil {
		return nil, s.connectError(ctx, err)
	}
	s.open, s.topics = c, map[string]int{}
	return c, nil
}

func (s *server) connect(ctx context.Context) (conn, error) {
	to, err := s.config.address()
	if err != nil {
		return nil, err
	}
	var nc net.Conn
	if to.Scheme == "mqtts" {
		config, err := s.config.config(to.Hostname())
		if err != nil {
			return nil, tea.Errorf(tea.ValidationError, "the certificates of the MQTT broker %s: %w", s, err)
		}
		nc, err = (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", to.Host)
		if err != nil {
			return nil, err
		}
	} else if nc, err = new(net.Dialer).DialContext(ctx, "tcp", to.Host); err != nil {
		return nil, err
	}
	id := s.config.ClientID
	if id == "" {
		id = "tea-" + rand.Text()[:16] // 20 characters: brokers must accept 23
	}
	if s.config.Protocol == "3.1.1" {
		return connect3(ctx, s, nc, id)
	}
	return connect5(ctx, s, nc, id)
}

// connectError returns the error of an action for a connection that could not be made.
func (s *server) connectError(ctx context.Context, err error) error {
	var own *tea.Error
	var refused *refusedError
	switch {
	case errors.As(err, &own):
		return err
	case errors.As(err, &refused):
		return s.refusal(refused, "refused the connection")
	case ctx.Err() != nil:
		return tea.Errorf(tea.Timeout, "cannot connect to the MQTT broker %s in time: %w", s, err)
	}
	return tea.Errorf(tea.ConnectionError, "cannot connect to the MQTT broker %s: %w", s, err)
}

// refusal returns the error of an action for an error code of the broker.
func (s *server) refusal(refused *refusedError, what string) *tea.Error {
	e := tea.Errorf(tea.QueryError, "the MQTT broker %s %s: %w", s, what, refused)
	switch refused.code {
	case 0x86, 0x87, 0x8a, 0x8c: // user or password, not authorized, banned, authentication method
		e.Type = tea.PermissionDenied
	case 0x88, 0x89, 0x8b, 0x9c, 0x9d: // not available, busy, shutting down, other server
		e.Type, e.Retryable = tea.ConnectionError, true
	case 0x96, 0x97, 0x9f: // message rate, quota, connection rate
		e.Type, e.Retryable = tea.RateLimited, true
	case 0x95: // packet too large
		e.Type = tea.ResourceExhausted
	}
	e.Details = map[string]any{"reason_code": int64(refused.code)}
	return e
}

// listen subscribes to a topic. The caller calls stop.
func (s *server) listen(ctx context.Context, topic string, qos byte, receive func(m *message)) (c conn, stop func(), err error) {
	if err := s.lock(ctx); err != nil {
		return nil, nil, err
	}
	defer func() { <-s.slot }()
	if c, err = s.connectionLocked(ctx); err != nil {
		return nil, nil, err
	}
	l := &listener{withoutShare(topic), receive}
	s.mu.Lock()
	s.listeners[l] = true // before the broker's response, because retained messages can arrive first
	s.mu.Unlock()
	limited, cancel := s.during(ctx, c)
	defer cancel()
	if err := c.subscribe(limited, topic, qos); err != nil {
		s.remove(l)
		return nil, nil, s.subscribeError(limited, topic, err)
	}
	s.topics[topic]++
	return c, func() { s.stop(c, l) }, nil
}

func (s *server) subscribeError(ctx context.Context, topic string, err error) error {
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		return s.refusal(refused, fmt.Sprintf("refused the subscription of %q", topic))
	case context.Cause(ctx) == context.DeadlineExceeded:
		return tea.Errorf(tea.Timeout, "the MQTT broker %s did not acknowledge the subscription of %q in time", s, topic)
	}
	return tea.Errorf(tea.ConnectionError, "subscribe to %q at the MQTT broker %s: %w", topic, s, err)
}

func (s *server) remove(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

// stop removes a listener, and the subscription if it was the last of its topic.
func (s *server) stop(c conn, l *listener) {
	s.remove(l)
	ctx, cancel := context.WithTimeout(context.Background(), s.config.timeout())
	defer cancel()
	if s.lock(ctx) != nil {
		return
	}
	defer func() { <-s.slot }()
	if s.open != c {
		return
	}
	if s.topics[l.topic]--; s.topics[l.topic] <= 0 {
		delete(s.topics, l.topic)
		_ = c.unsubscribe(ctx, l.topic) // a connection that ends here has no subscriptions
	}
}

// during returns the context of an operation. It ends at the time limit, and when the connection ends, because the
// library of version 5 does not end waiting operations then.
func (s *server) during(ctx context.Context, c conn) (context.Context, context.CancelFunc) {
	limited, cancelTime := context.WithTimeout(ctx, s.config.timeout())
	limited, cancel := context.WithCancelCause(limited)
	go func() {
		select {
		case <-c.done():
			cancel(errLost)
		case <-limited.Done():
		}
	}()
	return limited, func() { cancel(context.Canceled); cancelTime() }
}

// received passes on a message from the broker.
func (s *server) received(m *message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.listeners {
		if matches(l.topic, m.topic) {
			l.receive(m)
		}
	}
}

// Close ends the connection.
func (s *server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.timeout())
	defer cancel()
	if s.lock(ctx) != nil {
		return
	}
	defer func() { <-s.slot }()
	if s.open != nil {
		s.open.close()
		s.open = nil
	}
}
