package bbolt

import (
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

func TestDriver(t *testing.T) {
	t.Parallel()
	storetest.Driver(t, func(t *testing.T, c store.Config) (store.Driver, error) { return Open(t.Context(), c) })
}
