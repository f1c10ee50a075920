package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// MaxReplans is the error type if a plan may not change again, and MaxSubtasks if an
// iterative plan needs more subtasks than allowed.
const (
	MaxReplans  tea.ErrorType = "max_replans"
	MaxSubtasks tea.ErrorType = "max_subtasks"
)

// ReplanParams are the parameters of plan.replan.
type ReplanParams struct {
	Plan        Document `json:"plan" doc:"the plan; its completed subtasks stay"`
	Reason      string   `json:"reason,omitempty" doc:"why the plan changes; the model also sees which subtasks failed"`
	MaxReplans  int      `json:"max_replans,omitempty" default:"2" minimum:"0" maximum:"100" doc:"how often a plan can change, counted over its life"`
	Model       string   `json:"model,omitempty" doc:"the model that plans; default: as for plan.decompose"`
	Planner     Planner  `json:"planner,omitzero" doc:"as in plan.decompose"`
	Context     any      `json:"context,omitempty" doc:"as in plan.decompose; default: its context"`
	Actions     []string `json:"actions,omitempty" doc:"as in plan.decompose; default: its actions"`
	MaxSubtasks int      `json:"max_subtasks,omitempty" minimum:"1" maximum:"1000" doc:"limit for the number of subtasks, completed ones included; default: as for plan.decompose, or 20"`
	MaxAttempts int      `json:"max_attempts,omitempty" default:"3" minimum:"1" maximum:"10" doc:"as in plan.decompose"`
}

// ReplanResult is the result of plan.replan.
type ReplanResult struct {
	Success bool     `json:"success"`
	Plan    Document `json:"plan" doc:"the completed subtasks and the new ones"`
	Replans int      `json:"replans" doc:"how often the plan has changed"`
}

// replan is the action plan.replan.
func replan(ctx context.Context, req *tea.Request, p ReplanParams) (*ReplanResult, error) {
	plan, err := p.Plan.plan()
	if err != nil {
		return nil, err
	}
	if len(plan.Subtasks) > 0 {
		if err := plan.check(limits{Subtasks: mostSubtasks, Depth: maxLevels}); err != nil {
			return nil, err
		}
	}
	params := PlannerParams{Model: p.Model, Planner: p.Planner, Context: p.Context, Actions: p.Actions, MaxSubtasks: p.MaxSubtasks, MaxAttempts: p.MaxAttempts}
	pl, err := newPlanner(ctx, req, params.recalled(plan))
	if err != nil {
		return nil, err
	}
	rev, err := pl.newPlan(ctx, plan, "replan", p.Reason, p.MaxReplans)
	if err != nil {
		return nil, err
	}
	plan.drop(rev.Drop)
	plan.Subtasks = append(plan.Subtasks, rev.Add...)
	maps.Copy(plan.Metadata, rev.Meta)
	return &ReplanResult{Success: true, Plan: plan.value(), Replans: plan.count("replans")}, nil
}

// drop removes subtasks.
func (p *Plan) drop(ids []string) {
	gone := make(map[string]bool, len(ids))
	for _, id := range ids {
		gone[id] = true
	}
	p.Subtasks = slices.DeleteFunc(p.Subtasks, func(s *Subtask) bool { return gone[s.ID] })
}

// maxShown bounds the size of a result or an error for the model.
const maxShown = 2000

// shown returns a value for the model, with a remark if it is truncated.
func shown(v any) string {
	text, ok := v.(string)
	if !ok {
		data, err := value.Encode(v)
		if err != nil {
			return ""
		}
		text = string(data)
	}
	if len(text) <= maxShown {
		return text
	}
	end := maxShown
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s... [cut off: %d of %d bytes shown]", text[:end], end, len(text))
}

// completed lists the completed subtasks for the model.
func (p *Plan) completed() []any {
	var list []any
	for _, s := range p.Subtasks {
		if s.Status == Completed && !s.group {
			list = append(list, map[string]any{"id": s.ID, "description": s.Description, "result": shown(s.Result)})
		}
	}
	return list
}

// newPlan asks the model to replace the unfinished part of a plan.
func (pl *planner) newPlan(ctx context.Context, p *Plan, key, reason string, most int) (revision, error) {
	done := p.count("replans")
	if done >= most {
		return revision{}, tea.Errorf(MaxReplans, "the plan has changed %d times; the limit is %d (max_replans)", done, most)
	}
	rev := revision{Meta: map[string]any{"replans": int64(done + 1)}}
	kept := &Plan{}
	var why []string
	if reason != "" {
		why = append(why, reason)
	}
	replaced, _ := p.Metadata["replaced"].([]any)
	replaced = slices.Clone(replaced)
	// A group with a completed member stays, and is no longer a group if it has no
	// other members.
	keeps := p.keeps()
	for _, s := range p.Subtasks {
		if keeps[s.ID] {
			kept.Subtasks = append(kept.Subtasks, s)
			continue
		}
		rev.Drop = append(rev.Drop, s.ID)
		if s.Status == Failed {
			why = append(why, fmt.Sprintf("subtask %q (%s) failed: %s", s.ID, s.Description, shown(s.Error)))
		}
		gone := map[string]any{"id": s.ID, "status": string(s.Status)}
		if s.Error != "" {
			gone["error"] = s.Error
		}
		replaced = append(replaced, gone)
	}
	rev.Meta["replaced"] = replaced
	room := pl.params.MaxSubtasks - len(kept.Subtasks)
	if room < 1 {
		return revision{}, tea.Errorf(MaxSubtasks, "the plan has %d subtasks that are completed; the limit is %d (max_subtasks)", len(kept.Subtasks), pl.params.MaxSubtasks)
	}
	a, err := pl.ask(ctx, question{
		Key: fmt.Sprintf("%s/%d", key, done+1), Goal: p.Goal, Strategy: p.planning(), Context: pl.params.Context, Max: room,
		Results: p.completed(), Reason: strings.Join(why, "\n"),
		Check: func(a *answer) []string { return pl.extends(kept, a, room) },
	})
	if err != nil {
		return revision{}, err
	}
	rev.Add = a.Subtasks
	return rev, nil
}

