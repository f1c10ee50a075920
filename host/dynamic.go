package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/spec"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// maxDynamicFile is the maximum size of a file of dynamic actions.
const maxDynamicFile = 64 << 20

// dynamicActions finds the descriptions of actions that depend on the settings.
type dynamicActions struct {
	settings map[string]any
	relist   bool // ignores the stored descriptions
	// missing are the bundles without a usable file, problems the files that
	// cannot be used.
	missing  []string
	problems diag.List
}

// describe returns a manifest with the actions in the file that the settings
// name.
func (d *dynamicActions) describe(m tea.Manifest) tea.Manifest {
	if m.Dynamic == nil || d.relist {
		return m
	}
	path := settingAt(d.settings, m.Dynamic.File)
	actions, err := readDynamic(path)
	if err == nil {
		whole := m
		whole.Actions = slices.Concat(m.Actions, actions)
		if err = whole.Check(); err == nil {
			err = checkDynamic(m, actions)
		}
		if err == nil {
			return whole
		}
	}
	d.missing = append(d.missing, m.Name)
	if !errors.Is(err, fs.ErrNotExist) {
		d.problems.Errorf(diagcode.FileUnreadable, diag.Pos{File: path}, "`tea plugin refresh "+m.Name+" --workflow FILE` replaces it",
			"the actions of %s that depend on the settings: %v", m.Name, err)
	}
	return m
}

// checkDynamic checks that all actions are dynamic actions of the manifest.
func checkDynamic(m tea.Manifest, actions []tea.ActionInfo) error {
	for _, a := range actions {
		if !m.IsDynamic(a.Name) {
			return fmt.Errorf("the action %s is not a dynamic action of %s", a.Name, m.Name)
		}
	}
	return tea.Manifest{Name: m.Name, Actions: actions}.CheckSchemas()
}

// settingAt returns the string at a path in the settings; "" if there is none.
func settingAt(settings map[string]any, path string) string {
	var v any = settings
	for key := range strings.SplitSeq(path, ".") {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	text, _ := v.(string)
	return text
}

// readDynamic reads a file of dynamic actions.
func readDynamic(path string) ([]tea.ActionInfo, error) {
	if path == "" {
		return nil, fs.ErrNotExist
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxDynamicFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxDynamicFile {
		return nil, fmt.Errorf("it is larger than %d bytes", maxDynamicFile)
	}
	var stored struct {
		Actions []tea.ActionInfo `json:"actions"`
	}
	if err := json.Unmarshal(data, &stored); err != nil {
		return nil, err
	}
	return stored.Actions, nil
}

// DynamicList describes how to list the dynamic actions of a bundle for a
// workflow's settings, and the file that stores the list.
type DynamicList struct {
	Workflow *Workflow
	// Input is the input of the run that calls the listing action; the final
	// state has the content of the file under [CallResult].
	Input map[string]any
	// File is the path of the file.
	File string
}

// LoadDynamicList prepares listing the dynamic actions of a bundle for the
// settings of a workflow file, whose nodes are ignored. The caller closes the
// workflow. It returns the errors of [Host.Load], and a not_found error for a
// bundle without dynamic actions.
func (h *Host) LoadDynamicList(bundle, path string, o LoadOptions) (*DynamicList, error) {
	s, diags := spec.Load(path, spec.Options{Overlays: o.Overlays, Config: o.Config, LookupEnv: o.LookupEnv, Embedded: h.o.Embedded})
	if s == nil {
		return nil, diags
	}
	m := h.manifest(bundle)
	if m == nil || m.Dynamic == nil {
		return nil, tea.Errorf(tea.NotFound, "%s has no actions that depend on the settings", bundle)
	}
	text, input, err := callText(m.Dynamic.List, nil)
	if err != nil {
		return nil, err
	}
	call, problems := spec.Parse("", text, spec.Options{})
	if call == nil {
		return nil, problems
	}
	s.Nodes, s.Edges, s.Imports = call.Nodes, call.Edges, nil
	s.Schema, s.InitialState, s.Config, s.Errors, s.Budget = call.Schema, call.InitialState, call.Config, call.Errors, call.Budget
	o.relist = true
	wf, err := h.compile(s, nil, o)
	if err != nil {
		return nil, err
	}
	return &DynamicList{Workflow: wf, Input: input, File: settingAt(s.Settings, m.Dynamic.File)}, nil
}

// DynamicBundles returns the names of the bundles with dynamic actions.
func (h *Host) DynamicBundles() []string {
	var names []string
	for _, m := range h.manifests() {
		if m.Dynamic != nil {
			names = append(names, m.Name)
		}
	}
	return names
}

// manifest returns the manifest of a bundle or plugin, or nil.
func (h *Host) manifest(name string) *tea.Manifest {
	for _, m := range h.manifests() {
		if m.Name == name {
			return &m
		}
	}
	return nil
}
