package engine

import (
	"fmt"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Kinds of records, with what their body holds. The names are part of the
// journal's format.
const (
	kindStart     = checkpoint.KindStart // input
	kindNode      = "node"               // what one execution of a node did
	kindRoute     = "route"              // to, fan: decided after the node's record
	kindAttempt   = "attempt"            // n: a container or branch starts over
	kindBranch    = "branch"             // the outcome of a branch that did not end well
	kindInterrupt = "interrupt"          // a pending interrupt
	kindAnswer    = "answer"             // id, value
	kindInput     = "input"              // values merged where the run went on
	kindGiven     = "given"              // values that a resume or fork was given, to be merged
	kindNote      = "note"               // key, value: an action's durable note
	kindStatus    = "status"             // status, node, error, usage
	kindSession   = "session"            // a resume begins; for the time at work
	kindRetry     = "retry"              // paths of failed branches that run again, and what follows them
	kindUsage     = "usage"              // tokens, usd of one request at path, until the node's record
)

// append seals a record's body and stores it.
func (r *run) append(kind, path string, body map[string]any) error {
	if r.o.Journal == nil {
		return nil
	}
	raw, err := value.Encode(r.o.Secrets.Seal(body))
	if err != nil {
		return fmt.Errorf("encode the %s record of %s: %w", kind, path, err)
	}
	if err := r.o.Journal.Append(checkpoint.Record{Time: r.now(), Kind: kind, Path: path, Body: raw}); err != nil {
		return &journalError{err}
	}
	return nil
}

// appendNode is append for what one execution of a node did.
func (r *run) appendNode(kind, path string, rec *nodeRecord) error {
	if r.o.Journal == nil {
		return nil
	}
	return r.append(kind, path, rec.body())
}

// journalError is a checkpoint that cannot be written: the run stops there,
// whatever the node's policy says.
type journalError struct{ err error }

func (e *journalError) Error() string { return "write the checkpoint: " + e.err.Error() }
func (e *journalError) Unwrap() error { return e.err }

// nodeRecord is what the journal knows of a finished node.
type nodeRecord struct {
	// result is the body's result; update what was merged where it does not
	// follow from the result.
	result  any
	update  map[string]any
	skipped bool
	failure *tea.Error
	// to is the target of the route that was taken, "" = not decided.
	to string
	// branches are the entries of the fan-out that was taken.
	branches []string
	// iterations of a finished loop, items of a finished map.
	count    int
	fallback bool
	// usage is what the execution has used; in a record where the result does
	// not tell.
	usage flow.Usage
}

func (n *nodeRecord) body() map[string]any {
	m := map[string]any{}
	if n.result != nil {
		m["r"] = n.result
	}
	if n.update != nil {
		m["u"] = n.update
	}
	if n.skipped {
		m["skip"] = true
	}
	if n.failure != nil {
		m["err"] = failureFields(n.failure)
	}
	if n.to != "" {
		m["to"] = n.to
	}
	if n.branches != nil {
		list := make([]any, len(n.branches))
		for i, b := range n.branches {
			list[i] = b
		}
		m["fan"] = list
	}
	if n.count > 0 {
		m["n"] = int64(n.count)
	}
	if n.fallback {
		m["fb"] = true
	}
	if n.usage != impliedUsage(n.result) {
		m["use"] = usageBody(n.usage)
	}
	return m
}

func toNodeRecord(m map[string]any) *nodeRecord {
	n := &nodeRecord{result: m["r"]}
	n.update, _ = m["u"].(map[string]any)
	n.skipped, _ = m["skip"].(bool)
	if fields, ok := m["err"].(map[string]any); ok {
		n.failure = fromFailureFields(fields)
	}
	n.to, _ = m["to"].(string)
	if list, ok := m["fan"].([]any); ok {
		n.branches = []string{}
		for _, b := range list {
			name, _ := b.(string)
			n.branches = append(n.branches, name)
		}
	}
	count, _ := m["n"].(int64)
	n.count = int(count)
	n.fallback, _ = m["fb"].(bool)
	if use, ok := m["use"].(map[string]any); ok {
		n.usage = toUsage(use)
	} else {
		n.usage = impliedUsage(n.result)
	}
	return n
}

// failureFields is an error as the fields a workflow, the journal and the
// events see.
func failureFields(e *tea.Error) map[string]any {
	m := map[string]any{"error": e.Message, "error_type": string(e.Type)}
	if e.Retryable {
		m["retryable"] = true
	}
	if e.Source != "" {
		m["source"] = e.Source
	}
	if len(e.Details) > 0 {
		if details, err := value.From(e.Details); err == nil {
			m["details"] = details
		}
	}
	return m
}

func fromFailureFields(m map[string]any) *tea.Error {
	e := &tea.Error{}
	e.Message, _ = m["error"].(string)
	t, _ := m["error_type"].(string)
	e.Type = tea.ErrorType(t)
	e.Retryable, _ = m["retryable"].(bool)
	e.Source, _ = m["source"].(string)
	e.Details, _ = m["details"].(map[string]any)
	return e
}
