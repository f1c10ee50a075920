package azure_test

import (
	"testing"

	"github.com/the-edge-agent/tea/objstore/azure"
	"github.com/the-edge-agent/tea/objstore/objtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	objtest.Run(t, objtest.Azure(t), azure.Scheme())
}

func TestFaults(t *testing.T) {
	t.Parallel()
	objtest.Faults(t, objtest.Azure(t), azure.Scheme())
}
