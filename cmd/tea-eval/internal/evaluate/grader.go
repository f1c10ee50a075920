package evaluate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/confine"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

// grader decides whether the result of a run is good.
type grader struct {
	name, kind string
	pos        string
	// path and want select a part of the state and of what is expected.
	path, want string
	// threshold is the least share of good results; -1 = none.
	threshold float64
	check     checker
	judge     *judge
	program   *program
}

// verdict is the decision of a grader.
type verdict struct {
	Pass   bool   `json:"pass"`
	Reason string `json:"reason,omitempty"`
}

// checker grades a result. An error means that it has no grade.
type checker func(ctx context.Context, e *evidence) (verdict, error)

// evidence is the result of a run for a grader.
type evidence struct {
	c   *Case
	run *record
	// output and expected are what the paths of the grader select.
	output, expected any
	judged           *record // the use of models by judges is added to it
}

// decoders decode the argument of each kind of grader.
func decoders() map[string]func(f *File, g *grader, n *yaml.Node) error {
	return map[string]func(f *File, g *grader, n *yaml.Node) error{
		"equal": decodeEqual, "contains": decodeContains, "regex": decodeRegex, "json_schema": decodeSchema, "number": decodeNumber,
		"tools": decodeTools, "steps": decodeMost, "cost": decodeMost, "duration": decodeMost,
		"jmespath": decodeJMESPath, "lua": decodeLua, "judge": decodeJudge,
	}
}

func (f *File) decodeGraders(root, list *yaml.Node) error {
	if list == nil || list.Kind != yaml.SequenceNode || len(list.Content) == 0 {
		return f.Failf(root, "no list of graders, such as graders: [{equal: }]")
	}
	own, names := false, map[string]bool{}
	for _, n := range list.Content {
		g := &grader{pos: f.Pos(n).String(), path: f.output, threshold: -1}
		var decode func(*yaml.Node) error
		var arg *yaml.Node
		fields := map[string]any{"name": &g.name, "value": &g.path, "expected": &g.want, "threshold": share{f, &g.threshold}.decode}
		for kind, d := range decoders() {
			fields[kind] = func(n *yaml.Node) error {
				if g.kind != "" {
					return f.Failf(n, "a grader has one kind, and this one has %s and %s; write two graders", g.kind, kind)
				}
				g.kind, arg, decode = kind, n, func(n *yaml.Node) error { return d(f, g, n) }
				return nil
			}
		}
		if err := f.Fields(n, fields); err != nil {
			return err
		}
		own = own || g.threshold >= 0
		if g.kind == "" {
			return f.Failf(n, "the grader has no kind; use one of %s", strings.Join(slices.Sorted(maps.Keys(decoders())), ", "))
		}
		if g.name == "" {
			g.name = g.kind
		}
		if names[g.name] {
			return f.Failf(n, "the grader name %q is already used; add a name", g.name)
		}
		names[g.name] = true
		if err := decode(arg); err != nil {
			return err
		}
		f.graders = append(f.graders, g)
	}
	if f.Threshold < 0 && !own {
		f.Threshold = 1
	}
	return nil
}

// grade returns the verdict of the grader on a run that is done.
func (g *grader) grade(ctx context.Context, e evidence) (verdict, error) {
	var ok bool
	if e.output, ok = at(map[string]any(e.run.State), g.path); !ok {
		return verdict{Reason: "the state has no " + g.path}, nil
	}
	if e.expected, ok = at(e.c.Expected, g.want); !ok {
		return verdict{}, fmt.Errorf("the case has no expected.%s", g.want)
	}
	return g.check(ctx, &e)
}

// at returns the part of a value that a path such as items.0.name selects.
func at(v any, path string) (any, bool) {
	if path == "" {
		return v, true
	}
	for name := range strings.SplitSeq(path, ".") {
		ok := false
		switch container := v.(type) {
		case map[string]any:
			v, ok = container[name]
		case []any:
			i, err := strconv.Atoi(name)
			if ok = err == nil && i >= 0 && i < len(container); ok {
				v = container[i]
			}
		}
		if !ok {
			return nil, false
		}
	}
	return v, true
}

// decide returns a verdict with a reason if it is not good.
func decide(good bool, format string, args ...any) (verdict, error) {
	if good {
		return verdict{Pass: true}, nil
	}
	return verdict{Reason: fmt.Sprintf(format, args...)}, nil
}

