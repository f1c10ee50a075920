package examples

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"

	"github.com/the-edge-agent/tea/examples/internal/offline"
)

// dialect has workflows and names as they are written for other programs.
const dialect = "testdata/dialect"

// TestNamesOfOtherWorkflows fails if a name of other workflows is neither known nor in a
// table of the guide.
func TestNamesOfOtherWorkflows(t *testing.T) {
	t.Parallel()
	got, err := shell(t.Context(), t.TempDir(), t.TempDir(), "tea actions --json")
	if err != nil || got.code != 0 {
		t.Fatal(err, got)
	}
	type object struct{ Properties map[string]any }
	var list []struct {
		Name           string
		Params, Result object
	}
	if err := json.Unmarshal([]byte(got.stdout), &list); err != nil {
		t.Fatal(err)
	}
	actions := map[string][2]object{}
	for _, a := range list {
		actions[a.Name] = [2]object{a.Params, a.Result}
	}
	tabled := namesInTables(t, "../docs/guide/migration.md")
	names, err := os.Open(filepath.Join(dialect, "names.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer names.Close()
	tests := 0
	dir := t.TempDir()
	for lines := bufio.NewScanner(names); lines.Scan(); {
		action, members, ok := strings.Cut(lines.Text(), ": ")
		if !ok || strings.HasPrefix(action, "#") {
			continue
		}
		if key, is := strings.CutPrefix(action, "settings "); is {
			for i, value := range strings.Fields(members) {
				text := fmt.Sprintf("settings: {%s: %q}\nnodes: [{name: a, uses: ltm.list}, {name: b, uses: graph.stats}]\n", key, value)
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s%d.yaml", key, i)), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			continue
		}
		tests++
		known, ok := actions[action]
		if !ok {
			if !tabled[action] {
				t.Errorf("the action %s is neither registered nor in a table of docs/guide/migration.md", action)
			}
			continue
		}
		params, results, _ := strings.Cut(members, "->")
		for i, text := range []string{params, results} {
			for _, name := range strings.Fields(text) {
				if _, ok := known[i].Properties[name]; !ok && !tabled[name] {
					t.Errorf("%s: the %s %s is neither known nor in a table of docs/guide/migration.md", action, []string{"parameter", "result"}[i], name)
				}
			}
		}
	}
	if got, err := shell(t.Context(), dir, t.TempDir(), "tea validate --strict *.yaml"); err != nil || got.code != 0 {
		t.Error("settings of other workflows are refused: ", err, got)
	}
	if tests < 15 {
		t.Errorf("%d actions were compared", tests)
	}
}

// namesInTables returns the texts in backquotes in the tables of a page.
func namesInTables(t *testing.T, page string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "|") {
			for i, part := range strings.Split(line, "`") {
				names[part] = names[part] || i%2 == 1
			}
		}
	}
	return names
}

// TestWorkflowsOfOtherPrograms runs workflows as they are written for other programs, or
// compares why they are refused.
func TestWorkflowsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(dialect, "*.txtar"))
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			dir, parts := t.TempDir(), map[string][]byte{}
			for _, f := range archive.Files {
				parts[f.Name] = f.Data
				if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			env := []string{"MODEL=" + model(t, parts["model.yaml"])}
			switch strings.TrimSpace(string(parts["needs"])) {
			case "cozo":
				needCozo(t)
			case "kuzu":
				env = append(env, kuzu(t))
			}
			if want, ok := parts["want.txt"]; ok {
				got, err := shell(t.Context(), dir, t.TempDir(), "tea validate workflow.yaml")
				if err != nil || got.code != 3 {
					t.Fatal(err, got)
				}
				if *update {
					archive.Files[len(archive.Files)-1].Data = []byte(got.stderr)
					if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
						t.Fatal(err)
					}
				} else if diff := cmp.Diff(string(want), got.stderr); diff != "" {
					t.Errorf("refused in other words (-want +got):\n%s", diff)
				}
				return
			}
			runDialect(t, dir, env, parts["want.json"])
		})
	}
}

// runDialect runs the workflow in a directory and compares members of its last state.
func runDialect(t *testing.T, dir string, env []string, members []byte) {
	t.Helper()
	got, err := shell(t.Context(), dir, t.TempDir(), strings.Join(env, " ")+" tea validate --strict workflow.yaml && "+strings.Join(env, " ")+" tea run -q workflow.yaml -o state.json")
	if err != nil || got.code != 0 {
		t.Fatal(err, got)
	}
	text, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want, state map[string]any
	for into, text := range map[*map[string]any][]byte{&want: members, &state: text} {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if diff := cmp.Diff(want[key], state[key]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}

// model serves a model with prepared answers and embeddings, and returns its address.
func model(t *testing.T, prepared []byte) string {
	t.Helper()
	var answers []offline.Answer
	if err := yaml.Unmarshal(prepared, &answers); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", offline.Model(answers, nil))
	mux.HandleFunc("/v1/embeddings", func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(w, fmt.Sprint("bad request: ", err), http.StatusBadRequest)
			return
		}
		data := make([]any, len(req.Input))
		for i, text := range req.Input {
			data[i] = map[string]any{"index": i, "embedding": []any{len(text), 1}}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data, "model": "e"})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}
