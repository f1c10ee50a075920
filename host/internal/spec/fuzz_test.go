package spec

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/the-edge-agent/tea/host/internal/source"
)

// FuzzParse looks for panics, endless work and errors without a place.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"nodes: [{name: a}]",
		"nodes: {a: {action: x.y, p: 1}, b: {run: |2\n   x\n}}",
		"a: &a [1]\nb: {<<: *a}\n? [x]\n: y\n",
		"nodes:\n- {name: l, type: while_loop, condition: x, body: {a: }}\n- {name: m, type: dynamic_parallel, items: [1], action: {uses: x}}\n",
		"nodes: [{name: s, subgraph: f.yaml}]\nimports: [{path: f.yaml}]\nsettings: {a: \"${X:-y}\"}\n",
		"edges: [{from: START, parallel: [a], fan_in: b}, {from: a, condition: x, targets: {1: b}}]",
		"state_schema: {a: int, b: {type: list, default: 3}}\nbudget: {usd: 1e400}\n",
		"\t\"\\x\n", "{{ x }}", "- &x *x", "!!binary x", "a: 'b", "\ufeffa: 1",
	} {
		f.Add([]byte(seed), []byte(seed))
	}
	f.Fuzz(func(t *testing.T, data, overlay []byte) {
		files := []txtar.File{{Name: "f.yaml", Data: data}, {Name: "over.yaml", Data: overlay}}
		o := Options{ReadFile: archiveFiles(files), Overlays: []string{"over.yaml"}}
		start := time.Now()
		w, diags := Load("f.yaml", o)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("took %s for %d bytes", took, len(data))
		}
		if w == nil && !diags.HasErrors() {
			t.Error("no workflow and no error")
		}
		for _, d := range diags {
			if d.File == "" || d.Code == "" || d.Message == "" {
				t.Errorf("incomplete diagnostic: %+v", d)
			}
		}
	})
}

// TestHostileFiles holds what a file may cost against small files made to
// cost much.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", 'b'+i, 'b'+i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", 'a'+i), 10), ", "))
	}
	tests := []struct{ name, doc, code string }{
		{"alias bomb", bomb, "TEA1008"},
		{"merge bomb", strings.ReplaceAll(bomb, "&b [", "&b [{<<: *a}, "), "TEA1008"},
		{"deep lists", strings.Repeat("[", 5000), "TEA1006"},
		{"deep closed lists", "a: " + strings.Repeat("[", 500) + strings.Repeat("]", 500), "TEA1007"},
		{"deep beyond the parser", strings.Repeat("[", 20_000), "TEA1007"},
		{"deep mappings", strings.Repeat("{a: ", 500) + strings.Repeat("}", 500), "TEA1007"},
		{"too large", strings.Repeat("# comment\n", source.MaxBytes/10+1), "TEA1003"},
		{"comments", strings.Repeat("#\n", 200_000), "TEA1004"},
		{"long number", "a: " + strings.Repeat("9", 20_000), "TEA1011"},
		{"many keys", strings.Repeat("? ", 20_000), "TEA1007"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, diags := Parse("f.yaml", []byte(test.doc), Options{})
			found := false
			for _, d := range diags {
				found = found || d.Code == test.code
			}
			if !found {
				t.Errorf("want %s, got %.500s", test.code, diags.Error())
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{10, 1000, 10_000} {
		var doc strings.Builder
		doc.WriteString("name: big\nnodes:\n")
		for i := range n {
			fmt.Fprintf(&doc, "  - name: n%d\n    uses: http.get\n    with: {url: \"http://x/{{ state.i }}\", headers: {a: b}}\n    retry: {max_retries: 3}\n    output: r%d\n", i, i)
		}
		data := []byte(doc.String())
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, diags := Parse("f.yaml", data, Options{}); len(diags) > 0 {
					b.Fatal(diags)
				}
			}
		})
	}
}
