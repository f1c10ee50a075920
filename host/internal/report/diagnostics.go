package report

import (
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/sdk/diag"
)

// Diagnostics prints findings, each with the line it is about and what to do,
// and how many there are.
func (r *Report) Diagnostics(list diag.List) {
	var b strings.Builder
	files := sources{}
	errors, warnings := 0, 0
	for _, d := range list {
		if d.Severity == diag.Error {
			errors++
		} else {
			warnings++
			if r.o.Quiet {
				continue
			}
		}
		r.diagnostic(&b, files, d)
	}
	if count := countWords(errors, warnings); count != "" && len(list) > 1 && !(r.o.Quiet && errors == 0) {
		b.WriteString(count + "\n")
	}
	r.print(b.String())
}

func (r *Report) diagnostic(b *strings.Builder, files sources, d diag.Diagnostic) {
	if pos := d.Pos.String(); pos != "" {
		b.WriteString(r.style.paint(bold, Printable(pos)+": "))
	}
	color := yellow
	if d.Severity == diag.Error {
		color = red
	}
	b.WriteString(r.style.paint(color, fmt.Sprintf("%s %s", d.Severity, d.Code)) + ": " + Printable(d.Message))
	if d.Path != "" {
		b.WriteString(r.style.paint(dim, " ("+d.Path+")"))
	}
	b.WriteString("\n" + files.excerpt(d.Pos, r.style))
	if d.Hint != "" {
		b.WriteString("  " + r.style.paint(green, "hint:") + " " + Printable(d.Hint) + "\n")
	}
}

// countWords is "2 errors, 1 warning".
func countWords(errors, warnings int) string {
	var parts []string
	add := func(n int, word string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+word)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, word))
		}
	}
	add(errors, "error")
	add(warnings, "warning")
	return strings.Join(parts, ", ")
}
