package runview

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
)

// maxCompared is how many differences of each kind are listed.
const maxCompared = 1000

// Comparison has the differences between two runs. Secrets are masked.
type Comparison struct {
	A Side `json:"a"`
	B Side `json:"b"`
	// Input and State are the differences of the inputs and of the last states.
	Input []checkpoints.Change `json:"input"`
	State []checkpoints.Change `json:"state"`
	// Path has the executions of nodes, in the order of the first run.
	Path []Visited `json:"path"`
	// Omitted is the number of differences that are not listed.
	Omitted int `json:"omitted,omitempty"`
}

// Side is one of the runs.
type Side struct {
	ID         string      `json:"id"`
	Workflow   string      `json:"workflow"`
	Digest     string      `json:"digest"`
	Status     flow.Status `json:"status"`
	StartedAt  time.Time   `json:"started_at"`
	DurationMS int64       `json:"duration_ms"`
	Usage      flow.Usage  `json:"usage"`
	Error      string      `json:"error,omitempty"`

	input, state map[string]any
	path         []string
	visits       map[string]*Visit
	omitted      int
}

// Visited is the last execution at a path in each run, nil if there is none.
type Visited struct {
	Path string `json:"path"`
	A    *Visit `json:"a,omitempty"`
	B    *Visit `json:"b,omitempty"`
}

// Visit is an execution of a node.
type Visit struct {
	Status     string  `json:"status"`
	DurationMS float64 `json:"duration_ms"`
	Tokens     int64   `json:"tokens,omitempty"`
}

// NewSide describes a run. stateAt returns its state after a record, with masked secrets.
func NewSide(entry checkpoints.Entry, contents *checkpoints.Contents, events func(fn func(line []byte) error) error, stateAt func(seq uint64) (map[string]any, error)) (*Side, error) {
	s := &Side{ID: entry.ID, Workflow: entry.Workflow, Digest: entry.Digest, Status: entry.Status, StartedAt: entry.StartedAt.UTC(), DurationMS: entry.UpdatedAt.Sub(entry.StartedAt).Milliseconds(), visits: map[string]*Visit{}}
	failed, err := checkpoints.FailureOf(contents)
	if err != nil {
		return nil, err
	}
	s.Error = failed.Error
	last := uint64(len(contents.Records))
	if s.Usage, err = checkpoints.UsageAt(contents, last); err != nil {
		return nil, err
	}
	if s.input, err = stateAt(min(1, last)); err != nil {
		return nil, err
	}
	if s.state, err = stateAt(last); err != nil {
		return nil, err
	}
	return s, events(s.add)
}

// add adds an event to the path.
func (s *Side) add(line []byte) error {
	var e flow.Event
	if err := e.UnmarshalJSON(line); err != nil {
		return err
	}
	v := &Visit{Status: string(flow.Done)}
	switch e.Type {
	case flow.EventNodeEnd:
		if e.Field("skipped") == true {
			v.Status = "skipped"
		}
	case flow.EventNodeError:
		v.Status = string(flow.Failed)
	case flow.EventInterrupt:
		v.Status = string(flow.Waiting)
	default:
		return nil
	}
	v.DurationMS, _ = value.Float(e.Field("duration_ms"))
	if usage, ok := e.Field("usage").(map[string]any); ok {
		tokens, _ := value.Float(usage["total_tokens"])
		v.Tokens = int64(tokens)
	}
	if s.visits[e.Path] == nil {
		if len(s.path) == maxCompared {
			s.omitted++
			return nil
		}
		s.path = append(s.path, e.Path)
	}
	s.visits[e.Path] = v
	return nil
}

// Compare compares two runs.
func Compare(a, b *Side) *Comparison {
	c := &Comparison{A: *a, B: *b}
	cut := func(list []checkpoints.Change) []checkpoints.Change {
		c.Omitted += max(0, len(list)-maxCompared)
		return append([]checkpoints.Change{}, list[:min(len(list), maxCompared)]...)
	}
	c.Input, c.State = cut(checkpoints.CompareStates(a.input, b.input)), cut(checkpoints.CompareStates(a.state, b.state))
	order, at := slices.Clone(a.path), 0
	for _, path := range b.path { // what only b has follows what preceded it in b
		if a.visits[path] != nil {
			at = slices.Index(order, path) + 1
			continue
		}
		order = slices.Insert(order, at, path)
		at++
	}
	c.Path = []Visited{}
	for _, path := range order {
		c.Path = append(c.Path, Visited{path, a.visits[path], b.visits[path]})
	}
	c.Omitted += a.omitted + b.omitted
	return c
}

// Rows returns the rows of a table: the facts of both runs, and the nodes on whose
// executions they differ in more than the time.
func (c *Comparison) Rows() [][]string {
	rows := [][]string{{"run", c.A.ID, c.B.ID}}
	row := func(name string, of func(Side) string) {
		if a, b := of(c.A), of(c.B); a != "" || b != "" {
			rows = append(rows, []string{name, a, b})
		}
	}
	number := func(n float64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	row("workflow", func(s Side) string { return s.Workflow })
	if c.A.Digest != c.B.Digest {
		row("version", func(s Side) string { return s.Digest[:min(len(s.Digest), 12)] })
	}
	row("status", func(s Side) string { return string(s.Status) })
	row("error", func(s Side) string { return s.Error })
	row("started", func(s Side) string { return s.StartedAt.Local().Format(time.DateTime) })
	row("duration (ms)", func(s Side) string { return strconv.FormatInt(s.DurationMS, 10) })
	row("steps", func(s Side) string { return strconv.Itoa(s.Usage.Steps) })
	row("tokens", func(s Side) string { return number(float64(s.Usage.Tokens)) })
	row("cost ($)", func(s Side) string { return number(s.Usage.USD) })
	for _, v := range c.Path {
		if v.A == nil || v.B == nil || v.A.Status != v.B.Status || v.A.Tokens != v.B.Tokens {
			rows = append(rows, []string{v.Path, v.A.String(), v.B.String()})
		}
	}
	return rows
}

// String describes the execution for a table.
func (v *Visit) String() string {
	if v == nil {
		return "-"
	}
	text := fmt.Sprintf("%s, %.0f ms", v.Status, v.DurationMS)
	if v.Tokens > 0 {
		text += fmt.Sprintf(", %d tokens", v.Tokens)
	}
	return text
}
