package spec

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const referenceFile = "../../../docs/reference/workflow.md"

// TestReference compares the reference with the grammar: run with -update after
// a change.
func TestReference(t *testing.T) {
	t.Parallel()
	intro, err := os.ReadFile("testdata/reference_intro.md")
	if err != nil {
		t.Fatal(err)
	}
	got := string(intro) + referenceTables(theGrammar())
	if *update {
		if err := os.WriteFile(referenceFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("the reference is not up to date; run go test ./host/internal/spec -update (-file +grammar):\n%s", d)
	}
}

func referenceTables(g *grammar) string {
	var b strings.Builder
	for _, s := range g.sections() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| key | value | meaning |\n| --- | --- | --- |\n", s.title, s.doc)
		for _, k := range s.keys {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", keyCell(k), formCell(k.shape), meaningCell(k))
		}
	}
	return b.String()
}

func keyCell(k *key) string {
	cell := "`" + k.name + "`"
	for _, alias := range k.aliases {
		cell += ", `" + alias + "`"
	}
	return cell
}

func meaningCell(k *key) string {
	cell := k.doc
	if k.required {
		cell = "**Required.** " + cell
	}
	if k.fallback != "" {
		cell += " Default: " + k.fallback + "."
	}
	return strings.ReplaceAll(cell, "|", `\|`)
}

func formCell(s *shape) string {
	var forms []string
	if s.text != nil {
		forms = append(forms, textCell(s.text))
	}
	if s.boolean {
		forms = append(forms, "boolean")
	}
	if s.number != nil {
		forms = append(forms, numberCell(s.number))
	}
	switch s.duration {
	case time.Second:
		forms = append(forms, "seconds")
	case time.Millisecond:
		forms = append(forms, "milliseconds")
	}
	if s.list != nil {
		forms = append(forms, "list of "+formCell(s.list))
	}
	if s.mapping != nil {
		forms = append(forms, fmt.Sprintf("[%s](#%s)", s.mapping.title, strings.ReplaceAll(strings.ToLower(s.mapping.title), " ", "-")))
	}
	if s.entries != nil {
		forms = append(forms, "mapping to "+formCell(s.entries))
	}
	if s.anything {
		forms = append(forms, "anything")
	}
	cell := strings.Join(forms, " or ")
	if s.positive {
		cell = strings.TrimSuffix(cell, " from 0") + " greater than 0"
	}
	return cell
}

func textCell(t *textForm) string {
	switch {
	case t.enum != nil:
		return "`" + strings.Join(t.enum, "`, `") + "`"
	case t.scalar:
		return "text, number or boolean"
	}
	return "text"
}

func numberCell(n *numberForm) string {
	cell := "number"
	if n.integer {
		cell = "integer"
	}
	if n.max != nil {
		return fmt.Sprintf("%s %s to %s", cell, numeral(n.min), numeral(*n.max))
	}
	return fmt.Sprintf("%s from %s", cell, numeral(n.min))
}
