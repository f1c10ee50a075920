package graph

import (
	"cmp"
	"container/heap"
)

// item is an entity in a queue.
type item struct {
	id       string
	distance float64
}

func (i item) compare(other item) int {
	return cmp.Or(cmp.Compare(i.distance, other.distance), cmp.Compare(i.id, other.id))
}

// queue is a priority queue, nearest entity first. Ties are ordered by id.
type queue []item

var _ heap.Interface = (*queue)(nil)

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].compare(q[j]) < 0 }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(item)) }

// Pop removes the last element, which package heap has moved there.
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func (q *queue) push(i item) { heap.Push(q, i) }
func (q *queue) pop() item   { return heap.Pop(q).(item) }
