package postgres

import (
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/remotesqlite/remotetest"
)

// The entry "older" has the stems of Snowball 2, in which added has the stem ad.
func TestRowsWithOlderStemsAreFoundAsBefore(t *testing.T) {
	t.Parallel()
	config := configOf(t, time.Now)
	d, err := open(t.Context(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	stores := d.stores(config)
	t.Cleanup(func() { _ = (&backend[any]{nil, stores}).Close() })
	remotetest.OlderStems(t, stores, func() {
		if _, err := d.pool.Exec(t.Context(), "UPDATE ltm SET words = $1::tsvector WHERE key = 'older'", "older:1 valv:130 ad:131 '=older' '=valves' '=added'"); err != nil {
			t.Fatal(err)
		}
	})
}
