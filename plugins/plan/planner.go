package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// PlannerParams are the parameters of all actions that ask a model for subtasks.
type PlannerParams struct {
	Model       string   `json:"model,omitempty" doc:"the model that plans; default: the one in settings.llm"`
	Planner     Planner  `json:"planner,omitzero" doc:"further parameters of the call of the model, such as temperature; model, prompt_template, and action: the action that is called, default llm.call"`
	Context     any      `json:"context,omitempty" doc:"what the model should know besides the goal: a text or any JSON"`
	Actions     []string `json:"actions,omitempty" doc:"names of the actions that the executor can use: the model sees their descriptions and parameters, and chooses one with params for each subtask"`
	MaxSubtasks int      `json:"max_subtasks,omitempty" default:"20" minimum:"1" maximum:"1000" doc:"limit for the number of subtasks on all levels together"`
	MaxAttempts int      `json:"max_attempts,omitempty" default:"3" minimum:"1" maximum:"10" doc:"how often the model is asked until its plan is valid; each time it sees the faults of its last answer"`
}

// Planner are the parameters of the call of the model.
type Planner struct{ with map[string]any }

// promptNames are the names available to a prompt template.
var promptNames = []any{"goal", "context", "actions", "strategy", "max_subtasks", "results", "reason"}

// JSONSchema describes the parameters that the planner defines.
func (Planner) JSONSchema() *schema.Schema {
	text := func(doc string) *schema.Schema {
		return &schema.Schema{Type: schema.Types{"string"}, Description: doc}
	}
	prompt := text("replaces the prompt; a template that can read goal, context, actions, strategy, max_subtasks, results (of finished subtasks) and reason (of a new plan)")
	prompt.Extra = map[string]any{tea.Templates: promptNames}
	return &schema.Schema{
		Type: schema.Types{"object"},
		Properties: &schema.Properties{
			{Name: "action", Schema: text("the action that asks the model: like llm.call, it gets messages and a schema, and returns data or content")},
			{Name: "model", Schema: text("the model that plans")},
			{Name: "prompt_template", Schema: prompt},
		},
	}
}

// IsZero reports whether there are no parameters.
func (p Planner) IsZero() bool { return len(p.with) == 0 }

// UnmarshalJSON reads the parameters into the value model.
func (p *Planner) UnmarshalJSON(data []byte) error {
	v, err := value.Decode(data)
	if err != nil {
		return err
	}
	p.with, _ = v.(map[string]any)
	return nil
}

// planner asks a model for subtasks.
type planner struct {
	req     *tea.Request
	params  PlannerParams
	actions []any // descriptions of the actions for the prompt
	// asked counts the questions to the model, including those before a crash.
	asked int
}

func newPlanner(ctx context.Context, req *tea.Request, p PlannerParams) (*planner, error) {
	pl := &planner{req: req, params: p}
	for _, name := range p.Actions {
		info, err := req.Host.Describe(ctx, name)
		if err != nil {
			e := *tea.AsError(err)
			e.Message = fmt.Sprintf("actions: %s", e.Message)
			return nil, &e
		}
		described := map[string]any{"name": info.Name, "summary": info.Summary}
		if info.Params != nil {
			if described["params"], err = value.From(info.Params); err != nil {
				return nil, tea.Errorf(tea.InternalError, "schema of %s: %w", name, err)
			}
		}
		pl.actions = append(pl.actions, described)
	}
	return pl, nil
}

// question is a question to a model.
type question struct {
	// Key identifies the question within the call.
	Key string
	// Goal and Context are the model's task, and Strategy is a strategy of a plan.
	Goal, Strategy string
	Context        any
	// Max is the maximum number of subtasks in the answer.
	Max int
	// Results are the results of finished subtasks; Reason is why the rest of a plan
	// is planned again.
	Results []any
	Reason  string
	// Check applies the answer to a plan and returns its faults.
	Check func(*answer) []string
}

// answer is a model's answer.
type answer struct {
	Subtasks []*Subtask `json:"subtasks"`
	// Done reports whether an iterative plan needs no further step.
	Done bool `json:"done"`
}

