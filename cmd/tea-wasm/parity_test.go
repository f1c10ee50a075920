//go:build !js

package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/plugins/memory"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// parityCase is a workflow with its files.
type parityCase struct {
	Name     string            `json:"name"`
	Workflow string            `json:"workflow"`
	Files    map[string]string `json:"files"`
}

// outcome is what a user sees of a workflow, without times and ids.
type outcome struct {
	// Findings are the messages of validation.
	Findings []string `json:"findings"`
	Status   string   `json:"status"`
	State    any      `json:"state"`
	Pending  []string `json:"pending"`
	Error    string   `json:"error"`
	Type     string   `json:"type"`
	// Events are kind and path of each event, sorted: branches run concurrently.
	Events []string `json:"events"`
}

// TestSameResultsAsNative runs the workflows of the examples and of the tests
// natively and in the browser.
func TestSameResultsAsNative(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := startBrowser(t, t.TempDir()).open(t, s.URL)
	var offered []string
	if err := json.Unmarshal([]byte(p.script(`
		const tea = await openTea();
		const names = (await tea.actions()).map((a) => a.name);
		await tea.close();
		return names;`)), &offered); err != nil {
		t.Fatal(err)
	}
	var cases []parityCase
	var want []outcome
	for _, c := range parityCases(t) {
		a := native(t, c, offered)
		if b := native(t, c, offered); !cmp.Equal(a, b) {
			continue // it depends on the time or its directory
		}
		cases, want = append(cases, c), append(want, a)
	}
	finished := 0
	for _, w := range want {
		if w.Status == string(flow.Done) {
			finished++
		}
	}
	if finished < 40 || len(cases) < 120 {
		t.Errorf("there are %d workflows, of which %d run to their end: too few to compare", len(cases), finished)
	}
	for i, got := range inBrowser(t, s, p, cases) {
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Errorf("%s: %s (-native +browser):\n%s", cases[i].Name, cases[i].Workflow, diff)
		}
	}
	t.Logf("%d workflows, %d run to their end", len(cases), finished)
}

// parityCases collects the workflows.
func parityCases(t *testing.T) []parityCase {
	t.Helper()
	var cases []parityCase
	add := func(name string, files map[string]string) {
		for _, workflow := range sortedKeys(files) {
			text := files[workflow]
			elsewhere := func(what string) bool { return strings.Contains(text, what) } // uses what differs in a browser
			if !strings.HasSuffix(workflow, ".yaml") || !strings.Contains(text, "nodes:") || slices.ContainsFunc([]string{"http.", "time.sleep", "code.execute", "memory.sync", "timezone:"}, elsewhere) {
				continue
			}
			cases = append(cases, parityCase{Name: name, Workflow: workflow, Files: files})
		}
	}
	root := os.DirFS("../..")
	for _, pattern := range []string{"test/script/*.txtar", "host/internal/graph/testdata/*/*.txtar", "host/internal/spec/testdata/bad/*.txtar"} {
		names, err := fs.Glob(root, pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "/slow_imports.txtar") {
				continue // it takes seconds
			}
			archive, err := txtar.ParseFile(filepath.Join("../..", name))
			if err != nil {
				t.Fatal(err)
			}
			files := map[string]string{}
			for _, f := range archive.Files {
				files[filepath.ToSlash(filepath.Clean(f.Name))] = string(f.Data)
			}
			add(name, files)
		}
	}
	examples, err := fs.Glob(root, "examples/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, name := range examples {
		if dir := filepath.Dir(name); !seen[dir] {
			seen[dir] = true
			add(dir, treeOf(t, filepath.Join("../..", dir)))
		}
	}
	return cases
}

