package objects_test

import (
	"encoding/json"
	"testing"

	"github.com/the-edge-agent/tea/objstore/objtest"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/syncsuite"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/objects"
)

// Devices with embedded memories synchronise with objects, and another one works
// with these directly.
func TestSync(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *objtest.Server{"s3": objtest.S3, "azure": objtest.Azure} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			syncsuite.All(t, func(t *testing.T) syncsuite.Remote {
				return syncsuite.Remote{Settings: settings(t, server), Option: objects.Option(), NoTables: true}
			})
		})
	}
}

func TestSyncWithAnOlderCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := objtest.S3In(t, dir)
	r := syncsuite.Remote{Settings: settings(t, server), Option: objects.Option(), NoTables: true}
	syncsuite.Restored(t, r, syncsuite.FolderCopies(t, dir, server.Kill, func() { server.Restart(t) }))
}

func settings(t *testing.T, s *objtest.Server) map[string]any {
	t.Helper()
	raw, err := json.Marshal(s.Settings)
	if err != nil {
		t.Fatal(err)
	}
	var options map[string]any
	if err := json.Unmarshal(raw, &options); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"engine": "objects", "url": s.Address + "/" + t.Name(), "options": options}
}
