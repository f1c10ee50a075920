package spec

import (
	"time"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Values is a trigger of the kind poll or stream, which watches the values that an
// action returns or passes on.
type Values struct {
	Call *ActionBody
	// Every is the interval of poll.
	Every time.Duration
	// When is the condition on a value that starts a run, and Reset the one that ends
	// it; nil = default.
	When, Reset *Text
	// Each reports whether each value starts a run while the condition is true.
	Each bool
	// Hold is how long the condition must be true, and MinInterval the shortest time
	// between two starts.
	Hold, MinInterval time.Duration
	// OnFailure is the reaction to failed readings; nil = none.
	OnFailure *OnFailure
}

// OnFailure starts a run after several readings in a row have failed.
type OnFailure struct {
	diag.Pos
	// Workflow is the workflow to start; "" = the trigger's.
	Workflow string
	// After is the number of failures.
	After int
	// Recovery reports whether the next reading that succeeds starts a run as well.
	Recovery bool
}

const (
	// minPoll is the shortest interval of poll.
	minPoll = 10 * time.Millisecond
	// defaultFailures is the default of OnFailure.After.
	defaultFailures = 3
)

// valueKinds are the triggers that watch values.
var valueKinds = []TriggerKind{TriggerPoll, TriggerStream}

func valueKeys(g *grammar) []*key {
	return []*key{
		{name: "poll", shape: object(g.poll), doc: "The result of an action that is called at an interval."},
		{name: "stream", shape: object(g.stream), doc: "The values that an action such as mqtt.watch passes on."},
		{name: "when", shape: written(), fallback: "poll: the result is not that of the last run; stream: each value", doc: "Condition on result and previous, the value before, that starts a run."},
		{name: "reset", shape: written(), fallback: "when is false", doc: "Condition after which when can start a run again."},
		{name: "fire", shape: oneOf("edge", "level"), fallback: "edge", doc: "Whether a run starts once when the condition becomes true, or for each value while it is true."},
		{name: "hold_seconds", shape: seconds(), doc: "How long the condition must be true before a run starts."},
		{name: "min_interval_seconds", shape: seconds(), doc: "Shortest time between the starts of two runs. A run that would be earlier waits, as long as the condition is true."},
		{name: "on_failure", shape: object(g.onFailure), doc: "Starts a run when values cannot be read."},
	}
}

func watchedCall() []*key {
	keys := callKeys()
	keys[0].required = true
	return keys
}

func pollSection() *section {
	return &section{title: "poll", doc: "A call that reads something.", keys: append(watchedCall(),
		&key{name: "every", shape: seconds().requirePositive(), required: true, doc: "The interval, 10ms or more."})}
}

func streamSection() *section {
	return &section{title: "stream", doc: "A call that passes on values as long as the server runs.", keys: watchedCall()}
}

func onFailureSection() *section {
	return &section{title: "on_failure", doc: "A run for readings that fail.", keys: []*key{
		{name: "workflow", shape: str(), fallback: "the trigger's workflow", doc: "Name of the workflow to start, with the input {event: ...}."},
		{name: "after", shape: integer(1), fallback: "3", doc: "Number of failures in a row."},
		{name: "recovery", shape: boolean(), fallback: "false", doc: "Whether the first value after that starts a run of it, too."},
	}}
}

// values decodes a trigger of the kind poll or stream.
func (d *decoder) values(m mapping, kind TriggerKind) *Values {
	section := d.grammar.poll
	if kind == TriggerStream {
		section = d.grammar.stream
	}
	v := &Values{
		Call: &ActionBody{}, When: m.text("when"), Reset: m.text("reset"), Each: m.string("fire") == "level" || !m.has("when"),
		Hold: orZero(m.duration("hold_seconds")), MinInterval: orZero(m.duration("min_interval_seconds")),
	}
	if call := m.get(string(kind)); call.is(source.Map) {
		inner := openMapping(call, section)
		v.Call = d.action(inner)
		if kind == TriggerPoll {
			v.Every = orZero(inner.duration("every"))
			if v.Every > 0 && v.Every < minPoll {
				d.errorf(diagcode.ValueNotAllowed, inner.get("every").pos(), "write 10ms or more", "every: %s is too short", v.Every)
			}
		}
	}
	if !m.has("when") {
		for _, option := range []string{"reset", "fire", "hold_seconds"} {
			if m.has(option) {
				d.conflict(m.key(option), "add when:", "%s needs when", option)
			}
		}
	}
	if f := m.get("on_failure"); f.is(source.Map) {
		inner := openMapping(f, d.grammar.onFailure)
		v.OnFailure = &OnFailure{Pos: inner.pos(), Workflow: inner.string("workflow"), After: defaultFailures, Recovery: inner.isTrue("recovery")}
		if after := inner.int("after"); after != nil {
			v.OnFailure.After = *after
		}
	}
	return v
}
