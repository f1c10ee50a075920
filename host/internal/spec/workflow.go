package spec

import (
	"time"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Names of the pseudo nodes at which every run starts and ends.
const (
	Start = "__start__"
	End   = "__end__"
)

// Workflow is one workflow file with overlays applied, aliases resolved and
// defaults filled in. It is immutable after [Parse].
type Workflow struct {
	// File is the path of the workflow file as the user gave it; relative paths in
	// it are relative to Dir.
	File, Dir string
	// DataDir is the directory for the files that runs write; the host sets it.
	DataDir string
	// Digest identifies the content: hex SHA-256 of the merged document in
	// canonical form, including imports and subgraphs, without comments.
	Digest string

	Name, Description, Version string

	Schema       []Key
	InitialState map[string]any
	Variables    map[string]any
	// Settings are expanded: ${VAR} and ${VAR:-default} are replaced by text, which
	// the host converts to the type in the setting's schema.
	Settings map[string]any
	// SettingsText is the settings as written; nil if there are none.
	SettingsText *Tree
	Imports      []Import
	Nodes        []*Node
	Edges        []*Edge
	Config       Config
	Errors       ErrorPolicy
	Budget       Budget
	// Queues are the task queues of actions, by action, BUNDLE.* or *.
	Queues map[string]Queue
	// Serve is nil if the file has no such section.
	Serve *Serve
}

// Node returns a top-level node by name, or nil.
func (w *Workflow) Node(name string) *Node {
	for _, n := range w.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// Key is one entry of state_schema.
type Key struct {
	diag.Pos
	Name        string
	Type        Type
	Default     any
	HasDefault  bool
	Required    bool
	Reducer     Reducer
	Description string
}

// Type is a key's type in its canonical spelling.
type Type string

// The types of state keys. TypeFloat accepts integers too.
const (
	TypeString Type = "str"
	TypeInt    Type = "int"
	TypeFloat  Type = "float"
	TypeBool   Type = "bool"
	TypeList   Type = "list"
	TypeDict   Type = "dict"
	TypeAny    Type = "any"
)

// Reducer determines how an update is combined with the current value.
type Reducer string

// The reducers; ReduceReplace is the default.
const (
	ReduceReplace Reducer = ""
	ReduceAppend  Reducer = "append"
	ReduceExtend  Reducer = "extend"
	ReduceMerge   Reducer = "merge"
	ReduceAdd     Reducer = "add"
	ReduceUnion   Reducer = "union"
	ReduceMax     Reducer = "max"
	ReduceMin     Reducer = "min"
)

// ImportKind is the kind of thing that is imported.
type ImportKind string

// The kinds of import.
const (
	ImportPath    ImportKind = "path"
	ImportBuiltin ImportKind = "builtin"
	ImportPlugin  ImportKind = "plugin"
)

// Import is one entry of imports.
type Import struct {
	diag.Pos
	Kind ImportKind
	// Name is the path as written, the builtin set or the plugin.
	Name string
	// Path is the file of a path import.
	Path string
	// Version is the constraint of a plugin import, "" for any.
	Version   string
	Namespace string
	// Code is the text of the module of a path import, read with the workflow, so
	// that the digest covers the code that runs.
	Code []byte
}

// Config is the config section.
type Config struct {
	InterruptBefore, InterruptAfter []Text
	MaxSteps, MaxItems              int
	Timeout                         time.Duration
	// MaxConcurrency bounds the branches that run concurrently; 0 = not set.
	MaxConcurrency int
	Parallel       *Parallel
}

// DefaultMaxSteps ends runs that loop by mistake.
const DefaultMaxSteps = 1000

// DefaultMaxItems bounds the branches of a map, and thereby its memory.
const DefaultMaxItems = 100_000

// DefaultMapConcurrency bounds the items of a map that run concurrently, and
// thereby its memory, if there is no other bound.
const DefaultMapConcurrency = 64

// Budget has the limits of one run; 0 = no limit.
type Budget struct {
	Steps     int
	Duration  time.Duration
	Tokens    int64
	USD       float64
	ToolCalls int
}

// OnError is the effect of a failure after the retries.
type OnError string

// The effects of a failure. OnErrorCheckpoint is OnErrorStop with a guaranteed
// checkpoint.
const (
	OnErrorDefault    OnError = ""
	OnErrorStop       OnError = "stop"
	OnErrorCheckpoint OnError = "checkpoint_and_exit"
	OnErrorContinue   OnError = "continue"
	OnErrorFallback   OnError = "fallback"
)

// Retry is a retry policy. A nil pointer means that the file does not set the
// field; a node then inherits it.
type Retry struct {
	diag.Pos
	MaxRetries *int
	Base, Max  *time.Duration
	Multiplier *float64
	// Jitter is the random share of the wait, 0 to 1; true in a file is 0.5.
	Jitter *float64
	// RetryAfterMax is the longest wait that a failure can ask for.
	RetryAfterMax *time.Duration
	// Timeout limits all attempts and waits together.
	Timeout *time.Duration
	// RetryOn are the error types to retry; empty = errors marked as retryable.
	RetryOn []string
}

// ErrorPolicy is the error_policy section.
type ErrorPolicy struct {
	Retry
	OnFailure OnError
}

// Parallel is config.parallel or a node's parallel: how branches run.
type Parallel struct {
	diag.Pos
	Timeout        time.Duration
	FailFast       *bool
	MaxConcurrency int
	// Retry repeats a whole branch.
	Retry   *Retry
	Breaker *Breaker
}

// Breaker is a circuit breaker for the branches of one fan-out, kept per
// branch entry over the whole run.
type Breaker struct {
	FailureThreshold int
	ResetTimeout     time.Duration
	HalfOpenMaxCalls int
}
