package replay

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/execpath"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// KindNode is the kind of [Node] records.
const KindNode = "node"

// Record is the body of a record: a pointer to one of the structs below.
type Record interface{ kind() string }

// Start is the first record of a run. Origin is how its workflow was loaded.
type Start struct {
	Input map[string]any `json:"input"`
	Origin
}

// Origin is how a workflow was loaded.
type Origin struct {
	Overlays []string `json:"overlays,omitzero"`
	Config   string   `json:"config,omitzero"`
	// DataDir is the directory for the files of the run, if it is not that of the workflow.
	DataDir string `json:"data_dir,omitzero"`
}

// Node is one execution of a node.
type Node struct {
	// Result is the body's result; Update is what was merged where it does not
	// follow from the result. Those of a container follow from the nodes inside,
	// except for an output mapping that a resume can evaluate to another update.
	Result  any            `json:"r,omitzero"`
	Update  map[string]any `json:"u,omitzero"`
	Skipped bool           `json:"skip,omitzero"`
	Failure *Failure       `json:"err,omitzero"`
	// Count is the number of iterations of a loop.
	Count int `json:"n,omitzero"`
	// Retries is the number of repeated attempts.
	Retries int `json:"try,omitzero"`
	// Fallback says that the node's fallback runs in its place.
	Fallback bool `json:"fb,omitzero"`
	// Usage is what the execution has used; nil where the result says it.
	Usage *Usage `json:"use,omitzero"`
	Route
}

// Route is where a node leads. As its own record it follows that of a node
// whose route was decided later.
type Route struct {
	// To is the name of the next node; "" = not decided.
	To string `json:"to,omitzero"`
	// Branches are the entries of the fan-out that was taken; nil = none was.
	Branches []string `json:"fan,omitzero"`
}

// Failure is an action's error.
type Failure struct {
	Message   string         `json:"error"`
	Type      tea.ErrorType  `json:"error_type"`
	Retryable bool           `json:"retryable,omitzero"`
	Source    string         `json:"source,omitzero"`
	Details   map[string]any `json:"details,omitzero"`
}

// Begin is what a container began with: the items of a map, the input of a
// subgraph, the parameters of an action that runs a workflow. It is recorded
// where a resume can evaluate the expression to another value.
type Begin struct {
	Value any `json:"value"`
}

// Attempt says that a container or branch starts again.
type Attempt struct {
	N int `json:"n"`
}

// Branch is the outcome of a branch that failed.
type Branch struct {
	Failure      *Failure `json:"err"`
	Timeout      bool     `json:"timeout"`
	Milliseconds float64  `json:"ms"`
	// Retries counts the retries of the branch, NodeRetries those of the nodes in it.
	Retries     int    `json:"retries"`
	NodeRetries int    `json:"node_retries,omitzero"`
	Circuit     string `json:"circuit"`
}

// Interrupt is a pending interrupt. Its path is that of the record.
type Interrupt struct {
	ID   string             `json:"id"`
	Kind flow.InterruptKind `json:"kind"`
	Node string             `json:"node"`
	Question
}

// Question is the part of an interrupt that human.ask sets.
type Question struct {
	Text      string    `json:"question,omitzero"`
	AskedAt   time.Time `json:"asked_at,omitzero"`
	Schema    any       `json:"schema,omitzero"`
	Choices   []any     `json:"choices,omitzero"`
	Default   any       `json:"default,omitzero"`
	Deadline  time.Time `json:"deadline,omitzero"`
	OnTimeout string    `json:"on_timeout,omitzero"`
}

// Answer is the answer to an interrupt.
type Answer struct {
	ID    string `json:"id"`
	Value any    `json:"value"`
}

// Input is what was merged into the state where the run continued.
type Input struct {
	Values map[string]any `json:"values"`
	// Begun says that the container at this place had begun with the state
	// before it.
	Begun bool `json:"begun,omitzero"`
	// Given says that the values were merged from [Given] records and from the
	// input of the resume.
	Given bool `json:"given,omitzero"`
}

// Given is the input of a resume or a fork, before any of it is merged.
type Given struct {
	Values map[string]any `json:"values"`
}

// Note is an action's durable note.
type Note struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

// Status is how the process left the run.
type Status struct {
	Status         flow.Status    `json:"status"`
	Node           string         `json:"node"`
	Error          string         `json:"error,omitzero"`
	Failures       []flow.Failure `json:"failures,omitzero"`
	FailedBranches int            `json:"failed_branches,omitzero"`
	Usage          *Usage         `json:"usage,omitzero"`
}

// Session says that a resume begins, for the time at work.
type Session struct{}

// Retry takes back the outcomes of failed branches, and what follows them.
type Retry struct {
	Paths []execpath.Path `json:"paths"`
}

// Usage is what one request to a model has used, until the record of its node
// follows; a part of [Node] and [Status] too. Seconds are set in a status only.
type Usage struct {
	Tokens    int64   `json:"tokens,omitzero"`
	USD       float64 `json:"usd,omitzero"`
	ToolCalls int     `json:"tool_calls,omitzero"`
	Seconds   float64 `json:"seconds,omitzero"`
}