func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir // made by other tests
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if rel, _ := filepath.Rel(dir, path); len(data) < 1<<20 {
			files[filepath.ToSlash(rel)] = string(data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// native returns the outcome on this system, with those actions of the memory that
// the browser offers.
func native(t *testing.T, c parityCase, offered []string) (o outcome) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range c.Files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := memory.Bundle()
	m.Actions = slices.DeleteFunc(m.Actions, func(a tea.Action) bool { return !slices.Contains(offered, a.Info().Name) })
	h, err := host.New(host.Options{Bundles: []*tea.Bundle{&m}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	file := filepath.Join(dir, c.Workflow)
	options := host.LoadOptions{LookupEnv: func(string) (string, bool) { return "", false }}
	for _, d := range h.Validate(file, options) {
		o.Findings = append(o.Findings, fmt.Sprintf("%s %d:%d %s: %s (%s)", d.Code, d.Line, d.Column, d.Path, d.Message, d.Hint))
	}
	wf, err := h.Load(file, options)
	if err != nil {
		return o
	}
	defer wf.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	res, err := wf.Run(ctx, host.RunOptions{Events: func(e flow.Event) { o.Events = append(o.Events, string(e.Type)+" "+e.Path) }})
	slices.Sort(o.Events)
	if err != nil {
		o.Error = err.Error()
		return o
	}
	o.Status, o.State = string(res.Status), asJavaScript(res.State)
	for _, p := range res.Pending {
		o.Pending = append(o.Pending, p.ID)
	}
	if res.Err != nil {
		o.Error, o.Type = res.Err.Error(), string(tea.AsError(res.Err).Type)
		if errors.As(res.Err, new(*flow.BudgetError)) {
			o.Type = string(tea.BudgetExceeded)
		}
	}
	return o
}

// asJavaScript returns a value as JavaScript has it, where 2.0 and 2 are the same.
func asJavaScript(v any) any {
	switch v := v.(type) {
	case float64:
		if i := int64(v); float64(i) == v && i > -1<<53 && i < 1<<53 {
			return i
		}
	case []any:
		for i, e := range v {
			v[i] = asJavaScript(e)
		}
	case map[string]any:
		for key, e := range v {
			v[key] = asJavaScript(e)
		}
	}
	return v
}

// inBrowser returns the outcomes in Chromium.
func inBrowser(t *testing.T, s *site, p *page, cases []parityCase) []outcome {
	t.Helper()
	s.mux.HandleFunc("/cases.json", func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(cases); err != nil {
			t.Error(err)
		}
	})
	text := p.script(`
		const logs = [];
		const tea = await openTea({ onLog: (line) => logs.push(line) });
		const outcomeOf = async (c, dir) => {
			for (const [name, text] of Object.entries(c.files)) await tea.files.write(dir + '/' + name, text);
			const workflow = { file: dir + '/' + c.workflow };
			const o = { findings: null, status: '', state: null, pending: null, error: '', type: '', events: null };
			for (const d of await tea.validate(workflow)) (o.findings ??= []).push(d.code + ' ' + (d.line ?? 0) + ':' + (d.column ?? 0) + ' ' + (d.path ?? '') + ': ' + d.message + ' (' + (d.hint ?? '') + ')');
			const run = tea.run(workflow, { durability: 'off' });
			try {
				for await (const e of run) (o.events ??= []).push(e.event + ' ' + (e.path ?? ''));
			} catch {}
			o.events?.sort((a, b) => a < b ? -1 : a > b ? 1 : 0);
			const result = await run.catch((e) => {
				if (e.diagnostics) return null;
				o.error = e.message;
				if (e.result) o.type = e.type;
				return e.result ?? null;
			});
			if (result) {
				o.status = result.status;
				o.state = result.state;
				for (const p of result.pending ?? []) (o.pending ??= []).push(p.id);
			}
			return o;
		};
		const outcomes = [];
		for (const [i, c] of (await (await fetch('/cases.json')).json()).entries()) {
			let timer;
			const late = new Promise((done) => timer = setTimeout(() => done({ error: 'no outcome after a minute', findings: logs.splice(0) }), 60000));
			outcomes.push(await Promise.race([outcomeOf(c, 'c' + i), late]));
			clearTimeout(timer);
			if (outcomes.at(-1).error.startsWith('no outcome')) return outcomes; // the thread is busy
		}
		await tea.close();
		return outcomes;`)
	v, err := value.Decode([]byte(text))
	list, ok := v.([]any)
	if err != nil || !ok {
		t.Fatalf("the page returned %.2000s: %v", text, err)
	}
	outcomes := make([]outcome, len(list))
	for i, entry := range list {
		raw, err := value.Encode(entry)
		if err == nil {
			err = json.Unmarshal(raw, &outcomes[i])
		}
		if err != nil {
			t.Fatal(err)
		}
		outcomes[i].State = asJavaScript(entry.(map[string]any)["state"])
	}
	return outcomes
}
