package teacmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// completers are scripts for real shells that load the completion of tea and
// print, a word a line, what it offers behind the words in $@.
var completers = map[string]string{
	"bash": `source "$SCRIPT"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tea; printf '%s\n' "${COMPREPLY[@]}"; true`,
	// What the completion system would be called with is printed instead.
	"zsh": `compdef() { }
_files() { }
_describe() { local item; for item in "${(@P)2}"; do [[ $item == ${words[CURRENT]}* ]] && print -r -- "${item%%:*}"; done }
compadd() { shift; local item; for item; do [[ $item == ${words[CURRENT]}* ]] && print -r -- "$item"; done }
source "$SCRIPT"
words=("$@"); CURRENT=$#; _tea; true`,
	"fish": `source $SCRIPT
complete -C (string join ' ' -- $argv) | string replace -r '\t.*' ''; true`,
}

// The scripts are tried in the shells that are here; bash must be.
func TestCompletionInRealShells(t *testing.T) {
	t.Parallel()
	tests := []struct {
		words string
		want  string // what must be offered
		never string // what must not
	}{
		{"tea ", "checkpoint run runs", "--help flow.yaml"},
		{"tea ru", "run runs", "resume"},
		{"tea run --inter", "--interactive --interrupt-after --interrupt-before", "--input"},
		{"tea run ", "", "--input list"},
		{"tea runs ", "events list show", "flow.yaml gc"},
		{"tea runs show ", "", "list events"},
		{"tea checkpoint d", "diff", "show"},
		{"tea checkpoint diff --re", "--records", "--at"},
		{"tea inspect --format ", "dot json mermaid svg text", "flow.yaml"},
		{"tea run --durability ", "async exit off sync", "flow.yaml"},
		{"tea completion ", "bash fish zsh", "flow.yaml"},
		{"tea run -c checkpoint --st", "--stream", ""},
		{"tea actions json.p", "json.parse", "json.stringify"},
		{"tea call json.p", "json.parse", "json.stringify"},
		{"tea call json.parse ", "", "json.parse json.stringify"},
		{"tea runs show -c kept one", "one", "flow.yaml"},
		{"tea resume -c kept ", "one", ""},
	}
	for shell, program := range completers {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(shell)
			if err != nil && shell != "bash" {
				t.Skipf("no %s here: its completion is not tried", shell)
			}
			if err != nil {
				t.Fatal(err)
			}
			dir := workdir(t, map[string]string{"complete": program, "flow.yaml": "nodes: [{name: a, interrupt: before}]\n"})
			keep := exec.Command("tea", "run", "flow.yaml", "-c", "kept", "-q")
			keep.Dir = dir
			_ = keep.Run() // stops at the interrupt
			kept, err := filepath.Glob(filepath.Join(dir, "kept", "*.tea"))
			if err != nil || len(kept) != 1 {
				t.Fatalf("kept %v, %v", kept, err)
			}
			if err := os.Rename(kept[0], filepath.Join(dir, "kept", "one.tea")); err != nil {
				t.Fatal(err)
			}
			script, err := exec.Command("tea", "completion", shell).Output()
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(workdir(t, map[string]string{"script": string(script)}), "script")
			for _, test := range tests {
				args := append([]string{"complete"}, strings.Split(test.words, " ")...)
				if shell == "zsh" {
					args = append([]string{"-f"}, args...)
				}
				cmd := exec.Command(path, args...)
				cmd.Dir = dir
				cmd.Env = append(cmd.Environ(), "SCRIPT="+file, "HOME="+dir)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s", test.words, err, out)
				}
				offered := map[string]bool{}
				for word := range strings.FieldsSeq(string(out)) {
					offered[word] = true
				}
				var missing, wrong []string
				for word := range strings.FieldsSeq(test.want) {
					if !offered[word] {
						missing = append(missing, word)
					}
				}
				for word := range strings.FieldsSeq(test.never) {
					if offered[word] {
						wrong = append(wrong, word)
					}
				}
				if diff := cmp.Diff([2][]string{}, [2][]string{missing, wrong}); diff != "" {
					t.Errorf("%q: missing and wrong:\n%s\n%s", test.words, diff, out)
				}
			}
		})
	}
}
