package evaluate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/the-edge-agent/tea/cmd/internal/yamlfile"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/confine"
)

// File is an evaluation.
type File struct {
	yamlfile.File
	Variants []Variant
	Cases    []Case
	graders  []*grader
	Repeats  int
	Parallel int
	Timeout  time.Duration
	Budget   Budget
	// Threshold is the least share of cases that pass, for each variant.
	Threshold float64
	// Cache reports whether the results of runs are kept and used again.
	Cache bool
	// Depends are files whose contents are part of the version of the workflows.
	Depends []string
	DryRun  bool
	Seed    uint64

	output string            // the path of the output in the state
	ids    map[string]string // positions of the cases by id
}

// Variant is a workflow with its settings and input.
type Variant struct {
	Name     string
	Workflow string
	Overlays []string
	Settings map[string]any
	Input    map[string]any
}

// Budget limits an evaluation; 0 is no limit.
type Budget struct {
	USD     float64
	Tokens  int64
	Seconds float64
}

const (
	// mostBytes is the maximum size of a file.
	mostBytes = 64 << 20
	// mostRuns is the maximum number of runs.
	mostRuns = 1_000_000
)

// Load reads an evaluation with its cases. Its errors have a position.
func Load(name string) (*File, error) {
	data, err := confine.ReadRegular(name, mostBytes)
	if err != nil {
		return nil, err
	}
	root, err := yamlfile.Parse(data)
	switch {
	case errors.Is(err, yamlfile.ErrEmpty):
		return nil, fmt.Errorf("%s: %w", name, err)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	f := &File{File: yamlfile.File(name), Repeats: 1, Parallel: 4, Threshold: -1, Cache: true, ids: map[string]string{}}
	return f, f.decode(root)
}

func (f *File) decode(root *yaml.Node) error {
	var base Variant
	var cases, variants, graders *yaml.Node
	fields := map[string]any{
		"cases": &cases, "variants": &variants, "graders": &graders, "output": &f.output, "repeats": &f.Repeats, "parallel": &f.Parallel,
		"timeout": &f.Timeout, "threshold": share{f, &f.Threshold}.decode, "cache": &f.Cache, "depends": &f.Depends, "dry_run": &f.DryRun, "seed": &f.Seed,
		"budget": func(n *yaml.Node) error {
			return f.Fields(n, map[string]any{"usd": &f.Budget.USD, "tokens": &f.Budget.Tokens, "seconds": &f.Budget.Seconds})
		},
	}
	maps.Copy(fields, base.fields())
	if err := f.Fields(root, fields); err != nil {
		return err
	}
	switch {
	case f.Repeats < 1 || f.Parallel < 1 || f.Parallel > 256:
		return f.Failf(root, "expected repeats from 1, and parallel from 1 to 256")
	case f.Budget.USD < 0 || f.Budget.Tokens < 0 || f.Budget.Seconds < 0:
		return f.Failf(root, "budget: expected numbers from 0")
	case cases == nil:
		return f.Failf(root, "no cases: name a file, or write a list")
	}
	for i := range f.Depends {
		f.Depends[i] = f.Resolve(f.Depends[i])
	}
	if err := f.decodeVariants(base, root, variants); err != nil {
		return err
	}
	if err := f.decodeCases(cases); err != nil {
		return err
	}
	if f.Repeats > mostRuns/len(f.Cases)/len(f.Variants) {
		return f.Failf(root, "too many runs (limit %d)", mostRuns)
	}
	return f.decodeGraders(root, graders)
}

// fields returns the keys of a variant for [yamlfile.File.Fields].
func (v *Variant) fields() map[string]any {
	return map[string]any{"workflow": &v.Workflow, "overlays": &v.Overlays, "settings": &v.Settings, "input": &v.Input}
}

// decodeVariants decodes the variants, which inherit from base.
func (f *File) decodeVariants(base Variant, root, list *yaml.Node) error {
	base.Name = "workflow"
	nodes := []*yaml.Node{root}
	if list != nil {
		if nodes = list.Content; list.Kind != yaml.SequenceNode || len(nodes) < 1 || len(nodes) > 2 {
			return f.Failf(list, "variants: expected a list of one or two")
		}
	}
	for i, n := range nodes {
		v := Variant{Name: fmt.Sprintf("variant %d", i+1)}
		if list == nil {
			v = base
		} else {
			fields := v.fields()
			fields["name"] = &v.Name
			if err := f.Fields(n, fields); err != nil {
				return err
			}
			v.Workflow = cmp.Or(v.Workflow, base.Workflow)
			v.Settings, v.Input = value.Merge(base.Settings, v.Settings), value.Merge(base.Input, v.Input)
			if v.Overlays == nil {
				v.Overlays = slices.Clone(base.Overlays)
			}
		}
		if i > 0 && v.Name == f.Variants[0].Name {
			return f.Failf(n, "the variant name %q is already used; rename one of them", v.Name)
		}
		if v.Workflow == "" {
			return f.Failf(n, "no workflow: name the file of the workflow to evaluate")
		}
		v.Workflow = f.Resolve(v.Workflow)
		for i := range v.Overlays {
			v.Overlays[i] = f.Resolve(v.Overlays[i])
		}
		f.Variants = append(f.Variants, v)
	}
	return nil
}

// share is a number from 0 to 1 in a file.
type share struct {
	f  *File
	to *float64
}

func (s share) decode(n *yaml.Node) error {
	if err := s.f.Into(n, s.to); err != nil {
		return err
	}
	if !(*s.to >= 0 && *s.to <= 1) {
		return s.f.Failf(n, "expected a number from 0 to 1, such as 0.9")
	}
	return nil
}

// objects calls add for the objects of a list, or of the file that the node names, with
// their positions.
func (f *File) objects(n *yaml.Node, add func(pos string, i int, fields map[string]any) error) error {
	if n.Kind != yaml.SequenceNode {
		return eachLine(f.Resolve(n.Value), add)
	}
	for i, item := range n.Content {
		var fields map[string]any
		if err := f.Object(item, &fields); err != nil {
			return err
		}
		if err := add(f.Pos(item).String(), i, fields); err != nil {
			return err
		}
	}
	return nil
}
