package deletion_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/deletion"
	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// TestASweepReportsDevicesThatWereOfflineTooLong removes old tombstones: a reader that has not
// seen them gets an error.
func TestASweepReportsDevicesThatWereOfflineTooLong(t *testing.T) {
	devicetest.EachDevice(t, func(t *testing.T, d *devicetest.Device) {
		old, recent := time.UnixMicro(1000), time.UnixMicro(5000)
		err := d.Engine.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
			return tx.Append(ctx, deletion.Table,
				deletion.Row(store.EntryFeed, 3, "", "a", old.UnixMicro()), deletion.Row(store.EntryFeed, 7, "", "b", old.UnixMicro()),
				deletion.Row(store.EntryFeed, 9, "", "c", recent.UnixMicro()), deletion.Row(store.VectorFeed, 4, "c", "v", recent.UnixMicro()))
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := deletion.Sweep(t.Context(), d.Engine, time.UnixMicro(2000)); err != nil {
			t.Fatal(err)
		}
		for after, tooOld := range map[int64]bool{0: false, 3: true, 6: true, 7: false, 9: false, 10: true} {
			err := deletion.Check(t.Context(), d.Engine, store.ChangeQuery{Feed: store.EntryFeed, After: after}, 9)
			if errors.Is(err, store.ErrTooOld) != tooOld {
				t.Errorf("after %d: %v", after, err)
			}
			err = deletion.Check(t.Context(), d.Engine, store.ChangeQuery{Feed: store.EntryFeed, After: after, FromStart: true}, 9)
			if errors.Is(err, store.ErrTooOld) != (after > 9) {
				t.Errorf("a further page after %d: %v", after, err)
			}
		}
		if err := deletion.Check(t.Context(), d.Engine, store.ChangeQuery{Feed: store.VectorFeed, After: 1}, 4); err != nil {
			t.Error(err)
		}
		if last, err := deletion.Last(t.Context(), d.Engine, store.EntryFeed); last != 9 || err != nil {
			t.Errorf("the last number is %d, %v, want 9", last, err)
		}
	})
}
