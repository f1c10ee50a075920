package jsonschema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Schema is a compiled schema. It is immutable and safe for concurrent use.
type Schema struct {
	root *node
	// tracks reports whether some keyword depends on the members or items that
	// others have checked (unevaluatedProperties, unevaluatedItems).
	tracks bool
}

// Problem is one violation.
type Problem struct {
	// Path is the place, such as items[3].name; empty is the value itself.
	Path string `json:"path" doc:"the place, such as items[3].name; empty is the value itself"`
	// Message describes what was expected and the actual value.
	Message string `json:"message" doc:"what was expected and what is there"`
	// Kind and Member identify a missing or an unknown member.
	Kind   Kind   `json:"-"`
	Member string `json:"-"`
	// Wanted is Message without the value itself, which can be secret.
	Wanted string `json:"-"`
	// Hint is the part of Message that suggests another name or value, if any. The hint
	// for a missing member is not part of Message.
	Hint string `json:"-"`
}

// Kind is the kind of a [Problem], for callers that handle some kinds
// specially.
type Kind int

// The kinds. Member is the name of a missing or an unknown member; the path is the object's
// for a missing member, the member's for an unknown one.
const (
	Misfit Kind = iota
	MissingMember
	UnknownMember
)

// Error returns the problem on one line.
func (p Problem) Error() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// Join returns problems on one line, at most ten of them.
func Join(problems []Problem) string {
	const shown = 10
	texts := make([]string, 0, shown+1)
	for i, p := range problems {
		if i == shown {
			texts = append(texts, fmt.Sprintf("%d more", len(problems)-shown))
			break
		}
		texts = append(texts, p.Error())
	}
	return strings.Join(texts, "; ")
}

// Describe returns problems as a text that follows the name of something with named parts:
// ` needs the parameter "url"; has no parameter "retrys"; did you mean "retries"?`. what is
// the word for a part. At most ten problems are described.
func Describe(problems []Problem, what string) string {
	const shown = 10
	var b strings.Builder
	for i, p := range problems {
		if i > 0 {
			b.WriteByte(';')
		}
		switch {
		case i == shown:
			fmt.Fprintf(&b, " and %d more problems", len(problems)-shown)
			return b.String()
		case p.Kind == MissingMember:
			fmt.Fprintf(&b, " needs the %s %q", what, diag.Key(p.Path, p.Member))
			if p.Hint != "" {
				b.WriteString("; " + p.Hint)
			}
		case p.Kind == UnknownMember:
			fmt.Fprintf(&b, " has no %s %q", what, p.Path)
			if p.Hint != "" {
				b.WriteString("; " + p.Hint)
			}
		default:
			if i == 0 {
				b.WriteByte(':')
			}
			if p.Path == "" {
				fmt.Fprintf(&b, " the %ss: %s", what, p.Message)
			} else {
				fmt.Fprintf(&b, " %s %q: %s", what, p.Path, p.Message)
			}
		}
	}
	return b.String()
}

// Error is a mistake in a schema.
type Error struct {
	// Path is the place in the schema, such as properties.age.minimum.
	Path    string
	Message string
}

func (e *Error) Error() string {
	if e.Path == "" {
		return "schema: " + e.Message
	}
	return fmt.Sprintf("schema at %s: %s", e.Path, e.Message)
}

// Compile compiles a schema: an object or a bool of the value model, or anything that marshals
// to one, such as a *schema.Schema. A mistake in it is an [*Error]. The result can share parts
// of the schema, which must not be changed afterwards.
func Compile(schema any) (compiled *Schema, err error) {
	switch schema.(type) {
	case bool, map[string]any:
	default:
		model, err := value.From(schema)
		if err != nil {
			return nil, fmt.Errorf("read schema: %w", err)
		}
		schema = model
	}
	defer catch(&err)
	c := &compiler{document: newDocument(schema), nodes: map[string]*node{}}
	return c.compile(), nil
}

// catch recovers the mistake with which the compiler panics.
func catch(err *error) {
	switch p := recover().(type) {
	case nil:
	case *Error:
		*err = p
	default:
		panic(p)
	}
}

// Validate returns every violation in v, ordered by keyword and member name; nil if v is
// valid. v must be in the value model and is not changed.
func (s *Schema) Validate(v any) []Problem {
	return s.run(v, nil)
}

// ValidateTemplated is [Schema.Validate] for a value with unevaluated templates. isTemplate
// reports whether there is a template at a path in the form of [Problem.Path]. A template, and
// whatever depends on it, counts as valid.
func (s *Schema) ValidateTemplated(v any, isTemplate func(path string) bool) []Problem {
	return s.run(v, isTemplate)
}

func (s *Schema) run(v any, isTemplate func(path string) bool) []Problem {
	r := &run{tracks: s.tracks, isTemplate: isTemplate, value: v, steps: baseSteps + stepsPerValue*value.Size(v)}
	r.validate(s.root, v, nil, nil)
	seen := map[Problem]bool{}
	problems := slices.DeleteFunc(r.problems, func(p Problem) bool {
		again := seen[p]
		seen[p] = true
		return again
	})
	if r.stopped != "" {
		problems = append(problems, Problem{Message: r.stopped})
	}
	return problems
}

// node is one compiled subschema. Groups of keywords that do not occur are nil.
type node struct {
	pointer  string
	resource *resource

	never bool // the schema false
	// fallback is the default, if there is one; example is the first example that
	// is a text.
	fallback    any
	hasFallback bool
	example     string
	ref         *node
	dynamic     *dynamicRef
	types       []string
	enum        *enumRule
	number      *numberRules
	text        *textRules
	object      *objectRules
	array       *arrayRules
	logic       *logicRules
}

// dynamicRef is a $dynamicRef: target or, if name is not empty, the outermost node in scope
// with the $dynamicAnchor name.
type dynamicRef struct {
	target *node
	name   string
}

// resource is a part of the document with an $id; the root is a resource too.
type resource struct {
	uri     string
	dynamic map[string]*node
}

// sortedKeys returns the keys of m in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
