package embedded_test

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/embedded"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// driver closes its engine.
type driver struct {
	*embedded.Driver
	engine *engine.Engine
}

func (d *driver) Close() error { return errors.Join(d.Driver.Close(), d.engine.Close()) }

// open opens the driver of a suite's memory.
func open(t *testing.T, of engine.Driver, c store.Config, search vector.Options) (store.Driver, error) {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Options{Dir: c.Dir, Driver: of})
	if err != nil {
		return nil, err
	}
	start := c.Now()
	m := embedded.Open(embedded.Options{
		Engine: e, Blobs: c.Blobs, Dir: c.Dir, Clock: clock.Fixed(start, func() time.Duration { return c.Now().Sub(start) }), Search: search, Language: c.Language, InlineBytes: c.InlineBytes,
	})
	return &driver{m.Driver, e}, nil
}

func TestConformance(t *testing.T) {
	devicetest.EachDriver(t, func(t *testing.T, of engine.Driver) {
		storetest.Driver(t, func(t *testing.T, c store.Config) (store.Driver, error) { return open(t, of, c, vector.Options{}) })
	})
}

// TestGraphConformance searches graphs even of small collections.
func TestGraphConformance(t *testing.T) {
	devicetest.EachDriver(t, func(t *testing.T, of engine.Driver) {
		storetest.DriverVectors(t, func(t *testing.T, c store.Config) (store.Driver, error) {
			return open(t, of, c, vector.Options{Exact: -1, EfSearch: 1000})
		})
	})
}
