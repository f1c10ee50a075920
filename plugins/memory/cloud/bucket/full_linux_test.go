package bucket

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/objstore/objtest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/smalldisktest"
)

// A device whose disk is full fails with a resource_exhausted, loses nothing that
// was acknowledged, does not keep others from the memory, and continues when it
// has space again.
func TestFullDisk(t *testing.T) {
	if !devicetest.OwnMounts(t) {
		return
	}
	for _, acknowledge := range []string{"remote", "local"} {
		t.Run(acknowledge, func(t *testing.T) {
			s := objtest.S3(t)
			disk := smalldisktest.New(t, "24m")
			options := map[string]any{"acknowledge": acknowledge, "delay_seconds": 0.01}
			device := openStores(t, config(t, s, prefixOf(t), disk.Dir, options))
			other := openStores(t, config(t, s, prefixOf(t), t.TempDir(), map[string]any{"wait_seconds": 600}))
			text := strings.Repeat("x", 900)
			acknowledged := map[string]string{}
			put := func(key string) error {
				_, err := device.LongTerm.Store(t.Context(), store.Entry{Key: key, Value: json.RawMessage(`"` + key + text + `"`)})
				if err == nil {
					acknowledged[key] = key + text
				}
				return err
			}
			check := func(when string, s *store.Stores) {
				t.Helper()
				for key, want := range acknowledged {
					if got := get(t, s, key); got != want {
						t.Errorf("%s: %s is %.20q", when, key, got)
					}
				}
			}
			for n := range 10 {
				if err := put(fmt.Sprint("before", n)); err != nil {
					t.Fatal(err)
				}
			}
			disk.Fill(t, 0)
			failed := 0
			for n := range 20 {
				if err := put(fmt.Sprint("full", n)); err != nil {
					if failed++; tea.AsError(err).Type != tea.ResourceExhausted {
						t.Errorf("a full disk: %v", err)
					}
				}
			}
			if failed == 0 {
				t.Error("a full disk takes everything")
			}
			check("on the other device", other)
			set(t, other, "theirs", strings.Repeat("y", 100_000)) // a blob, so that this device has little to fetch
			for n := range 30 {
				set(t, other, fmt.Sprint("many", n), text)
			}
			// The copy cannot be brought up to date.
			_, err := device.LongTerm.Retrieve(t.Context(), "", "theirs")
			if err != nil && tea.AsError(err).Type != tea.ResourceExhausted {
				t.Errorf("the copy on a full disk: %v", err)
			}
			set(t, other, "free", "1")
			disk.Free(t)
			if err := put("after"); err != nil {
				t.Fatal(err)
			}
			check("after there is space again", device)
			check("on the other device", other)
			checkDatabase(t, device)
		})
	}
}
