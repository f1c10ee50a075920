package engine_test

import (
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

func TestQueryEngineConformance(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		var opened storetest.Opened[*engine.Engine]
		var dirs storetest.Dirs
		storetest.QueryEngine(t, func(t *testing.T) store.QueryEngine {
			return opened.Again(t, func() (*engine.Engine, error) {
				return engine.Open(t.Context(), engine.Options{Dir: dirs.Of(t), Driver: driver})
			})
		})
	})
}

func TestTheGuideSaysHowTheDialectsDiffer(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		e := open(t, driver, t.TempDir())
		storetest.Dialect(t, driver.Dialect(), func(query string, bounds store.Sandbox) (store.Table, error) {
			return e.Select(t.Context(), query, bounds)
		})
	})
}
