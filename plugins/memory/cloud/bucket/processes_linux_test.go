package bucket

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/objstore/objtest"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/histories"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/servertest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	deviceVariable = "TEA_TEST_BUCKET_DEVICE" // a worker as JSON
	deviceCalls    = 20
)

// TestHistoryWorker is a process of TestProcessesSeeOneHistory. Two processes are
// on the same device.
func TestHistoryWorker(t *testing.T) {
	histories.Worker(t, deviceCalls, func(t *testing.T, number int) (*store.Stores, func() error) {
		t.Helper()
		var w worker
		if err := json.Unmarshal([]byte(os.Getenv(deviceVariable)), &w); err != nil {
			t.Fatal(err)
		}
		stores, err := Backend().Open(t.Context(), config(t, &w.Server, w.Prefix, filepath.Join(w.Dir, fmt.Sprint(number/2)), w.Options))
		if err != nil {
			t.Fatal(err)
		}
		return stores, stores.Close
	})
}

func TestProcessesSeeOneHistory(t *testing.T) {
	t.Parallel()
	s := objtest.S3(t)
	for _, processes := range []int{2, 8} {
		t.Run(fmt.Sprint(processes), func(t *testing.T) {
			t.Parallel()
			checkProcesses(t, s, processes)
		})
	}
}

func checkProcesses(t *testing.T, s *objtest.Server, processes int) {
	t.Helper()
	raw, err := json.Marshal(worker{Server: *s, Prefix: prefixOf(t), Dir: t.TempDir(), Options: map[string]any{"wait_seconds": 600, "stall_timeout": 20}})
	if err != nil {
		t.Fatal(err)
	}
	histories.CheckProcesses(t, processes, deviceCalls, "TestHistoryWorker", deviceVariable+"="+string(raw))
}

// A slow network with connections that break changes nothing about the order.
func TestProcessesOnABadNetwork(t *testing.T) {
	t.Parallel()
	s := objtest.S3(t)
	proxy := servertest.StartToxiproxy(t)
	for name, toxics := range map[string][]servertest.Toxic{
		"latency":   {{Type: "latency", Attributes: map[string]any{"latency": 30, "jitter": 20}}},
		"bandwidth": {{Type: "bandwidth", Attributes: map[string]any{"rate": 200}}, {Type: "bandwidth", Stream: "upstream", Attributes: map[string]any{"rate": 200}}},
		"cut":       {{Type: "limit_data", Attributes: map[string]any{"bytes": 20_000}}, {Type: "limit_data", Stream: "upstream", Attributes: map[string]any{"bytes": 60_000}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			behind := proxy.Proxy(t, s.Listen())
			for _, toxic := range toxics {
				behind.Add(t, toxic)
			}
			through := *s
			through.Settings.Endpoint = "http://" + behind.Address
			checkProcesses(t, &through, 2)
		})
	}
}
