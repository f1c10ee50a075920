package graph_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
)

// Writers move persons from place to place; each change ends one fact and begins
// another. A reader never sees a person at two places, or at none.
func TestReadersSeeFactsChangeAtomically(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		const writers, readers, moves = 4, 16, 10
		for w := range writers {
			g.link(fmt.Sprintf("person%d-lives_in-place0", w))
		}
		for place := range 5 {
			g.call("store_entity", object{"entity_id": fmt.Sprintf("place%d", place)})
		}
		ctx, stop := context.WithCancel(t.Context())
		var writing, reading sync.WaitGroup
		for w := range writers {
			writing.Go(func() {
				for i := range moves {
					_, err := g.try("store_relation", object{"from_entity": fmt.Sprintf("person%d", w), "relation_type": "lives_in", "to_entity": fmt.Sprintf("place%d", (i+1)%5), "exclusive": true})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for r := range readers {
			reading.Go(func() {
				for ctx.Err() == nil {
					result, err := g.try("get_relations", object{"from_entity": fmt.Sprintf("person%d", r%writers), "history": true})
					if err != nil {
						t.Error(err)
						return
					}
					if n := unended(result["relations"]); n != 1 {
						t.Errorf("a person has %d facts without an end: %v", n, result["relations"])
						return
					}
				}
			})
		}
		writing.Wait()
		stop()
		reading.Wait()
		for w := range writers {
			r := g.call("get_relations", object{"from_entity": fmt.Sprintf("person%d", w), "history": true})
			same(t, "facts without an end", unended(r["relations"]), 1)
		}
	})
}

// unended counts the relations that have no end.
func unended(list any) int {
	n := 0
	for _, item := range list.([]any) {
		if _, ended := item.(object)["valid_to"]; !ended {
			n++
		}
	}
	return n
}
