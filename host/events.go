package host

import (
	"errors"

	"github.com/the-edge-agent/tea/host/internal/checkpoint"
)

// mostEventBytes is where a run's event log stops taking tokens.
const mostEventBytes = 64 << 20

// eventKeeper stores a run's events beside its journal. With durability exit
// they wait in memory until it is clear that the run is kept.
type eventKeeper struct {
	store   *checkpoint.Store
	runID   string
	durable bool
	log     *checkpoint.EventLog
	waiting []Event
	err     error
}

func newEventKeeper(store *checkpoint.Store, runID string, d Durability) *eventKeeper {
	return &eventKeeper{store: store, runID: runID, durable: d != DurabilityExit}
}

// open opens the log once. That of a new run waits for the first event, so that
// no events are left of a run whose journal did not come into being.
func (k *eventKeeper) open() {
	if k.log == nil && k.err == nil {
		k.log, k.err = k.store.OpenEvents(k.runID)
	}
}

// lastSeq is the number of the last event of a run that is resumed.
func (k *eventKeeper) lastSeq() int64 {
	if k.open(); k.log == nil {
		return 0
	}
	return int64(k.log.LastSeq())
}

// tee stores an event and hands it on.
func (k *eventKeeper) tee(next func(Event)) func(Event) {
	return func(e Event) {
		if k.durable {
			k.put(e)
		} else if len(k.waiting) < 10_000 {
			k.waiting = append(k.waiting, e)
		}
		if next != nil {
			next(e)
		}
	}
}

func (k *eventKeeper) put(e Event) {
	if k.open(); k.log == nil || e.Type == "token" && k.log.Size() > mostEventBytes {
		return
	}
	line, err := e.MarshalJSON()
	if err == nil {
		err = k.log.Append(uint64(e.Seq), line)
	}
	if err == nil && e.Type != "token" {
		err = k.log.Flush()
	}
	k.err = errors.Join(k.err, err)
}

// close writes what waits and closes the file.
func (k *eventKeeper) close() error {
	k.open()
	for _, e := range k.waiting {
		k.put(e)
	}
	if k.log == nil {
		return k.err
	}
	return errors.Join(k.err, k.log.Close())
}

// discard drops what waits.
func (k *eventKeeper) discard() error {
	k.waiting = nil
	if k.log != nil {
		return k.log.Close()
	}
	return nil
}
