package replay

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/internal/execpath"
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
	// DataDir is the directory for the run's files, if not the workflow's.
	DataDir string `json:"data_dir,omitzero"`
}

// Node is one execution of a node.
type Node struct {
	// Result is the body's result; Update is the merged update if it cannot be
	// derived from the result. A container's are derived from the inner nodes,
	// except for an output mapping that a resume can evaluate to another update.
	Result  any            `json:"r,omitzero"`
	Update  map[string]any `json:"u,omitzero"`
	Skipped bool           `json:"skip,omitzero"`
	Failure *Failure       `json:"err,omitzero"`
	// Count is the number of iterations of a loop.
	Count int `json:"n,omitzero"`
	// Retries is the number of repeated attempts.
	Retries int `json:"try,omitzero"`
	// Fallback reports whether the node's fallback runs instead.
	Fallback bool `json:"fb,omitzero"`
	// Usage is the usage of the execution; nil if the result reports it.
	Usage *Usage `json:"use,omitzero"`
	Route
}

// Route is where a node leads. A separate record of it follows the record of a
// node whose route was decided later.
type Route struct {
	// To is the name of the next node; "" = not decided.
	To string `json:"to,omitzero"`
	// Branches are the entries of the chosen fan-out; nil = none.
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

// Begin is the input of a container: the items of a map, the input of a subgraph,
// the parameters of an action that runs a workflow. It is recorded if a resume can
// evaluate the expression to another value.
type Begin struct {
	Value any `json:"value"`
}

// Attempt records that a container or branch starts again.
type Attempt struct {
	N int `json:"n"`
}

// Branch is the outcome of a failed branch.
type Branch struct {
	Failure      *Failure `json:"err"`
	Timeout      bool     `json:"timeout"`
	Milliseconds float64  `json:"ms"`
	// Retries counts the retries of the branch, NodeRetries the retries of its nodes.
	Retries     int    `json:"retries"`
	NodeRetries int    `json:"node_retries,omitzero"`
	Circuit     string `json:"circuit"`
}

// Interrupt is a pending interrupt. Its path is the path of the record.
type Interrupt struct {
	ID   string             `json:"id"`
	Kind flow.InterruptKind `json:"kind"`
	Node string             `json:"node"`
	Question
}

// Question is the part of an interrupt that human.ask sets.
type Question struct {
	Text        string    `json:"question,omitzero"`
	Context     any       `json:"context,omitzero"`
	Attachments []any     `json:"attachments,omitzero"`
	AskedAt     time.Time `json:"asked_at,omitzero"`
	Schema      any       `json:"schema,omitzero"`
	Choices     []any     `json:"choices,omitzero"`
	Default     any       `json:"default,omitzero"`
	Deadline    time.Time `json:"deadline,omitzero"`
	OnTimeout   string    `json:"on_timeout,omitzero"`
}

// Answer is the answer to an interrupt.
type Answer struct {
	ID    string `json:"id"`
	Value any    `json:"value"`
}

// Input is an input that was merged into the state when the run continued.
type Input struct {
	Values map[string]any `json:"values"`
	// Begun reports whether the container at this path had begun with the state
	// before it.
	Begun bool `json:"begun,omitzero"`
	// FromResume reports whether the values were merged from [ResumeInput] records and the
	// input of the resume.
	FromResume bool `json:"given,omitzero"`
}

// ResumeInput is the input of a resume or a fork, recorded before it is merged.
type ResumeInput struct {
	Values map[string]any `json:"values"`
}

// Note is an action's durable note.
type Note struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

// Status is the status of the run when its process leaves it.
type Status struct {
	Status         flow.Status    `json:"status"`
	Node           string         `json:"node"`
	Error          string         `json:"error,omitzero"`
	Failures       []flow.Failure `json:"failures,omitzero"`
	FailedBranches int            `json:"failed_branches,omitzero"`
	Usage          *Usage         `json:"usage,omitzero"`
}

// Session marks the beginning of a resume, to measure the working time.
type Session struct{}

// Retry revokes the outcomes of failed branches and everything after them.
type Retry struct {
	Paths []execpath.Path `json:"paths"`
}

// Usage is the usage of one request to a model, until the record of its node
// follows; also a part of [Node] and [Status]. Seconds are set only in a status.
type Usage struct {
	Tokens    int64   `json:"tokens,omitzero"`
	USD       float64 `json:"usd,omitzero"`
	ToolCalls int     `json:"tool_calls,omitzero"`
	Seconds   float64 `json:"seconds,omitzero"`
}

func (*Start) kind() string       { return checkpoint.KindStart }
func (*Node) kind() string        { return KindNode }
func (*Route) kind() string       { return "route" }
func (*Begin) kind() string       { return "begin" }
func (*Attempt) kind() string     { return "attempt" }
func (*Branch) kind() string      { return "branch" }
func (*Interrupt) kind() string   { return "interrupt" }
func (*Answer) kind() string      { return "answer" }
func (*Input) kind() string       { return "input" }
func (*ResumeInput) kind() string { return "given" }
func (*Note) kind() string        { return "note" }
func (*Status) kind() string      { return checkpoint.KindStatus }
func (*Session) kind() string     { return "session" }
func (*Retry) kind() string       { return "retry" }
func (*Usage) kind() string       { return "usage" }

// kinds returns the struct of each kind of record.
var kinds = sync.OnceValue(func() map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, r := range []Record{
		&Start{}, &Node{}, &Route{}, &Begin{}, &Attempt{}, &Branch{}, &Interrupt{}, &Answer{}, &Input{}, &ResumeInput{}, &Note{}, &Status{}, &Session{}, &Retry{}, &Usage{},
	} {
		all[r.kind()] = reflect.TypeOf(r).Elem()
	}
	return all
})

