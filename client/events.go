package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// maxLine is the maximum length of a line in the stream of events.
	maxLine = 64 << 20
	// silence is the maximum time without data: the server sends something every 15
	// seconds.
	silence = time.Minute
	// minPause and maxPause are the waits before a lost stream is opened again.
	minPause, maxPause = 250 * time.Millisecond, 10 * time.Second
)

// Event is an event of a run.
type Event struct {
	// Seq is the number of the event, from 1.
	Seq   int64     `json:"seq"`
	Time  time.Time `json:"ts"`
	RunID string    `json:"run_id"`
	// Type is the kind of event, such as node_end; the last one is run_end.
	Type string `json:"event"`
	Node string `json:"node,omitempty"`
	Path string `json:"path,omitempty"`
	// JSON is the whole event.
	JSON json.RawMessage `json:"-"`
}

// Events returns the events of a run after a number, 0 for all, until the run ends or waits.
// If the connection is lost or the server restarts, it continues after the last event. With
// the number of the last event of a waiting run, it returns the events after the answer. It
// ends after an error: the context's, a permanent one of the server, or the error of the
// first connection.
func (c *Client) Events(ctx context.Context, id string, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		s := &stream{c: c, id: id, last: after, pause: minPause, yield: yield}
		for {
			err := s.read(ctx)
			if errors.Is(err, errEnded) {
				return
			}
			if ctx.Err() != nil {
				err = ctx.Err()
			} else if s.connected && passes(err) {
				err = s.wait(ctx)
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

// passes reports whether a request can be retried after an error.
func passes(err error) bool {
	refused := (*Error)(nil)
	if !errors.As(err, &refused) {
		return !errors.Is(err, errBroken)
	}
	switch refused.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// errBroken reports a stream that does not consist of events.
var errBroken = errors.New("read the events of the run")

// errEnded reports that there are no further events, or that they are not wanted.
var errEnded = errors.New("the events have ended")

// stream reads the events of a run.
type stream struct {
	c     *Client
	id    string
	last  int64
	pause time.Duration
	yield func(Event, error) bool
	// connected reports whether the server has answered; ended, that the last event is the
	// end of the run or the beginning of a wait.
	connected, ended bool
}

// wait waits before the stream is reopened.
func (s *stream) wait(ctx context.Context) error {
	pause := s.pause
	s.pause = min(2*s.pause, maxPause)
	return sleep(ctx, pause)
}

func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read reads events until the connection is lost. It returns errEnded after the last event.
func (s *stream) read(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silent := time.AfterFunc(silence, cancel)
	defer silent.Stop()
	header := http.Header{"Accept": {"text/event-stream"}}
	if s.last > 0 {
		header.Set("Last-Event-Id", strconv.FormatInt(s.last, 10))
	}
	res, err := s.c.send(ctx, http.MethodGet, runPath(s.id)+"/events", nil, header, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	s.connected = true
	if res.StatusCode == http.StatusNoContent {
		return errEnded
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return fmt.Errorf("%w: the response is not a stream of events; check the address", errBroken)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		silent.Reset(silence)
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		e := Event{JSON: json.RawMessage(data)}
		if err := json.Unmarshal(e.JSON, &e); err != nil {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
		if e.Seq <= s.last {
			continue
		}
		s.last, s.pause, s.ended = e.Seq, minPause, e.Type == "run_end"
		if !s.yield(e, nil) {
			return errEnded
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("%w: %w", errBroken, err)
	case err != nil:
		return err
	case s.ended: // the server has closed the stream after it
		return errEnded
	}
	return io.ErrUnexpectedEOF // the server is stopping
}
