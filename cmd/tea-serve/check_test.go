package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// check calls tea serve --check and returns its exit code and what it prints.
func (p *project) check(args ...string) (int, string) {
	p.t.Helper()
	log := newLogs()
	cmd := p.command(log, append([]string{"serve", p.dir, "--check"}, args...)...)
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		p.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), log.String()
}

func TestTriggersThatCannotWorkAreMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, triggers string
		want           []string
	}{
		{"webhook of another workflow", "{webhook: taken/, signature: none}", []string{`error TEA1108: webhook: the workflow`, `has the path "taken" too`, "1 file has mistakes"}},
		{"webhook twice", "{webhook: x, signature: none}, {webhook: /x, signature: none, name: other}", []string{`a.yaml:4:38: error TEA1104: webhook: another trigger of the workflow has the path "x"`}},
		{"webhook that leads up", "{webhook: a/../b, signature: none}", []string{`webhook: "a/../b" is not a path`}},
		{"webhook with an empty level", "{webhook: a//b, signature: none}", []string{`webhook: "a//b" is not a path`}},
		{"run of no workflow", "{on_run: zzz}", []string{`a.yaml:4:16: error TEA1104: on_run: no workflow of the directory has the name "zzz"`, "1 triggers or sections refer to unknown workflows"}},
		{"no directory", "{watch: nodir}", []string{"watch: there is no directory ", "make it"}},
		{"pattern with a slash", "{watch: ., pattern: a/b*}", []string{`pattern: "a/b*" has a slash`}},
		{"own messages", "{mqtt: loop/#, result_topic: loop/out}", []string{`result_topic: "loop/out" is one of "loop/#"`}},
		{"own messages of a share", "{mqtt: $share/g/+/out, result_topic: loop/out}", []string{"may trigger itself endlessly"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, map[string]string{
				"a.yaml": "nodes: [{name: n}]\nserve:\n  triggers:\n    - " + strings.ReplaceAll(c.triggers, "}, {", "}\n    - {") + "\n",
				"z.yaml": "nodes: [{name: n}]\nserve: {triggers: [{webhook: taken, signature: none}, {mqtt: loop/in, result_topic: loop/out}, {watch: .}, {on_run: a}]}\n",
			})
			code, text := p.check()
			for _, want := range c.want {
				if code != 3 || strings.Count(text, want) != 1 && !strings.Contains(want, "path") {
					t.Errorf("exit code %d, stderr has no %q:\n%s", code, want, text)
				}
			}
		})
	}
}

func TestQuestionsToAnUnknownTargetAreAMistake(t *testing.T) {
	t.Parallel()
	p := newInbox(t, 0).asking(goOn, "{to: [ann], escalate: [{after_seconds: 1, to: [bbo]}]}")
	if code, text := p.check(); code != 3 || !strings.Contains(text, `targets has no target "bbo"; did you mean "bob"?`) {
		t.Errorf("exit code %d:\n%s", code, text)
	}
}

func TestMistakeInTheSectionOfAWorkflowConcernsItOnly(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{
		"a.yaml":     "nodes: [{name: n}]\n",
		"b.yaml":     "nodes: [{name: n}]\n",
		"c.yaml":     "nodes: [{name: n}]\nserve: {max_running: 3}\n",
		"serve.yaml": "workflows:\n  a: {max_runing: 1}\n  b: {max_running: 2}\n",
	})
	code, text := p.check()
	if code != 3 || strings.Count(text, "serve.yaml:2:") != 1 || !strings.Contains(text, "1 file has mistakes") {
		t.Errorf("exit code %d:\n%s", code, text)
	}
	s := p.serve()
	r := s.request("GET", "/v1/workflows", "")
	names := ""
	for _, w := range r.body["workflows"].([]any) {
		names += w.(map[string]any)["name"].(string)
	}
	if names != "bc" {
		t.Errorf("workflows: %s", r)
	}
	for _, problem := range r.body["problems"].([]any) {
		problem := problem.(map[string]any)
		if detail := problem["detail"].(string); strings.HasSuffix(problem["file"].(string), "serve.yaml") != strings.Contains(detail, "TEA1101") {
			t.Errorf("problem: %v", problem)
		}
	}
	p.write("serve.yaml", "workflows:\n  a: {max_running: 1}\n  b: {max_running: 2}\n")
	for s.request("GET", "/v1/workflows/a", "").status != http.StatusOK {
		continue
	}
	if r := s.request("GET", "/v1/workflows", ""); len(r.body["problems"].([]any)) != 0 {
		t.Errorf("problems: %s", r)
	}
	p.write("serve.yaml", "workflows: [\n")
	mistake := filepath.Join(p.dir, "serve.yaml") + ":"
	s.log.await(t, mistake) // when the server started
	s.log.await(t, mistake)
	if s.interrupt(); strings.Count(s.log.String(), mistake) != 2 {
		t.Errorf("the mistake was logged several times:\n%s", s.log)
	}
	s = p.serve()
	if r := s.run("c", "{}"); r["status"] != "done" {
		t.Errorf("run of the workflow with an own section: %v", r)
	}
	if r := s.request("GET", "/v1/workflows/b", ""); r.status != http.StatusNotFound {
		t.Errorf("workflow whose section cannot be read: %s", r)
	}
}
