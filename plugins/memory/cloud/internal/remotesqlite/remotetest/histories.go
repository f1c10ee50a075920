package remotetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/histories"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/servertest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// historyCalls is the number of calls of a device.
const historyCalls = 60

// Histories calls the stores of several devices concurrently, over a network that loses responses, and checks that the
// calls on each key have a common order. The devices share only the database.
func Histories(t *testing.T, open Open) {
	t.Helper()
	for _, devices := range []int{2, 8} {
		t.Run(fmt.Sprint(devices), func(t *testing.T) {
			t.Parallel()
			var all []*store.Stores
			for device := range devices {
				lost := rand.New(rand.NewPCG(uint64(device), 8)) //nolint:gosec // a test's choices
				// A device sends one request at a time.
				all = append(all, open(t, &servertest.Trips{Lose: func(int64) bool { return lost.IntN(20) == 0 }}))
			}
			histories.Check(t, historyCalls, all)
		})
	}
}
