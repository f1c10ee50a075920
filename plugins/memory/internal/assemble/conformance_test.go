package assemble_test

import (
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

func TestContextConformance(t *testing.T) {
	devicetest.EachDriver(t, func(t *testing.T, driver engine.Driver) {
		storetest.Context(t, func(t *testing.T) *store.Stores {
			m, err := devicetest.OpenMemory(t.Context(), driver, store.Config{Dir: t.TempDir(), Now: func() time.Time { return storetest.Start }}, vector.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := m.Stores.Close(); err != nil {
					t.Error(err)
				}
			})
			return m.Stores
		})
	})
}
