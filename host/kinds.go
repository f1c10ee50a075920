package host

import (
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/engine"
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

// The kinds of interrupts.
const (
	InterruptBefore = engine.InterruptBefore
	InterruptAfter  = engine.InterruptAfter
	InterruptAsk    = engine.InterruptAsk
)

// ParseDurability gives the durability of that name. The error lists the names.
func ParseDurability(name string) (Durability, error) { return checkpoint.ParseDurability(name) }
