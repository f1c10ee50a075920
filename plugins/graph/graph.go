package graph

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// Graph is an open instance of the bundle. Its methods are the actions. It is safe
// for concurrent use.
type Graph struct {
	db       *database
	settings settings
}

// Close releases the database. The last instance closes it.
func (g *Graph) Close() error { return g.db.release() }

// view is the graph during one call.
type view struct {
	store.Store
	ns   string
	now  int64
	done func()
	// reindexing reports that the stored keys may be of another version.
	reindexing bool
}

// read begins a call that reads a namespace. The caller calls done.
func (g *Graph) read(ctx context.Context, p Namespace) (*view, error) {
	if err := checkName("namespace", p.Namespace); err != nil {
		return nil, err
	}
	s, done, err := g.db.use(ctx)
	if err != nil {
		return nil, err
	}
	return &view{Store: s, ns: p.Namespace, now: time.Now().UnixMicro(), done: done, reindexing: g.db.reindex.running.Load()}, nil
}

// write begins a call that reads and changes a namespace. Only one such call runs at a
// time. The caller calls done.
func (g *Graph) write(ctx context.Context, p Namespace) (*view, error) {
	v, err := g.read(ctx, p)
	if err != nil {
		return nil, err
	}
	g.db.writing.Lock()
	release := v.done
	v.done = func() {
		g.db.writing.Unlock()
		release()
	}
	return v, nil
}

// defaultNamespace is the default of [Namespace].
const defaultNamespace = "default"

// Namespace is a parameter of all actions.
type Namespace struct {
	Namespace string `json:"namespace,omitempty" default:"default" doc:"name of a separate graph in the same database"`
}

const (
	// maxName is the maximum length of a name in bytes.
	maxName = 1024
	// maxItems is the maximum number of items of a call.
	maxItems = 10_000
	// maxRelations is the maximum number of relations that a step of a traversal follows.
	maxRelations = 200_000
	// maxScanned is the maximum number of relations that an algorithm reads.
	maxScanned = 5_000_000
)

// checkName checks an id, a type or a namespace.
func checkName(what, name string) error {
	switch {
	case name == "":
		return tea.Errorf(tea.ValidationError, "%s is empty", what)
	case len(name) > maxName:
		return tea.Errorf(tea.ValidationError, "%s is too long: %d bytes (limit %d)", what, len(name), maxName)
	case !utf8.ValidString(name):
		return tea.Errorf(tea.ValidationError, "%s %q is not valid UTF-8", what, name)
	}
	for _, r := range name {
		switch {
		case r < ' ' || r == utf8.RuneError || r == 0x7f:
			return tea.Errorf(tea.ValidationError, "%s %q has a control character or an invalid one", what, name)
		case isInvisible(r):
			return tea.Errorf(tea.ValidationError, "%s %q has the invisible character %U, with which it looks like another name; remove it", what, name, r)
		}
	}
	return nil
}

// isInvisible reports whether a character is invisible and does not change its neighbors,
// unlike the joiners of emoji and Persian.
func isInvisible(r rune) bool {
	return r == 0xad || r == 0x200b || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2060 && r <= 0x206f || r == 0xfeff
}

// maxDepth is the maximum nesting of lists and objects in a property: CozoDB's JSON
// reader has a limit of 128 for a whole row.
const maxDepth = 100

// checkProperties checks the names of properties and the nesting of their values.
func checkProperties(of string, properties map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if isDeeper(properties[name], maxDepth) {
			return tea.Errorf(tea.ValidationError, "%s has the property %q with more than %d lists and objects in each other; store it as a text", of, name, maxDepth)
		}
		if i := strings.IndexFunc(name, isInvisible); i >= 0 {
			r, _ := utf8.DecodeRuneInString(name[i:])
			return tea.Errorf(tea.ValidationError, "%s has the property %q with the invisible character %U, with which it looks like another one; remove it", of, name, r)
		}
	}
	return nil
}

// isDeeper reports whether lists and objects in a value are nested deeper than depth.
func isDeeper(v any, depth int) bool {
	deeper := func(v any) bool { return isDeeper(v, depth-1) }
	switch v := v.(type) {
	case []any:
		return depth == 0 || slices.ContainsFunc(v, deeper)
	case map[string]any:
		return depth == 0 || slices.ContainsFunc(slices.Collect(maps.Values(v)), deeper)
	}
	return false
}

// checkSource checks the source of a fact, which is one line in texts for models.
func checkSource(source string) error {
	for _, r := range source {
		if r < ' ' || r == utf8.RuneError || r == 0x7f {
			return tea.Errorf(tea.ValidationError, "source %q has a control character or an invalid one", source)
		}
	}
	return nil
}

// toInstant reads a parameter with a time or a date. It returns absent for "".
func toInstant(what, text string, absent int64) (int64, error) {
	at, err := store.ParseInstant(text, absent)
	if err != nil {
		return 0, tea.Errorf(tea.ValidationError, "%s: %w", what, err)
	}
	return at, nil
}
