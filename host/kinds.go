package host

import (
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/engine"
	"github.com/the-edge-agent/tea/host/internal/state"
)

// What a run comes to; see package engine for the fields' meaning.
type (
	// Result is what came of a run.
	Result = engine.Result
	// Failure is a node or branch that failed on the way.
	Failure = engine.Failure
	// Usage counts against the budget.
	Usage = engine.Usage
	// BranchOutcome is how a branch ended.
	BranchOutcome = engine.BranchOutcome
	// Callbacks are called while a run goes on.
	Callbacks = engine.Callbacks
)

// Why a run did not begin, or ended early.
type (
	// InputError is input that does not fit the state schema.
	InputError = state.InputError
	// NodeError is the failure of a node that ended a run.
	NodeError = engine.NodeError
	// BudgetError is a limit of the budget that a run has reached.
	BudgetError = engine.BudgetError
)

// Status is how a run stands.
type Status = engine.Status

// The statuses of a run.
const (
	Running = engine.Running
	Waiting = engine.Waiting
	Failed  = engine.Failed
	Stopped = engine.Stopped
	Done    = engine.Done
)

type (
	// Event is one thing that happened in a run.
	Event = engine.Event
	// EventType says what happened.
	EventType = engine.EventType
)

// The types of events.
const (
	EventRunStart    = engine.EventRunStart
	EventNodeStart   = engine.EventNodeStart
	EventNodeEnd     = engine.EventNodeEnd
	EventNodeError   = engine.EventNodeError
	EventRetry       = engine.EventRetry
	EventBranchStart = engine.EventBranchStart
	EventBranchEnd   = engine.EventBranchEnd
	EventLoop        = engine.EventLoop
	EventToken       = engine.EventToken
	EventLog         = engine.EventLog
	EventInterrupt   = engine.EventInterrupt
	EventCheckpoint  = engine.EventCheckpoint
	EventRunEnd      = engine.EventRunEnd
)

type (
	// Interrupt is a place where a run waits for somebody.
	Interrupt = engine.Interrupt
	// InterruptKind says why a run waits.
	InterruptKind = engine.InterruptKind
)

// The kinds of interrupts.
const (
	InterruptBefore = engine.InterruptBefore
	InterruptAfter  = engine.InterruptAfter
	InterruptAsk    = engine.InterruptAsk
)

// ErrNobody is what RunOptions.Ask gives where nobody is there to answer: the
// run stops at the interrupt, to be resumed.
var ErrNobody = engine.ErrNobody

// Durability says when a run's records reach the disk.
type Durability = checkpoint.Durability

// The durabilities; see docs/guide/checkpoints.md.
const (
	DurabilityExit  = checkpoint.DurabilityExit
	DurabilitySync  = checkpoint.DurabilitySync
	DurabilityAsync = checkpoint.DurabilityAsync
	DurabilityOff   = checkpoint.DurabilityOff
)

// ParseDurability gives the durability of that name. The error lists the names.
func ParseDurability(name string) (Durability, error) { return checkpoint.ParseDurability(name) }
