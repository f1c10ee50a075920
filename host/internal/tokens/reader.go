package tokens

import (
	"bytes"
	"encoding/json"
	"sort"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
)

// split splits a line of the log that combines several tokens into their
// events; false for any other line.
func split(line []byte) ([]flow.Event, bool) {
	if !bytes.Contains(line, []byte(`"`+fieldFirstSeq+`":`)) {
		return nil, false
	}
	var g struct {
		TS       time.Time      `json:"ts"`
		RunID    string         `json:"run_id"`
		Event    flow.EventType `json:"event"`
		Node     string         `json:"node"`
		Path     string         `json:"path"`
		Text     string         `json:"text"`
		FirstSeq int64          `json:"first_seq"`
		Lengths  []int          `json:"lengths"`
		Steps    []int64        `json:"seq_steps"`
	}
	if json.Unmarshal(line, &g) != nil || g.Event != flow.EventToken || g.Steps != nil && len(g.Steps) != len(g.Lengths)-1 {
		return nil, false
	}
	events := make([]flow.Event, len(g.Lengths))
	seq := g.FirstSeq
	for i, length := range g.Lengths {
		if length < 0 || length > len(g.Text) {
			return nil, false
		}
		events[i] = flow.Event{Seq: seq, Time: g.TS, RunID: g.RunID, Type: flow.EventToken, Node: g.Node, Path: g.Path, Fields: []flow.Field{{Key: "text", Value: g.Text[:length]}}}
		g.Text = g.Text[length:]
		if seq++; i < len(g.Steps) {
			seq += g.Steps[i] - 1
		}
	}
	return events, true
}

// Reader passes the events of a log to Pass in order, tokens one by one. It is not safe
// for concurrent use.
type Reader struct {
	// After is the seq after which tokens are passed.
	After int64
	// Pass receives each event as a line of JSON, which is valid only during the call.
	// Its error ends the reading.
	Pass func(seq int64, line []byte) error
	// held are tokens of overlapping groups.
	held []flow.Event
	last int64
}

// Line reads the next line of the log.
func (r *Reader) Line(seq int64, line []byte) error {
	tokens, ok := split(line)
	if !ok || len(tokens) == 0 || tokens[0].Seq > r.last {
		if err := r.Flush(); err != nil {
			return err
		}
	}
	if !ok {
		return r.Pass(seq, line)
	}
	r.held = append(r.held, tokens...)
	r.last = max(r.last, seq)
	return nil
}

// Flush passes on the held tokens.
func (r *Reader) Flush() error {
	held := r.held
	r.held = nil
	sort.Slice(held, func(i, j int) bool { return held[i].Seq < held[j].Seq })
	for _, e := range held {
		if e.Seq <= r.After {
			continue
		}
		line, err := e.MarshalJSON()
		if err == nil {
			err = r.Pass(e.Seq, line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
