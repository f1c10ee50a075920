package teacmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/reference"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

type actionsCmd struct {
	Name     string `arg:"" optional:"" name:"action" help:"Show this action with its parameters."`
	Workflow string `short:"w" placeholder:"FILE" help:"Show the actions that this workflow can use, including the actions of its Lua modules."`
	JSON     bool   `name:"json" help:"Print JSON."`
	pluginFlags
	reportFlags
}

func (c *actionsCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	h, err := a.openHost(c.pluginFlags, c.reportFlags, readPlugins, host.Options{})
	if err != nil {
		return err
	}
	defer h.Close()
	a.warnUnreadPlugins(c.reportFlags)
	entries, err := c.entries(h)
	if err != nil {
		return err
	}
	if c.Name == "" {
		return c.list(a, entries)
	}
	i := slices.IndexFunc(entries, func(e host.ActionEntry) bool {
		return e.Name == c.Name || "actions."+strings.Replace(e.Name, ".", "_", 1) == c.Name
	})
	if i < 0 {
		names := make([]string, len(entries))
		for i, e := range entries {
			names[i] = e.Name
		}
		return usageErrorf("unknown action %q%s", c.Name, diag.Ending(c.Name, names))
	}
	if c.JSON {
		return writeJSON(a.stdout, toActionOutput(entries[i]))
	}
	return a.describeAction(entries[i])
}

func (c *actionsCmd) entries(h *host.Host) ([]host.ActionEntry, error) {
	if c.Workflow == "" {
		return h.Actions()
	}
	wf, err := h.Load(c.Workflow, host.LoadOptions{})
	if err != nil {
		return nil, err
	}
	defer wf.Close()
	return wf.Actions(), nil
}

// actionOutput is the JSON form of an action.
type actionOutput struct {
	Name       string         `json:"name"`
	Summary    string         `json:"summary"`
	Bundle     string         `json:"bundle"`
	Version    string         `json:"version,omitempty"`
	Kind       string         `json:"kind"`
	Streaming  bool           `json:"streaming,omitempty"`
	Idempotent bool           `json:"idempotent,omitempty"`
	Once       bool           `json:"once,omitempty"`
	Reads      bool           `json:"reads,omitempty"`
	DryRun     bool           `json:"dry_run,omitempty"`
	Params     *schema.Schema `json:"params,omitempty"`
	Result     *schema.Schema `json:"result,omitempty"`
}

func toActionOutput(e host.ActionEntry) actionOutput {
	return actionOutput{
		Name: e.Name, Summary: e.Summary, Bundle: e.Bundle, Version: e.Version, Kind: e.Kind,
		Streaming: e.Streaming, Idempotent: e.Idempotent, Once: e.Once, Reads: e.Reads, DryRun: e.DryRun, Params: e.Params, Result: e.Result,
	}
}

func (c *actionsCmd) list(a *app, entries []host.ActionEntry) error {
	if c.JSON {
		out := make([]actionOutput, len(entries))
		for i, e := range entries {
			out[i] = toActionOutput(e)
		}
		return writeJSON(a.stdout, out)
	}
	rows := make([][]string, len(entries))
	for i, e := range entries {
		rows[i] = []string{e.Name, origin(e), e.Summary}
	}
	return a.table([]string{"ACTION", "FROM", "SUMMARY"}, rows)
}

// origin names the source of an action.
func origin(e host.ActionEntry) string {
	switch e.Kind {
	case "plugin", "linked":
		return e.Kind + " " + e.Bundle + " " + e.Version
	}
	return e.Kind
}

func (a *app) describeAction(e host.ActionEntry) error {
	fmt.Fprintf(a.out, "%s: %s\n", e.Name, inLine(e.Summary))
	traits := []string{origin(e)}
	if e.Streaming {
		traits = append(traits, "streams")
	}
	if e.Idempotent {
		traits = append(traits, "idempotent")
	}
	if e.Once {
		traits = append(traits, "at most once")
	}
	if e.Reads {
		traits = append(traits, "only reads")
	}
	if e.DryRun {
		traits = append(traits, "checked by a dry run")
	}
	fmt.Fprintf(a.out, "(%s)\n", strings.Join(traits, ", "))
	if err := a.describeMembers("parameters", e.Params); err != nil {
		return err
	}
	return a.describeMembers("result", e.Result)
}

func (a *app) describeMembers(title string, s *schema.Schema) error {
	var rows [][]string
	for _, f := range reference.Fields(s) {
		need := ""
		if title == "parameters" && f.Required {
			need = "required"
		}
		rows = append(rows, []string{f.Path, f.Type, need, f.About()})
	}
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(a.out, "\n"+title)
	return a.table(nil, rows)
}
