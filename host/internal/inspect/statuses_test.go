package inspect_test

import (
	"strings"
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
		"names like paths": {
			events{{Type: "node_start", Path: "x>y", Node: "x>y"}, {Type: "node_end", Path: "a>b/b[1]#2", Node: "b[1]"}, {Type: "node_error", Path: "c[0]/d#/e#2", Node: "d#/e"}},
			true,
			map[string]string{"x>y": "running", "b[1]": "done", "c": "unreached", "c/d#/e": "failed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := inspect.NewStatuses()
			for _, event := range c.events {
				s.Add(event)
			}
			d, body := &inspect.Diagram{}, &inspect.Diagram{}
			for name := range c.want {
				if name, inside := strings.CutPrefix(name, "c/"); inside {
					body.Nodes = append(body.Nodes, inspect.Node{Name: name})
				} else if name == "c" {
					d.Nodes = append(d.Nodes, inspect.Node{Name: name, Body: body})
				} else {
					d.Nodes = append(d.Nodes, inspect.Node{Name: name})
				}
			}
			s.Mark(d, c.running)
			got := map[string]string{}
			for _, n := range d.Nodes {
				got[n.Name] = n.Status
			}
			for _, n := range body.Nodes {
				got["c/"+n.Name] = n.Status
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("statuses (-want +got):\n%s", diff)
			}
		})
	}
}
