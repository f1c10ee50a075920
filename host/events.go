package host

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/engine"
	"github.com/the-edge-agent/tea/host/internal/settings"
	"github.com/the-edge-agent/tea/host/internal/tokens"
)

const (
	// defaultEventBytes is the default maximum size of a run's event log.
	defaultEventBytes = 16 << 20
	// defaultValueBytes is the default maximum size of a value in the log.
	defaultValueBytes = 16 << 10
	// reservedEventBytes is the size beyond the limit for the events that are
	// always kept.
	reservedEventBytes = 64 << 10
	// maxWaitingBytes bounds the approximate size of the events that wait in
	// memory with durability exit.
	maxWaitingBytes = 4 << 20
)

// eventKeeper stores a run's events next to its journal, up to a size. With
// durability exit, events stay in memory until the run has a file. It is not
// safe for concurrent use.
type eventKeeper struct {
	store   *checkpoint.Store
	runID   string
	durable bool
	// limit is the maximum size of the log, values the maximum size of one stored value.
	limit  int64
	values int
	log    *checkpoint.EventLog
	// tokens are not stored yet.
	tokens tokens.Buffer
	// waiting are the events in memory, waitingBytes their approximate size.
	waiting      []flow.Event
	waitingBytes int
	// cut reports whether the log has reached its limit.
	cut bool
	// err is the first error; nothing is written after it.
	err error
}

// eventLimit reads settings.events.max_mb. A value of the wrong type, already
// reported, counts as absent.
func (wf *Workflow) eventLimit() int64 {
	object, _ := wf.spec.Settings[settings.EventsKey].(map[string]any)
	return cmp.Or(int64(number(object["max_mb"])*(1<<20)), defaultEventBytes)
}

// valueBytes reads settings.events.value_kb.
func (wf *Workflow) valueBytes() int {
	object, _ := wf.spec.Settings[settings.EventsKey].(map[string]any)
	if kb, given := object["value_kb"]; given {
		return int(number(kb) * (1 << 10))
	}
	return defaultValueBytes
}

// open opens the log once, at the first event: a run whose journal was not
// created leaves no events.
func (k *eventKeeper) open() {
	if k.log == nil && k.err == nil {
		k.log, k.err = k.store.OpenEvents(k.runID)
	}
}

// lastSeq returns an upper bound of the event numbers of a resumed run: a run
// that was killed may have streamed its last events without storing them.
func (k *eventKeeper) lastSeq(killed bool) int64 {
	k.open()
	if k.log == nil || k.log.LastSeq() == 0 {
		return 0
	}
	last := int64(k.log.LastSeq())
	if killed {
		last += tokens.MaxGroup + checkpoint.MaxWaitingEvents
	}
	return last
}

// tee returns a function that stores an event and passes it to next.
func (k *eventKeeper) tee(next func(flow.Event)) func(flow.Event) {
	return func(e flow.Event) {
		k.take(e)
		if next != nil {
			next(e)
		}
	}
}

// take stores an event; tokens are first grouped with others of their stream.
func (k *eventKeeper) take(e flow.Event) {
	if k.tokens.Add(e) && !k.tokens.Full(e.Time) {
		return
	}
	for _, group := range k.tokens.Groups() {
		k.put(group)
	}
	if e.Type != flow.EventToken {
		k.put(e)
	}
	if !k.durable || k.log == nil || k.err != nil {
		return
	}
	if alwaysKept(e) {
		k.err = k.log.Flush()
	} else {
		k.err = k.log.FlushSoon()
	}
}

// takeValues stores an event of type values if less than half of the log is used. The rest
// is reserved for other events.
func (k *eventKeeper) takeValues(e flow.Event) {
	switch {
	case k.cut || k.err != nil:
	case k.durable:
		if k.open(); k.err == nil && k.log.Size() < k.limit/2 {
			k.write(e)
		}
	case k.waitingBytes < maxWaitingBytes/2:
		k.put(e)
	}
}

// put stores an event; with durability exit it keeps the event in memory.
func (k *eventKeeper) put(e flow.Event) {
	if k.durable {
		k.write(e)
		return
	}
	size := sizeOf(e)
	switch {
	case k.waitingBytes+size <= maxWaitingBytes && !k.cut, alwaysKept(e):
	case k.cut:
		return
	default:
		k.cut = true
		e = cutNote(e, "more than 4 MB of events wait in memory, as they do with --durability exit")
	}
	k.waiting = append(k.waiting, e)
	k.waitingBytes += size
}

// write appends an event to the log unless the log is full.
func (k *eventKeeper) write(e flow.Event) {
	if k.open(); k.err != nil {
		return
	}
	line, err := e.MarshalJSON()
	if err != nil {
		k.err = err
		return
	}
	room := k.limit - k.log.Size() - int64(len(line))
	switch {
	case room >= 0 && !k.cut, alwaysKept(e) && room >= -reservedEventBytes:
	case k.cut:
		return
	default:
		k.cut = true
		note := cutNote(e, fmt.Sprintf("the log of this run has reached its limit of %d MB (settings.events.max_mb)", k.limit>>20))
		if line, err = note.MarshalJSON(); err != nil {
			k.err = err
			return
		}
	}
	k.err = k.log.Append(uint64(e.Seq), line)
}

// alwaysKept reports whether an event is stored beyond the limit: the few events
// that a reader needs to follow the run's status.
func alwaysKept(e flow.Event) bool {
	switch e.Type {
	case flow.EventRunStart, flow.EventInterrupt, flow.EventCheckpoint, flow.EventRunEnd:
		return true
	}
	return false
}

// cutNote returns the event that replaces the first event beyond the limit.
func cutNote(e flow.Event, reason string) flow.Event {
	return flow.Event{Seq: e.Seq, Time: e.Time, RunID: e.RunID, Type: flow.EventLog, Fields: []flow.Field{
		{Key: "level", Value: "warn"},
		{Key: "message", Value: "events are missing from here on, except starts and ends of the run, interrupts and checkpoints: " + reason},
	}}
}

// sizeOf returns the approximate size of an event in memory and in the log.
func sizeOf(e flow.Event) int {
	size := 200 + len(e.Path)
	for _, f := range e.Fields {
		size += engine.SizeOf(f.Value, maxWaitingBytes)
	}
	return size
}

// close writes the waiting events and closes the file.
func (k *eventKeeper) close() error {
	for _, group := range k.tokens.Groups() {
		k.put(group)
	}
	if len(k.waiting) > 0 {
		k.durable, k.cut = true, false
	}
	for _, e := range k.waiting {
		k.write(e)
	}
	if k.log == nil {
		return k.err
	}
	return errors.Join(k.err, k.log.Close())
}

// discard drops the waiting events.
func (k *eventKeeper) discard() error {
	k.waiting = nil
	if k.log != nil {
		return k.log.Close()
	}
	return nil
}
