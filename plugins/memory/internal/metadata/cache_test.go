package metadata_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/internal/metadata"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

// table is rows of ids, whose metadata have n equal to the id. It calls during
// before the last one.
type table struct {
	ids    []int64
	at     int
	during func()
}

func (r *table) Next() bool {
	r.at++
	if r.at == len(r.ids) && r.during != nil {
		r.during()
	}
	return r.at <= len(r.ids)
}

func (r *table) Scan(dest ...any) error {
	*dest[0].(*int64) = r.ids[r.at-1]
	*dest[1].(*[]byte) = fmt.Appendf(nil, `{"n": %d}`, r.ids[r.at-1])
	return nil
}

func (*table) Columns() ([]string, error) { return nil, nil }
func (*table) Err() error                 { return nil }
func (*table) Close() error               { return nil }

func TestCacheFollowsChanges(t *testing.T) {
	t.Parallel()
	var c metadata.Cache
	reads := 0
	during := func() {}
	above := func(n int64) []int64 {
		t.Helper()
		ids, err := c.Matching(t.Context(), storetest.Filter(t, map[string]any{"n": map[string]any{"gte": n}}), func(context.Context) (store.Rows, error) {
			reads++
			return &table{ids: []int64{1, 2, 3, 4}, during: during}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return slices.Sorted(slices.Values(ids))
	}
	check := func(what string, got, want []int64, wantReads int) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" || reads != wantReads {
			t.Errorf("%s, after %d reads instead of %d (-want +got):\n%s", what, reads, wantReads, diff)
		}
	}
	during = func() {
		c.Apply(metadata.Change{ID: 5, Metadata: `{"n": 5}`}, metadata.Change{ID: 4, Deleted: true})
	}
	check("changed during the reading", above(3), []int64{3, 5}, 1)
	c.Apply(metadata.Change{ID: 3}, metadata.Change{ID: 1, Metadata: `{"n": 9}`}, metadata.Change{ID: 2, Metadata: `damaged`})
	check("changed afterwards", above(0), []int64{1, 5}, 1)
	c.Reset()
	during = c.Reset
	check("reset during the reading", above(4), []int64{4}, 2)
	during = nil
	check("read again", above(1), []int64{1, 2, 3, 4}, 3)
	check("kept", above(4), []int64{4}, 3)
}
