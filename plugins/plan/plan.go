package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Status is the status of a subtask.
type Status string

// The statuses of a subtask.
const (
	Pending    Status = "pending"
	InProgress Status = "in_progress"
	Completed  Status = "completed"
	Failed     Status = "failed"
	Skipped    Status = "skipped"
)

// The strategies of a plan.
const (
	flat         = "flat"
	hierarchical = "hierarchical"
	iterative    = "iterative"
)

// Plan is a goal with the subtasks that achieve it.
type Plan struct {
	ID       string         `json:"id"`
	Goal     string         `json:"goal"`
	Strategy string         `json:"strategy"`
	Subtasks []*Subtask     `json:"subtasks"`
	Metadata map[string]any `json:"metadata"`
}

// Subtask is one step of a plan. A subtask that is the Parent of others is a group: it
// is not executed, and is completed when its members are.
type Subtask struct {
	ID           string        `json:"id"`
	Description  string        `json:"description"`
	Dependencies []string      `json:"dependencies"`
	Parent       string        `json:"parent,omitempty"`
	Status       Status        `json:"status"`
	Result       any           `json:"result,omitempty"`
	Error        string        `json:"error,omitempty"`
	ErrorType    tea.ErrorType `json:"error_type,omitempty"`
	RetryCount   int           `json:"retry_count"`
	StartedAt    string        `json:"started_at,omitempty"`
	CompletedAt  string        `json:"completed_at,omitempty"`

	// Extra has further members, such as action and params.
	Extra map[string]any `json:"-"`
	// inside are subtasks that were nested in this one; see Plan.flatten.
	inside []*Subtask
	// key identifies the calls that execute the subtask, and its notes.
	key string
	// base is the retry count from which retries are limited: retries before an
	// aborted execution do not count.
	base int
	// group reports whether the subtask has members. The runner sets it.
	group bool
}

// finished reports whether a subtask needs no further execution.
func (s *Subtask) finished() bool { return s.Status == Completed }

// reset makes a subtask pending again.
func (s *Subtask) reset() {
	s.Status, s.Result, s.Error, s.ErrorType, s.StartedAt, s.CompletedAt = Pending, nil, "", "", "", ""
}

// Document is a plan in the value model, as in parameters and results. It can have unknown members, which are kept, and
// nested subtasks.
type Document map[string]any

// JSONSchema describes the members that a plan defines.
func (Document) JSONSchema() *schema.Schema {
	text := &schema.Schema{Type: schema.Types{"string"}}
	subtask := &schema.Schema{
		Type: schema.Types{"object"}, Description: "further members are kept, and can be read in templates", Required: []string{"id", "description"},
		Properties: &schema.Properties{
			{Name: "id", Schema: &schema.Schema{Type: schema.Types{"string", "integer"}}},
			{Name: "description", Schema: text},
			{Name: "dependencies", Schema: &schema.Schema{Type: schema.Types{"array"}, Items: &schema.Schema{Type: schema.Types{"string", "integer"}}, Description: "ids of subtasks that come first"}},
			{Name: "parent", Schema: &schema.Schema{Type: schema.Types{"string", "integer"}, Description: "id of the group that the subtask belongs to"}},
			{Name: "status", Schema: &schema.Schema{Type: schema.Types{"string"}, Enum: []any{"pending", "in_progress", "completed", "failed", "skipped"}}},
			{Name: "subtasks", Schema: &schema.Schema{Type: schema.Types{"array"}, Items: &schema.Schema{Type: schema.Types{"object"}}, Description: "the members of a group"}},
		},
	}
	return &schema.Schema{
		Type: schema.Types{"object"}, Required: []string{"subtasks"}, Extra: map[string]any{"examples": []any{"{{ state.plan }}"}},
		Properties: &schema.Properties{
			{Name: "id", Schema: text},
			{Name: "goal", Schema: text},
			{Name: "strategy", Schema: &schema.Schema{Type: schema.Types{"string"}, Enum: []any{flat, hierarchical, iterative}}},
			{Name: "subtasks", Schema: &schema.Schema{Type: schema.Types{"array"}, Items: subtask}},
			{Name: "metadata", Schema: &schema.Schema{Type: schema.Types{"object"}}},
		},
	}
}

