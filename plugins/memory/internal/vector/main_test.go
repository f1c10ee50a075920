package vector

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(flusherEnv); path != "" {
		flushForever(path)
	}
	goleak.VerifyTestMain(closing{m})
}

// closing runs the tests and benchmarks and closes what they share.
type closing struct{ m *testing.M }

func (c closing) Run() int {
	defer closeBenchIndexes()
	return c.m.Run()
}
