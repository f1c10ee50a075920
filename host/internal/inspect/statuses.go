package inspect

import (
	"cmp"
	"strings"
)

// Event has the fields of an event that say something about a status.
type Event struct {
	Type    string `json:"event"`
	Path    string `json:"path"`
	Skipped bool   `json:"skipped"`
}

// Statuses has the statuses of the nodes of a run. Create it with [NewStatuses] and
// add the run's events in order. It is not safe for concurrent use.
type Statuses struct {
	// ended are the statuses of the last executions, by node of the diagram.
	ended map[string]string
	// open are the executions that run, wait or have failed, by path without visits.
	open map[string]string
}

// NewStatuses returns the statuses of a run without events.
func NewStatuses() *Statuses {
	return &Statuses{ended: map[string]string{}, open: map[string]string{}}
}

// Add adds the next event of the run.
func (s *Statuses) Add(e Event) {
	path := withoutVisits(e.Path)
	switch e.Type {
	case "run_start": // also of a run that continues
		for path, status := range s.open {
			if status != "failed" {
				delete(s.open, path)
			}
		}
	case "node_start":
		s.open[path] = "running"
	case "node_end":
		delete(s.open, path)
		s.ended[nodeKey(path)] = "done"
		if e.Skipped {
			s.ended[nodeKey(path)] = "skipped"
		}
	case "node_error":
		s.open[path] = "failed"
	case "interrupt":
		s.open[path] = "waiting"
	}
}

// severity orders the statuses of executions of a node: the diagram shows the
// highest.
var severity = map[string]int{"failed": 1, "stopped": 2, "waiting": 3, "running": 4}

// Mark sets the statuses of the nodes of a diagram. Nodes of a run that is not
// running are not running either, whatever its last event is.
func (s *Statuses) Mark(d *Diagram, running bool) {
	worst := map[string]string{}
	for path, status := range s.open {
		if status == "running" && !running {
			status = "stopped"
		}
		if key := nodeKey(path); severity[status] > severity[worst[key]] {
			worst[key] = status
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