// newRecord returns an empty record of a kind; nil for an unknown kind of a newer
// version, which is ignored.
func newRecord(kind string) Record {
	t, known := kinds()[kind]
	if !known {
		return nil
	}
	return reflect.New(t).Interface().(Record)
}

// NewFailure returns the record of an error.
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

// sum returns the usage that counts against the budget, without steps.
func (u Usage) sum() flow.Usage {
	return flow.Usage{Tokens: u.Tokens, USD: u.USD, ToolCalls: u.ToolCalls}
}

// ImpliedUsage returns the usage that an action's result reports.
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

// SetUsage records the usage of the execution unless the result reports it.
func (n *Node) SetUsage(u flow.Usage) {
	n.Usage = nil
	if u != ImpliedUsage(n.Result) {
		n.Usage = NewUsage(u)
	}
}

// used returns the usage of the execution.
func (n *Node) used() flow.Usage {
	if n.Usage != nil {
		return n.Usage.sum()
	}
	return ImpliedUsage(n.Result)
}

// NewInterrupt returns the record of an interrupt.
func NewInterrupt(i flow.Interrupt) *Interrupt {
	return &Interrupt{ID: i.ID, Kind: i.Kind, Node: i.Node, Question: Question{
		Text: i.Question, Context: i.Context, Attachments: i.Attachments, AskedAt: i.AskedAt, Schema: i.Schema, Choices: i.Choices, Default: i.Default,
		Deadline: i.Deadline, OnTimeout: i.OnTimeout,
	}}
}

func (i *Interrupt) at(path string) flow.Interrupt {
	return flow.Interrupt{
		ID: i.ID, Kind: i.Kind, Node: i.Node, Path: path,
		Question: i.Text, Context: i.Context, Attachments: i.Attachments, AskedAt: i.AskedAt, Schema: i.Schema, Choices: i.Choices, Default: i.Default,
		Deadline: i.Deadline, OnTimeout: i.OnTimeout,
	}
}

// Fields returns the interrupt's members in an event, which has the node.
func (i *Interrupt) Fields() []flow.Field {
	fields := []flow.Field{{Key: "id", Value: i.ID}, {Key: "kind", Value: string(i.Kind)}}
	object, _ := value.From(i.Question)
	members, _ := object.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(members)) {
		fields = append(fields, flow.Field{Key: key, Value: members[key]})
	}
	return fields
}
