package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/internal/digest"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// sourcesDir is the directory of kept sources in a checkpoint directory.
const sourcesDir = "sources"

// Source is the content of a workflow's files, for keeping the version with which
// runs began. It is immutable and safe for concurrent use.
type Source struct {
	// File is the absolute path of the workflow file, Digest the workflow's digest.
	File   string `json:"file"`
	Digest string `json:"digest"`
	// Files are the contents by absolute path. Modules need not be UTF-8.
	Files map[string][]byte `json:"files"`

	env []string
}

// ErrWorkflowRewritten reports that a file of a workflow has changed since the
// workflow was loaded. Load it again.
var ErrWorkflowRewritten = errors.New("the files of the workflow changed while they were read")

// Source reads the files of the workflow. The error is [ErrWorkflowRewritten] if they
// differ from the loaded ones, or a read error.
func (wf *Workflow) Source() (*Source, error) {
	s := &Source{File: absolute(wf.spec.File), Digest: wf.spec.Digest, Files: map[string][]byte{}}
	for _, file := range wf.Files() {
		data, err := spec.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the source of %s: %w", wf.Name(), err)
		}
		s.Files[absolute(file)] = data
	}
	lookup := wf.options.LookupEnv
	if lookup == nil {
		lookup = os.LookupEnv
	}
	for _, n := range wf.graph.Names.Env {
		s.env = append(s.env, n.Path[0])
	}
	again, _ := spec.Load(s.File, spec.Options{Overlays: wf.options.Overlays, Config: wf.options.Config, Embedded: s.read, LookupEnv: func(name string) (string, bool) {
		s.env = append(s.env, name)
		return lookup(name)
	}})
	if again == nil || again.Digest != s.Digest {
		return nil, ErrWorkflowRewritten
	}
	return s, nil
}

// Env returns the names of the environment variables that [Workflow.Source] found
// in the files and the configuration: as ${NAME} in settings and as env.NAME in
// templates and conditions. A name can appear twice.
func (s *Source) Env() []string { return s.env }

// Listing is the text of the workflow file of a run.
type Listing struct {
	File string `json:"file"`
	// Changed reports that the file differs from the one with which the run began, so
	// that there is no text.
	Changed bool   `json:"changed,omitempty"`
	Text    string `json:"text,omitempty"`
	// Lines are the first lines of the nodes. The key of a node in the body of another is
	// OUTER/INNER.
	Lines map[string]int `json:"lines,omitempty"`
}

// Listing returns the text of the workflow file of a run that began with a digest. It
// reads the files, unless s is their content. mask removes secrets.
func (wf *Workflow) Listing(digest string, s *Source, mask Mask) (*Listing, error) {
	l := &Listing{File: filepath.Base(wf.spec.File), Changed: wf.Digest() != digest}
	if l.Changed {
		return l, nil
	}
	if s == nil || s.Digest != digest {
		s = wf.options.source
	}
	if s == nil {
		var err error
		if s, err = wf.Source(); errors.Is(err, ErrWorkflowRewritten) {
			l.Changed = true
			return l, nil
		} else if err != nil {
			return nil, err
		}
	}
	l.Text, l.Lines = mask.Text(string(s.Files[s.File])), map[string]int{}
	l.add("", wf.spec.File, wf.spec.Nodes)
	return l, nil
}

// add adds the lines of nodes that are in a file.
func (l *Listing) add(prefix, file string, nodes []*spec.Node) {
	for _, n := range nodes {
		if n.File != file {
			continue
		}
		key, body := prefix+n.Name, n.Body
		l.Lines[key] = n.Line
		if m, ok := body.(*spec.MapBody); ok {
			body = m.Do
		}
		switch b := body.(type) {
		case *spec.StepsBody:
			l.add(key+"/", file, b.Steps)
		case *spec.LoopBody:
			l.add(key+"/", file, b.Nodes)
		}
	}
}

func (s *Source) read(file string) ([]byte, bool) {
	data, ok := s.Files[file]
	return data, ok
}

// Keep stores the source in a checkpoint directory, where [Host.LoadRun] finds it
// after the files have changed. When Keep returns without an error, the source is
// on disk.
func (s *Source) Keep(dir string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("keep the source of a workflow: %w", err)
	}
	path := sourcePath(dir, s.File, s.Digest)
	if old, err := os.ReadFile(path); err == nil && string(old) == string(text) {
		return nil
	}
	if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
		err = atomicfile.Write(path, 0o600, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("keep the source of a workflow: %w", err)
	}
	return nil
}

// sourcePath returns the path of a kept source. The digest does not include the
// settings, so it depends on the file too.
func sourcePath(dir, file, sum string) string {
	return filepath.Join(dir, sourcesDir, digest.Of([]byte(file + "\x00" + sum))[:32]+".json")
}

// storedSource returns the kept source of a run; nil if there is none.
func storedSource(info *RunInfo) *Source {
	path := sourcePath(filepath.Dir(info.Path), info.WorkflowFile, info.Digest)
	if !isFile(path) {
		return nil
	}
	text, err := os.ReadFile(path)
	s := new(Source)
	if err != nil || json.Unmarshal(text, s) != nil || s.File != info.WorkflowFile || s.Digest != info.Digest {
		return nil
	}
	return s
}

// RemoveSources removes the kept sources of workflows with which no run in the
// directory began, except those in keep. It ignores incomplete files, which
// [Source.Keep] is writing.
func RemoveSources(runs *checkpoints.Dir, keep []*Source) error {
	dir := runs.Path()
	files, err := os.ReadDir(filepath.Join(dir, sourcesDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the sources of workflows: %w", err)
	}
	if len(files) == 0 {
		return nil
	}
	entries, err := runs.List()
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, run := range entries {
		if run.Problem != "" && run.Digest == "" {
			return nil // an unreadable run may need any of them
		}
		used[sourcePath(dir, run.WorkflowFile, run.Digest)] = true
	}
	for _, s := range keep {
		used[sourcePath(dir, s.File, s.Digest)] = true
	}
	var faults []error
	for _, e := range files {
		if path := filepath.Join(dir, sourcesDir, e.Name()); !used[path] && !atomicfile.IsTemporary(e.Name()) {
			faults = append(faults, os.Remove(path))
		}
	}
	return errors.Join(faults...)
}
