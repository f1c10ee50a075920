package mcpserver

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/the-edge-agent/tea/cmd/internal/flowdir"
	"github.com/the-edge-agent/tea/host"
)

// catalog holds the workflows of a directory. It is safe for concurrent use.
type catalog struct {
	*flowdir.Dir
	s *server

	mu sync.Mutex
	// tools are the offered workflows, by the name of the tool.
	tools map[string]*offer
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
	c := &catalog{s: s, tools: map[string]*offer{}}
	var err error
	c.Dir, err = flowdir.New(dir, "tool", c, s.svc.Log)
	return c, err
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

// Actions implements [flowdir.Server].
func (c *catalog) Actions() string { return c.s.svc.Actions() }

// close closes all workflows once their runs have ended.
func (c *catalog) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.tools {
		o.uses.Wait()
		c.s.closeWorkflow(o.Workflow)
	}
}

// Load implements [flowdir.Server].
func (c *catalog) Load(file string) (*host.Workflow, error) { return c.s.svc.Load(file) }

// Offer implements [flowdir.Server]. It offers a workflow as a tool.
func (c *catalog) Offer(file string, wf *host.Workflow, before string) (string, error) {
	o, err := c.offer(file, wf)
	if err != nil {
		return "", err
	}
	name := o.tool.Name
	if name != wf.Name() && before != name {
		c.s.svc.Log.Warn(fmt.Sprintf("%s: the workflow %q is offered as %s: the name of a tool can only have letters, digits, _ and -", file, wf.Name(), name))
	}
	c.mu.Lock()
	old := c.tools[name]
	c.tools[name] = o
	c.mu.Unlock()
	if old == nil || !reflect.DeepEqual(old.tool, o.tool) {
		c.s.mcp.AddTool(o.tool, c.s.tool(c.s.call))
	}
	c.retire(old)
	return name, nil
}

// Withdraw implements [flowdir.Server].
func (c *catalog) Withdraw(name string) {
	c.s.mcp.RemoveTools(name)
	c.mu.Lock()
	old := c.tools[name]
	delete(c.tools, name)
	c.mu.Unlock()
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
		return nil, fmt.Errorf("the name %q is reserved for the tool that resumes runs; rename the workflow", name)
	}
	c.mu.Lock()
	other := c.tools[name]
	c.mu.Unlock()
	if other != nil && other.file != file {
		return nil, fmt.Errorf("tool name %q is already used by %s; rename one of the workflows", name, other.file)
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

// maxToolName is the longest tool name that all common clients accept.
const maxToolName = 64

// toolName returns the tool name for a workflow.
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
