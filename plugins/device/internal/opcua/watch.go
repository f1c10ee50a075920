package opcua

import (
	"context"
	"fmt"
	"time"

	lib "github.com/gopcua/opcua"
	"github.com/gopcua/opcua/ua"

	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	// stateInterval is the time between two looks at the state of a session that is
	// watched. The library does not notice that its server is silent, so after
	// checkInterval it is asked.
	stateInterval = 500 * time.Millisecond
	checkInterval = 5 * time.Second
	// queueSize is the number of changes that a server keeps between two messages.
	queueSize = 100
)

type watchParams struct {
	Where
	IntervalSeconds float64 `json:"interval_seconds,omitempty" default:"1" minimum:"0.01" maximum:"3600" doc:"how often the server looks for a change"`
}

// Watch implements opcua.watch. It has a session of its own, so that a slow caller does
// not delay other calls.
func (c *client) Watch(ctx context.Context, req *tea.Request, p watchParams) (struct{}, error) {
	shared, at, err := c.find(p.Where)
	if err != nil {
		return struct{}{}, err
	}
	s := newServer(shared.name, shared.config)
	defer s.Close()
	changes := make(chan *lib.PublishNotificationData, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limited, stop := context.WithTimeout(ctx, s.config.timeout())
	defer stop()
	conn, _, err := s.session(limited)
	if err != nil {
		return struct{}{}, err
	}
	if err := s.subscribe(limited, conn, at, part.Seconds(p.IntervalSeconds), changes); err != nil {
		return struct{}{}, s.fault(limited, err)
	}
	check := time.NewTicker(stateInterval)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return struct{}{}, ctx.Err()
		case <-check.C:
			if conn.State() == lib.Connected && time.Since(s.lastUse()) < checkInterval {
				continue
			}
			if err := s.alive(ctx, conn); err != nil {
				return struct{}{}, err
			}
		case change := <-changes:
			if err := s.emit(ctx, req, at, change); err != nil {
				return struct{}{}, err
			}
		}
	}
}

// alive returns an error if the session has ended.
func (s *server) alive(ctx context.Context, conn *lib.Client) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	if s.client != conn { // it was opened again, without the subscription
		return tea.Errorf(tea.ConnectionError, "the session with the OPC UA server %s has ended", s)
	}
	return nil
}

// subscribe lets the server report the changes of a value, and the current one.
func (s *server) subscribe(ctx context.Context, c *lib.Client, at string, interval time.Duration, changes chan<- *lib.PublishNotificationData) error {
	node, err := s.parse(c, at)
	if err != nil {
		return err
	}
	sub, err := c.Subscribe(ctx, &lib.SubscriptionParameters{Interval: interval}, changes)
	if err != nil {
		return err
	}
	item := lib.NewMonitoredItemCreateRequestWithDefaults(node, ua.AttributeIDValue, 1)
	item.RequestedParameters.QueueSize = queueSize
	item.RequestedParameters.SamplingInterval = float64(interval.Milliseconds())
	resp, err := sub.Monitor(ctx, ua.TimestampsToReturnBoth, item)
	if err == nil && len(resp.Results) != 1 {
		err = errAnswer
	}
	if err == nil && isBad(resp.Results[0].StatusCode) {
		err = fmt.Errorf("cannot watch %s: %w", at, resp.Results[0].StatusCode)
	}
	return err
}

// emit passes on a change.
func (s *server) emit(ctx context.Context, req *tea.Request, at string, change *lib.PublishNotificationData) error {
	if change.Error != nil {
		return s.fault(ctx, change.Error)
	}
	data, ok := change.Value.(*ua.DataChangeNotification)
	if !ok {
		return tea.Errorf(tea.ConnectionError, "the OPC UA server %s has ended the subscription of %s", s, at)
	}
	for _, item := range data.MonitoredItems {
		r, err := toReading(item.Value)
		if err != nil {
			return tea.Errorf(tea.QueryError, "%s at the OPC UA server %s: %w", at, s, err)
		}
		if err := part.Emit(ctx, req, r); err != nil {
			return err
		}
	}
	return nil
}
