package server

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
)

// item is an accepted run that has not ended. It is in the ledger; the mutex of the
// ledger guards its fields.
type item struct {
	ID       string `json:"id"`
	Workflow string `json:"workflow"`
	// Trigger is the name of the trigger; "" for a request to the API.
	Trigger string          `json:"trigger,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	At      time.Time       `json:"at"`
	// Depth counts the runs that led to this one by on_run.
	Depth int `json:"depth,omitempty"`
	// Resume is set for a resumed run.
	Resume *resumption `json:"resume,omitempty"`

	// Fork is set for a fork of another run.
	Fork *forking `json:"fork,omitempty"`

	// AnsweredBy has the token name or the link target that answered each question, and
	// AnsweredAt the time.
	AnsweredBy map[string]string    `json:"answered_by,omitempty"`
	AnsweredAt map[string]time.Time `json:"answered_at,omitempty"`

	progress `json:"-"`

	// recovered reports whether an earlier process may have begun the run, and interrupted
	// that it was running when that process ended.
	recovered, interrupted bool
	// counted reports whether the input counts as queued.
	counted bool
	// ended is closed when the run has ended, waits or is parked; outcome is then
	// set.
	ended chan struct{}
	// moved is closed when the run has started or ended.
	moved   chan struct{}
	outcome *flow.Result
	failure error
	// unresumed is the status of a run whose resumption failed.
	unresumed flow.Status
	// refused is the reason why the item was not recorded and does not exist.
	refused error
}

// forking is the source of a fork, up to a record.
type forking struct {
	Run string `json:"run"`
	At  uint64 `json:"at"`
}

// resumption is the input of a resumed run.
type resumption struct {
	Answers     json.RawMessage `json:"answers,omitempty"`
	Input       json.RawMessage `json:"input,omitempty"`
	RetryFailed bool            `json:"retry_failed,omitempty"`
	Migrate     bool            `json:"migrate,omitempty"`
	// By is who answered: the name of a token, or the target of a link.
	By string `json:"by,omitempty"`
	// questions are the ids of the answers.
	questions []string
	// key is the deduplication key of the request, nil for none.
	key *keyUse
}

// progress is the progress of an item.
type progress struct {
	ID string `json:"id"`
	// Attempts counts starts. Records is the number of records in the checkpoint at
	// the last start, and Stuck counts consecutive starts that were interrupted
	// without a further record.
	Attempts int `json:"attempts,omitempty"`
	Records  int `json:"records,omitempty"`
	Stuck    int `json:"stuck,omitempty"`
	// Running reports whether an attempt has begun and not ended.
	Running bool `json:"running,omitempty"`
	// Failure is the last failure, and Failures counts equal ones in a row.
	Failure  string `json:"failure,omitempty"`
	Failures int    `json:"failures,omitempty"`
	// NotBefore is when the next attempt is due, or the deadline of a question.
	NotBefore time.Time `json:"not_before,omitzero"`
	// Spent is the usage of the run that is already counted.
	Spent flow.Usage `json:"spent,omitzero"`
	// Waiting reports whether the run waits for an answer until NotBefore.
	Waiting bool `json:"waiting,omitempty"`
	// Parked is the reason why the run is not continued.
	Parked string `json:"parked,omitempty"`
}

// isBusy reports whether a run is running or queued. A waiting run is queued once the
// deadline of its question has passed.
func (p *progress) isBusy() bool {
	return p.Parked == "" && (!p.Waiting || p.NotBefore.IsZero())
}

// done returns a channel that is closed when the run has ended. The caller holds
// the mutex.
func (it *item) done() <-chan struct{} {
	if it.ended == nil {
		it.ended = make(chan struct{})
	}
	return it.ended
}

// starts returns a channel that is closed when the run has started or ended. The
// caller holds the mutex.
func (it *item) starts() <-chan struct{} {
	if it.moved == nil {
		it.moved = make(chan struct{})
	}
	return it.moved
}

// move notifies those who wait for the run to start or end. The caller holds the
// mutex.
func (it *item) move() {
	if it.moved != nil {
		close(it.moved)
		it.moved = nil
	}
}

// finish records the outcome and notifies those who wait for it. The caller holds the mutex.
func (it *item) finish(res *flow.Result, err error) {
	it.outcome, it.failure = res, err
	it.move()
	if it.ended != nil {
		close(it.ended)
		it.ended = nil
	}
}

// seal returns an object of the value model as JSON, with references in place of
// secrets; nil if it is empty.
func (s *server) seal(v map[string]any) (json.RawMessage, error) {
	if len(v) == 0 {
		return nil, nil
	}
	return value.Encode(s.secrets.Seal(v))
}

// unseal returns a sealed object.
func (s *server) unseal(text json.RawMessage) (map[string]any, error) {
	object, err := decodeObject(text)
	if err != nil || object == nil {
		return nil, err
	}
	v, err := s.secrets.Unseal(object)
	object, _ = v.(map[string]any)
	return object, err
}

// decodeObject returns the object in a text.
func decodeObject(text json.RawMessage) (map[string]any, error) {
	if len(text) == 0 {
		return nil, nil
	}
	v, err := value.Decode(withoutMark(text))
	if err != nil {
		return nil, err
	}
	object, ok := v.(map[string]any)
	if !ok && v != nil {
		return nil, fmt.Errorf("expected an object, got %s", value.TypeName(v))
	}
	return object, nil
}
