package cloud_test

import (
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/cloud"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	settings := map[string]any{"memory": map[string]any{"engine": "sqlite", "path": t.TempDir()}}
	teatest.Conformance(t, memory.Bundle(cloud.Options()...),
		teatest.Request{Action: "ltm.retrieve", Settings: settings, Params: map[string]any{"key": "none", "default": 1.0}},
	)
}
