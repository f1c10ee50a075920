package httpapi

import (
	"testing"

	"go.uber.org/goleak"
)

// No request may leave a goroutine behind, however it ended.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
