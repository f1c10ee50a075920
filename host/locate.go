package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/digest"
	"github.com/the-edge-agent/tea/host/internal/secret"
	"github.com/the-edge-agent/tea/host/internal/spec"
)

// WorkflowNotFoundError reports that the workflow file of a run no longer exists,
// and that no file near it or the checkpoint directory has the same content.
type WorkflowNotFoundError struct {
	RunID string
	// File is the absolute path of the workflow when the run began.
	File string
}

// Error names the run and the file.
func (e *WorkflowNotFoundError) Error() string {
	return fmt.Sprintf("run %s: its workflow is no longer at %s, and no file there, in the working directory or around the checkpoint directory has the same digest", e.RunID, e.File)
}

// LoadRunOptions configure [Host.LoadRun].
type LoadRunOptions struct {
	// File is the workflow file; "" searches for it.
	File string
	// Changed loads a changed file too.
	Changed bool
	// Config, if not empty, replaces the configuration with which the run was
	// loaded.
	Config string
	// Secrets are the run's secrets: its configuration can contain their values,
	// which the checkpoint does not store.
	Secrets map[string]any
	// DataDir is [LoadOptions.DataDir]; nil is the directory with which the run began.
	DataDir func(workflow string) string
	// View leaves *** in place of secrets. Such a workflow can show the run, but
	// not [Workflow.Resume] or [Workflow.Fork] it.
	View bool
}

// LoadRun loads the workflow of a run for [Workflow.Resume] and
// [Workflow.Fork], with the overlays and the configuration of the run.
//
// With a File, LoadRun loads that file. Otherwise it loads the file with which the
// run began. If that file no longer exists or has changed, LoadRun loads the version
// that [Source.Keep] has stored, or a file with the same digest near it, in the
// working directory or near the checkpoint directory, since a directory may have been
// renamed. If there is none, or with Changed, it loads the changed file; Resume then
// decides.
//
// The error is a [*WorkflowNotFoundError], a [*ConfigSecretError] or an error of
// [Host.Load].
func (h *Host) LoadRun(info *RunInfo, o LoadRunOptions) (*Workflow, error) {
	info, err := info.configured(o)
	if err != nil {
		return nil, err
	}
	if o.File != "" {
		p := info.placesAt(o.File)
		if i := slices.IndexFunc(p, info.has); i > 0 {
			p = p[i:]
		}
		return h.Load(p[0].file, p[0].options)
	}
	recorded := info.recorded()
	wf, err := h.Load(recorded.file, recorded.options)
	if err == nil && (o.Changed || wf.Digest() == info.Digest) {
		return wf, nil
	}
	_, gone := os.Stat(recorded.file)
	if err != nil && gone == nil && o.Changed && !o.View {
		return nil, err // the caller did not ask for another version
	}
	if kept := storedSource(info); kept != nil {
		recorded.options.source = kept
		if wf != nil {
			wf.Close()
		}
		return h.Load(kept.File, recorded.options)
	}
	for p := range info.places {
		if !info.has(p) {
			continue
		}
		if wf != nil {
			wf.Close()
		}
		if p.file != recorded.file {
			h.log.Warn(fmt.Sprintf("the workflow of the run %s was found in another place: %s", info.RunID, p.file))
		}
		return h.Load(p.file, p.options)
	}
	if gone != nil {
		return nil, &WorkflowNotFoundError{RunID: info.RunID, File: recorded.file}
	}
	return wf, err
}

// ConfigSecretError reports that the configuration of a run contains a secret that
// is missing now.
type ConfigSecretError struct {
	RunID string
	// Secret is the name of the secret, or the path of the setting.
	Secret string
	// Setting reports whether it is a setting, not a secret of the caller.
	Setting bool
}

// Error describes how to pass the secret.
func (e *ConfigSecretError) Error() string {
	what, how := "secret "+e.Secret, "pass it with --secrets or --secrets-env, or pass"
	if e.Setting {
		what, how = "setting "+e.Secret, "pass"
	}
	return fmt.Sprintf("the configuration of run %s contains the %s, which the checkpoint does not store; %s -C as in the first run", e.RunID, what, how)
}

