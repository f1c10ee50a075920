package modbus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"
	"sync/atomic"
	"time"

	lib "github.com/simonvetter/modbus"

	"github.com/the-edge-agent/tea/plugins/device/internal/guard"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	// idleLimit is the age of a connection above which a write opens a new one: the server may have closed it, which
	// would leave the outcome of the write unknown.
	idleLimit = 5 * time.Second
	// closeTimeout bounds how long Close waits for a request that is being made.
	closeTimeout = 2 * time.Second
)

// server is a connection, which is opened when it is needed. It makes one request at a
// time.
type server struct {
	name   string
	config Server
	// slot is held by the request that uses the fields below.
	slot   chan struct{}
	client *lib.ModbusClient
	used   time.Time
}

func newServer(name string, config Server) *server {
	return &server{name: name, config: config, slot: make(chan struct{}, 1)}
}

// The states of a request.
const (
	preparing = iota
	sending
	abandoned
)

// request is a use of a connection.
type request struct {
	unit  int
	write bool
	state atomic.Int32
	// do makes the request. prepare, which can be nil, is called before it and changes nothing.
	prepare, do func(c *lib.ModbusClient) error
}

var errAbandoned = errors.New("the call has ended")

// run makes a request. If the call ends first, run returns at once, and the request ends within the time limit of the
// server. The error of a write has its outcome.
func (s *server) run(ctx context.Context, r *request) error {
	select {
	case s.slot <- struct{}{}:
	case <-ctx.Done():
		return guard.NotSent(tea.Errorf(tea.AsError(ctx.Err()).Type, "the Modbus server %s was busy until the call ended: %w", s, ctx.Err()))
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-s.slot }()
		done <- s.exchange(ctx, r)
	}()
	select {
	case err := <-done:
		return r.explain(err)
	case <-ctx.Done():
		r.state.CompareAndSwap(preparing, abandoned)
		return r.explain(tea.Errorf(tea.AsError(ctx.Err()).Type, "the Modbus server %s did not answer before the call ended: %w", s, ctx.Err()))
	}
}

// explain adds the outcome to the error of a write.
func (r *request) explain(err error) error {
	if err == nil || !r.write {
		return err
	}
	var refused exception
	switch {
	case r.state.Load() != sending:
		return guard.NotSent(err)
	case errors.As(err, &refused) && refused.certain():
		return guard.Refused(err)
	}
	return guard.Unknown(err)
}

// exchange makes a request on the open connection, or on a new one. A read is repeated
// once if the connection was closed before.
func (s *server) exchange(ctx context.Context, r *request) error {
	if path, ok := strings.CutPrefix(s.config.URL, serialScheme); ok { // a port is free for others in between
		limited, cancel := context.WithTimeout(ctx, part.PortTimeout)
		defer cancel()
		lock, err := part.LockPort(limited, path)
		if err != nil {
			return s.connectError(err)
		}
		defer lock.Close()
		defer s.disconnect()
	}
	if s.client != nil && r.write && time.Since(s.used) > idleLimit {
		s.disconnect()
	}
	reused := s.client != nil
	err := s.try(ctx, r)
	var refused exception
	if err == nil || errors.As(err, &refused) {
		return err
	}
	s.disconnect()
	if reused && r.state.Load() == preparing && tea.AsError(err).Type == tea.ConnectionError {
		if err = s.try(ctx, r); err != nil && !errors.As(err, &refused) {
			s.disconnect()
		}
	}
	return err
}

func (s *server) try(ctx context.Context, r *request) error {
	if s.client == nil {
		if err := s.connect(); err != nil {
			return s.connectError(err)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.client.SetUnitId(uint8(r.unit)); err != nil {
		return err
	}
	var err error
	if r.prepare != nil {
		err = r.prepare(s.client)
	}
	if err == nil && r.write && !r.state.CompareAndSwap(preparing, sending) {
		err = errAbandoned
	}
	if err == nil {
		err = r.do(s.client)
	}
	s.used = time.Now()
	return s.fault(r, err)
}

func (s *server) connectError(err error) error {
	return tea.Errorf(tea.ConnectionError, "cannot connect to the Modbus server %s: %w", s, err)
}

func (s *server) connect() error {
	config := lib.ClientConfiguration{
		URL: s.config.URL, Timeout: part.Seconds(s.config.TimeoutSeconds), Logger: log.New(io.Discard, "", 0),
		Speed: uint(s.config.Baud), DataBits: uint(s.config.DataBits), StopBits: uint(s.config.StopBits),
	}
	switch s.config.Parity {
	case "even":
		config.Parity = lib.PARITY_EVEN
	case "odd":
		config.Parity = lib.PARITY_ODD
	}
	client, err := lib.NewClient(&config)
	if err != nil {
		return err
	}
	if err := client.Open(); err != nil {
		return err
	}
	s.client = client
	return nil
}

func (s *server) disconnect() {
	if s.client != nil {
		_ = s.client.Close()
		s.client = nil
	}
}

// Close closes the connection when its request has ended.
func (s *server) Close() {
	select {
	case s.slot <- struct{}{}:
		s.disconnect()
		<-s.slot
	case <-time.After(closeTimeout):
	}
}

func (s *server) String() string { return fmt.Sprintf("%q (%s)", s.name, s.config.URL) }

// exception is an error code in the answer of a server.
type exception struct{ error }

// certain reports whether the exception means that a write was not executed. It is uncertain for a gateway whose target
// did not respond, for a failure, which can happen halfway, and for "acknowledge", after which the write continues.
func (e exception) certain() bool {
	return !errors.Is(e.error, lib.ErrGWTargetFailedToRespond) && !errors.Is(e.error, lib.ErrServerDeviceFailure) && !errors.Is(e.error, lib.ErrAcknowledge)
}

func (e exception) Unwrap() error { return e.error }

// fault returns the error of an action for an error of the library.
func (s *server) fault(r *request, err error) error {
	var known lib.Error
	switch {
	case err == nil || errors.Is(err, errAbandoned):
		return err
	case errors.Is(err, lib.ErrRequestTimedOut):
		return tea.Errorf(tea.Timeout, "the Modbus server %s did not answer within %s (unit %d)", s, part.Seconds(s.config.TimeoutSeconds), r.unit)
	case !errors.As(err, &known):
		return tea.Errorf(tea.ConnectionError, "the Modbus server %s (unit %d): %w", s, r.unit, err)
	}
	switch known {
	case lib.ErrIllegalFunction, lib.ErrIllegalDataAddress, lib.ErrIllegalDataValue, lib.ErrServerDeviceFailure, lib.ErrAcknowledge,
		lib.ErrServerDeviceBusy, lib.ErrMemoryParityError, lib.ErrGWPathUnavailable, lib.ErrGWTargetFailedToRespond:
		e := tea.Errorf(tea.QueryError, "the Modbus server %s refused the request (unit %d): %w", s, r.unit, exception{err})
		e.Retryable = known == lib.ErrServerDeviceBusy || known == lib.ErrGWPathUnavailable || known == lib.ErrGWTargetFailedToRespond
		e.Details = map[string]any{"exception": strings.ReplaceAll(string(known), " ", "_")}
		return e
	case lib.ErrUnexpectedParameters, lib.ErrConfigurationError:
		return tea.Errorf(tea.ValidationError, "the Modbus request is not possible: %w", err)
	}
	return tea.Errorf(tea.ConnectionError, "the answer of the Modbus server %s is not valid (unit %d): %w", s, r.unit, err)
}
