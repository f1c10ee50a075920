package engine_test

import (
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

func TestTheGuideSaysHowTheDialectsDiffer(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		e := open(t, driver, t.TempDir())
		storetest.Dialect(t, driver.Dialect(), func(query string, bounds store.Sandbox) (store.Table, error) {
			return e.Select(t.Context(), query, bounds)
		})
	})
}
