package bucket

import (
	"encoding/json"
	"testing"

	"github.com/the-edge-agent/tea/objstore/objtest"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/syncsuite"
)

// Devices with their own memories synchronise with one in a bucket.
func TestSync(t *testing.T) {
	t.Parallel()
	server := objtest.S3(t)
	raw, err := json.Marshal(server.Settings)
	if err != nil {
		t.Fatal(err)
	}
	syncsuite.All(t, func(t *testing.T) syncsuite.Remote {
		var options map[string]any
		if err := json.Unmarshal(raw, &options); err != nil {
			t.Fatal(err)
		}
		options["acknowledge"] = "remote"
		return syncsuite.Remote{Settings: map[string]any{"engine": "bucket", "url": server.Address + "/" + t.Name(), "options": options}, Option: Option()}
	})
}

func TestSyncWithAnOlderCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := objtest.S3In(t, dir)
	raw, err := json.Marshal(server.Settings)
	if err != nil {
		t.Fatal(err)
	}
	var options map[string]any
	if err := json.Unmarshal(raw, &options); err != nil {
		t.Fatal(err)
	}
	options["acknowledge"] = "remote"
	r := syncsuite.Remote{Settings: map[string]any{"engine": "bucket", "url": server.Address + "/" + t.Name(), "options": options}, Option: Option()}
	syncsuite.Restored(t, r, syncsuite.FolderCopies(t, dir, server.Kill, func() { server.Restart(t) }))
}
