package migrate

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/the-edge-agent/tea/host"
)

// kind is the kind of a finding.
type kind int

const (
	translated kind = iota // nothing to do
	decide                 // the author has to decide
	missing                // there is no counterpart
)

// finding is a line of the report.
type finding struct {
	kind kind
	line int
	text string
}

// report is what is known of a translation.
type report struct {
	source, target string
	findings       []finding
	problems       []string
}

// add adds a finding about a node of the old document.
func (r *report) add(k kind, at *yaml.Node, format string, args ...any) {
	f := finding{kind: k, text: fmt.Sprintf(format, args...)}
	if at != nil {
		f.line = at.Line
	}
	r.findings = append(r.findings, f)
}

// check adds what the validation of the new workflow has found.
func (r *report) check(diags host.Diagnostics) {
	for _, d := range diags {
		r.problems = append(r.problems, fmt.Sprintf("line %d: %s %s: %s", d.Line, d.Severity, d.Code, d.Message))
	}
}

func (r *report) count(k kind) (n int) {
	for _, f := range r.findings {
		if f.kind == k {
			n++
		}
	}
	return n
}

// summary is one line about the translation.
func (r *report) summary(invalid bool) string {
	state := "valid"
	if invalid {
		state = "not valid yet"
	}
	return fmt.Sprintf("%s; %d translated, %d to decide, %d without a counterpart", state, r.count(translated), r.count(decide), r.count(missing))
}

// text is the report as Markdown.
func (r *report) text() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nTranslated from %s. Line numbers are those of %s.\n", r.target, r.source, r.source)
	list := slices.Clone(r.findings)
	slices.SortStableFunc(list, func(a, b finding) int { return a.line - b.line })
	for _, part := range []struct {
		kind  kind
		title string
	}{{decide, "To decide"}, {missing, "Without a counterpart"}, {translated, "Translated"}} {
		if r.count(part.kind) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n", part.title)
		for _, f := range list {
			if f.kind != part.kind {
				continue
			}
			if f.line > 0 {
				fmt.Fprintf(&b, "* line %d: %s\n", f.line, f.text)
			} else {
				fmt.Fprintf(&b, "* %s\n", f.text)
			}
		}
	}
	if len(r.problems) > 0 {
		fmt.Fprintf(&b, "\n## What `tea validate` reports about %s\n\n", r.target)
		for _, p := range r.problems {
			fmt.Fprintf(&b, "* %s\n", strings.ReplaceAll(p, "\n", " "))
		}
	}
	return []byte(b.String())
}
