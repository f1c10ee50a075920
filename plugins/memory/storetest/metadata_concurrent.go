package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func metadataConcurrent(t *testing.T, open func(t *testing.T) store.MetadataStore) {
	s := open(t)
	const goroutines, each = 32, 5
	apply(t, s, put("k", "sum", `{"n": 0}`))
	// All try at once, but only a few retry at once: otherwise a remote server would spend minutes on changes that
	// fail.
	again := make(chan struct{}, 4)
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			for i := range each {
				if err := addOne(t.Context(), s, fmt.Sprintf("%d-%d", g, i), again); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	want(t, "no change is lost", bodyOf(t, s, "k", "sum"), fmt.Sprintf(`{"n":%d}`, goroutines*each))
	want(t, "documents", must(s.Count(t.Context(), store.DocumentQuery{Kind: "k"}))(t), goroutines*each+1)
}

// addOne changes the shared document and adds another one. again bounds the
// number of concurrent retries.
func addOne(ctx context.Context, s store.MetadataStore, id string, again chan struct{}) error {
	for attempt := 1; ; attempt++ {
		d, err := s.Get(ctx, "k", "sum")
		if err != nil {
			return err
		}
		var sum struct {
			N int `json:"n"`
		}
		if err := json.Unmarshal(d.Body, &sum); err != nil {
			return err
		}
		err = s.Apply(ctx, store.Change{Kind: "k", ID: "sum", Body: fmt.Appendf(nil, `{"n":%d}`, sum.N+1), If: d.Version}, put("k", id, `{}`))
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		if attempt == 1 {
			again <- struct{}{}
			defer func() { <-again }()
		}
	}
}

// metadataFirstWins creates, changes and removes a document from many goroutines, each on a condition that only the
// first can meet.
func metadataFirstWins(t *testing.T, open func(t *testing.T) store.MetadataStore) {
	s := open(t)
	const goroutines = 16
	for what, c := range map[string]store.Change{
		"1 create": {Kind: "k", ID: "a", Body: json.RawMessage(`{}`), If: store.New}, "2 change": {Kind: "k", ID: "a", Body: json.RawMessage(`{"n":1}`), If: 1}, "3 remove": {Kind: "k", ID: "a", If: 1},
	} {
		c.ID = what
		if c.If != store.New {
			apply(t, s, put("k", what, `{}`))
		}
		var won atomic.Int64
		var group sync.WaitGroup
		for g := range goroutines {
			group.Go(func() {
				err := s.Apply(t.Context(), c, put("own", fmt.Sprintf("%s %02d", what, g), `{}`))
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, store.ErrConflict):
					t.Errorf("%s: %v", what, err)
				}
			})
		}
		group.Wait()
		want(t, what, won.Load(), 1)
	}
	want(t, "documents that came with a change that was first", must(s.Count(t.Context(), store.DocumentQuery{Kind: "own"}))(t), 3)
}

// metadataReaders reads two documents that always change together.
func metadataReaders(t *testing.T, open func(t *testing.T) store.MetadataStore) {
	s := open(t)
	apply(t, s, put("k", "a", `{"n":0}`), put("k", "b", `{"n":0}`))
	done := make(chan struct{})
	var group sync.WaitGroup
	defer group.Wait()
	defer close(done)
	for range 8 {
		group.Go(func() {
			for {
				found, err := s.Query(t.Context(), store.DocumentQuery{Kind: "k", OrderBy: "id"})
				if err != nil || len(found) != 2 || string(found[0].Body) != string(found[1].Body) {
					t.Errorf("a reader found %v, %v", found, err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range 50 {
		body := fmt.Sprintf(`{"n":%d}`, i)
		if i%2 == 0 {
			apply(t, s, put("k", "a", body), put("k", "b", body))
			continue
		}
		apply(t, s, store.Change{Kind: "k", ID: "a"}, put("k", "b", body), put("k", "a", body))
	}
}

// metadataCursors pages by the last id while documents are added and removed.
func metadataCursors(t *testing.T, open func(t *testing.T) store.MetadataStore) {
	s := open(t)
	prefixes := []string{"a/", "ä\U0010FFFF", "\ud7ff", "\U0010FFFF"}
	for _, prefix := range prefixes {
		for i := range 7 {
			apply(t, s, put("k", fmt.Sprintf("%s%02d", prefix, i), `{}`))
		}
	}
	apply(t, s, put("k", "a", `{}`), put("k", "a0", `{}`), put("k", "A/00", `{}`), put("other", "a/00", `{}`), put("k", "\ue000", `{}`), put("k", "å", `{}`))
	for _, prefix := range prefixes {
		var seen []string
		for after := ""; ; {
			where := []store.Condition{{Field: "id", Op: store.Prefix, Value: prefix}, {Field: "id", Op: store.Gt, Value: after}}
			page := idsOf(t, s, store.DocumentQuery{Kind: "k", OrderBy: "id", Where: where, Limit: 3})
			if len(page) == 0 {
				break
			}
			seen, after = append(seen, page...), page[len(page)-1]
			apply(t, s, store.Change{Kind: "k", ID: page[0]}, put("k", prefix+"00-new", `{}`))
		}
		want(t, "below "+prefix, strings.Join(seen, " "), prefix+strings.Join([]string{"00", "01", "02", "03", "04", "05", "06"}, " "+prefix))
	}
}

func metadataCanceled(t *testing.T, open func(t *testing.T) store.MetadataStore) {
	s := open(t)
	apply(t, s, put("k", "a", `{}`))
	var err error
	canceled(t, map[string]func(ctx context.Context) error{
		"Get":   func(ctx context.Context) error { _, err := s.Get(ctx, "k", "a"); return err },
		"Query": func(ctx context.Context) error { _, err := s.Query(ctx, store.DocumentQuery{Kind: "k"}); return err },
		"Count": func(ctx context.Context) error { _, err := s.Count(ctx, store.DocumentQuery{Kind: "k"}); return err },
		"Apply": func(ctx context.Context) error {
			err = s.Apply(ctx, put("k", "b", `{}`), put("k", "c", `{}`))
			return err
		},
	})
	want(t, "written", []bool{bodyOf(t, s, "k", "b") != "", bodyOf(t, s, "k", "c") != ""}, []bool{err == nil, err == nil})
	apply(t, s, put("k", "d", `{}`))
}
