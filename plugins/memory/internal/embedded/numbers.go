package embedded

import (
	"context"
	"fmt"
	"sync"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// numbers are the last sequence number of a change and the last id of a row. nextSeq, takeSeq and nextID may only be called
// in a transaction, because transactions do not run concurrently, and after ready.
type numbers struct {
	mu      sync.Mutex
	known   bool
	seq, id int64
}

// ready reads the numbers from the database, once.
func (n *numbers) ready(read func() (seq, id int64, err error)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known {
		return nil
	}
	seq, id, err := read()
	if err != nil {
		return fmt.Errorf("read the last number: %w", err)
	}
	n.known, n.seq, n.id = true, seq, id
	return nil
}

func (n *numbers) last() (seq, id int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seq, n.id
}

func (n *numbers) nextSeq() int64 { return n.takeSeq(1) + 1 }

// takeSeq assigns the next numbers and returns the number before them.
func (n *numbers) takeSeq(count int64) (before int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before = n.seq
	n.seq += count
	return before
}

func (n *numbers) nextID() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.id++
	return n.id
}

// lastNumbers returns the last number and the last id of a table, including the table of its removed rows.
func lastNumbers(ctx context.Context, engine store.QueryEngine, table string) (seq, id int64, err error) {
	rows, err := engine.Query(ctx, "SELECT coalesce(max(seq), 0), coalesce(max(id), 0) FROM (SELECT max(seq) AS seq, max(id) AS id FROM "+table+
		" UNION ALL SELECT max(seq), max(id) FROM "+table+"_gone) AS taken")
	err = store.Scan(rows, err, func() {}, &seq, &id)
	return seq, id, err
}
