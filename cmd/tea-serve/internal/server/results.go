package server

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/eclipse/paho.golang/autopaho/queue"
	"github.com/eclipse/paho.golang/autopaho/queue/memory"
)

// maxResults bounds the results that wait for a broker, in bytes.
const maxResults = 8 << 20

// results is the queue of a trigger's results, which wait in memory while the broker
// is unreachable. It is safe for concurrent use.
type results struct {
	memory.Queue

	mu    sync.Mutex
	sizes []int
	total int
}

var errManyResults = errors.New("too many results are pending for the broker")

// Enqueue implements [queue.Queue].
func (q *results) Enqueue(p io.Reader) error {
	text, err := io.ReadAll(p)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.total+len(text) > maxResults {
		return errManyResults
	}
	if err := q.Queue.Enqueue(bytes.NewReader(text)); err != nil {
		return err
	}
	q.sizes, q.total = append(q.sizes, len(text)), q.total+len(text)
	return nil
}

// Peek implements [queue.Queue].
func (q *results) Peek() (queue.Entry, error) {
	e, err := q.Queue.Peek()
	return result{e, q}, err
}

// result is the first element of the queue.
type result struct {
	queue.Entry
	q *results
}

// Remove implements [queue.Entry].
func (r result) Remove() error {
	r.q.removed()
	return r.Entry.Remove()
}

// Quarantine implements [queue.Entry].
func (r result) Quarantine() error {
	r.q.removed()
	return r.Entry.Quarantine()
}

// removed subtracts the size of the first element.
func (q *results) removed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.sizes) > 0 {
		q.total -= q.sizes[0]
		q.sizes = q.sizes[1:]
	}
}
