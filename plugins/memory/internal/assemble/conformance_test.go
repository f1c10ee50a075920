package assemble_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

func TestContextConformance(t *testing.T) {
	devicetest.EachDriver(t, func(t *testing.T, driver engine.Driver) {
		storetest.Context(t, func(t *testing.T) *store.Stores {
			dir := t.TempDir()
			e, err := engine.Open(t.Context(), engine.Options{Dir: dir, Driver: driver})
			if err != nil {
				t.Fatal(err)
			}
			blobs, err := blob.Open(filepath.Join(dir, "blobs"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := errors.Join(e.Close(), blobs.Close()); err != nil {
					t.Error(err)
				}
			})
			return &store.Stores{
				LongTerm: longterm.New(longterm.Options{
					Engine: e, Blobs: blobs, Clock: clock.Fixed(storetest.Start, func() time.Duration { return 0 }), IndexDir: filepath.Join(dir, "index"), Language: "english",
				}),
				Metadata: documents.New(e), Vectors: vectors.New(vectors.Options{Engine: e, Dir: filepath.Join(dir, "vectors")}), Blobs: blobs,
			}
		})
	})
}
