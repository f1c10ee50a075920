package plan

import (
	"context"
	"fmt"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"
)

// DecomposeParams are the parameters of plan.decompose.
type DecomposeParams struct {
	PlannerParams
	Goal     string `json:"goal" minLength:"1" doc:"what the plan is for"`
	Strategy string `json:"strategy,omitempty" default:"flat" enum:"flat,hierarchical,iterative" doc:"flat: one list of subtasks; hierarchical: subtasks are split again until they are simple, or max_depth; iterative: only the next step, plan.execute plans the others from the results"`
	MaxDepth int    `json:"max_depth,omitempty" default:"3" minimum:"1" maximum:"10" doc:"hierarchical: the number of levels"`
}

// DecomposeResult is the result of plan.decompose.
type DecomposeResult struct {
	Success  bool     `json:"success"`
	Plan     Document `json:"plan" doc:"id, goal, strategy, subtasks and metadata"`
	Attempts int      `json:"attempts" doc:"how often a model was asked"`
}

// decompose is the action plan.decompose.
func decompose(ctx context.Context, req *tea.Request, p DecomposeParams) (*DecomposeResult, error) {
	pl, err := newPlanner(ctx, req, p.PlannerParams)
	if err != nil {
		return nil, err
	}
	depth := p.MaxDepth
	if p.Strategy != hierarchical {
		depth = 1
	}
	made := &Plan{Goal: p.Goal, Strategy: p.Strategy, Metadata: map[string]any{}}
	a, err := pl.ask(ctx, question{
		Key: "plan", Goal: p.Goal, Strategy: p.Strategy, Context: p.Context, Max: p.MaxSubtasks,
		Check: func(a *answer) []string {
			return slices.Concat((&Plan{Subtasks: a.Subtasks}).faults(limits{Subtasks: p.MaxSubtasks, Depth: depth}), pl.unknownActions(a))
		},
	})
	if err != nil {
		return nil, err
	}
	made.Subtasks = a.Subtasks
	if p.Strategy == hierarchical {
		if err := pl.split(ctx, made, p); err != nil {
			return nil, err
		}
	}
	made.ID = planID(made.Goal, made.Subtasks)
	made.Metadata["attempts"] = int64(pl.asked)
	pl.remember(made)
	if p.Strategy == hierarchical {
		made.Metadata["max_depth"] = int64(p.MaxDepth)
	}
	return &DecomposeResult{Success: true, Plan: made.value(), Attempts: pl.asked}, nil
}

// remember stores the parameters for a later step or a new plan in the plan, without
// keys, headers and prompts: settings.llm or the later call provides them.
func (pl *planner) remember(p *Plan) {
	p.Metadata["max_subtasks"] = int64(pl.params.MaxSubtasks)
	if pl.params.Model != "" {
		p.Metadata["model"] = pl.params.Model
	}
	if pl.params.Context != nil {
		p.Metadata["context"] = pl.params.Context
	}
	if len(pl.params.Actions) > 0 {
		names := make([]any, len(pl.params.Actions))
		for i, name := range pl.params.Actions {
			names[i] = name
		}
		p.Metadata["actions"] = names
	}
	kept := map[string]any{}
	for name, v := range pl.params.Planner.with {
		if name != "api_key" && name != "headers" && name != "prompt_template" {
			kept[name] = v
		}
	}
	if len(kept) > 0 {
		p.Metadata["planner"] = kept
	}
}

// recalled completes parameters with those stored in a plan.
func (p PlannerParams) recalled(from *Plan) PlannerParams {
	m := from.Metadata
	if model, ok := m["model"].(string); ok && p.Model == "" && p.Planner.with["model"] == nil {
		p.Model = model
	}
	if p.Context == nil {
		p.Context = m["context"]
	}
	if names, ok := m["actions"].([]any); ok && p.Actions == nil {
		for _, name := range names {
			p.Actions = append(p.Actions, fmt.Sprint(name))
		}
	}
	if with, ok := m["planner"].(map[string]any); ok && p.Planner.IsZero() {
		p.Planner.with = with
	}
	if p.MaxSubtasks == 0 {
		p.MaxSubtasks = max(from.count("max_subtasks"), 0)
	}
	if p.MaxSubtasks == 0 {
		p.MaxSubtasks = defaultSubtasks
	}
	return p
}

// defaultSubtasks is the default of max_subtasks.
const defaultSubtasks = 20

// unknownActions returns the faults of subtasks whose action was not offered to the
// model.
func (pl *planner) unknownActions(a *answer) []string {
	var list []string
	for _, s := range a.Subtasks {
		action, _ := s.Extra["action"].(string)
		if action != "" && len(pl.params.Actions) > 0 && !slices.Contains(pl.params.Actions, action) {
			list = append(list, fmt.Sprintf("subtask %q uses the action %q, which is not one of the actions", s.ID, action))
		}
	}
	return list
}

// atomic reports whether the model declared a subtask to be a single step.
func atomic(s *Subtask) bool {
	is, _ := s.Extra["atomic"].(bool)
	return is
}

// split splits the subtasks of a plan until they are atomic, max_depth levels deep, or
// max_subtasks is reached. The metadata lists those that were not split.
func (pl *planner) split(ctx context.Context, p *Plan, params DecomposeParams) error {
	for i := 0; i < len(p.Subtasks); i++ {
		s := p.Subtasks[i]
		depth := levelOf(s, p.byID())
		if atomic(s) || depth >= params.MaxDepth || p.groups()[s.ID] {
			continue
		}
		room := params.MaxSubtasks - len(p.Subtasks)
		if room < 1 {
			p.appendMetadata("not_split", s.ID)
			continue
		}
		a, err := pl.ask(ctx, pl.splitting(p, s, room, params.MaxDepth-depth))
		if err != nil {
			return err
		}
		for _, inner := range a.Subtasks {
			inner.ID = s.ID + "." + inner.ID
			for j := range inner.Dependencies {
				inner.Dependencies[j] = s.ID + "." + inner.Dependencies[j]
			}
			if inner.Parent == "" {
				inner.Parent = s.ID
			} else {
				inner.Parent = s.ID + "." + inner.Parent
			}
		}
		p.Subtasks = append(p.Subtasks, a.Subtasks...)
	}
	return nil
}

// splitting is the question for splitting a subtask.
func (pl *planner) splitting(p *Plan, s *Subtask, room, depth int) question {
	inside := map[string]any{"goal_of_the_whole_plan": p.Goal, "dependencies": s.value()["dependencies"]}
	if pl.params.Context != nil {
		inside["context"] = pl.params.Context
	}
	return question{
		Key: "split/" + s.ID, Goal: s.Description, Strategy: hierarchical, Context: inside, Max: room,
		Check: func(a *answer) []string {
			part := &Plan{Subtasks: a.Subtasks}
			faults := slices.Concat(part.faults(limits{Subtasks: room, Depth: depth}), pl.unknownActions(a))
			known := p.byID()
			for _, inner := range a.Subtasks {
				if id := s.ID + "." + inner.ID; len(id) > maxID || known[id] != nil {
					faults = append(faults, fmt.Sprintf("the id %q is too long or already in use", inner.ID))
				}
			}
			return faults
		},
	}
}
