// Package plan is the bundle of actions that create and execute plans:
// plan.decompose, plan.execute, plan.replan and plan.status.
//
// Start with [Bundle]. A [Plan] is a list of subtasks with dependencies (plan.go);
// check.go finds its faults. A planner (planner.go) asks a model for subtasks
// through the host's llm.call. A runner (execute.go) executes them through other
// actions and keeps a journal in the run's notes (journal.go).
package plan
