package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/test/teaproc"
)

// reading is the part of a workflow that reads numbers from the file value in p.home,
// and notes what starts its runs.
func reading(p *project, options string) string {
	return note(p, "{{ state.note }}", `
serve:
  triggers:
    - poll: {uses: file.read, with: {path: value}, every: 20ms}
      input: {note: "{{ event.status }} {{ (event.result or {}).content }} {{ (event.previous or {}).content }} {{ (event.error or {}).type }} {{ event.failures > 0 }}"}
`+options)
}

// set writes the value.
func (p *project) set(text string) {
	p.t.Helper()
	file := filepath.Join(p.home, "value")
	err := os.WriteFile(file+".new", []byte(text), 0o600)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// trigger returns the first trigger of a workflow.
func (s *service) trigger(workflow string) map[string]any {
	s.t.Helper()
	list, _ := s.request("GET", "/v1/workflows/"+workflow, "").body["triggers"].([]any)
	if len(list) == 0 {
		return nil
	}
	return list[0].(map[string]any)
}

// reads waits until the trigger has read a value.
func (s *service) reads(workflow, content string) {
	s.t.Helper()
	teaproc.Poll(s.t, func() (bool, any) {
		got := s.trigger(workflow)
		v, _ := got["value"].(string)
		return strings.Contains(v, `"content":"`+content+`"`) && got["problem"] == nil, got
	})
}

func (p *project) noted(want ...string) {
	p.t.Helper()
	got := p.notes()
	for i := range got {
		got[i] = strings.Join(strings.Fields(got[i]), " ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.t.Error(diff)
	}
}

// An edge starts one run, whatever is killed and changed meanwhile.
func TestPollStartsARunForEachEdge(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	options := "      when: tonumber(result.content) > 80\n      reset: tonumber(result.content) < 70\n"
	p.set("50")
	p.write("level.yaml", reading(p, options))
	s := p.serve()
	s.reads("level", "50")
	p.set("90")
	s.awaitNotes(p, 1)
	p.set("75")
	s.reads("level", "75")
	p.set("95")
	s.reads("level", "95")
	s.kill()
	s = p.serve()
	s.reads("level", "95")
	if got := s.trigger("level"); got["active"] != true || got["last"] == nil || got["kind"] != "poll" {
		t.Errorf("trigger: %v", got)
	}
	p.write("level.yaml", "# changed\n"+reading(p, options))
	s.log.await(t, "workflow offered")
	p.set("60")
	s.reads("level", "60")
	s.kill()
	s = p.serve()
	s.reads("level", "60")
	p.set("85")
	s.awaitNotes(p, 2)
	p.write("level.yaml", "nodes: [{name: n}]\n")
	s.log.await(t, "workflow offered")
	p.set("60")
	p.write("level.yaml", reading(p, options))
	s.log.await(t, "workflow offered")
	s.reads("level", "60")
	s.interrupt()
	p.noted("value 90 50 false", "value 85 60 false")
}

// A file next to the workflow is found before the first run has made the data directory.
func TestPollReadsAFileNextToItsWorkflow(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"level.yaml": `
nodes: [{name: n}]
serve:
  triggers: [{poll: {uses: file.read, with: {path: level.txt}, every: 20ms}}]
`})
	p.write("level.txt", "50")
	p.serve().reads("level", "50")
}

