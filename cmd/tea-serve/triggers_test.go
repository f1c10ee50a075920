package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/test/teaproc"
)

// note is a workflow that appends a line to a file, whose first run in a row
// decides what is seen.
func note(p *project, text, serve string) string {
	return `
settings: {file: {root: "` + p.home + `"}}
nodes:
  - {name: note, uses: file.append, with: {path: notes, content: "\n` + text + `"}}
` + serve
}

// notes returns the lines that runs have written.
func (p *project) notes() []string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.home, "notes"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// awaitNotes waits until runs have written so many lines.
func (s *service) awaitNotes(p *project, n int) {
	p.t.Helper()
	// The end of a run is logged after its last node.
	s.log.Until(p.t, fmt.Sprint(n, " notes"), func() bool { return len(p.notes()) >= n })
}

func TestScheduleStartsRuns(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write("tick.yaml", note(p, "{{ state.what }}", `
variables: {greeting: tick}
serve:
  triggers:
    - {every: 0.2, input: {what: "{{ variables.greeting }} {{ event.trigger }}"}}
    - {cron: "* * * * *", timezone: Asia/Tokyo, input: {what: cron}}
`))
	s := p.serve()
	for range 3 {
		s.log.await(t, `of tick: done`)
	}
	if n := p.notes(); len(n) < 3 || n[0] != "tick every 0.2" {
		t.Errorf("notes: %q", n)
	}
	r := s.request("GET", "/v1/workflows/tick", "")
	for _, trigger := range r.body["triggers"].([]any) {
		if trigger.(map[string]any)["next"] == nil {
			t.Errorf("trigger without a next time: %s", r)
		}
	}
}

func TestStartAndEndsOfRunsStartRuns(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{
		"first.yaml":  "nodes: [{name: n, run: 'return {word = \"tea\"}'}]\nserve: {triggers: [{at_start: true}]}\n",
		"failed.yaml": "nodes: [{name: n, run: 'error(\"no luck\")'}]\nserve: {triggers: [{on_run: first}]}\n",
	})
	p.write("last.yaml", note(p, "{{ state.word }} {{ state.of }} {{ state.status }}", `
serve:
  triggers:
    - {on_run: first, input: {word: "{{ event.state.word }}", of: "{{ event.workflow }}", status: "{{ event.status }}"}}
    - {on_run: failed, name: bad, status: [failed], input: {word: "{{ event.error is string }}", of: failed, status: "{{ event.status }}"}}
`))
	s := p.serve()
	s.log.await(t, "of last: done")
	s.log.await(t, "of last: done")
	got := map[string]bool{}
	for _, n := range p.notes() {
		got[strings.ToLower(n)] = true
	}
	if diff := cmp.Diff(map[string]bool{"tea first done": true, "true failed failed": true}, got); diff != "" {
		t.Errorf("notes (-want +got):\n%s\n%s", diff, s.log)
	}
}

