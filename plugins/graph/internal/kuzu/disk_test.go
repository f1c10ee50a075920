//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/smalldisktest"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// A checkpoint that fails leaves a log that the engine must not continue: what
// followed its record would be lost.
func TestACheckpointOnAFullDiskLosesNothing(t *testing.T) {
	t.Parallel()
	need(t)
	for _, free := range []int64{0, 4 << 10, 32 << 10, 128 << 10, 512 << 10, 1 << 20} {
		t.Run(fmt.Sprint(free), func(t *testing.T) {
			t.Parallel()
			disk := smalldisktest.New(t, "32m")
			dir := filepath.Join(disk.Dir, "graph")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			db := opened(t, dir)
			const size = 50
			store50 := func(from int) {
				t.Helper()
				var b store.Batch
				for i := range size {
					e := entity(fmt.Sprintf("e%d", from+i), "thing", `{}`)
					e.Text = strings.Repeat("text ", 1000)
					b.Entities = append(b.Entities, e)
				}
				apply(t, db, b)
			}
			store50(0)
			disk.Fill(t, free)
			err := db.checkpoint()
			if err != nil && tea.AsError(err).Type != tea.ResourceExhausted {
				t.Errorf("checkpoint with %d free bytes: %v", free, err)
			}
			disk.Free(t)
			store50(size)
			crashed := t.TempDir()
			if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			for _, s := range []*DB{db, opened(t, crashed)} {
				if stats, err := s.Stats(t.Context(), "default"); err != nil || stats.Entities != 2*size {
					t.Errorf("%+v, %v", stats, err)
				}
			}
		})
	}
}
