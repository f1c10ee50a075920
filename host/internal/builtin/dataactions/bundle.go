package dataactions

import (
	"context"
	"maps"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

// Bundle returns the bundle data.
func Bundle(version string) *tea.Bundle {
	return &tea.Bundle{
		Name: "data", Version: version, Description: "Checks, merges and filters values.",
		Actions: []tea.Action{
			tea.NewAction("data.validate", "Checks a value against a JSON Schema.", validate, tea.Idempotent(), tea.Repeated()),
			tea.NewAction("data.merge", "Merges objects into one.", mergeAction, tea.Idempotent(), tea.Repeated()),
			tea.NewAction("data.filter", "Keeps the items of a list that match a condition.", filterAction, tea.Idempotent(), tea.Repeated()),
		},
	}
}

type validateParams struct {
	Data   any `json:"data" doc:"the value to check"`
	Schema any `json:"schema" format:"json-schema" doc:"a JSON Schema of draft 2020-12 or 7; $ref must refer to the schema itself, and keywords of your own begin with x-"`
}

type validateResult struct {
	Success bool                 `json:"success" doc:"always true"`
	Valid   bool                 `json:"valid" doc:"whether the value is valid"`
	Errors  []jsonschema.Problem `json:"errors" doc:"every violation, such as {path: items[3].name, message: ...}; the path of the value itself is empty"`
}

func validate(_ context.Context, _ *tea.Request, p validateParams) (validateResult, error) {
	schema, err := jsonschema.Compile(p.Schema)
	if err == nil {
		err = jsonschema.CheckKeywords(p.Schema)
	}
	if err != nil {
		return validateResult{}, tea.Errorf(tea.ValidationError, "data.validate: %w", err)
	}
	problems := schema.Validate(p.Data)
	if problems == nil {
		problems = []jsonschema.Problem{}
	}
	return validateResult{Success: true, Valid: len(problems) == 0, Errors: problems}, nil
}

type mergeParams struct {
	Sources  []any  `json:"sources" doc:"the objects to merge, lowest precedence first; null is skipped"`
	Strategy string `json:"strategy,omitempty" default:"deep" enum:"deep,shallow" doc:"deep: objects in objects are merged too; shallow: they are replaced. Lists are always replaced"`
}

type mergeResult struct {
	Success     bool           `json:"success" doc:"always true"`
	Result      map[string]any `json:"result" doc:"the merged object"`
	SourceCount int            `json:"source_count" doc:"the number of sources"`
}

func mergeAction(_ context.Context, _ *tea.Request, p mergeParams) (mergeResult, error) {
	merged, err := merge(p.Sources, p.Strategy == "deep")
	if err != nil {
		return mergeResult{}, err
	}
	return mergeResult{Success: true, Result: merged, SourceCount: len(p.Sources)}, nil
}

type filterParams struct {
	Data      []any `json:"data" doc:"the list to filter"`
	Predicate any   `json:"predicate" doc:"{field, op, value}, or a list of them that must all be true. field is a path such as a.b[0].c, empty or absent for the item itself; op is eq, ne, gt, gte, lt, lte, in, not_in, contains, startswith, endswith or exists (value: false = must be missing)"`
}

type filterResult struct {
	Success       bool  `json:"success" doc:"always true"`
	Result        []any `json:"result" doc:"the items that match every condition, in their order"`
	OriginalCount int   `json:"original_count" doc:"the number of items in data"`
	FilteredCount int   `json:"filtered_count" doc:"the number of items in result"`
}

func filterAction(_ context.Context, _ *tea.Request, p filterParams) (filterResult, error) {
	conditions, err := conditionsOf(p.Predicate)
	if err != nil {
		return filterResult{}, err
	}
	kept := []any{}
	for _, item := range p.Data {
		if holdsAll(conditions, item) {
			kept = append(kept, item)
		}
	}
	return filterResult{Success: true, Result: kept, OriginalCount: len(p.Data), FilteredCount: len(kept)}, nil
}

// merge merges objects into a new one; later sources take precedence. It does
// not change the sources; the result shares parts of them.
func merge(sources []any, deep bool) (map[string]any, error) {
	merged := map[string]any{}
	for i, source := range sources {
		if source == nil {
			continue
		}
		object, ok := source.(map[string]any)
		if !ok {
			return nil, tea.Errorf(tea.ValidationError, "data.merge: sources[%d] must be an object, got %s", i, value.TypeName(source))
		}
		if deep {
			merged = value.Merge(merged, object)
		} else {
			maps.Copy(merged, object)
		}
	}
	return merged, nil
}
