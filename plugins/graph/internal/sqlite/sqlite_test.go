package sqlite_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/the-edge-agent/tea/plugins/graph/internal/sqlite"
	"github.com/the-edge-agent/tea/plugins/graph/internal/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, sqlite.Open)
}