// configured returns i with the configuration to load.
func (i *RunInfo) configured(o LoadRunOptions) (*RunInfo, error) {
	out := *i
	if o.DataDir != nil {
		out.dataDir = o.DataDir
	}
	switch {
	case o.Config != "":
		out.Config = o.Config
	case !o.View:
		config, err := secret.New(o.Secrets, nil).Unseal(i.config)
		if missing := (*secret.MissingError)(nil); errors.As(err, &missing) {
			return nil, &ConfigSecretError{RunID: i.RunID, Secret: missing.Quoted(), Setting: missing.Setting()}
		}
		if err != nil {
			return nil, fmt.Errorf("read the configuration of run %s: %w", i.RunID, err)
		}
		out.Config, _ = config.(string)
	}
	return &out, nil
}

// Has reports whether a file is the workflow of the run.
func (i *RunInfo) Has(file string) bool { return slices.ContainsFunc(i.placesAt(file), i.has) }

// place is a candidate file for a run's workflow, with the overlays to apply.
type place struct {
	file    string
	options LoadOptions
}

func (i *RunInfo) recorded() place {
	return place{i.WorkflowFile, LoadOptions{Overlays: i.Overlays, Config: i.Config, DataDir: i.dataDir}}
}

// has reports whether the workflow at a place is the run's.
func (i *RunInfo) has(p place) bool {
	s, _ := spec.Load(p.file, spec.Options{Overlays: p.options.Overlays, Config: p.options.Config})
	return s != nil && s.Digest == i.Digest
}

// placesAt returns a file twice: with the overlays at their old paths relative to it,
// and with the overlays at their old absolute paths.
func (i *RunInfo) placesAt(file string) []place {
	here := place{file, i.recorded().options}
	moved := place{file, LoadOptions{Config: i.Config, DataDir: i.dataDir}}
	for _, overlay := range i.Overlays {
		if rel, err := filepath.Rel(filepath.Dir(i.WorkflowFile), overlay); err == nil {
			if at := filepath.Join(filepath.Dir(file), rel); isFile(at) {
				overlay = at
			}
		}
		moved.options.Overlays = append(moved.options.Overlays, overlay)
	}
	if slices.Equal(here.options.Overlays, moved.options.Overlays) {
		return []place{here}
	}
	return []place{moved, here}
}

// places yields the possible places of the run's workflow: first the end of its old
// path below a directory that contains the checkpoint directory or the working
// directory, which finds it in a directory that was renamed, copied or reached
// through a symbolic link; then any workflow file nearby.
func (i *RunInfo) places(yield func(place) bool) {
	if !i.placesAtAll([]string{i.WorkflowFile}, yield) {
		return
	}
	runs := filepath.Dir(i.Path)
	roots := []string{runs}
	if real, err := filepath.EvalSymlinks(runs); err == nil && real != runs {
		roots = append(roots, real)
	}
	work, err := os.Getwd()
	if err == nil {
		roots = append(roots, work)
	}
	for _, root := range roots {
		for _, dir := range ancestors(root) {
			if !i.placesAtAll(tails(dir, i.WorkflowFile), yield) {
				return
			}
		}
	}
	near := []string{filepath.Dir(i.WorkflowFile)}
	for _, root := range roots {
		near = append(near, root, filepath.Dir(root))
	}
	seen := map[string]bool{}
	for _, dir := range near {
		if seen[dir] {
			continue
		}
		seen[dir] = true
		if !i.placesAtAll(workflowFiles(dir), yield) {
			return
		}
	}
}

// placesAtAll yields the places of files that exist and belong to the user. It
// reports whether to continue.
func (i *RunInfo) placesAtAll(files []string, yield func(place) bool) bool {
	for _, file := range files {
		if !isFile(file) {
			continue
		}
		for _, p := range i.placesAt(file) {
			if !yield(p) {
				return false
			}
		}
	}
	return true
}

// ancestors returns a directory and its parents.
func ancestors(dir string) []string {
	all := []string{dir}
	for filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
		all = append(all, dir)
	}
	return all
}

// tails returns the paths in dir with the same end as path, longest first.
func tails(dir, path string) []string {
	parts := strings.Split(strings.Trim(path, string(filepath.Separator)), string(filepath.Separator))
	var all []string
	for i := range parts {
		all = append(all, filepath.Join(dir, filepath.Join(parts[i:]...)))
	}
	return all
}

// workflowFiles returns the YAML files of a directory, up to a number that projects
// do not reach.
func workflowFiles(dir string) []string {
	const most = 200
	entries, _ := os.ReadDir(dir) // an unreadable directory has none
	var files []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); (ext == ".yaml" || ext == ".yml") && len(files) < most {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files
}

// isFile reports whether a path is a regular file of this user or of the system. The
// digest does not cover the settings, so another user's file must not replace a
// workflow.
func isFile(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	return digest.IsOurs(info)
}
