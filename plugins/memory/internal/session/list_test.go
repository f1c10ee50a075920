package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

// counting counts what lists read.
type counting struct {
	store.MetadataStore
	queries, documents int
}

func (c *counting) Query(ctx context.Context, q store.DocumentQuery) ([]store.Document, error) {
	found, err := c.MetadataStore.Query(ctx, q)
	if q.OrderBy == "place" {
		c.queries++
		c.documents += len(found)
	}
	return found, err
}

// many writes n sessions, s0000 first. They are copies of a created one.
func (d *device) many(t *testing.T, n int) {
	t.Helper()
	d.create(t, session.Draft{ID: "s0000", Metadata: json.RawMessage(`{"n": "s0000"}`)})
	like, err := d.Documents.Get(t.Context(), session.Kind, "s0000")
	if err != nil {
		t.Fatal(err)
	}
	changes := make([]store.Change, n-1)
	for i := range changes {
		id := fmt.Sprintf("s%04d", i+1)
		changes[i] = store.Change{Kind: session.Kind, ID: id, Body: []byte(strings.ReplaceAll(string(like.Body), "s0000", id)), If: store.New}
	}
	if err := d.Documents.Apply(t.Context(), changes...); err != nil {
		t.Fatal(err)
	}
}

// TestAListReadsOnlyWhatItReturns: a database goes through all sessions for each
// question that it is asked, so few questions are asked, and few rows read.
func TestAListReadsOnlyWhatItReturns(t *testing.T) {
	devicetest.EachDevice(t, func(t *testing.T, stored *devicetest.Device) {
		c := &counting{MetadataStore: stored.Documents}
		d := over(stored, c)
		const n = 2500
		d.many(t, n)
		for _, test := range []struct {
			query              session.Query
			found              int
			queries, documents int // at most
		}{
			{session.Query{Limit: 10}, 10, 1, 11},
			{session.Query{Limit: 1000, Status: session.Active}, 1000, 1, 1001},
			{session.Query{Limit: 10, Reason: "none"}, 0, 1, 0},
			{session.Query{Limit: 10, Metadata: storetest.Filter(t, map[string]any{"n": "s0001"})}, 1, 3, n},
			{session.Query{Limit: 1, Metadata: storetest.Filter(t, map[string]any{"n": "s2400"})}, 1, 3, n},
		} {
			c.queries, c.documents = 0, 0
			found, _, err := d.List(t.Context(), test.query)
			if err != nil || len(found) != test.found || c.queries > test.queries || c.documents > test.documents {
				t.Errorf("%+v: %d sessions by %d queries that gave %d documents, %v", test.query, len(found), c.queries, c.documents, err)
			}
		}
		var all []session.Session
		for after := ""; ; {
			page, next, err := d.List(t.Context(), session.Query{Limit: 999, After: after, Metadata: storetest.Filter(t, map[string]any{})})
			if err != nil {
				t.Fatal(err)
			}
			if all = append(all, page...); next == "" {
				break
			}
			after = next
		}
		if len(all) != n || all[0].ID != "s2499" || all[n-1].ID != "s0000" {
			t.Errorf("the pages have %d sessions, from %s to %s", len(all), all[0].ID, all[len(all)-1].ID)
		}
	})
}

// TestADamagedSessionDoesNotEndAList is about a row that is not valid JSON. DuckDB
// has checksums and does not read such a row.
func TestADamagedSessionDoesNotEndAList(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		if d.Engine.Dialect() == store.DuckDB {
			t.Skip("a damaged block is an error of the database")
		}
		for _, id := range []string{"a", "b", "c"} {
			d.create(t, session.Draft{ID: id})
		}
		err := d.Engine.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Exec(ctx, "UPDATE documents SET body = replace(body, '{', 'X') WHERE id = 'b'")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		d = d.reopen(t)
		found, _, err := d.List(t.Context(), session.Query{Limit: 10})
		if err != nil || len(found) != 2 {
			t.Errorf("the list has %d sessions (%v), want the 2 that are not damaged", len(found), err)
		}
		if _, err := d.Get(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	})
}
