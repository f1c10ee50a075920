package spec

import (
	"github.com/the-edge-agent/tea/host/internal/source"
)

// Queue is the task queue of some actions on Temporal.
type Queue struct {
	Name string
	// PerSecond bounds the call rate of the queue; 0 = not set.
	PerSecond float64
}

func queueSection() *section {
	return &section{title: "queue", doc: "The long form of an entry of queues.", keys: []*key{
		{name: "queue", shape: str(), required: true, doc: "Name of the task queue."},
		{name: "per_second", shape: number(0).requirePositive(), doc: "Calls a second that all workers of the queue begin together."},
	}}
}

// queues decodes the section queues.
func (d *decoder) queues(v element) map[string]Queue {
	queues := map[string]Queue{}
	for _, e := range v.entries() {
		if e.is(source.Map) {
			m := openMapping(e.element, d.grammar.queue)
			queues[e.key.Text] = Queue{m.string("queue"), orZero(m.float("per_second"))}
		} else if e.scalar() {
			queues[e.key.Text] = Queue{Name: e.node.Text}
		}
	}
	return queues
}
