package storetest

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// Put compares storing a durable entity with own, the engine's durable put of the same
// values, in a graph of 10,000 entities. The two alternate.
func Put(b *testing.B, db store.Store, own func(e store.Entity) error) {
	b.Helper()
	const existing = 10_000
	var all []store.Entity
	for i := range existing {
		all = append(all, device(i))
	}
	if err := db.Apply(b.Context(), ns, store.Batch{Entities: all}); err != nil {
		b.Fatal(err)
	}
	timed := func(f func() error) time.Duration {
		began := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	var ours, theirs []time.Duration
	for i := 2 * existing; b.Loop(); i += 2 {
		ours = append(ours, timed(func() error { return db.Apply(b.Context(), ns, store.Batch{Entities: []store.Entity{device(i)}}) }))
		theirs = append(theirs, timed(func() error { return own(device(i + 1)) }))
	}
	median := func(times []time.Duration) float64 {
		slices.Sort(times)
		return times[len(times)/2].Seconds() * 1000
	}
	b.ReportMetric(median(ours), "ms-median")
	b.ReportMetric(median(theirs), "own-ms-median")
	b.ReportMetric(median(ours)/median(theirs), "x-own")
}

func device(i int) store.Entity {
	n := strconv.Itoa(i)
	return store.Entity{
		ID: "device" + n, Type: "device", Properties: fmt.Appendf(nil, `{"name":"Device %d","watts":%d}`, i, i%100),
		Words: []string{"device", n}, Text: "Device " + n, CreatedAt: 1, UpdatedAt: 1,
	}
}
