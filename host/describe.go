package host

import (
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Description returns the description of the workflow file; "" if it has none.
func (wf *Workflow) Description() string { return wf.spec.Description }

// Files returns the files that the workflow was read from: the workflow file
// first, then overlays, Lua modules and subgraphs with their files. It does not
// include files that actions read during a run.
func (wf *Workflow) Files() []string {
	files := append([]string{wf.spec.File}, wf.options.Overlays...)
	seen := map[string]bool{}
	var add func(w *spec.Workflow)
	add = func(w *spec.Workflow) {
		for _, imp := range w.Imports {
			if imp.Kind == spec.ImportPath && !seen[imp.Path] {
				seen[imp.Path] = true
				files = append(files, imp.Path)
			}
		}
		for _, sub := range w.Subgraphs() {
			if !seen[sub.File] {
				seen[sub.File] = true
				files = append(files, sub.File)
				add(sub)
			}
		}
	}
	add(wf.spec)
	return files
}

// InputSchema returns the JSON Schema of the workflow's input, an object: the
// keys of state_schema, and the keys of the initial state with their values as
// defaults. Other keys are allowed, as in a run. The caller owns the schema.
func (wf *Workflow) InputSchema() map[string]any {
	properties := map[string]any{}
	for key, v := range wf.spec.InitialState {
		properties[key] = map[string]any{"default": value.Clone(v)}
	}
	var required []any
	for _, k := range wf.spec.Schema {
		initial := wf.spec.InitialState[k.Name]
		property := map[string]any{}
		if name := jsonType(k.Type); name != "" {
			property["type"] = name
		}
		if k.Description != "" {
			property["description"] = k.Description
		}
		switch {
		case initial != nil:
			property["default"] = value.Clone(initial)
		case k.HasDefault:
			property["default"] = value.Clone(k.Default)
		}
		if k.Required && initial == nil && k.Default == nil {
			required = append(required, k.Name)
		}
		properties[k.Name] = property
	}
	schema := map[string]any{"type": "object", "properties": properties}
	if required != nil {
		schema["required"] = required
	}
	return schema
}

// jsonType returns the name of a type in JSON Schema; "" for any.
func jsonType(t spec.Type) string {
	switch t {
	case spec.TypeString:
		return "string"
	case spec.TypeInt:
		return "integer"
	case spec.TypeFloat:
		return "number"
	case spec.TypeBool:
		return "boolean"
	case spec.TypeList:
		return "array"
	case spec.TypeDict:
		return "object"
	}
	return ""
}
