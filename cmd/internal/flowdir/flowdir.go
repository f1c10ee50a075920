// Package flowdir loads the workflows of a directory, and reloads them when their
// files change. It is for programs that offer workflows; start with [New].
package flowdir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/host"
)

// scanInterval is the interval at which changed files are noticed.
const scanInterval = time.Second

// Server offers the workflows of a directory. Its methods are called one at a
// time.
type Server interface {
	// Load loads a workflow file.
	Load(file string) (*host.Workflow, error)
	// Offer offers a workflow in place of the version of the file that was offered
	// under the name before; "" is none. It returns the name under which the
	// workflow is offered. After an error the server does not offer the workflow.
	Offer(file string, wf *host.Workflow, before string) (name string, err error)
	// Withdraw stops offering the workflow of that name.
	Withdraw(name string)
	// Actions identifies the actions that workflows can use. When they change, broken
	// workflows are reloaded.
	Actions() string
}

// Dir is a directory of workflows. It is safe for concurrent use.
type Dir struct {
	server Server
	log    *slog.Logger
	// kind is how messages call an offered workflow, such as "tool".
	kind string
	// path is absolute, without symbolic links.
	path string

	// scanning guards what scans use.
	scanning sync.Mutex
	// tree is the state of the directory when a workflow was last found broken.
	tree string
	// files are the workflow files, by path.
	files map[string]*source
	// problems are the problems of the last scan, by path.
	problems map[string]string
	// maxTree is the maximum number of files in the directory tree that are watched
	// while a workflow is broken.
	maxTree int
	// shared holds the names of files that belong to workflows but are not workflows.
	shared []string
}

// source is a workflow file.
type source struct {
	// files are the files of the last version that loaded. stamp is their state at
	// the last attempt, and broken reports whether it failed.
	files  []string
	stamp  string
	broken bool
	// name is the name under which the workflow is offered, "" if it is not. workflow is
	// its name in the file.
	name, workflow string
	// problem is the last problem that was logged.
	problem string
}

// New returns a directory whose workflows the server offers as kind, such as
// "tool". The files named in shared are not workflows; when one of them changes,
// all workflows are reloaded.
func New(path, kind string, server Server, log *slog.Logger, shared ...string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, err
	}
	return &Dir{server: server, log: log, kind: kind, path: path, files: map[string]*source{}, maxTree: 10_000, shared: shared}, nil
}

// Path returns the absolute path of the directory, without symbolic links.
func (d *Dir) Path() string { return d.path }

// Owns reports whether a run's workflow is or was in the directory.
func (d *Dir) Owns(workflowFile string) bool {
	dir, err := filepath.EvalSymlinks(filepath.Dir(workflowFile))
	return err == nil && dir == d.path
}

// Problems returns the current problems of files, by path. The last valid version of
// such a file may still be offered.
func (d *Dir) Problems() map[string]string {
	d.scanning.Lock()
	defer d.scanning.Unlock()
	out := map[string]string{}
	for path, problem := range d.problems {
		out[path] = problem
	}
	for file, src := range d.files {
		if src.problem != "" {
			out[file] = src.problem
		}
	}
	return out
}

// Watch scans the directory at an interval until the context is done.
func (d *Dir) Watch(ctx context.Context) {
	ticker := time.NewTicker(scanInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			d.Scan()
		case <-ctx.Done():
			return
		}
	}
}

// Scan loads new and changed workflows and withdraws removed ones.
func (d *Dir) Scan() {
	d.scanning.Lock()
	defer d.scanning.Unlock()
	before := d.problems
	d.problems = map[string]string{}
	files, err := d.list()
	if err != nil {
		d.problems[d.path] = "the directory of the workflows cannot be read: " + err.Error()
	}
	for path, problem := range d.problems {
		if before[path] != problem {
			d.log.Warn(path + ": " + problem)
		}
	}
	if err != nil {
		return
	}
	changed := d.repaired()
	for file, src := range d.files {
		if !slices.Contains(files, file) {
			delete(d.files, file)
			if src.name != "" {
				d.log.Info("workflow removed", d.kind, src.name, "file", file)
			}
			d.withdraw(src)
		}
	}
	for _, file := range files {
		src := d.files[file]
		switch {
		case src == nil:
			src = &source{files: []string{file}}
			d.files[file] = src
		case src.broken && changed, src.stamp != stampOf(src.files):
		default:
			continue
		}
		d.load(file, src)
	}
}

