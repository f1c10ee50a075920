package tabular

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// Call names a change for the case that it is asked for again: after a crash a
// workflow repeats the call that was under way, which may have been done. The
// same Key and Hash give the result of the first time and change nothing. A
// Call without a Key is never a repetition.
type Call struct {
	Key string
	// Hash is that of what is asked for.
	Hash string
}

const (
	callKind = "tabular_call"
	// keptCalls is how many calls are known again, keptMore how many more
	// there may be before the oldest are forgotten.
	keptCalls = 10_000
	keptMore  = 1000
)

// note is what is remembered of a call.
type note struct {
	Hash   string `json:"hash"`
	Result Result `json:"result"`
}

// known is what is known of a call's key.
type known struct {
	note
	version int64 // of the document; 0 = there is none
	same    bool  // the call was made before
}

// done looks a call up.
func (s *Tables) done(ctx context.Context, call Call) (k known, err error) {
	if call.Key == "" {
		return k, nil
	}
	doc, err := s.o.Documents.Get(ctx, callKind, call.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return k, nil
	case err != nil:
		return k, err
	}
	if err := json.Unmarshal(doc.Body, &k.note); err != nil {
		return k, fmt.Errorf("read what is known of a call: %w", err)
	}
	k.version, k.same = doc.Version, k.Hash == call.Hash
	return k, nil
}

// remember writes the result of a call down, together with what it changes.
// The call that runs at the same time for a second time fails here.
func (w *writing) remember(ctx context.Context, call Call, before known) error {
	if call.Key == "" {
		return nil
	}
	body, err := json.Marshal(note{Hash: call.Hash, Result: w.result})
	if err != nil {
		return err
	}
	change := store.Change{Kind: callKind, ID: call.Key, Body: body, If: before.version}
	if before.version == 0 {
		change.If = store.New
	}
	return w.s.o.Documents.ApplyIn(ctx, w.tx, change)
}

// forget removes the oldest of the calls, now and then.
func (s *Tables) forget(ctx context.Context) error {
	n, err := s.o.Documents.Count(ctx, store.DocumentQuery{Kind: callKind})
	for err == nil && n > keptCalls {
		var old []store.Document
		if old, err = s.o.Documents.Query(ctx, store.DocumentQuery{Kind: callKind, Limit: min(n-keptCalls, keptMore)}); err != nil || len(old) == 0 {
			break
		}
		changes := make([]store.Change, len(old))
		for i, doc := range old {
			changes[i] = store.Change{Kind: callKind, ID: doc.ID}
		}
		n -= len(old)
		err = s.o.Documents.Apply(ctx, changes...)
	}
	if err != nil {
		return fmt.Errorf("forget old calls: %w", err)
	}
	return nil
}

// countCall notes one more call and tells whether it is time to forget.
func (s *Tables) countCall(call Call) bool {
	if call.Key == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls++; s.calls < keptMore {
		return false
	}
	s.calls = 0
	return true
}
