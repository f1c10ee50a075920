package examples

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exampleOnTemporal is how an example is run here and on a Temporal server.
type exampleOnTemporal struct {
	// runs are the arguments of tea run, one after another: the first one can leave
	// something for the next.
	runs [][]string
	// env are further variables, and setup is a command before the first run.
	env   []string
	setup string
	// answers are the answers for tea resume that a run waits for.
	answers []string
	// differs are the keys of values that no two runs have in common.
	differs []string
	// speakers is set if the log of a call has lines of several agents, whose first word
	// is the agent. Those of a delegated task come with its end.
	speakers bool
	// apart is why the example is not compared here.
	apart string
}

// inDriver is why examples without plugins are not in this test.
const inDriver = "cmd/tea-temporal compares it, with its calls and the replay of its histories"

// planTimes are the times in a plan.
var planTimes = []string{"started_at", "completed_at", "created_at"}

func runsOf(runs ...[]string) exampleOnTemporal { return exampleOnTemporal{runs: runs} }

func input(json string) []string { return []string{"workflow.yaml", "-i", json} }

// examplesOnTemporal has each example.
var examplesOnTemporal = map[string]exampleOnTemporal{
	"budget":             {apart: inDriver},
	"durable":            {apart: inDriver},
	"files":              {apart: inDriver},
	"hello":              {apart: inDriver},
	"human":              {apart: inDriver},
	"loops":              {apart: inDriver},
	"lua-module":         {apart: inDriver},
	"map":                {apart: inDriver},
	"eval":               {apart: "one call of a model, which llm has"},
	"migrate":            {apart: "a log, a loop and a filter, which other examples have"},
	"notebook":           {apart: "Lua and a question, which human has"},
	"parallel":           {apart: inDriver},
	"routing":            {apart: inDriver},
	"steps-and-subgraph": {apart: inDriver},

	"agents":    {runs: [][]string{input("@input.json")}, speakers: true},
	"browser":   {runs: [][]string{{"assistant.yaml", "-i", `{"text": "remember the key is under the mat"}`}, {"assistant.yaml", "-i", `{"text": "where is the key?"}`}}},
	"errors":    runsOf(input(`{"text": "{"}`)),
	"facts":     runsOf(input("@facts.json"), input(`{"at": "2020-01-01"}`)),
	"fallback":  runsOf(input(`{"device": "pump-1"}`)),
	"firestore": runsOf(input(`{"device": "pump-1", "status": "fault"}`)),
	"fleet":     {env: []string{"DEVICE=kitchen"}, runs: [][]string{input(`{"key": "door", "note": "it jams"}`), {"workflow.yaml"}}, differs: []string{"updated_at"}},
	"gateway":   {runs: [][]string{{"workflow.yaml", "-C", `{"variables": {"patience": 3600}}`}}, answers: []string{`ask:ask="high"`}, differs: planTimes},
	"knowledge": runsOf(input(`{"question": "How do I write a plugin in another language?"}`)),
	"llm":       runsOf(input("@input.json")),
	"mcp":       {setup: "tea plugin refresh mcp --workflow workflow.yaml", runs: [][]string{input(`{"parts": ["6204", "6205"]}`)}},
	"mcp-server": {
		runs:    [][]string{{"workflows/readings.yaml", "-i", `{"csv": "sensor,celsius\na,20.5\na,81\nb,19\n"}`}, {"workflows/order.yaml", "-i", `{"part": "bearing 6204"}`}},
		answers: []string{`approve:ask="order"`},
	},
	"memory":    runsOf(input(`{"symptom": "bearing temperature rises under load", "device": "pump-1", "fix": "regrease the bearing"}`), input(`{"symptom": "rising temperatures at the bearing", "device": "pump-2"}`)),
	"plan":      {runs: [][]string{{"workflow.yaml"}}, differs: planTimes},
	"retrieval": runsOf(input(`{"question": "seal"}`)),
	"secrets":   {runs: [][]string{{"workflow.yaml", "--secrets", `{"api_key": "s3cr3t-key"}`}}},
	"sensors":   runsOf([]string{"workflow.yaml"}, []string{"workflow.yaml"}),
	"sessions":  runsOf(input(`{"session": "pump-1", "do": "begin", "say": "The bearing of pump-1 is loud since monday."}`), input(`{"session": "pump-1", "ask": "since when is the bearing loud?"}`), input(`{"session": "pump-1", "do": "end"}`)),
	"topology":  runsOf([]string{"workflow.yaml"}),
	"trace":     {runs: [][]string{{"workflow.yaml"}}, differs: []string{"span_id"}},
	"web":       runsOf(input(`{"url": "SITE/"}`)),

	"embed":           {apart: "its actions are functions of its program, which no worker has"},
	"irrigation":      {apart: "as pump"},
	"memory-bbolt":    {apart: "its engine is in a plugin that its README builds"},
	"meter":           {apart: "as pump"},
	"plugin-go":       {apart: "its test builds the plugin; on Temporal it is a call of a plugin like those of memory"},
	"plugin-node":     {apart: "as plugin-go"},
	"plugin-python":   {apart: "as plugin-go"},
	"plugin-rust":     {apart: "as plugin-go"},
	"pump":            {apart: "its machine is a simulator that its test starts; on Temporal it is a call of a plugin like those of memory"},
	"research":        {apart: "its servers are those of its test; the parts of it, web, llm, plan and mcp, are compared"},
	"temporal":        {apart: "TestTemporal runs it with three workers"},
	"topology-cypher": {apart: "the workflow is that of topology with another backend, which needs a library in the environment of the worker"},
}

