package embedded

import (
	"container/heap"
	"context"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// expiry is a heap of the times at which indexed entries expire. Expired entries are
// removed from the index before the next search, so that they do not affect scores;
// their rows stay until the sweep. The heap can be out of date; the row is decisive.
type expiry []deadline

type deadline struct{ at, id int64 }

// add adds the time at which an entry expires; 0 = never.
func (e *expiry) add(at, id int64) {
	if at != 0 {
		heap.Push(e, deadline{at: at, id: id})
	}
}

// due removes and returns the entries that expire by now.
func (e *expiry) due(now int64) (ids []int64) {
	for len(*e) > 0 && (*e)[0].at <= now {
		ids = append(ids, heap.Pop(e).(deadline).id)
	}
	return ids
}

func (e expiry) Len() int           { return len(e) }
func (e expiry) Less(i, j int) bool { return e[i].at < e[j].at }
func (e expiry) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *expiry) Push(v any)        { *e = append(*e, v.(deadline)) }
func (e *expiry) Pop() any {
	last := len(*e) - 1
	v := (*e)[last]
	*e = (*e)[:last]
	return v
}

// waiting returns the entries with a time of expiry.
func (m *entries) waiting(ctx context.Context) (expiry, error) {
	rows, err := m.engine.Query(ctx, `SELECT expires_at, id FROM ltm WHERE expires_at IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM ltm_gone WHERE ltm_gone.id = ltm.id AND ltm_gone.seq > ltm.seq)`)
	var e expiry
	var d deadline
	err = store.Scan(rows, err, func() { e = append(e, d) }, &d.at, &d.id)
	heap.Init(&e)
	return e, err
}

// expire removes expired entries from the index.
func (m *entries) expire(ctx context.Context) error {
	now := m.micro()
	m.mu.Lock()
	due := m.expiry.due(now)
	m.mu.Unlock()
	if len(due) == 0 {
		return nil
	}
	if m.readOnly {
		for _, id := range due {
			m.unindex(id, m.numbers.nextSeq())
		}
		return nil
	}
	err := m.engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		b := &batch{m: m, tx: tx, now: now}
		for _, id := range due {
			gone, err := b.expired(ctx, id)
			if err != nil {
				return err
			}
			if !gone {
				continue
			}
			if _, err := b.forget(ctx, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, id := range due {
			m.expiry.add(now, id)
		}
	}
	return err
}

// expired reports whether an entry exists, has expired and is still in the index.
func (b *batch) expired(ctx context.Context, id int64) (gone bool, err error) {
	found, err := store.Int(b.tx.Query(ctx, `SELECT 1 FROM ltm WHERE id = ? AND expires_at <= ?
		AND NOT EXISTS (SELECT 1 FROM ltm_gone WHERE ltm_gone.id = ltm.id AND ltm_gone.seq > ltm.seq)`, id, b.now))
	return found != 0, err
}

// revive gives new sequence numbers to entries that were removed from the index as
// expired but are live because the clock was set back.
func (m *entries) revive(ctx context.Context) error {
	if m.readOnly {
		return nil
	}
	now := m.micro()
	alive := `FROM ltm WHERE expires_at > ? AND EXISTS (SELECT 1 FROM ltm_gone WHERE ltm_gone.id = ltm.id AND ltm_gone.seq > ltm.seq)`
	ids, err := store.All[int64](m.engine.Query(ctx, "SELECT id "+alive, now))
	if err != nil || len(ids) == 0 {
		return err
	}
	return m.engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		b := &batch{m: m, tx: tx, now: now}
		for _, id := range ids {
			seq, err := b.next(ctx)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "UPDATE ltm SET seq = ? WHERE id = ?", seq, id); err != nil {
				return err
			}
		}
		return nil
	})
}
