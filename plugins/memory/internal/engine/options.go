package engine

import (
	"log/slog"
	"runtime"
	"time"
)

// Options configure an Engine. Dir and Driver are required.
type Options struct {
	// Dir is the folder of the database. The engine creates and locks it.
	Dir    string
	Driver Driver
	Limits Limits
	// LockTimeout bounds the wait for another process that has locked the folder.
	LockTimeout time.Duration
	// ReadOnly is the reason why the database is opened for reading only; "" = it
	// is opened for writing. If set, nothing in Dir is written except the lock file
	// where that is possible.
	ReadOnly string
	// Warmup opens the database in Open rather than at the first call.
	Warmup bool
	Logger *slog.Logger
	// Overrun, if set, is called when a query of a workflow cannot be stopped. A
	// process that can be replaced should then end, soon if the memory of the query
	// grows.
	Overrun func(growing bool)
}

// Limits bound the resources of a database. Zero values are replaced by small
// defaults that depend on the machine.
type Limits struct {
	// Connections is the number of connections for reading; default 5.
	Connections int
	// Threads is the number of the database's threads; default the number of
	// processors, at most 4.
	Threads int
	// MemoryBytes bounds the database's buffers; default an eighth of the available
	// memory, from 64 MiB to 1 GiB.
	MemoryBytes int64
	// SpillDir is the folder for data that does not fit into memory; default
	// "spill" in Dir.
	SpillDir string
	// AllowedDir is the only folder that the database itself can read and write;
	// default "tables" in Dir.
	AllowedDir string
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
