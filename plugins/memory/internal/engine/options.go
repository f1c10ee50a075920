package engine

import (
	"log/slog"
	"runtime"
	"time"
)

// Options configure an Engine. Only Dir and Driver are needed.
type Options struct {
	// Dir is the folder of the database. The engine makes it and owns it.
	Dir    string
	Driver Driver
	Limits Limits
	// LockTimeout is how long to wait for another process that has the folder.
	LockTimeout time.Duration
	// ReadOnly says why the database is opened for reading only; "" = it is not.
	// Nothing in Dir is written then, except the lock file where that is possible.
	ReadOnly string
	// Warmup opens the database in Open rather than at the first call.
	Warmup bool
	Logger *slog.Logger
	// Overrun, if set, is called when a query from outside cannot be stopped. A
	// process that can be replaced ends then.
	Overrun func()
}

// Limits bound what a database uses. Zero values are replaced by defaults
// that are small and follow the machine.
type Limits struct {
	// Connections that read at the same time; default 5.
	Connections int
	// Threads of the database; default the processors, at most 4.
	Threads int
	// MemoryBytes of the database's own buffers; default an eighth of what the
	// process may have, from 64 MiB to 1 GiB.
	MemoryBytes int64
	// SpillDir takes what does not fit into memory; default "spill" in Dir.
	SpillDir string
	// Reach is a folder whose files the database itself may read and write;
	// default "tables" in Dir.
	Reach string
}

const (
	defaultConnections = 5
	maxThreads         = 4
	minMemory          = 64 << 20
	maxMemory          = 1 << 30
	memoryShare        = 8
)

func (l Limits) withDefaults() Limits {
	if l.Connections <= 0 {
		l.Connections = defaultConnections
	}
	if l.Threads <= 0 {
		l.Threads = min(runtime.GOMAXPROCS(0), maxThreads)
	}
	if l.MemoryBytes <= 0 {
		l.MemoryBytes = min(max(availableMemory()/memoryShare, minMemory), maxMemory)
	}
	return l
}
