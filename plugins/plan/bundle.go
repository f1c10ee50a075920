package plan

import tea "github.com/the-edge-agent/tea/sdk"

// Bundle is the set of actions, for serve.Main or for linking into a host.
//
// All actions are idempotent: actions that call a model or execute subtasks continue
// from their notes when a call is repeated.
func Bundle() tea.Bundle {
	return tea.Bundle{
		Name:        "plan",
		Version:     "0.1.0",
		Description: "Makes plans with a language model and carries them out with other actions.",
		Actions: []tea.Action{
			tea.NewAction("plan.decompose", "Asks a model for a plan that reaches a goal.", decompose, tea.Streaming(), tea.Idempotent(), tea.Reads()),
			tea.NewAction("plan.execute", "Executes the subtasks of a plan through another action.", execute, tea.Streaming(), tea.Idempotent(), tea.Reads()),
			tea.NewAction("plan.replan", "Asks a model to replace the unfinished part of a plan.", replan, tea.Streaming(), tea.Idempotent(), tea.Reads()),
			tea.NewAction("plan.status", "Counts the subtasks of a plan by status.", status, tea.Idempotent(), tea.Reads()),
		},
	}
}