// TestPollsSurviveKills kills the server while an edge starts a run: each has one.
func TestPollsSurviveKills(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.set("0")
	p.write("level.yaml", reading(p, "      when: tonumber(result.content) > 0\n"))
	s := p.serve()
	var want []string
	for round := range teaproc.Kills(t, 6) {
		s.reads("level", "0")
		p.set(fmt.Sprint(round + 1))
		if round%2 > 0 {
			s.awaitNotes(p, round+1)
		}
		s.kill()
		s = p.serve()
		s.awaitNotes(p, round+1)
		want = append(want, fmt.Sprint(round+1))
		p.set("0")
	}
	s.reads("level", "0")
	s.interrupt()
	got := p.notes()
	for i := range got {
		got[i] = strings.Fields(got[i])[1]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFailedReadingsStartARunOnceAndRecover(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write("level.yaml", reading(p, "      when: tonumber(result.content) > 20 and previous.content ~= 0\n      on_failure: {after: 2, recovery: true}\n"))
	s := p.serve()
	s.awaitNotes(p, 1)
	s.kill()
	s = p.serve()
	teaproc.Poll(t, func() (bool, any) {
		problem, _ := s.trigger("level")["problem"].(string)
		return strings.Contains(problem, "not_found: read value: there is no such file"), problem
	})
	p.set("5")
	s.awaitNotes(p, 2)
	p.set("10") // not a run: the condition compares
	s.reads("level", "10")
	p.set("30")
	s.awaitNotes(p, 3)
	p.set("many") // the condition fails
	s.awaitNotes(p, 4)
	if n := strings.Count(s.log.String(), "the trigger \\\"poll file.read\\\" of level: internal_error: condition"); n != 1 {
		t.Errorf("the mistake was logged %d times:\n%s", n, s.log)
	}
	p.set("30")
	s.awaitNotes(p, 5)
	s.interrupt()
	p.noted("failed not_found true", "recovered 5 true", "value 30 10 false", "failed many internal_error true", "recovered 30 many true")
}

func TestAnotherWorkflowIsTold(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write("level.yaml", "nodes: [{name: n}]\nserve:\n  triggers:\n    - poll: {uses: file.read, with: {path: gone}, every: 10ms}\n      on_failure: {workflow: alarm, after: 1}\n")
	p.write("alarm.yaml", note(p, "{{ state.event.trigger }} {{ state.event.error.type }}", ""))
	s := p.serve()
	s.awaitNotes(p, 1)
	s.interrupt()
	p.noted("poll file.read not_found")
	p.write("alarm.yaml", "name: other\nnodes: [{name: n}]\n")
	if code, text := p.check(); code != 3 || !strings.Contains(text, `on_failure: no workflow of the directory has the name "alarm"`) {
		t.Errorf("exit code %d\n%s", code, text)
	}
}

// watching is a workflow with a stream of the lines of the file value.
func watching(p *project, options string) string {
	return note(p, "{{ state.event.result.line }} {{ state.event.result.version }}", `
serve:
  max_running: 1
  max_queue: 1
  triggers:
    - stream: {uses: echo.lines, with: {file: "`+p.home+`/value"}}
`+options)
}

// add appends a line to the value.
func (p *project) add(line string) {
	p.t.Helper()
	f, err := os.OpenFile(filepath.Join(p.home, "value"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(line + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// A stream waits while the queue is full, starts again when its source fails or its
// plugin is replaced, and ends with the server.
func TestStreamStartsRuns(t *testing.T) {
	t.Parallel()
	p := installedEcho(t)
	var lines, want []string
	for i := range 5 {
		lines, want = append(lines, fmt.Sprint(i)), append(want, fmt.Sprint(i, " 1.0.0"))
	}
	p.set(strings.Join(lines, "\n") + "\n")
	p.write("echo.yaml", watching(p, ""))
	s := p.serveAdmin()
	s.awaitNotes(p, 5)
	if err := os.Remove(filepath.Join(p.home, "value")); err != nil {
		t.Fatal(err)
	}
	teaproc.Poll(t, func() (bool, any) {
		problem := s.trigger("echo")["problem"]
		return problem == "connection_error: no source", problem
	})
	p.set("100\n")
	s.awaitNotes(p, 6)
	if r := s.install(pack(t, "2.0.0", false)); r.status != 200 {
		t.Fatalf("install: %s\n%s", r, s.log)
	}
	s.awaitNotes(p, 7)
	p.add("101")
	s.awaitNotes(p, 8)
	if got := s.trigger("echo"); got["value"] != `{"line":101,"version":"2.0.0"}` || got["problem"] != nil {
		t.Errorf("trigger: %v", got)
	}
	s.interrupt()
	p.noted(append(want, "100 1.0.0", "100 2.0.0", "101 2.0.0")...)
}

// The last value of a stream counts until the next one.
func TestStreamHoldsItsLastValue(t *testing.T) {
	t.Parallel()
	p := installedEcho(t)
	p.set("1\n90\n2\n91\n")
	p.write("echo.yaml", watching(p, "      when: result.line > 80\n      hold_seconds: 0.1\n"))
	s := p.serve()
	s.awaitNotes(p, 1)
	s.interrupt()
	p.noted("91 1.0.0")
}

// A slow poll does not overlap itself, and a plugin that dies fails one reading.
func TestPollsOfSlowAndDyingPlugins(t *testing.T) {
	t.Parallel()
	p := installedEcho(t)
	p.write("slow.yaml", note(p, "{{ state.event.result.calls }}", "\nserve:\n  triggers:\n    - poll: {uses: echo.slow, every: 10ms}\n      fire: level\n      when: result.calls > 0\n      min_interval_seconds: 0.3\n"))
	p.write("die.yaml", "nodes: [{name: n}]\nserve:\n  triggers:\n    - poll: {uses: echo.die, with: {file: \""+p.home+"/value\"}, every: 20ms}\n")
	s := p.serve()
	s.awaitNotes(p, 2)
	s.log.await(t, "of die: done")
	p.set("die")
	s.log.await(t, `the trigger \"poll echo.die\" of die: plugin_crashed`)
	s.log.await(t, `the trigger \"poll echo.die\" of die reads values again`)
	s.interrupt()
	for _, n := range p.notes() {
		if n != "1" {
			t.Errorf("%s calls at the same time", n)
		}
	}
	if n := strings.Count(s.log.String(), "of die: done"); n != 1 {
		t.Errorf("%d runs for one value", n)
	}
}

func TestMistakesInTriggersThatWatchValues(t *testing.T) {
	t.Parallel()
	p := installedEcho(t)
	p.write("echo.yaml", `nodes: [{name: n}]
serve:
  triggers:
    - poll: {uses: echo.act, every: 1s}
    - stream: {uses: echo.version}
    - stream: {uses: echo.lines, with: {flie: x}}
      when: state.count >
`)
	code, text := p.check()
	for _, want := range []string{
		"echo.yaml:4:20: error TEA1104: poll: echo.act has an effect",
		"echo.yaml:5:22: error TEA1104: stream: echo.version passes on no values",
		`echo.yaml:6:41: error TEA1403: echo.lines has no parameter "flie"`,
		"echo.yaml:7:13: error TEA1302: the condition is neither Lua",
	} {
		if code != 3 || !strings.Contains(text, want) {
			t.Errorf("exit code %d, no %q:\n%s", code, want, text)
		}
	}
}
