package plan

import (
	"context"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// ExecuteParams are the parameters of plan.execute.
type ExecuteParams struct {
	Plan             Document `json:"plan" doc:"what plan.decompose returns, or any list of subtasks with id, description and dependencies; completed ones are not executed again"`
	SubtaskExecutor  Executor `json:"subtask_executor" doc:"the action that executes each subtask"`
	Parallel         bool     `json:"parallel,omitempty" default:"true" doc:"run subtasks that do not depend on each other at the same time"`
	MaxConcurrent    int      `json:"max_concurrent,omitempty" default:"4" minimum:"1" maximum:"64" doc:"how many run at the same time"`
	OnSubtaskFailure string   `json:"on_subtask_failure,omitempty" default:"abort" enum:"replan,retry,skip,abort" doc:"abort: begin no further subtask and fail, with the partial results in the error; skip: skip the subtasks that depend on it; retry: execute it again, then abort; replan: ask a model for another plan for the rest"`
	MaxRetries       int      `json:"max_retries,omitempty" default:"3" minimum:"0" maximum:"100" doc:"retry: how often a subtask is executed again"`
	RetryDelay       float64  `json:"retry_delay,omitempty" default:"1" minimum:"0" doc:"retry: seconds before the first retry; doubled for each further one, at most 60"`
	MaxReplans       int      `json:"max_replans,omitempty" default:"2" minimum:"0" maximum:"100" doc:"replan: how often the plan can change, counted over the life of the plan"`
	MaxSubtasks      int      `json:"max_subtasks,omitempty" minimum:"1" maximum:"1000" doc:"iterative plans and replan: limit for the number of subtasks; default: as for plan.decompose, or 20"`
	MaxAttempts      int      `json:"max_attempts,omitempty" default:"3" minimum:"1" maximum:"10" doc:"iterative plans and replan: how often the model is asked until its plan is valid"`
	Model            string   `json:"model,omitempty" doc:"iterative plans and replan: the model that plans; default: as for plan.decompose"`
	Planner          Planner  `json:"planner,omitzero" doc:"iterative plans and replan: as in plan.decompose, which it replaces"`
}

// Executor is the action that executes subtasks.
type Executor struct {
	Action string `json:"action" minLength:"1" doc:"any action: llm.call, llm.tools, agent.run, workflow.run, a Lua action, an action of another plugin"`
	With   Params `json:"with,omitzero" doc:"its parameters, evaluated for each subtask; templates can also read subtask, plan and results (those of finished subtasks by id)"`
	Output Later  `json:"output,omitzero" doc:"the result of the subtask, as a template that can also read result; default: the result of the action, of one that asks a model (llm.*, agent.run) only content and data"`
}

// Later is a parameter whose templates are evaluated for each subtask.
type Later struct{ value any }

// JSONSchema marks the parameter.
func (Later) JSONSchema() *schema.Schema {
	return &schema.Schema{Extra: map[string]any{tea.Templates: []any{"subtask", "plan", "results"}}}
}

// Params are the parameters of the action that executes subtasks.
type Params struct{ Later }

// JSONSchema annotates the parameters so that the host checks them against the action.
func (p Params) JSONSchema() *schema.Schema {
	s := p.Later.JSONSchema()
	s.Extra[tea.ParamsOf], s.Extra["examples"] = "action", []any{"{{ subtask.description }}"}
	return s
}

// IsZero reports whether the parameter is absent.
func (l Later) IsZero() bool { return l.value == nil }

// UnmarshalJSON reads the parameter into the value model.
func (l *Later) UnmarshalJSON(data []byte) (err error) {
	l.value, err = value.Decode(data)
	return err
}

// ExecuteResult is the result of plan.execute.
type ExecuteResult struct {
	Success        bool           `json:"success" doc:"whether all subtasks are completed"`
	Plan           Document       `json:"plan" doc:"the plan with status, result and error of each subtask"`
	SubtaskResults map[string]any `json:"subtask_results" doc:"the results of completed subtasks by id"`
	PlanStatus     Counts         `json:"plan_status" doc:"the number of subtasks by status"`
}

// maxLevels bounds the levels of a plan that is executed.
const maxLevels = 32

// mostSubtasks bounds the subtasks of a plan that is executed.
const mostSubtasks = 10_000

// execute is the action plan.execute.
func execute(ctx context.Context, req *tea.Request, p ExecuteParams) (*ExecuteResult, error) {
	plan, err := p.Plan.plan()
	if err != nil {
		return nil, err
	}
	// An iterative plan may lack its first step.
	if len(plan.Subtasks) > 0 || plan.Strategy != iterative {
		if err := plan.check(limits{Subtasks: mostSubtasks, Depth: maxLevels}); err != nil {
			return nil, err
		}
	}
	r := &runner{
		req: req, params: p, plan: plan, journal: journal{host: req.Host},
		ended: make(chan ending), slots: p.MaxConcurrent, asked: map[string]bool{},
	}
	if !p.Parallel {
		r.slots = 1
	}
	r.reads = readsOf(p.SubtaskExecutor)
	if err := r.restore(ctx); err != nil {
		return nil, err
	}
	for {
		again, err := r.pass(ctx)
		if err != nil {
			return nil, err
		}
		if !again {
			return r.result(), nil
		}
	}
}

// result returns the result of the execution.
func (r *runner) result() *ExecuteResult {
	counts := r.plan.counts()
	return &ExecuteResult{Success: counts.Completed == counts.Total, Plan: r.plan.value(), SubtaskResults: r.plan.results(nil), PlanStatus: counts}
}

// results returns the results of completed subtasks by id, except groups; seen
// restricts it to a set of places unless it is nil.
func (p *Plan) results(seen bits) map[string]any {
	results := map[string]any{}
	for i, s := range p.Subtasks {
		if s.Status != Completed || seen != nil && !seen.has(i) {
			continue
		}
		if s.group {
			continue
		}
		results[s.ID] = s.Result
	}
	return results
}

// now returns the time in the format of the notes.
func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }
