package killtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
)

// area is a part of the memory with a model of what must be in it. Of its
// keys each worker has its own.
type area interface {
	// write makes a change.
	write(ctx context.Context, p *plugin, worker int, r *rand.Rand) error
	// check compares what is there with what was acknowledged, and takes over
	// what became of the rest.
	check(ctx context.Context, p *plugin) error
	// blobs are the names of the blobs that the area needs.
	blobs(ctx context.Context, p *plugin) ([]string, error)
}

// cell is what may be under a key: what was acknowledged last or what was sent
// since. 0 is nothing.
type cell struct {
	acked, sent int64
	doubtful    bool
}

// send notes a change that is under way.
func (c *cell) send(v int64) { c.sent, c.doubtful = v, true }

// ack notes that it is done.
func (c *cell) ack() { c.acked, c.doubtful = c.sent, false }

// see records what exists; other returns what does not.
func (c *cell) see(got int64) (other int64, err error) {
	switch {
	case got == c.acked && c.doubtful:
		other = c.sent
	case c.doubtful && got == c.sent:
		other = c.acked
	case got != c.acked:
		return 0, fmt.Errorf("%d is there; %d was acknowledged, and %d sent (%v)", got, c.acked, c.sent, c.doubtful)
	}
	c.acked, c.doubtful = got, false
	return other, nil
}

// generations counts all values that were ever written; each is different.
type generations struct{ byWorker [workers]int64 }

func (g *generations) next(worker int) int64 {
	g.byWorker[worker]++
	return g.byWorker[worker]*workers + int64(worker)
}

// batch are changes that were sent in one call: all are done or none.
type batch struct {
	all   []*cell
	cells []*cell // those that it changes
	sent  []int64
}

func (b *batch) send(c *cell, v int64) {
	b.all = append(b.all, c)
	if c.send(v); c.acked == v {
		return // it says nothing about the others
	}
	b.cells, b.sent = append(b.cells, c), append(b.sent, v)
}

func (b *batch) ack() {
	for _, c := range b.all {
		c.ack()
	}
	*b = batch{}
}

// see is called when all cells were seen.
func (b *batch) see() error {
	done := 0
	for i, c := range b.cells {
		if c.acked == b.sent[i] {
			done++
		}
	}
	all := len(b.cells)
	*b = batch{}
	if done != 0 && done != all {
		return fmt.Errorf("%d of %d entries of one call are there", done, all)
	}
	return nil
}

// filler is text of about n bytes that belongs to a value.
func filler(gen int64, n int) string {
	words := []string{"valve", "pressure", "north", "meadow", "turbine", "copper", "ledger", "harbor", "lantern", "quartz"}
	r := rand.New(rand.NewPCG(uint64(gen), 7)) //nolint:gosec // a test's data
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteByte(' ')
	}
	return b.String()
}