// IsWorkflow reports whether a file of a directory is a workflow by its name: names
// that begin with a dot and tests are not.
func IsWorkflow(name string) bool {
	ext := filepath.Ext(name)
	return (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(name, ".") && !strings.HasSuffix(strings.TrimSuffix(name, ext), "_test")
}

// list returns the workflow files and records problems. A link must lead to a
// file in the directory.
func (d *Dir) list() ([]string, error) {
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // it was only read
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		name := e.Name()
		if !IsWorkflow(name) || slices.Contains(d.shared, name) {
			continue
		}
		info, err := root.Stat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err != nil {
			path, problem := filepath.Join(d.path, name), "it leads out of the directory"
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				problem = "it is a link to a file that does not exist"
			} else if err != nil {
				problem = err.Error()
			}
			d.problems[path] = "it is not offered: " + problem
			continue
		}
		files = append(files, filepath.Join(d.path, name))
	}
	return files, nil
}

// repaired reports whether a workflow may have become valid since the last scan:
// one is broken, and a file of the directory or an action has changed.
func (d *Dir) repaired() bool {
	for _, src := range d.files {
		if src.broken {
			tree := d.treeStamp() + d.server.Actions()
			changed := tree != d.tree
			d.tree = tree
			return changed
		}
	}
	return false
}

// load loads a file. If that fails, the offered version remains, unless the workflow in
// the file now has another name.
func (d *Dir) load(file string, src *source) {
	src.stamp, src.broken = stampOf(src.files), true
	wf, name, err := d.offer(file, src)
	if err != nil {
		if wf != nil && wf.Name() != src.workflow {
			d.withdraw(src)
		}
		effect := "it is not offered"
		if src.name != "" {
			effect = "the " + d.kind + " " + src.name + " remains as it was before"
		}
		d.report(src, file, effect, err)
		return
	}
	files := wf.Files()
	for _, name := range d.shared {
		files = append(files, filepath.Join(d.path, name))
	}
	warnings := wf.Warnings()
	if src.stamp == stampOf(src.files) { // otherwise it changed meanwhile and is reloaded
		src.files, src.stamp = files, stampOf(files)
	}
	src.problem, src.broken = "", false
	for _, w := range warnings {
		d.log.Warn(w.Error())
	}
	if src.name != name {
		d.withdraw(src)
	}
	src.name, src.workflow = name, wf.Name()
	d.log.Info("workflow offered", d.kind, name, "file", file)
}

// offer loads a file and offers its workflow. A workflow that cannot be offered is closed
// and returned with the error.
func (d *Dir) offer(file string, src *source) (wf *host.Workflow, name string, err error) {
	if wf, err = d.server.Load(file); err != nil {
		return nil, "", err
	}
	if name, err = d.server.Offer(file, wf, src.name); err != nil {
		if err := wf.Close(); err != nil {
			d.log.Warn("close workflow "+wf.Name(), "error", err)
		}
	}
	return wf, name, err
}

// withdraw stops offering the workflow of a file.
func (d *Dir) withdraw(src *source) {
	if src.name != "" {
		d.server.Withdraw(src.name)
		src.name = ""
	}
}

// report logs why a file is not offered, with the positions of mistakes. It logs
// a problem once.
func (d *Dir) report(src *source, file, effect string, err error) {
	lines := []string{fmt.Sprintf("%s: %s: %v", file, effect, err)}
	var diags host.Diagnostics
	if errors.As(err, &diags) {
		lines = lines[:0]
		for _, d := range diags {
			lines = append(lines, d.Error())
		}
		lines = append(lines, file+": "+effect)
	}
	if problem := strings.Join(lines, "\n"); problem != src.problem {
		src.problem = problem
		for _, line := range lines {
			d.log.Error(line)
		}
	}
}

// stampOf identifies the state of files by size and time.
func stampOf(files []string) string {
	hash := sha256.New()
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			fmt.Fprintf(hash, "%s: %v\n", file, err)
			continue
		}
		fmt.Fprintf(hash, "%s: %d %d\n", file, info.Size(), info.ModTime().UnixNano())
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// treeStamp identifies the state of the files in the directory and below it.
func (d *Dir) treeStamp() string {
	var files []string
	_ = filepath.WalkDir(d.path, func(path string, e fs.DirEntry, err error) error { // unreadable entries count as unchanged
		switch {
		case len(files) == d.maxTree:
			return fs.SkipAll
		case err != nil:
			return nil
		case e.IsDir() && path != d.path && strings.HasPrefix(e.Name(), "."):
			return fs.SkipDir
		case !e.IsDir():
			files = append(files, path)
		}
		return nil
	})
	return stampOf(files)
}
