package teacmd

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/the-edge-agent/tea/docs"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

type explainCmd struct {
	Topic string `arg:"" optional:"" name:"code|action" help:"Error code, such as TEA1401, or name of an action. Without it, all codes are listed."`
	pluginFlags
	reportFlags
}

func (c *explainCmd) Run(a *app) error {
	code := strings.ToUpper(c.Topic)
	if c.Topic != "" && !strings.HasPrefix(code, "TEA") {
		return (&actionsCmd{Name: c.Topic, pluginFlags: c.pluginFlags, reportFlags: c.reportFlags}).Run(a)
	}
	a.setReport(c.reportFlags)
	if code != "" {
		page, err := docs.Errors.ReadFile("errors/" + code + ".md")
		if err == nil {
			a.printPage(string(page))
			return nil
		}
	}
	pages, err := fs.Glob(docs.Errors, "errors/*.md")
	if err != nil {
		return err
	}
	var codes []string
	var rows [][]string
	for _, name := range pages {
		page, err := docs.Errors.ReadFile(name)
		if err != nil {
			return err
		}
		title, _, _ := strings.Cut(string(page), "\n")
		_, title, _ = strings.Cut(title, ": ")
		codes = append(codes, strings.TrimSuffix(path.Base(name), ".md"))
		rows = append(rows, []string{codes[len(codes)-1], title})
	}
	if code != "" {
		return usageErrorf("unknown code %q%s", c.Topic, diag.Ending(code, codes))
	}
	return a.table([]string{"CODE", "MEANING"}, rows)
}

// printPage prints a Markdown page for a terminal: headings without their markers, code
// blocks indented.
func (a *app) printPage(page string) {
	indent := ""
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(line, "```") && indent == "":
			indent = "    "
		case strings.HasPrefix(line, "```"):
			indent = ""
		case indent != "":
			fmt.Fprint(a.out, indent, line)
		default:
			fmt.Fprint(a.out, strings.TrimLeft(line, "# "))
		}
	}
}
