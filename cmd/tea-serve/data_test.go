package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWorkflowWritesBelowItsDataDirectory(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write("flow.yaml", `
name: report
nodes:
  - {name: read, uses: file.read, with: {path: greeting.txt}, output: {text: "{{ result.content }}"}}
  - {name: write, uses: file.append, with: {path: log.txt, content: "{{ state.text }}"}}
  - {name: deep, uses: file.write, with: {path: "{{ run.data_dir }}/out/a.txt", create_dirs: true, content: "deep"}}
  - {name: list, uses: file.list, output: {files: "{{ result }}"}}
  - {name: done, uses: file.delete, if: "{{ state.event }}", with: {path: "{{ state.event.path if state.event else '' }}"}}
serve: {triggers: [{watch: inbox}]}
`)
	p.write("greeting.txt", "hello ")
	p.write("inbox/a", "1")
	s := p.serve()
	s.awaitStatuses("report", map[string]int{"done": 1})
	if run := s.run("report", "{}"); run["status"] != "done" {
		t.Fatalf("run: %v\n%s", run, s.log)
	}
	data := filepath.Join(p.home, "tea", "runs", "data", "report")
	for name, want := range map[string]string{"log.txt": "hello hello ", "out/a.txt": "deep"} {
		if text, err := os.ReadFile(filepath.Join(data, name)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	for _, name := range []string{"log.txt", "inbox/a"} {
		if _, err := os.Stat(filepath.Join(p.dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s next to the workflow: %v", name, err)
		}
	}
}

func TestRootOfAWorkflowIsAsItIsWritten(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"flow.yaml": "settings: {file: {root: .}}\nnodes: [{name: w, uses: file.write, with: {path: new.txt, content: x}}]\n"})
	s := p.serve()
	if run := s.run("flow", "{}"); run["status"] != "done" {
		t.Fatalf("run: %v\n%s", run, s.log)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "new.txt")); err != nil {
		t.Error(err)
	}
}

func TestDataDirectoryOfTeaRun(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"flow.yaml": `nodes: [{name: w, uses: file.write, with: {path: new.txt, content: "{{ run.data_dir }}"}}]`})
	log := newLogs()
	if err := p.command(log, "run", filepath.Join(p.dir, "flow.yaml")).Run(); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	text, err := os.ReadFile(filepath.Join(p.dir, "new.txt"))
	if err != nil || string(text) != p.dir {
		t.Errorf("data_dir is %s, %v; want %s", text, err, p.dir)
	}
	s := p.serve()
	if n := strings.Count(fmt.Sprint(s.run("flow", "{}")), "done"); n == 0 {
		t.Errorf("the run is not done\n%s", s.log)
	}
}

func TestResumeOnTheCommandLineWritesBelowTheDataDirectory(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{
		"flow.yaml": `
nodes:
  - {name: ask, uses: human.ask, with: {question: "Publish?"}}
  - {name: publish, uses: file.write, with: {path: a.md, content: "{{ run.data_dir }}"}}
  - {name: below, uses: workflow.run, with: {path: sub.yaml}}
`,
		"sub.yaml": `nodes: [{name: w, uses: file.write, with: {path: sub.md, content: "{{ run.data_dir }}"}}]`,
	})
	s := p.serve()
	run := s.run("flow", "{}")
	s.interrupt()
	log := newLogs()
	if err := p.command(log, "resume", run["id"].(string), "--answer", `ask="yes"`).Run(); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	data := filepath.Join(p.home, "tea", "runs", "data", "flow")
	for _, name := range []string{"a.md", "sub.md"} {
		if text, err := os.ReadFile(filepath.Join(data, name)); err != nil || string(text) != data {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

func TestDirectoryThatIsMissingBelowTheDataDirectory(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{
		"reports/old.md": "", "kept/a.md": "",
		"flow.yaml": `
nodes:
  - {name: ask, uses: human.ask, with: {question: "Publish?"}}
  - {name: top, uses: file.write, with: {path: a.md, content: x}}
  - {name: kept, uses: file.write, with: {path: kept/a.md, content: x}}
  - {name: publish, uses: file.write, with: {path: reports/a.md, content: x}}
`,
	})
	s := p.serve()
	s.log.await(t, "serving at")
	want := fmt.Sprintf("the directory %s does not exist", filepath.Join(p.home, "tea", "runs", "data", "flow", "reports"))
	if text := s.log.String(); strings.Count(text, "TEA1406") != 1 || !strings.Contains(text, want) {
		t.Errorf("want one warning: %s\n%s", want, text)
	}
}