// ask asks the model until its answer has no faults.
func (pl *planner) ask(ctx context.Context, q question) (*answer, error) {
	messages := []any{
		map[string]any{"role": "system", "content": pl.instruction(q)},
		map[string]any{"role": "user", "content": pl.prompt(q)},
	}
	var faults []string
	for attempt := 1; attempt <= pl.params.MaxAttempts; attempt++ {
		pl.asked++
		text, err := pl.request(ctx, q, messages, attempt)
		if err != nil {
			return nil, err
		}
		a, problem := parse(text)
		if problem != nil {
			faults = []string{problem.Error()}
		} else if faults = q.Check(a); len(faults) == 0 {
			return a, nil
		}
		messages = append(messages,
			map[string]any{"role": "assistant", "content": text},
			map[string]any{"role": "user", "content": "This plan cannot be used:\n- " + strings.Join(faults, "\n- ") + "\nAnswer with the whole corrected plan."})
	}
	return nil, invalid(fmt.Sprintf("the model's plan is not valid after %d attempts: %s", pl.params.MaxAttempts, strings.Join(faults, "; ")), faults)
}

// request makes one request to the model and returns the text of its answer. The host
// notes the answer, so that a repeated call does not ask again. Subtasks do not use
// such a key.
func (pl *planner) request(ctx context.Context, q question, messages []any, attempt int) (string, error) {
	with := maps.Clone(pl.params.Planner.with)
	if with == nil {
		with = map[string]any{}
	}
	call := tea.Invocation{
		Action: "llm.call", Params: with, Key: fmt.Sprintf("@%s-%d", keyOf(strings.ReplaceAll(q.Key, "/", "-"), 0), attempt),
		Output: map[string]any{"data": "{{ result.data }}", "content": "{{ result.content }}"},
	}
	if action, ok := with["action"].(string); ok {
		call.Action = action
	}
	prompt, hasPrompt := with["prompt_template"].(string)
	delete(with, "action")
	delete(with, "prompt_template")
	if pl.params.Model != "" {
		with["model"] = pl.params.Model
	}
	with["messages"], with["schema"], with["max_repairs"] = messages, pl.schema(q), int64(0)
	if hasPrompt {
		var texts []any
		with = protect(with, &texts).(map[string]any)
		with["messages"].([]any)[1] = map[string]any{"role": "user", "content": prompt}
		call.Params = with
		call.Roots = map[string]any{
			"goal": q.Goal, "context": q.Context, "actions": orEmpty(pl.actions), "strategy": q.Strategy, "max_subtasks": int64(q.Max),
			"results": orEmpty(q.Results), "reason": q.Reason, "verbatim": texts,
		}
	}
	resp, err := pl.req.Invoke(ctx, call)
	if err != nil {
		e := tea.AsError(err)
		if content, ok := e.Details["content"].(string); ok && e.Type == tea.ValidationError {
			return content, nil // not the requested JSON
		}
		return "", err
	}
	var result struct {
		Data    any    `json:"data"`
		Content string `json:"content"`
	}
	if err := resp.Result.Decode(&result); err != nil {
		return "", tea.Errorf(tea.ValidationError, "%s returns neither data nor content: %w", call.Action, err)
	}
	if result.Data == nil {
		return result.Content, nil
	}
	data, err := value.Encode(result.Data)
	return string(data), err
}

