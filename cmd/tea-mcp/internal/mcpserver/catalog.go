package mcpserver

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/the-edge-agent/tea/host"
)

// catalog has the workflows of a directory. It is safe for concurrent use.
type catalog struct {
	s *server
	// dir is absolute, without symbolic links.
	dir string

	// scanning guards what scans use.
	scanning sync.Mutex
	// tree is the state of the directory when a workflow was broken at last.
	tree string
	// files are the workflow files, by path.
	files map[string]*source
	// problems are the problems of the last scan, by path.
	problems map[string]string

	mu sync.Mutex
	// tools are the offered workflows, by the name of the tool.
	tools map[string]*offer
}

// source is a workflow file.
type source struct {
	// files are those of the last version that could be loaded, stamp their state
	// then; "" if the file is not offered as it is.
	files []string
	stamp string
	// tool is the name of the offered tool; "" for none.
	tool string
	// problem is the last one that was logged.
	problem string
}

// offer is a workflow that is offered as a tool.
type offer struct {
	*host.Workflow
	mask host.Mask
	file string
	tool *mcp.Tool
	uses sync.WaitGroup
}

func newCatalog(s *server, dir string) (*catalog, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, err
	}
	return &catalog{s: s, dir: dir, files: map[string]*source{}, tools: map[string]*offer{}}, nil
}

// use returns the workflow of a tool. The caller calls release afterwards. ok
// is false if the tool is no longer offered.
func (c *catalog) use(tool string) (o *offer, release func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o, ok = c.tools[tool]; ok {
		o.uses.Add(1)
		release = o.uses.Done
	}
	return o, release, ok
}

// owns reports whether a run's workflow is or was in the directory.
func (c *catalog) owns(workflowFile string) bool {
	dir, err := filepath.EvalSymlinks(filepath.Dir(workflowFile))
	return err == nil && dir == c.dir
}

// close closes all workflows, whose runs have ended.
func (c *catalog) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.tools {
		o.uses.Wait()
		c.s.closeWorkflow(o.Workflow)
	}
}

// scan loads new and changed workflows and removes those that are gone.
func (c *catalog) scan() {
	c.scanning.Lock()
	defer c.scanning.Unlock()
	before := c.problems
	c.problems = map[string]string{}
	files, err := c.list()
	if err != nil {
		c.problems[c.dir] = "the directory of the workflows cannot be read: " + err.Error()
	}
	for path, problem := range c.problems {
		if before[path] != problem {
			c.s.svc.Log.Warn(path + ": " + problem)
		}
	}
	if err != nil {
		return
	}
	changed := c.repaired()
	for file, src := range c.files {
		if !slices.Contains(files, file) {
			delete(c.files, file)
			c.withdraw(src)
		}
	}
	for _, file := range files {
		src := c.files[file]
		switch {
		case src == nil:
			src = &source{files: []string{file}}
			c.files[file] = src
		case src.stamp == "" && changed:
		case src.stamp != "" && src.stamp != stampOf(src.files):
		default:
			continue
		}
		c.load(file, src)
	}
}

// list returns the workflow files, and adds to the problems. Names that begin with a dot and tests are
// not workflows; a link must lead to a file in the directory.
func (c *catalog) list() ([]string, error) {
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // it was only read
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		name := e.Name()
		ext := filepath.Ext(name)
		if strings.HasPrefix(name, ".") || ext != ".yaml" && ext != ".yml" || strings.HasSuffix(strings.TrimSuffix(name, ext), "_test") {
			continue
		}
		info, err := root.Stat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err != nil {
			c.problems[filepath.Join(c.dir, name)] = "it is not offered: it leads out of the directory"
			continue
		}
		files = append(files, filepath.Join(c.dir, name))
	}
	return files, nil
}

// repaired reports whether a workflow can have become valid since the last scan:
// one is broken, and some file of the directory has changed.
func (c *catalog) repaired() bool {
	for _, src := range c.files {
		if src.stamp == "" {
			tree := treeStamp(c.dir)
			changed := tree != c.tree
			c.tree = tree
			return changed
		}
	}
	return false
}