func TestFilesAreProcessedOnce(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write("import.yaml", note(p, "{{ state.event.name }} {{ state.event.size }}", `serve: {triggers: [{watch: inbox, pattern: "*.csv"}]}`))
	p.write("inbox/a.csv", "1")
	p.write("inbox/b.txt", "1")
	p.write("inbox/.hidden.csv", "1")
	s := p.serve()
	s.awaitNotes(p, 1)
	p.write("inbox/b.csv", "22")
	s.awaitNotes(p, 2)
	s.kill()
	p.write("inbox/c.csv", "333")
	s = p.serve()
	s.awaitNotes(p, 3)
	p.write("inbox/a.csv", "4444")
	s.awaitNotes(p, 4)
	if diff := cmp.Diff([]string{"a.csv 1", "b.csv 2", "c.csv 3", "a.csv 4"}, p.notes()); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestFileWhoseNameIsNotTextIsReportedOnce(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write("import.yaml", note(p, "{{ state.event.name }}", `serve: {triggers: [{watch: inbox}]}`))
	p.write("inbox/a", "1")
	odd := filepath.Join(p.dir, "inbox", "b\xff.csv")
	if err := os.WriteFile(odd, nil, 0o600); err != nil {
		t.Skip(err) // not every file system has such names
	}
	s := p.serve()
	s.log.await(t, "its name is not UTF-8")
	for i := range 3 {
		p.write(fmt.Sprintf("inbox/c%d", i), "x")
		s.awaitNotes(p, 2+i)
	}
	if n := strings.Count(s.log.String(), "not UTF-8"); n != 1 {
		t.Errorf("it is reported %d times:\n%s", n, s.log)
	}
	if err := os.Rename(odd, filepath.Join(p.dir, "inbox", "b.csv")); err != nil {
		t.Fatal(err)
	}
	s.awaitNotes(p, 5)
}

func TestWatchedDirectoryThatIsMissingIsReported(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write("import.yaml", note(p, "{{ state.event.name }}", `serve: {triggers: [{watch: inbox}]}`))
	p.write("inbox/a.csv", "1")
	s := p.serve()
	s.awaitNotes(p, 1)
	problem := func(want string) {
		t.Helper()
		teaproc.Poll(t, func() (bool, any) {
			r := s.request("GET", "/v1/workflows/import", "")
			text, _ := r.body["triggers"].([]any)[0].(map[string]any)["problem"].(string)
			return want == "" && text == "" || want != "" && strings.Contains(text, want), r
		})
	}
	inbox := filepath.Join(p.dir, "inbox")
	if err := os.Rename(inbox, inbox+"2"); err != nil {
		t.Fatal(err)
	}
	problem("the directory cannot be read")
	if err := os.Rename(inbox+"2", inbox); err != nil {
		t.Fatal(err)
	}
	problem("")
	p.write("inbox/b.csv", "2")
	s.awaitNotes(p, 2)
	if diff := cmp.Diff([]string{"a.csv", "b.csv"}, p.notes()); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// A directory is empty while its file system is not mounted. Its files are not processed
// again when they are back.
func TestFilesThatAreBackAreNotProcessedAgain(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write("import.yaml", note(p, "{{ state.event.name }}", `serve: {triggers: [{watch: inbox}]}`))
	p.write("clock.yaml", "nodes: [{name: n}]\nserve: {triggers: [{watch: clock}]}\n")
	p.write("inbox/a.csv", "1")
	p.write("inbox/b.csv", "2")
	p.write("clock/0", "0")
	inbox := filepath.Join(p.dir, "inbox")
	s := p.serve()
	s.awaitNotes(p, 2)
	scans := 0
	scanned := func() { // both directories
		t.Helper()
		scans++
		p.write(fmt.Sprintf("clock/%d", scans), "x")
		s.awaitStatuses("clock", map[string]int{"done": scans + 1})
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	scanned()
	move(inbox, inbox+"2")
	s.kill()
	p.write("inbox/c", "")
	if err := os.Remove(filepath.Join(inbox, "c")); err != nil {
		t.Fatal(err)
	}
	s = p.serve()
	scanned()
	if err := os.Remove(inbox); err != nil {
		t.Fatal(err)
	}
	move(inbox+"2", inbox)
	scanned()
	if notes := p.notes(); len(notes) != 2 {
		t.Errorf("notes: %v", notes)
	}
	for _, name := range []string{"a.csv", "b.csv"} {
		if err := os.Remove(filepath.Join(inbox, name)); err != nil {
			t.Fatal(err)
		}
	}
	scanned()
	p.write("inbox/a.csv", "1") // another file
	s.awaitNotes(p, 3)
}

func TestFileWithTheSameContentIsNotProcessedAgain(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write("import.yaml", note(p, "{{ state.event.name }} {{ state.event.size }}", `serve: {triggers: [{watch: inbox}]}`))
	p.write("inbox/a.csv", "1")
	s := p.serve()
	s.awaitNotes(p, 1)
	p.write("inbox/a.csv", "1")
	s.kill()
	s = p.serve()
	p.write("inbox/b.csv", "22")
	s.awaitNotes(p, 2)
	if err := os.Chtimes(filepath.Join(p.dir, "inbox", "a.csv"), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	p.write("inbox/c.csv", "333")
	s.awaitNotes(p, 3)
	p.write("inbox/d.csv", "4444") // found after the times of a.csv were seen twice
	s.awaitNotes(p, 4)
	p.write("inbox/a.csv", "2")
	s.awaitNotes(p, 5)
	if diff := cmp.Diff([]string{"a.csv 1", "b.csv 2", "c.csv 3", "d.csv 4", "a.csv 1"}, p.notes()); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestMistakesOfTriggersHavePositions(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{
		"a.yaml": `nodes: [{name: n}]
serve:
  triggers:
    - {webhook: open}
`,
		"c.yaml": `nodes: [{name: n}]
serve:
  triggers:
    - {cron: "0 6 * * *", timezone: Europe/Nowhere}
    - {webhook: signed, secret: MISSING}
    - {on_run: c}
`,
		"b.yaml": `nodes: [{name: n}]
serve:
  max_runing: 3
  overlap: wait
  triggers:
    - cron: "61 * * * *"
    - {cron: "0 0 30 2 *", name: never}
    - {every: 5m, cron: "* * * * *"}
    - {every: 5m, pattern: "*"}
    - {input: {a: 1}}
    - {at_start: true, input: {a: "{{ state.x }}"}}
`,
		"good.yaml": "nodes: [{name: n}]\nserve: {triggers: [{every: 5m}]}\n",
	})
	log := newLogs()
	cmd := p.command(log, "serve", p.dir, "--check")
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("exit: %v", err)
	}
	for _, want := range []string{
		`b.yaml:6:13: error TEA1104: cron: "61 * * * *" is not a cron expression: minute: "61" is not between 0 and 59`, `b.yaml:7:14: error TEA1104: cron: "0 0 30 2 *" never matches`,
		`timezone: "Europe/Nowhere" is not a time zone`, "webhook: requests are not signed", `the secret "MISSING" is missing`, "may trigger itself",
		`b.yaml:3:3: error TEA`, "max_running", `b.yaml:4:12`, "a trigger cannot have both cron and every", "pattern is not an option of every",
		"the trigger has no event that starts a run", `has no name "state"`, "3 files have mistakes",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("stderr has no %q:\n%s", want, log)
		}
	}
	for _, name := range []string{"a.yaml", "b.yaml", "c.yaml"} {
		if err := os.Remove(filepath.Join(p.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	log = newLogs()
	if err := p.command(log, "serve", p.dir, "--check").Run(); err != nil || !strings.Contains(log.String(), "1 workflows, 1 triggers") {
		t.Errorf("check: %v\n%s", err, log)
	}
}

func TestChangedWorkflowIsServed(t *testing.T) {
	t.Parallel()
	version := func(n string) string { return "nodes: [{name: n, run: 'return {version = " + n + "}'}]\n" }
	p := newProject(t, map[string]string{"flow.yaml": version("1")})
	s := p.serve()
	s.log.await(t, "workflow offered")
	check := func(want float64) {
		t.Helper()
		if run := s.run("flow", "{}"); run["state"].(map[string]any)["version"] != want {
			t.Errorf("run: %v, want version %v", run, want)
		}
	}
	check(1)
	p.write("flow.yaml", version("2"))
	s.log.await(t, "workflow offered")
	check(2)
	p.write("flow.yaml", "nodes: [{name: n, uses: jsn.parse}]\n")
	s.log.await(t, "flow.yaml: the workflow flow remains as it was before")
	check(2)
	if r := s.request("GET", "/v1/workflows", ""); !strings.Contains(fmt.Sprint(r.body["problems"]), "TEA1401") {
		t.Errorf("workflows: %s", r)
	}
	if err := os.Remove(filepath.Join(p.dir, "flow.yaml")); err != nil {
		t.Fatal(err)
	}
	for s.request("POST", "/v1/workflows/flow/runs", "{}").status != http.StatusNotFound {
		continue
	}
}

func TestRunKeepsItsVersion(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	gate := filepath.Join(p.home, "gate")
	p.write("flow.yaml", block(gate)+"  - {name: last, run: 'return {version = 1}'}\n")
	s := p.serve()
	s.log.await(t, "workflow offered")
	id := s.request("POST", "/v1/workflows/flow/runs", "").body["id"].(string)
	s.events(id, "", func(e event) bool { return e.data["message"] != "begun" })
	p.write("flow.yaml", block(gate)+"  - {name: last, run: 'return {version = 2}'}\n")
	s.log.await(t, "workflow offered")
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.events(id, "", func(event) bool { return true })
	if r := s.request("GET", "/v1/runs/"+id+"/state", ""); r.body["version"] != 1.0 {
		// The file is the second version now, so the state of the first cannot be
		// computed; the run itself shows that it is done.
		if run := s.request("GET", "/v1/runs/"+id, ""); run.body["status"] != "done" {
			t.Errorf("state %s, run %s", r, run)
		}
	}
}

func TestSectionsInTheirOwnFile(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{
		"first.yaml": "nodes: [{name: n}]\n",
		"serve.yaml": "workflows:\n  first: {triggers: [{at_start: true, name: one}]}\n",
	})
	s := p.serve()
	s.log.await(t, "workflow=first trigger=one")
	p.write("serve.yaml", "workflows:\n  first: {triggers: [{every: 0.3, name: two}]}\n")
	s.log.await(t, "workflow=first trigger=two")
	p.write("serve.yaml", "workflows:\n  first: {trigers: []}\n")
	s.log.await(t, "serve.yaml:2:11: error TEA1101")
	s.log.await(t, "the workflow first remains as it was before")
	s.log.await(t, "workflow=first trigger=two")
	s.interrupt()
	p.write("serve.yaml", "workflows:\n  frist: {max_running: 1}\n")
	log := newLogs()
	if err := p.command(log, "serve", p.dir, "--check").Run(); err == nil || !strings.Contains(log.String(), `serve.yaml:2:10: error TEA1104: no workflow of the directory has the name "frist"`) {
		t.Errorf("check: %v\n%s", err, log)
	}
}

func TestGuideImportsFiles(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.FromSlash("../../docs/guide/serve.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(guide), "```yaml\nname: import\n")
	text, _, closed := strings.Cut(text, "```")
	if !ok || !closed {
		t.Fatal("the guide has no workflow with the name import")
	}
	p := newProject(t, map[string]string{"import.yaml": "name: import\n" + text, "inbox/a.csv": "1,2"})
	s := p.serve()
	s.log.await(t, "of import")
	list := s.request("GET", "/v1/runs", "").body["runs"].([]any)
	if len(list) != 1 {
		t.Fatalf("runs: %v\n%s", list, s.log)
	}
	run := s.request("GET", "/v1/runs/"+list[0].(map[string]any)["id"].(string)+"?state=true", "").body
	if diff := cmp.Diff(map[string]any{"path": "inbox/a.csv", "text": "1,2"}, run["state"]); diff != "" || run["status"] != "done" {
		t.Errorf("run %v, state (-want +got):\n%s\n%s", run, diff, s.log)
	}
}
