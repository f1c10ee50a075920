package checkpoint

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childEnv makes the test binary play the part of another process.
const childEnv = "TEA_CHECKPOINT_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "append":
		os.Exit(childAppend(os.Args[1]))
	case "own":
		os.Exit(childOwn(os.Args[1]))
	case "bequeath":
		os.Exit(childBequeath(os.Args[1]))
	case "limited":
		os.Exit(childLimited(os.Args[1]))
	}
	goleak.VerifyTestMain(m)
}
