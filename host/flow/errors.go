package flow

import (
	"fmt"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// NodeError is the failure of a node that ended a run. errors.As reaches the
// [*tea.Error] inside.
type NodeError struct {
	Node, Path string
	Pos        diag.Pos
	Attempts   int
	Err        *tea.Error
	// InCode reports whether Pos is where the node's Lua code failed, which Err
	// contains too; otherwise Pos is the position of the node.
	InCode bool
}

// Error returns position, node and cause on one line.
func (e *NodeError) Error() string {
	at := ""
	if pos := e.Pos.String(); pos != "" && !e.InCode {
		at = pos + ": "
	}
	tries := ""
	if e.Attempts > 1 {
		tries = fmt.Sprintf(" after %d attempts", e.Attempts)
	}
	return fmt.Sprintf("%snode %q failed%s: %s", at, e.Path, tries, e.Err)
}

// Unwrap returns the action's error.
func (e *NodeError) Unwrap() error { return e.Err }

// BudgetError reports that a run has reached a limit of its budget.
type BudgetError struct {
	Limit string
	Used  string
}

// Error names the limit.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("budget reached: %s (%s)", e.Limit, e.Used)
}

// TypeError reports a value that does not match the type of its key in the state
// schema. Got is "" for a missing required key.
type TypeError struct{ Key, Expected, Got string }

// Error names key, expected and got.
func (e *TypeError) Error() string {
	if e.Got == "" {
		return fmt.Sprintf("state key %q is required (%s) and missing from the input", e.Key, e.Expected)
	}
	return fmt.Sprintf("state key %q: expected %s, got %s", e.Key, e.Expected, e.Got)
}

// InputError reports an initial state that does not match the state schema, with
// all faults sorted by key. The run has not begun.
type InputError struct{ Faults []*TypeError }

// Error lists the faults.
func (e *InputError) Error() string {
	texts := make([]string, len(e.Faults))
	for i, fault := range e.Faults {
		texts[i] = fault.Error()
	}
	return strings.Join(texts, "; ")
}