// argument decodes an argument that stands for what the case expects if it is null.
func (f *File) argument(n *yaml.Node) (func(e *evidence) (any, error), error) {
	v, err := f.Value(n)
	return func(e *evidence) (any, error) {
		switch {
		case v != nil:
			return v, nil
		case e.expected == nil:
			return nil, errors.New("the case has no expected value")
		}
		return e.expected, nil
	}, err
}

func decodeEqual(f *File, g *grader, n *yaml.Node) error {
	want, err := f.argument(n)
	g.check = func(_ context.Context, e *evidence) (verdict, error) {
		v, err := want(e)
		if err != nil {
			return verdict{}, err
		}
		return decide(value.Equal(v, e.output), "want %s, got %s", value.Brief(v), value.Brief(e.output))
	}
	return err
}

// decodeContains decodes a text, or a list of texts that must all be contained.
func decodeContains(f *File, g *grader, n *yaml.Node) error {
	want, err := f.argument(n)
	g.check = func(_ context.Context, e *evidence) (verdict, error) {
		v, err := want(e)
		if err != nil {
			return verdict{}, err
		}
		list, several := v.([]any)
		if !several {
			list = []any{v}
		}
		for _, part := range list {
			text, ok := part.(string)
			if !ok {
				return verdict{}, fmt.Errorf("contains: expected a text or a list of texts, got %s", value.TypeName(part))
			}
			if !strings.Contains(asText(e.output), text) {
				return decide(false, "%s does not contain %q", value.Brief(e.output), text)
			}
		}
		return decide(true, "")
	}
	return err
}