// teaIn returns a command in a directory.
func teaIn(t *testing.T, dir string, env []string, program string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = dir, env
	return cmd
}

// TestExamplesRunOnTemporalLikeLocalRuns runs the examples with plugins twice, with
// fresh copies of their files in the same place, and compares what a user sees.
func TestExamplesRunOnTemporalLikeLocalRuns(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range dirs {
		if _, ok := examplesOnTemporal[filepath.Dir(file)]; !ok {
			t.Errorf("%s is not in the table", filepath.Dir(file))
		}
	}
	// The folder goes after the worker has ended, whose plugins write into it.
	folder := t.TempDir()
	address := startTemporal(t)
	worker := start(t, filepath.Join(bin, "tea-temporal"), "worker", "--plugins", bin, "--temporal", address, "--secrets", `{"api_key": "s3cr3t-key"}`)
	wait(t, worker)
	site := httptest.NewServer(http.FileServer(http.Dir("web/site")))
	t.Cleanup(site.Close)
	t.Run("all", func(t *testing.T) {
		for name, e := range examplesOnTemporal {
			if e.apart != "" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if slices.Contains(onCozo, name) {
					needCozo(t)
				}
				dir := copyExampleTo(t, filepath.Join(folder, name), name)
				fresh := dir + "-fresh"
				if err := os.CopyFS(fresh, os.DirFS(name)); err != nil {
					t.Fatal(err)
				}
				for i, run := range e.runs {
					for j := range run {
						e.runs[i][j] = strings.ReplaceAll(run[j], "SITE", site.URL)
					}
				}
				want := e.observe(t, dir)
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(fresh, dir); err != nil {
					t.Fatal(err)
				}
				got := e.observe(t, dir, "--engine", "temporal", "--temporal", address)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("local and Temporal differ (-local +temporal):\n%s", diff)
				}
			})
		}
	})
}

// observed is what a user sees of a command.
type observed struct {
	Exit int
	// The events of each branch, in order, the last one with the state.
	Events map[string][]any
	Tokens map[string]string
}

// observe runs the runs of an example, and resumes those that wait.
func (e exampleOnTemporal) observe(t *testing.T, dir string, flags ...string) (all []observed) {
	t.Helper()
	home := t.TempDir()
	env := append(environment(home), e.env...)
	if e.setup != "" {
		if out, err := teaIn(t, dir, env, "sh", "-e", "-c", e.setup).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, run := range e.runs {
		run = slices.Clone(run)
		run[0] = filepath.Join(dir, run[0]) // a worker names files by their absolute paths
		o, id := e.command(t, dir, env, append(append([]string{"run", "-s", "-q"}, run...), flags...))
		all = append(all, o)
		for range 3 {
			if o.Exit != 130 {
				break
			}
			words := append([]string{"resume", id, "-s", "-q"}, flags...)
			for _, a := range e.answers {
				words = append(words, "--answer", a)
			}
			if i := slices.Index(run, "--secrets"); i >= 0 {
				words = append(words, run[i:i+2]...)
			}
			o, _ = e.command(t, dir, env, words)
			all = append(all, o)
		}
	}
	return all
}

// command runs tea, and returns what it shows and the id of the run.
func (e exampleOnTemporal) command(t *testing.T, dir string, env, words []string) (o observed, run string) {
	t.Helper()
	cmd := teaIn(t, dir, env, filepath.Join(bin, "tea"), words...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, _ := cmd.Output() // the exit code is compared
	o = observed{Exit: cmd.ProcessState.ExitCode(), Events: map[string][]any{}, Tokens: map[string]string{}}
	for line := range strings.Lines(string(out)) {
		var event map[string]any
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("tea %q: %v in %s\n%s", words, err, line, stderr.String())
		}
		run = fmt.Sprint(event["run_id"])
		path := fmt.Sprint(event["path"])
		if event["event"] == "checkpoint" {
			path = ""
			delete(event, "path")
		}
		if event["event"] == "token" {
			o.Tokens[path] += fmt.Sprint(event["text"])
			continue
		}
		e.strip(event)
		branch := path[:strings.LastIndexByte(path, '/')+1]
		switch kind := fmt.Sprint(event["event"]); {
		case kind == "log": // comes with the end of the call
			branch = "log " + path
			if e.speakers {
				branch += " " + strings.FieldsFunc(fmt.Sprint(event["message"]), func(r rune) bool { return r == ',' || r == ':' })[0]
			}
		case strings.HasPrefix(kind, "branch_"), strings.HasSuffix(path, "]"), strings.Contains(path, "!"): // ! is before the key of a call that an action makes
			branch = path + "/"
		}
		o.Events[branch] = append(o.Events[branch], event)
	}
	if run == "" {
		t.Fatalf("tea %q: exit code %d\n%s", words, o.Exit, stderr.String())
	}
	return o, run
}

// strip removes what no two runs have in common.
func (e exampleOnTemporal) strip(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			e.strip(item)
		}
	case map[string]any:
		for _, key := range append([]string{"seq", "ts", "run_id", "duration_ms", "wait_ms", "asked_at", "deadline", "checkpoint"}, e.differs...) {
			delete(v, key)
		}
		for _, item := range v {
			e.strip(item)
		}
	}
}
