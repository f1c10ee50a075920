package tabular

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	callKind = "tabular_call"
	// keptCalls is the number of stored calls; the oldest are removed when there
	// are callsSlack more.
	keptCalls  = 10_000
	callsSlack = 1000
)

// note is the document of a call.
type note struct {
	Hash   string            `json:"hash"`
	Result store.TableResult `json:"result"`
}

// known is the state of a call's key.
type known struct {
	note
	version int64 // of the document; 0 = none
	same    bool  // the call is a repetition
}

func (s *Tables) done(ctx context.Context, call store.TableCall) (k known, err error) {
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
		return k, fmt.Errorf("read the record of a call: %w", err)
	}
	k.version, k.same = doc.Version, k.Hash == call.Hash
	return k, nil
}

// remember stores the result of a call in the transaction of its change. Of two
// concurrent equal calls, the second one fails here.
func (w *writing) remember(ctx context.Context, call store.TableCall, before known) error {
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

// forget removes the oldest calls beyond keptCalls.
func (s *Tables) forget(ctx context.Context) error {
	n, err := s.o.Documents.Count(ctx, store.DocumentQuery{Kind: callKind})
	for err == nil && n > keptCalls {
		var old []store.Document
		if old, err = s.o.Documents.Query(ctx, store.DocumentQuery{Kind: callKind, Limit: min(n-keptCalls, callsSlack)}); err != nil || len(old) == 0 {
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
		return fmt.Errorf("remove old calls: %w", err)
	}
	return nil
}

// countCall counts a call and reports whether forget is due.
func (s *Tables) countCall(call store.TableCall) bool {
	if call.Key == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls++; s.calls < callsSlack {
		return false
	}
	s.calls = 0
	return true
}
