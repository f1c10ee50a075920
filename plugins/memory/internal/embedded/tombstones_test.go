package embedded_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// TestASweepReportsDevicesThatWereOfflineTooLong removes old tombstones: a reader that has not
// seen them gets an error.
func TestASweepReportsDevicesThatWereOfflineTooLong(t *testing.T) {
	devicetest.EachDriver(t, func(t *testing.T, driver engine.Driver) {
		m := mustOpen(t, driver)
		old, recent := time.UnixMicro(1000), time.UnixMicro(5000)
		err := m.Engine.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
			row := func(feed store.Feed, seq int64, space, key string, at time.Time) []any {
				return []any{string(feed), seq, space, key, at.UnixMicro()}
			}
			if _, err := tx.Exec(ctx, "INSERT INTO ltm_gone VALUES (1, 9)"); err != nil {
				return err
			}
			return tx.Append(ctx, "tea_deleted", row(store.EntryFeed, 3, "", "a", old), row(store.EntryFeed, 7, "", "b", old),
				row(store.EntryFeed, 9, "", "c", recent), row(store.VectorFeed, 4, "c", "v", recent), row(store.DocumentFeed, 4, "c", "d", recent))
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Driver.Sweep(t.Context(), 0, 2000); err != nil {
			t.Fatal(err)
		}
		for after, tooOld := range map[int64]bool{0: false, 3: true, 6: true, 7: false, 9: false, 10: true} {
			_, err := m.Changes(t.Context(), store.ChangeQuery{Feed: store.EntryFeed, After: after, Limit: 10})
			if errors.Is(err, store.ErrTooOld) != tooOld {
				t.Errorf("after %d: %v", after, err)
			}
			_, err = m.Changes(t.Context(), store.ChangeQuery{Feed: store.EntryFeed, After: after, FromStart: true, Limit: 10})
			if errors.Is(err, store.ErrTooOld) != (after > 9) {
				t.Errorf("a further page after %d: %v", after, err)
			}
		}
		if _, err := m.Changes(t.Context(), store.ChangeQuery{Feed: store.DocumentFeed, After: 1, Limit: 10}); err != nil {
			t.Error(err)
		}
	})
}
