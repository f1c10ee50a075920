package inspect_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/inspect"
)

func TestStatusesOfNodes(t *testing.T) {
	t.Parallel()
	type events []inspect.Event
	e := func(kind, path string) inspect.Event { return inspect.Event{Type: kind, Path: path} }
	for name, c := range map[string]struct {
		events  events
		running bool
		want    map[string]string
	}{
		"running": {events{e("node_end", "a"), e("node_start", "b")}, true, map[string]string{"a": "done", "b": "running", "c": "unreached", "c/d": "unreached"}},
		"cut off": {events{e("node_end", "a"), e("node_start", "b")}, false, map[string]string{"a": "done", "b": "stopped", "c": "unreached", "c/d": "unreached"}},
		"one item fails": {
			events{e("node_start", "c"), e("node_error", "c[0]/d"), e("node_end", "c[1]/d"), e("node_error", "c")},
			false,
			map[string]string{"a": "unreached", "b": "unreached", "c": "failed", "c/d": "failed"},
		},
		"failed item runs again": {
			events{e("node_error", "c[0]/d"), e("node_end", "c[1]/d"), e("node_error", "c"), e("run_start", ""), e("node_start", "c"), e("node_start", "c[0]/d"), e("node_end", "c[0]/d"), e("node_end", "c")},
			false,
			map[string]string{"a": "unreached", "b": "unreached", "c": "done", "c/d": "done"},
		},
		"visit after a failed one": {
			events{e("node_start", "a"), e("node_error", "a"), e("node_end", "b"), e("node_start", "a#2"), e("node_end", "a#2")},
			true,
			map[string]string{"a": "done", "b": "done", "c": "unreached", "c/d": "unreached"},
		},
		"branch": {events{e("node_start", "a>b/b")}, true, map[string]string{"a": "unreached", "b": "running", "c": "unreached", "c/d": "unreached"}},
		"waiting, others done": {
			events{e("interrupt", "c[3]/d"), e("node_end", "c[4]/d"), {Type: "node_end", Path: "b", Skipped: true}},
			false,
			map[string]string{"a": "unreached", "b": "skipped", "c": "unreached", "c/d": "waiting"},
		},
		"interrupt after a node that was answered": {
			events{e("node_end", "a"), e("interrupt", "a"), e("run_start", ""), e("node_start", "b")},
			true,
			map[string]string{"a": "done", "b": "running", "c": "unreached", "c/d": "unreached"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := inspect.NewStatuses()
			for _, event := range c.events {
				s.Add(event)
			}
			d := &inspect.Diagram{Nodes: []inspect.Node{{Name: "a"}, {Name: "b"}, {Name: "c", Body: &inspect.Diagram{Nodes: []inspect.Node{{Name: "d"}}}}}}
			s.Mark(d, c.running)
			got := map[string]string{"c/d": d.Nodes[2].Body.Nodes[0].Status}
			for _, n := range d.Nodes {
				got[n.Name] = n.Status
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("statuses (-want +got):\n%s", diff)
			}
		})
	}
}