// plan reads a plan and flattens its groups. The plan takes ownership of the document.
func (d Document) plan() (*Plan, error) {
	p := &Plan{}
	p.ID, _ = d["id"].(string)
	p.Goal, _ = d["goal"].(string)
	p.Strategy, _ = d["strategy"].(string)
	p.Strategy = cmp.Or(p.Strategy, flat)
	if p.Metadata, _ = d["metadata"].(map[string]any); p.Metadata == nil {
		p.Metadata = map[string]any{}
	}
	list, _ := d["subtasks"].([]any)
	var err error
	if p.Subtasks, err = readSubtasks(list, 1); err != nil {
		return nil, err
	}
	if p.ID == "" {
		p.ID = planID(p.Goal, p.Subtasks)
	}
	return p, p.flatten()
}

// readSubtasks reads a list of subtasks, and takes ownership of it.
func readSubtasks(list []any, depth int) ([]*Subtask, error) {
	if depth > maxNesting {
		return nil, tea.Errorf(tea.ValidationError, "subtasks are nested more than %d deep", maxNesting)
	}
	subtasks := make([]*Subtask, len(list))
	for i, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, tea.Errorf(tea.ValidationError, "a subtask must be an object, got %s", value.TypeName(v))
		}
		var err error
		if subtasks[i], err = readSubtask(m, depth); err != nil {
			return nil, err
		}
	}
	return subtasks, nil
}

// planID derives the id of a plan from its contents, so that it is the same when a call
// is repeated.
func planID(goal string, subtasks []*Subtask) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q", goal)
	for _, s := range subtasks {
		fmt.Fprintf(hash, "%q%q%q", s.ID, s.Description, s.Dependencies)
	}
	return "plan-" + hex.EncodeToString(hash.Sum(nil)[:6])
}

// maxNesting bounds the nesting of groups in a document.
const maxNesting = 32

// flatten moves nested subtasks behind their groups.
func (p *Plan) flatten() error {
	var all []*Subtask
	var add func(list []*Subtask, parent string) error
	add = func(list []*Subtask, parent string) error {
		for _, s := range list {
			if s == nil {
				return tea.Errorf(tea.ValidationError, "a subtask is null")
			}
			if parent != "" {
				s.Parent = parent
			}
			all = append(all, s)
			inside := s.inside
			s.inside = nil
			if err := add(inside, s.ID); err != nil {
				return err
			}
		}
		return nil
	}
	if err := add(p.Subtasks, ""); err != nil {
		return err
	}
	p.Subtasks = all
	return nil
}

// UnmarshalJSON reads a subtask.
func (s *Subtask) UnmarshalJSON(data []byte) error {
	v, err := value.Decode(data)
	if err != nil {
		return err
	}
	list, err := readSubtasks([]any{v}, 1)
	if err == nil {
		*s = *list[0]
	}
	return err
}