// planning is the strategy for asking a model for a part of a plan. A hierarchical plan
// was already split.
func (p *Plan) planning() string {
	if p.Strategy == hierarchical {
		return flat
	}
	return p.Strategy
}

// keeps returns the ids of the subtasks that a new plan keeps: the completed ones and
// their enclosing groups.
func (p *Plan) keeps() map[string]bool {
	byID, keeps := p.byID(), map[string]bool{}
	for _, s := range p.Subtasks {
		if s.Status != Completed {
			continue
		}
		for s := s; s != nil && !keeps[s.ID]; s = byID[s.Parent] {
			keeps[s.ID] = true
		}
	}
	return keeps
}

// extends returns the faults of an answer that adds to a plan.
func (pl *planner) extends(kept *Plan, a *answer, room int) []string {
	whole := &Plan{Subtasks: slices.Concat(kept.Subtasks, a.Subtasks)}
	faults := slices.Concat(whole.faults(limits{Depth: maxLevels}), pl.unknownActions(a))
	if len(a.Subtasks) > room {
		faults = append(faults, fmt.Sprintf("the plan has %d new subtasks; the limit is %d", len(a.Subtasks), room))
	}
	if len(a.Subtasks) == 0 && len(faults) == 0 {
		faults = append(faults, "the plan has no new subtasks")
	}
	return faults
}

// asks returns the planner of an execution.
func (r *runner) asks(ctx context.Context) (*planner, error) {
	if r.planner != nil {
		return r.planner, nil
	}
	p := PlannerParams{Model: r.params.Model, Planner: r.params.Planner, MaxSubtasks: r.params.MaxSubtasks, MaxAttempts: r.params.MaxAttempts}
	var err error
	r.planner, err = newPlanner(ctx, r.req, p.recalled(r.plan))
	return r.planner, err
}

// replan replaces the rest of the plan after a failure.
func (r *runner) replan(ctx context.Context, failed *Subtask) (again bool, err error) {
	pl, err := r.asks(ctx)
	if err != nil {
		return false, err
	}
	rev, err := pl.newPlan(ctx, r.plan, fmt.Sprintf("replan/%d", r.journal.begun.Generation), "", r.params.MaxReplans)
	if e := tea.AsError(err); e != nil {
		if e.Type != MaxReplans && e.Type != MaxSubtasks {
			return false, r.noPlanError(e, failed, fmt.Sprintf("subtask %q failed: %s; the rest cannot be planned again", failed.ID, failed.Error))
		}
		return false, r.abortReplan(ctx, failed, e)
	}
	return true, r.change(ctx, rev)
}

// abortReplan is like abort, with the reason why the plan did not change.
func (r *runner) abortReplan(ctx context.Context, failed *Subtask, why *tea.Error) error {
	err := r.abort(ctx, failed)
	if e := tea.AsError(err); e.Type == Aborted {
		final := *e
		final.Type, final.Message = why.Type, e.Message+"; "+why.Message
		return &final
	}
	return err
}

// noPlanError is the error of an execution if the model returns no usable plan. When the
// action is repeated, it asks the same question.
func (r *runner) noPlanError(e *tea.Error, failed *Subtask, problem string) error {
	if e.Type == tea.Canceled || e.Type == tea.BudgetExceeded {
		return e
	}
	final := *e
	final.Message = problem + ": " + e.Message
	return r.partial(&final, failed)
}

// change notes a change of the plan and then applies it.
func (r *runner) change(ctx context.Context, rev revision) error {
	if err := r.journal.setRevision(ctx, r.revisions+1, rev); err != nil {
		return err
	}
	r.revise(rev)
	return nil
}

// step asks for the next step of an iterative plan.
func (r *runner) step(ctx context.Context) (again bool, err error) {
	pl, err := r.asks(ctx)
	if err != nil {
		return false, err
	}
	// Without room the model can still declare the plan done.
	room := pl.params.MaxSubtasks - len(r.plan.Subtasks)
	a, err := pl.ask(ctx, question{
		Key: fmt.Sprintf("step/%d/%d", r.journal.begun.Generation, r.revisions+1), Goal: r.plan.Goal, Strategy: iterative,
		Context: pl.params.Context, Max: max(room, 0), Results: r.plan.ended(),
		Check: func(a *answer) []string {
			if len(a.Subtasks) == 0 {
				return nil
			}
			return pl.extends(r.plan, a, max(room, 0))
		},
	})
	if e := tea.AsError(err); e != nil {
		if room < 1 && e.Type == tea.ValidationError {
			return false, r.partial(tea.Errorf(MaxSubtasks, "the plan is not done after %d subtasks, which is the limit (max_subtasks)", len(r.plan.Subtasks)), nil)
		}
		return false, r.noPlanError(e, nil, "the next step cannot be planned")
	}
	rev := revision{Add: a.Subtasks, Meta: map[string]any{}}
	if len(a.Subtasks) == 0 || a.Done {
		rev.Meta["done"] = true
	}
	return true, r.change(ctx, rev)
}

// ended lists the ended subtasks for the model.
func (p *Plan) ended() []any {
	list := p.completed()
	for _, s := range p.Subtasks {
		if (s.Status == Failed || s.Status == Skipped) && !s.group {
			list = append(list, map[string]any{"id": s.ID, "description": s.Description, "status": string(s.Status), "error": shown(s.Error)})
		}
	}
	return list
}
