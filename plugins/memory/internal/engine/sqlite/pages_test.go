package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// A copy that is made of the changed pages only is the database.
func TestChangedPagesMakeACopy(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	dir := t.TempDir()
	ctx := t.Context()
	e, err := engine.Open(ctx, engine.Options{Dir: dir, Driver: Driver{}, Warmup: true})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, Driver{}.File())
	p, err := OpenPages(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	copied := map[uint32][]byte{}
	var count uint32
	update := func(all bool) {
		t.Helper()
		var s *Snapshot
		var changed []uint32
		err := e.Barrier(ctx, func() {
			pages, complete, err := p.Changed()
			if err != nil || !complete {
				t.Errorf("complete %v, %v", complete, err)
			}
			if changed = pages; t.Failed() {
				return
			}
			if s, err = p.Snapshot(ctx); err != nil {
				t.Error(err)
			}
		})
		if err != nil || t.Failed() {
			t.Fatal(err)
		}
		count = s.Count()
		if all {
			for n := uint32(1); n <= count; n++ {
				changed = append(changed, n)
			}
		}
		for _, n := range changed {
			if n > count {
				continue
			}
			if copied[n], err = s.Page(ctx, n); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.End(); err != nil {
			t.Fatal(err)
		}
	}
	update(true)
	for i := range 60 { // enough for the log to begin again several times
		err := e.Write(ctx, func(ctx context.Context, tx store.Tx) error {
			for j := range 50 {
				if _, err := tx.Exec(ctx, "INSERT INTO tea_deleted VALUES ('f', ?, 's', ?, 1)", i*50+j, fmt.Sprintf("%d-%s", i*50+j, bytes.Repeat([]byte("x"), 3000))); err != nil {
					return err
				}
			}
			_, err := tx.Exec(ctx, "DELETE FROM tea_deleted WHERE seq < ?", i*20)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		update(false)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(whole) != int(count)*p.Size() {
		t.Fatalf("the database has %d bytes, %d pages", len(whole), count)
	}
	for n := uint32(1); n <= count; n++ {
		if !bytes.Equal(copied[n], whole[int(n-1)*p.Size():int(n)*p.Size()]) {
			t.Errorf("page %d differs", n)
		}
	}
}