// asText returns a text as it is, and other values as JSON.
func asText(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	raw, err := value.Encode(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

func decodeRegex(f *File, g *grader, n *yaml.Node) error {
	pattern, err := regexp.Compile(n.Value)
	if err == nil && n.Value == "" {
		err = errors.New("regex: expected a regular expression")
	}
	if err != nil {
		return f.Failf(n, "%w", err)
	}
	g.check = func(_ context.Context, e *evidence) (verdict, error) {
		return decide(pattern.MatchString(asText(e.output)), "%s does not match", value.Brief(e.output))
	}
	return nil
}

// decodeSchema decodes a JSON Schema, or the name of its file.
func decodeSchema(f *File, g *grader, n *yaml.Node) error {
	raw, err := f.Value(n)
	if file, ok := raw.(string); ok {
		var data []byte
		if data, err = confine.ReadRegular(f.Resolve(file), mostBytes); err == nil {
			raw, err = value.Decode(data)
		}
	}
	if err != nil {
		return f.Failf(n, "%w", err)
	}
	schema, err := jsonschema.Compile(raw)
	if err != nil {
		return f.Failf(n, "%w", err)
	}
	g.check = func(_ context.Context, e *evidence) (verdict, error) {
		problems := schema.Validate(e.output)
		return decide(len(problems) == 0, "%s", jsonschema.Join(problems))
	}
	return nil
}

// decodeNumber decodes the tolerances of a number. The larger one counts.
func decodeNumber(f *File, g *grader, n *yaml.Node) error {
	var absolute, relative float64
	err := f.Fields(n, map[string]any{"absolute": &absolute, "relative": &relative})
	if err == nil && !(absolute >= 0 && relative >= 0) {
		err = f.Failf(n, "number: expected tolerances from 0")
	}
	g.check = func(_ context.Context, e *evidence) (verdict, error) {
		want, ok := value.Float(e.expected)
		if !ok {
			return verdict{}, fmt.Errorf("number: the case expects %s, not a number", value.TypeName(e.expected))
		}
		got, ok := value.Float(e.output)
		if !ok {
			return decide(false, "want a number, got %s", value.Brief(e.output))
		}
		return decide(math.Abs(got-want) <= max(absolute, relative*math.Abs(want)), "want %v, got %v", want, got)
	}
	return err
}

// decodeMost decodes the limit of steps, cost or duration.
func decodeMost(f *File, g *grader, n *yaml.Node) error {
	var most float64
	var err error
	if g.kind == "duration" {
		var limit time.Duration
		limit, err = time.ParseDuration(n.Value)
		most = limit.Seconds()
	} else {
		err = f.Into(n, &most)
	}
	if err == nil && (!(most >= 0) || n.Tag == "!!null") {
		err = fmt.Errorf("expected a number from 0, or for duration a text such as 30s")
	}
	if err != nil {
		err = f.Failf(n, "%s: %w", g.kind, err)
	}
	kind := g.kind
	g.check = func(_ context.Context, e *evidence) (verdict, error) {
		got := map[string]float64{"steps": float64(e.run.Usage.Steps), "cost": e.run.Usage.USD, "duration": e.run.Seconds}[kind]
		return decide(got <= most, "%s: %v is above %v", kind, got, most)
	}
	return err
}

// call is a call of an action.
type call struct {
	Name      string `json:"name"`
	Arguments any    `json:"arguments,omitempty"`
}

// decodeTools decodes a list of calls: names of actions, or objects with name and arguments.
// With in_order, the calls are made in this order; with only, there are no others.
func decodeTools(f *File, g *grader, n *yaml.Node) error {
	calls := n
	var inOrder, only bool
	if n.Kind == yaml.MappingNode {
		calls = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
		if err := f.Fields(n, map[string]any{"calls": &calls, "in_order": &inOrder, "only": &only}); err != nil {
			return err
		}
	}
	want, err := f.argument(calls)
	if err != nil {
		return err
	}
	if v, _ := f.Value(calls); v != nil {
		if _, err := asCalls(v); err != nil {
			return f.Failf(calls, "%w", err)
		}
	}
	g.check = func(_ context.Context, e *evidence) (verdict, error) {
		v, err := want(e)
		if err != nil {
			return verdict{}, err
		}
		list, err := asCalls(v)
		if err != nil {
			return verdict{}, err
		}
		return checkCalls(list, e.run.Calls, inOrder, only)
	}
	return nil
}

func asCalls(v any) ([]call, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("tools: expected a list of calls, got %s", value.TypeName(v))
	}
	var calls []call
	for _, item := range list {
		c := call{}
		switch item := item.(type) {
		case string:
			c.Name = item
		case map[string]any:
			c.Name, _ = item["name"].(string)
			c.Arguments = item["arguments"]
		}
		if c.Name == "" {
			return nil, errors.New("tools: a call is the name of an action, or {name: NAME, arguments: {...}}")
		}
		calls = append(calls, c)
	}
	return calls, nil
}

func checkCalls(want, got []call, inOrder, only bool) (verdict, error) {
	matches := func(w, c call) bool {
		return c.Name == w.Name && (w.Arguments == nil || includes(w.Arguments, c.Arguments))
	}
	left := slices.Clone(got)
	if inOrder {
		for _, w := range want {
			i := slices.IndexFunc(left, func(c call) bool { return matches(w, c) })
			if i < 0 || only && i > 0 {
				return decide(false, "no call of %s at this place; the calls are %s", showCalls([]call{w}), showCalls(got))
			}
			left = left[i+1:]
		}
		return decide(!only || len(left) == 0, "unexpected calls of %s", showCalls(left))
	}
	// An augmenting path gives each expected call one of its own (Kuhn 1955).
	owner := make([]int, len(got))
	var assign func(w int, seen []bool) bool
	assign = func(w int, seen []bool) bool {
		for i, c := range got {
			if seen[i] || !matches(want[w], c) {
				continue
			}
			seen[i] = true
			if owner[i] == 0 || assign(owner[i]-1, seen) {
				owner[i] = w + 1
				return true
			}
		}
		return false
	}
	for w := range want {
		if !assign(w, make([]bool, len(got))) {
			return decide(false, "no call of %s; the calls are %s", showCalls(want[w:w+1]), showCalls(got))
		}
	}
	left = nil
	for i, c := range got {
		if owner[i] == 0 {
			left = append(left, c)
		}
	}
	return decide(!only || len(left) == 0, "unexpected calls of %s", showCalls(left))
}

func showCalls(calls []call) string {
	if len(calls) == 0 {
		return "none"
	}
	var parts []string
	for _, c := range calls {
		text := c.Name
		if c.Arguments != nil {
			text += " " + value.Brief(c.Arguments)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// includes reports whether got has what want has; objects can have more members.
func includes(want, got any) bool {
	object, ok := want.(map[string]any)
	if !ok {
		return value.Equal(want, got)
	}
	other, ok := got.(map[string]any)
	for name, v := range object {
		member, has := other[name]
		ok = ok && has && includes(v, member)
	}
	return ok
}
