package postgres

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/histories"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	urlVariable    = "TEA_TEST_PG_URL"
	schemaVariable = "TEA_TEST_PG_SCHEMA"
	workerCalls    = 150
)

// TestHistoryWorker is a process of TestProcessesSeeOneHistory.
func TestHistoryWorker(t *testing.T) {
	histories.Worker(t, workerCalls, func(t *testing.T, _ int) (*store.Stores, func() error) {
		t.Helper()
		stores, err := Open(t.Context(), configFor(os.Getenv(urlVariable), os.Getenv(schemaVariable), time.Now))
		if err != nil {
			t.Fatal(err)
		}
		return stores, func() error { return errors.Join(stores.LongTerm.Close(), stores.Vectors.Close(), stores.Close()) }
	})
}

func TestProcessesSeeOneHistory(t *testing.T) {
	t.Parallel()
	for _, processes := range []int{2, 8} {
		t.Run(fmt.Sprint(processes), func(t *testing.T) {
			t.Parallel()
			histories.CheckProcesses(t, processes, workerCalls, "TestHistoryWorker", urlVariable+"="+server.URL(t), schemaVariable+"="+server.Schema(t))
		})
	}
}