// load loads a file. If it is broken, the version that is offered remains.
func (c *catalog) load(file string, src *source) {
	before := stampOf(src.files)
	src.stamp = ""
	wf, err := c.s.svc.Load(file)
	if err != nil {
		effect := "it is not offered"
		if src.tool != "" {
			effect = "the tool " + src.tool + " remains as it was before"
		}
		c.report(src, file, effect, err)
		return
	}
	o, err := c.offer(file, wf)
	if err != nil {
		c.s.closeWorkflow(wf)
		c.withdraw(src)
		c.report(src, file, "it is not offered", err)
		return
	}
	if now := stampOf(src.files); now == before { // else it changed meanwhile, and is loaded again
		src.files = wf.Files()
		src.stamp = stampOf(src.files)
	} else {
		src.stamp = before
	}
	c.notes(src, file, wf, o)
	if src.tool != o.tool.Name {
		c.withdraw(src)
	}
	src.tool = o.tool.Name
	c.mu.Lock()
	old := c.tools[o.tool.Name]
	c.tools[o.tool.Name] = o
	c.mu.Unlock()
	if old == nil || !reflect.DeepEqual(old.tool, o.tool) {
		c.s.mcp.AddTool(o.tool, c.s.tool(c.s.call))
	}
	c.s.svc.Log.Info("workflow offered", "tool", o.tool.Name, "file", file)
	c.retire(old)
}

// report logs why a file is not offered, with the positions of mistakes, unless
// it has been logged.
func (c *catalog) report(src *source, file, effect string, err error) {
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
			c.s.svc.Log.Error(line)
		}
	}
}

// notes logs what is unusual about a workflow that is offered.
func (c *catalog) notes(src *source, file string, wf *host.Workflow, o *offer) {
	src.problem = ""
	for _, d := range wf.Warnings() {
		c.s.svc.Log.Warn(d.Error())
	}
	if o.tool.Name != wf.Name() && src.tool != o.tool.Name {
		c.s.svc.Log.Warn(fmt.Sprintf("%s: the workflow %q is offered as %s: the name of a tool has letters, digits, _ and - only", file, wf.Name(), o.tool.Name))
	}
}

// withdraw removes the tool of a file.
func (c *catalog) withdraw(src *source) {
	if src.tool == "" {
		return
	}
	c.s.mcp.RemoveTools(src.tool)
	c.mu.Lock()
	old := c.tools[src.tool]
	delete(c.tools, src.tool)
	c.mu.Unlock()
	src.tool = ""
	c.retire(old)
}

// retire closes a workflow when its last run has ended.
func (c *catalog) retire(o *offer) {
	if o == nil {
		return
	}
	c.s.scans.Go(func() {
		o.uses.Wait()
		c.s.closeWorkflow(o.Workflow)
	})
}

func (s *server) closeWorkflow(wf *host.Workflow) {
	if err := wf.Close(); err != nil {
		s.svc.Log.Warn("close workflow "+wf.Name(), "error", err)
	}
}

// offer describes a workflow as a tool.
func (c *catalog) offer(file string, wf *host.Workflow) (*offer, error) {
	name, err := toolName(wf.Name())
	if err != nil {
		return nil, err
	}
	if name == resumeName {
		return nil, fmt.Errorf("the name %q is that of the tool that resumes runs; rename the workflow", name)
	}
	c.mu.Lock()
	other := c.tools[name]
	c.mu.Unlock()
	if other != nil && other.file != file {
		return nil, fmt.Errorf("its tool would have the name %q, which that of %s has; rename one of the workflows", name, other.file)
	}
	mask, err := c.s.svc.Mask(wf)
	if err != nil {
		return nil, err
	}
	description := wf.Description()
	if description == "" {
		description = "Runs the workflow " + wf.Name() + "."
	}
	return &offer{Workflow: wf, mask: mask, file: file, tool: &mcp.Tool{
		Name: name, Title: wf.Name(), Description: mask.Text(description),
		InputSchema: mask.Value(wf.InputSchema()), OutputSchema: outcomeSchema(),
	}}, nil
}

// maxToolName is how long the name of a tool is for all common clients.
const maxToolName = 64

// toolName returns the name of a tool for a workflow.
func toolName(workflow string) (string, error) {
	named := false
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			named = true
			return r
		case r == '-':
			return r
		}
		return '_'
	}, workflow)
	switch {
	case !named:
		return "", fmt.Errorf("the name %q has none of the letters and digits that the name of a tool can have; rename the workflow", workflow)
	case len(name) > maxToolName:
		return "", fmt.Errorf("the name %q has more than %d characters, the most that the name of a tool can have; rename the workflow", workflow, maxToolName)
	}
	return name, nil
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

// maxTree is how many files of a directory tree are watched for the mistakes in
// a workflow to be gone.
const maxTree = 10_000

// treeStamp identifies the state of the files in a directory and below it.
func treeStamp(dir string) string {
	var files []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // what cannot be read does not change
		switch {
		case len(files) == maxTree:
			return fs.SkipAll
		case err != nil:
			return nil
		case d.IsDir() && path != dir && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.IsDir():
			files = append(files, path)
		}
		return nil
	})
	return stampOf(files)
}