// readSubtask reads a subtask. It accepts numbers as ids, because models write
// them.
func readSubtask(m map[string]any, depth int) (*Subtask, error) {
	s := &Subtask{Status: Pending, Dependencies: []string{}, Extra: m}
	take := func(name string) any {
		v, ok := m[name]
		if ok {
			delete(m, name)
		}
		return v
	}
	s.ID = idText(take("id"))
	parent := take("parent")
	if s.Parent = idText(parent); s.Parent == "" && parent != nil && parent != "" {
		return nil, wrongMember(s, "parent", "an id", parent)
	}
	s.Description, _ = take("description").(string)
	s.Result = take("result")
	s.Error, _ = take("error").(string)
	kind, _ := take("error_type").(string)
	s.ErrorType = tea.ErrorType(kind)
	s.StartedAt, _ = take("started_at").(string)
	s.CompletedAt, _ = take("completed_at").(string)
	if n, ok := take("retry_count").(int64); ok {
		s.RetryCount = int(n)
	}
	if status, _ := take("status").(string); status != "" {
		s.Status = Status(status)
	}
	dependencies, err := takeList(s, "dependencies", "a list of ids")
	if err != nil {
		return nil, err
	}
	for _, d := range dependencies {
		s.Dependencies = append(s.Dependencies, idText(d))
	}
	inside, err := takeList(s, "subtasks", "a list of subtasks")
	if err != nil {
		return nil, err
	}
	if len(inside) == 0 {
		return s, nil
	}
	s.inside, err = readSubtasks(inside, depth+1)
	return s, err
}

// takeList removes a list, which may be absent or null, from the further members.
func takeList(s *Subtask, name, what string) ([]any, error) {
	v := s.Extra[name]
	delete(s.Extra, name)
	list, ok := v.([]any)
	if !ok && v != nil {
		return nil, wrongMember(s, name, what, v)
	}
	return list, nil
}

// wrongMember is the error of a member of the wrong type. Ignoring a dependency would
// change the meaning of the plan.
func wrongMember(s *Subtask, name, what string, v any) error {
	return tea.Errorf(tea.ValidationError, "subtask %q: %s must be %s, got %s", s.ID, name, what, value.TypeName(v))
}

// idText returns an id as a string; "" unless it is a string or a number.
func idText(v any) string {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v)
	case int64, json.Number:
		return fmt.Sprint(v)
	}
	return ""
}

// MarshalJSON writes a subtask with its further members.
func (s *Subtask) MarshalJSON() ([]byte, error) { return value.Encode(s.value()) }

// value returns a subtask in the value model.
func (s *Subtask) value() map[string]any {
	m := make(map[string]any, len(s.Extra)+7)
	maps.Copy(m, s.Extra)
	dependencies := make([]any, len(s.Dependencies))
	for i, d := range s.Dependencies {
		dependencies[i] = d
	}
	m["id"], m["description"], m["dependencies"] = s.ID, s.Description, dependencies
	m["status"], m["retry_count"] = string(s.Status), int64(s.RetryCount)
	for _, member := range []struct{ name, text string }{
		{"parent", s.Parent}, {"error", s.Error}, {"error_type", string(s.ErrorType)}, {"started_at", s.StartedAt}, {"completed_at", s.CompletedAt},
	} {
		if member.text != "" {
			m[member.name] = member.text
		}
	}
	if s.Result != nil {
		m["result"] = s.Result
	}
	return m
}

// value returns a plan in the value model.
func (p *Plan) value() Document {
	subtasks := make([]any, len(p.Subtasks))
	for i, s := range p.Subtasks {
		subtasks[i] = s.value()
	}
	return Document{"id": p.ID, "goal": p.Goal, "strategy": p.Strategy, "subtasks": subtasks, "metadata": p.Metadata}
}

// byID returns the subtasks by their id.
func (p *Plan) byID() map[string]*Subtask {
	m := make(map[string]*Subtask, len(p.Subtasks))
	for _, s := range p.Subtasks {
		m[s.ID] = s
	}
	return m
}

// groups returns the ids of the subtasks that have members.
func (p *Plan) groups() map[string]bool {
	m := map[string]bool{}
	for _, s := range p.Subtasks {
		if s.Parent != "" {
			m[s.Parent] = true
		}
	}
	return m
}

// count returns an integer of the metadata; 0 if there is none.
func (p *Plan) count(name string) int {
	n, _ := p.Metadata[name].(int64)
	return int(n)
}

// appendMetadata appends to a list in the metadata.
func (p *Plan) appendMetadata(name string, v any) {
	list, _ := p.Metadata[name].([]any)
	p.Metadata[name] = append(list[:len(list):len(list)], v)
}