func (*Start) kind() string     { return checkpoint.KindStart }
func (*Node) kind() string      { return KindNode }
func (*Route) kind() string     { return "route" }
func (*Begin) kind() string     { return "begin" }
func (*Attempt) kind() string   { return "attempt" }
func (*Branch) kind() string    { return "branch" }
func (*Interrupt) kind() string { return "interrupt" }
func (*Answer) kind() string    { return "answer" }
func (*Input) kind() string     { return "input" }
func (*Given) kind() string     { return "given" }
func (*Note) kind() string      { return "note" }
func (*Status) kind() string    { return checkpoint.KindStatus }
func (*Session) kind() string   { return "session" }
func (*Retry) kind() string     { return "retry" }
func (*Usage) kind() string     { return "usage" }

// kinds are the structs of the kinds of records.
var kinds = sync.OnceValue(func() map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, r := range []Record{
		&Start{}, &Node{}, &Route{}, &Begin{}, &Attempt{}, &Branch{}, &Interrupt{}, &Answer{}, &Input{}, &Given{}, &Note{}, &Status{}, &Session{}, &Retry{}, &Usage{},
	} {
		all[r.kind()] = reflect.TypeOf(r).Elem()
	}
	return all
})

// newRecord returns an empty record of a kind; nil for a kind of a later
// version, which is ignored.
func newRecord(kind string) Record {
	t, known := kinds()[kind]
	if !known {
		return nil
	}
	return reflect.New(t).Interface().(Record)
}

// NewFailure returns the failure of an error.
func NewFailure(e *tea.Error) *Failure {
	f := &Failure{Message: e.Message, Type: e.Type, Retryable: e.Retryable, Source: e.Source}
	if len(e.Details) > 0 {
		if details, err := value.From(e.Details); err == nil {
			f.Details, _ = details.(map[string]any)
		}
	}
	return f
}

// Err returns the error of a failure; nil for nil.
func (f *Failure) Err() *tea.Error {
	if f == nil {
		return nil
	}
	return &tea.Error{Message: f.Message, Type: f.Type, Retryable: f.Retryable, Source: f.Source, Details: f.Details}
}

// Fields returns the failure as workflows see it; the caller owns the map.
func (f *Failure) Fields() map[string]any {
	m := map[string]any{"error": f.Message, "error_type": string(f.Type)}
	if f.Retryable {
		m["retryable"] = true
	}
	if f.Source != "" {
		m["source"] = f.Source
	}
	if f.Details != nil {
		m["details"] = f.Details
	}
	return m
}

// NewUsage returns the usage of a record.
func NewUsage(u flow.Usage) *Usage {
	return &Usage{Tokens: u.Tokens, USD: u.USD, ToolCalls: u.ToolCalls}
}

// sum returns what counts against the budget, without steps.
func (u Usage) sum() flow.Usage {
	return flow.Usage{Tokens: u.Tokens, USD: u.USD, ToolCalls: u.ToolCalls}
}

// ImpliedUsage is what an action's result says it has used.
func ImpliedUsage(result any) (u flow.Usage) {
	object, ok := result.(map[string]any)
	if !ok {
		return u
	}
	usage, _ := object["usage"].(map[string]any)
	u.Tokens, _ = usage["total_tokens"].(int64)
	switch cost := object["cost_usd"].(type) {
	case float64:
		u.USD = cost
	case int64:
		u.USD = float64(cost)
	}
	return u
}

// SetUsage records what the execution has used, where the result does not say it.
func (n *Node) SetUsage(u flow.Usage) {
	n.Usage = nil
	if u != ImpliedUsage(n.Result) {
		n.Usage = NewUsage(u)
	}
}

// used is what the execution has used.
func (n *Node) used() flow.Usage {
	if n.Usage != nil {
		return n.Usage.sum()
	}
	return ImpliedUsage(n.Result)
}

// NewInterrupt returns the record of an interrupt.
func NewInterrupt(i flow.Interrupt) *Interrupt {
	return &Interrupt{ID: i.ID, Kind: i.Kind, Node: i.Node, Question: Question{
		Text: i.Question, AskedAt: i.AskedAt, Schema: i.Schema, Choices: i.Choices, Default: i.Default,
		Deadline: i.Deadline, OnTimeout: i.OnTimeout,
	}}
}

func (i *Interrupt) at(path string) flow.Interrupt {
	return flow.Interrupt{
		ID: i.ID, Kind: i.Kind, Node: i.Node, Path: path,
		Question: i.Text, AskedAt: i.AskedAt, Schema: i.Schema, Choices: i.Choices, Default: i.Default,
		Deadline: i.Deadline, OnTimeout: i.OnTimeout,
	}
}

// Fields are the interrupt's members in an event, which has the node.
func (i *Interrupt) Fields() []flow.Field {
	fields := []flow.Field{{Key: "id", Value: i.ID}, {Key: "kind", Value: string(i.Kind)}}
	object, _ := value.From(i.Question)
	members, _ := object.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(members)) {
		fields = append(fields, flow.Field{Key: key, Value: members[key]})
	}
	return fields
}