// protect replaces strings in v that the host would evaluate as templates with
// templates that read them from texts.
func protect(v any, texts *[]any) any {
	switch v := v.(type) {
	case string:
		if strings.Contains(v, "{{") || strings.Contains(v, "{%") || strings.Contains(v, "{#") {
			*texts = append(*texts, v)
			return fmt.Sprintf("{{ verbatim[%d] }}", len(*texts)-1)
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = protect(v[i], texts)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name := range v {
			out[name] = protect(v[name], texts)
		}
		return out
	}
	return v
}

// parse reads an answer. Models wrap JSON in code fences or sentences.
func parse(text string) (*answer, error) {
	start, end := strings.IndexAny(text, "{["), strings.LastIndexAny(text, "}]")
	if start < 0 || end < start {
		return nil, fmt.Errorf("the answer is not JSON")
	}
	raw := []byte(text[start : end+1])
	a := new(answer)
	var err error
	if raw[0] == '[' {
		err = json.Unmarshal(raw, &a.Subtasks)
	} else {
		err = json.Unmarshal(raw, a)
	}
	if err != nil {
		return nil, fmt.Errorf("the answer is not a plan: %s", cmp.Or(tea.AsError(err).Message, err.Error()))
	}
	p := Plan{Subtasks: a.Subtasks}
	if err := p.flatten(); err != nil {
		return nil, errors.New(tea.AsError(err).Message)
	}
	a.Subtasks = p.Subtasks
	for _, s := range a.Subtasks { // a model plans, it does not execute
		s.reset()
		s.RetryCount = 0
	}
	return a, nil
}

// schema returns the JSON Schema of an answer.
func (pl *planner) schema(q question) map[string]any {
	text := map[string]any{"type": "string"}
	members := map[string]any{
		"id": text, "description": text,
		"dependencies": map[string]any{"type": "array", "items": text},
	}
	if q.Strategy == hierarchical {
		members["atomic"] = map[string]any{"type": "boolean"}
	}
	if len(pl.params.Actions) > 0 {
		names := make([]any, len(pl.params.Actions))
		for i, name := range pl.params.Actions {
			names[i] = name
		}
		members["action"] = map[string]any{"type": "string", "enum": names}
		members["params"] = map[string]any{"type": "object"}
	}
	list := map[string]any{"type": "array", "items": map[string]any{
		"type": "object", "properties": members, "required": []any{"id", "description", "dependencies"},
	}}
	properties := map[string]any{"subtasks": list}
	if q.Strategy == iterative {
		properties["done"] = map[string]any{"type": "boolean"}
	}
	return map[string]any{"type": "object", "properties": properties, "required": []any{"subtasks"}}
}

func orEmpty(list []any) []any {
	if list == nil {
		return []any{}
	}
	return list
}

// instruction returns the rules for an answer.
func (pl *planner) instruction(q question) string {
	var b strings.Builder
	b.WriteString("You make plans. Split the goal into subtasks that another program executes one by one. ")
	b.WriteString("Answer only with JSON: {\"subtasks\": [{\"id\": \"...\", \"description\": \"...\", \"dependencies\": [\"...\"]}]}.\n")
	b.WriteString("- id: short and unique.\n- description: what to do, complete without the other subtasks.\n")
	b.WriteString("- dependencies: the ids of the subtasks whose results this one needs; [] if there are none. Subtasks that do not depend on each other run at the same time. Cycles are not allowed.\n")
	fmt.Fprintf(&b, "- At most %d subtasks.\n", q.Max)
	switch q.Strategy {
	case hierarchical:
		b.WriteString("- atomic: true if the subtask is one simple step; otherwise it is split further.\n")
	case iterative:
		b.WriteString("- Plan only the next step: the subtasks that can begin now. You are asked again when they have finished. With no further step, answer {\"subtasks\": [], \"done\": true}.\n")
	}
	if len(pl.actions) > 0 {
		b.WriteString("- action: the name of the action that executes the subtask; params: its parameters.\n")
	}
	return b.String()
}

// prompt returns the model's task.
func (pl *planner) prompt(q question) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Goal: %s\n", q.Goal)
	section := func(title string, v any) {
		if text, ok := v.(string); ok {
			fmt.Fprintf(&b, "\n%s:\n%s\n", title, text)
		} else if data, err := value.Encode(v); err == nil {
			fmt.Fprintf(&b, "\n%s:\n%s\n", title, data)
		}
	}
	if q.Context != nil {
		section("Context", q.Context)
	}
	if len(pl.actions) > 0 {
		section("Actions", pl.actions)
	}
	if len(q.Results) > 0 {
		section("Finished subtasks (do not plan them again; dependencies can name them)", q.Results)
	}
	if q.Reason != "" {
		section("Why the rest is planned again", q.Reason)
	}
	return b.String()
}
