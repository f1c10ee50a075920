package gcs_test

import (
	"testing"

	"github.com/the-edge-agent/tea/objstore/gcs"
	"github.com/the-edge-agent/tea/objstore/objtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	objtest.Run(t, objtest.GCS(t), gcs.Scheme())
}

func TestFaults(t *testing.T) {
	t.Parallel()
	objtest.Faults(t, objtest.GCS(t), gcs.Scheme())
}
