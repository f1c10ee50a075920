package inspect

import (
	"cmp"
	"strings"
)

// Event has the fields of an event that affect a status.
type Event struct {
	Type    string `json:"event"`
	Node    string `json:"node"`
	Path    string `json:"path"`
	Skipped bool   `json:"skipped"`
}

// Statuses has the statuses of a run's nodes. Create it with [NewStatuses] and add
// the run's events in order. It is not safe for concurrent use.
type Statuses struct {
	// ended are the statuses of the last executions, by node of the diagram.
	ended map[string]string
	// open are the executions that run, wait or have failed, by path without visits.
	open map[string]execution
}

// execution is an execution of a node of the diagram.
type execution struct{ node, status string }

// NewStatuses returns the statuses of a run without events.
func NewStatuses() *Statuses {
	return &Statuses{ended: map[string]string{}, open: map[string]execution{}}
}

// Add adds the next event of the run.
func (s *Statuses) Add(e Event) {
	path, node := withoutVisits(e.Path), e.nodeKey()
	switch e.Type {
	case "run_start": // also of a run that continues
		for path, x := range s.open {
			if x.status != "failed" {
				delete(s.open, path)
			}
		}
	case "node_start":
		s.open[path] = execution{node, "running"}
	case "node_end":
		delete(s.open, path)
		s.ended[node] = "done"
		if e.Skipped {
			s.ended[node] = "skipped"
		}
	case "node_error":
		s.open[path] = execution{node, "failed"}
	case "interrupt":
		s.open[path] = execution{node, "waiting"}
	}
}

// severity orders the statuses of executions of a node: the diagram shows the
// highest.
var severity = map[string]int{"failed": 1, "stopped": 2, "waiting": 3, "running": 4}

// Mark sets the statuses of the nodes of a diagram. If the run is not running, no
// node is shown as running, whatever its last event is.
func (s *Statuses) Mark(d *Diagram, running bool) {
	worst := map[string]string{}
	for _, x := range s.open {
		if x.status == "running" && !running {
			x.status = "stopped"
		}
		if severity[x.status] > severity[worst[x.node]] {
			worst[x.node] = x.status
		}
	}
	s.mark(d, "", worst)
}

func (s *Statuses) mark(d *Diagram, prefix string, worst map[string]string) {
	for i := range d.Nodes {
		n := &d.Nodes[i]
		key := prefix + n.Name
		n.Status = cmp.Or(worst[key], s.ended[key], "unreached")
		if n.Body != nil {
			s.mark(n.Body, key+"/", worst)
		}
	}
}

// withoutVisits returns a path without the numbers of visits: a later visit of a
// node replaces the earlier one.
func withoutVisits(path string) string {
	if !strings.Contains(path, "#") {
		return path
	}
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i], _, _ = strings.Cut(part, "#")
	}
	return strings.Join(parts, "/")
}

// nodeKey returns the path of the node in the diagram. The name of the node can
// contain any character, including those that separate the parts of paths.
func (e Event) nodeKey() string {
	outer, ok := strings.CutSuffix(e.Path, e.Node)
	if at := strings.LastIndex(e.Path, "#"); !ok && at >= 0 {
		outer, ok = strings.CutSuffix(e.Path[:at], e.Node)
	}
	switch {
	case !ok || e.Node == "" || outer != "" && !strings.HasSuffix(outer, "/"):
		return nodeKey(e.Path)
	case outer == "":
		return e.Node
	}
	if outer = nodeKey(strings.TrimSuffix(outer, "/")); outer != "" {
		outer += "/"
	}
	return outer + e.Node
}

// nodeKey returns the path of a node in the diagram, without branches, indexes
// and visits: each/fetch for each[3]/fetch#2, check for start>disk/check.
func nodeKey(path string) string {
	var names []string
	for _, part := range strings.Split(path, "/") {
		if strings.Contains(part, ">") {
			continue // a branch of a fan-out is of the same graph
		}
		if i := strings.IndexAny(part, "[#~"); i > 0 {
			part = part[:i]
		}
		names = append(names, part)
	}
	return strings.Join(names, "/")
}
