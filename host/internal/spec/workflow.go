package spec

import (
	"time"

	"github.com/the-edge-agent/tea/sdk/diag"
)

// Names of the pseudo nodes at which every run starts and ends.
const (
	Start = "__start__"
	End   = "__end__"
)

// Workflow is one workflow file, overlays applied, aliases resolved,
// defaults filled in. It is immutable after [Parse].
type Workflow struct {
	// File is the path of the workflow file as the user gave it; Dir is the
	// directory that relative paths in it start from.
	File, Dir string
	// Digest identifies the content: hex SHA-256 of the merged document in
	// canonical form, imports and subgraphs included, comments not.
	Digest string

	Name, Description, Version string

	Schema       []Key
	InitialState map[string]any
	Variables    map[string]any
	// Settings are expanded: ${VAR} and ${VAR:-default} are replaced. What they
	// give is text; the host makes it the type that its reader wants before
	// anything else sees it.
	Settings map[string]any
	// SettingsText is the settings as written; nil where there are none.
	SettingsText *Tree
	Imports      []Import
	Nodes        []*Node
	Edges        []*Edge
	Config       Config
	Errors       ErrorPolicy
	Budget       Budget
}

// Node finds a top-level node by name; nil where there is none.
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

// Reducer says how an update meets the value that is there.
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

// ImportKind says what an import brings in.
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
	// Name is the path as it is written, the builtin set or the plugin.
	Name string
	// Path is the file of a path import.
	Path string
	// Version is the constraint of a plugin import, "" for any.
	Version   string
	Namespace string
	// Code is the text of the module of a path import, as it was when the
	// workflow was read: what runs is what the digest covers.
	Code []byte
}

// Config is the config section.
type Config struct {
	InterruptBefore, InterruptAfter []Text
	MaxSteps, MaxItems              int
	Timeout                         time.Duration
	// MaxConcurrency bounds the branches that run at once; 0 = no bound given.
	MaxConcurrency int
	Parallel       *Parallel
}

// DefaultMaxSteps ends runs that loop by mistake.
const DefaultMaxSteps = 1000

// DefaultMaxItems bounds the branches of a map, and with them its memory.
const DefaultMaxItems = 100_000

// Budget holds the limits for one run; 0 = no limit.
type Budget struct {
	Steps     int
	Duration  time.Duration
	Tokens    int64
	USD       float64
	ToolCalls int
}
