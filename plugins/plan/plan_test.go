package plan_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/plan"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

type object = map[string]any

// list is a plan of subtasks written as "id" or "id<dependency,dependency".
func list(subtasks ...string) object {
	out := []any{}
	for _, text := range subtasks {
		id, after, _ := strings.Cut(text, "<")
		s := object{"id": id, "description": "do " + id}
		if after != "" {
			s["dependencies"] = toAny(strings.Split(after, ","))
		}
		out = append(out, s)
	}
	return object{"goal": "test", "subtasks": out}
}

func toAny(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// call calls an action; the error is a *tea.Error.
func call(t *testing.T, host *teatest.Host, action string, params any) (object, *tea.Error) {
	t.Helper()
	got, err := teatest.Call(t, plan.Bundle(), teatest.Request{Action: action, Params: params, Host: host})
	if err != nil {
		var e *tea.Error
		if !errors.As(err, &e) {
			t.Fatalf("%v is not an action's error", err)
		}
		return nil, e
	}
	return got.(object), nil
}

// worker is an executor that records the subtasks in the order they begin.
type worker struct {
	mu    sync.Mutex
	began []string
	// do, unless nil, executes the n-th attempt of a subtask.
	do func(ctx context.Context, id string, attempt int) (any, error)
	// tries counts the attempts.
	tries map[string]int
}

func (w *worker) host() *teatest.Host {
	w.tries = map[string]int{}
	return &teatest.Host{
		Render: func(params any, roots object) (any, error) {
			if result, ok := roots["result"]; ok {
				return result, nil
			}
			return object{"id": roots["subtask"].(object)["id"], "roots": roots}, nil
		},
		Actions: map[string]func(context.Context, any) (any, error){"test.work": func(ctx context.Context, params any) (any, error) {
			id := params.(object)["id"].(string)
			w.mu.Lock()
			w.began = append(w.began, id)
			w.tries[id]++
			n := w.tries[id]
			w.mu.Unlock()
			if w.do == nil {
				return object{"success": true, "out": "r" + id}, nil
			}
			return w.do(ctx, id, n)
		}},
	}
}

var executor = object{"action": "test.work", "with": object{"id": "{{ subtask.id }}"}}

// statuses returns the status of each subtask of a result's plan.
func statuses(result object) map[string]string {
	out := map[string]string{}
	for _, s := range result["plan"].(object)["subtasks"].([]any) {
		out[s.(object)["id"].(string)] = s.(object)["status"].(string)
	}
	return out
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plan object
		want string
	}{
		"empty":               {list(), "the plan has no subtasks"},
		"duplicate":           {list("a", "a"), `duplicate subtask id "a"`},
		"self":                {list("a<a"), `subtask "a" depends on itself`},
		"unknown":             {list("fetch", "b<fetsh"), `subtask "b" depends on "fetsh", which does not exist; did you mean "fetch"?`},
		"cycle":               {list("a<c", "b<a", "c<b", "d"), "the dependencies form a cycle: a -> c -> b -> a"},
		"group in itself":     {object{"subtasks": []any{object{"id": "a", "description": "d", "parent": "b"}, object{"id": "b", "description": "d", "parent": "a"}}}, "cycle"},
		"waits for its group": {object{"subtasks": []any{object{"id": "a", "description": "d", "subtasks": []any{object{"id": "b", "description": "d", "dependencies": []any{"a"}}}}}}, "cycle: a -> b -> a"},
		"no description":      {object{"subtasks": []any{object{"id": "a", "description": " "}}}, `subtask "a" has no description`},
		"unknown group":       {object{"subtasks": []any{object{"id": "a", "description": "d", "parent": "x"}}}, `subtask "a" belongs to "x", which does not exist`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, e := call(t, new(worker).host(), "plan.execute", object{"plan": c.plan, "subtask_executor": executor})
			if e == nil || e.Type != tea.ValidationError || !strings.Contains(e.Message, c.want) {
				t.Errorf("got %v, want %q", e, c.want)
			}
		})
	}
}

// nested returns a subtask inside of others.
func nested(levels int) any {
	s := object{"id": fmt.Sprint(levels), "description": "d"}
	if levels > 1 {
		s["subtasks"] = []any{nested(levels - 1)}
	}
	return s
}

func TestTooDeep(t *testing.T) {
	t.Parallel()
	for _, levels := range []int{33, 100_000} {
		if levels == 100_000 {
			levels = 200
		}
		_, e := call(t, new(worker).host(), "plan.execute", object{"plan": object{"subtasks": []any{nested(levels)}}, "subtask_executor": executor})
		if e == nil || e.Type != tea.ValidationError {
			t.Errorf("%d levels: %v", levels, e)
		}
	}
}

func TestExecutesInTheOrderOfDependencies(t *testing.T) {
	t.Parallel()
	w := &worker{}
	got, e := call(t, w.host(), "plan.execute", object{"plan": list("d<b,c", "b<a", "c<a", "a"), "subtask_executor": executor, "parallel": false})
	if e != nil {
		t.Fatal(e)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, w.began); diff != "" {
		t.Error(diff)
	}
	if got["success"] != true {
		t.Error(got)
	}
	if diff := cmp.Diff(object{"a": object{"out": "ra"}, "b": object{"out": "rb"}, "c": object{"out": "rc"}, "d": object{"out": "rd"}}, got["subtask_results"]); diff != "" {
		t.Error(diff)
	}
	want := object{"status": "completed", "total": int64(4), "pending": int64(0), "in_progress": int64(0), "completed": int64(4), "failed": int64(0), "skipped": int64(0), "progress": 1.0}
	if diff := cmp.Diff(want, got["plan_status"]); diff != "" {
		t.Error(diff)
	}
}

// A subtask begins when its own dependencies are done, although another one of
// their level still runs.
// The names of calls are shown while the plan runs.
func TestKeysCanBeRead(t *testing.T) {
	t.Parallel()
	w := &worker{}
	host := w.host()
	ids := []string{"plain-1.a_B", "read the page", "größe 📏", "日本", strings.Repeat("x", 61), "read_the_page"}
	if _, e := call(t, host, "plan.execute", object{"plan": list(ids...), "subtask_executor": executor, "parallel": false}); e != nil {
		t.Fatal(e)
	}
	var keys []string
	for _, c := range host.Invocations() {
		keys = append(keys, c.Key)
	}
	want := []string{"plain-1.a_B", "read_the_page@HASH", "gr_e_@HASH", "_@HASH", strings.Repeat("x", 60) + "@HASH", "read_the_page"}
	for i := range keys {
		keys[i] = regexp.MustCompile(`@[0-9a-f]{12}$`).ReplaceAllString(keys[i], "@HASH")
	}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Error(diff)
	}
}

func TestDoesNotWaitForAWave(t *testing.T) {
	t.Parallel()
	after := make(chan struct{})
	w := &worker{do: func(ctx context.Context, id string, _ int) (any, error) {
		switch id {
		case "slow":
			select {
			case <-after:
			case <-ctx.Done():
			}
		case "second":
			close(after)
		}
		return id, nil
	}}
	got, e := call(t, w.host(), "plan.execute", object{"plan": list("slow", "first", "second<first"), "subtask_executor": executor})
	if e != nil || got["success"] != true {
		t.Fatal(got, e)
	}
}

func TestRunsAtMostMaxConcurrent(t *testing.T) {
	t.Parallel()
	for limit, params := range map[int]object{3: {"max_concurrent": 3}, 1: {"parallel": false}} {
		var mu sync.Mutex
		running, most := 0, 0
		full := make(chan struct{})
		w := &worker{do: func(context.Context, string, int) (any, error) {
			mu.Lock()
			running++
			if most = max(most, running); running == limit {
				select {
				case <-full:
				default:
					close(full)
				}
			}
			mu.Unlock()
			<-full
			mu.Lock()
			running--
			mu.Unlock()
			return nil, nil
		}}
		params["plan"], params["subtask_executor"] = list("a", "b", "c", "d", "e", "f", "g"), executor
		if _, e := call(t, w.host(), "plan.execute", params); e != nil {
			t.Fatal(e)
		}
		if most != limit {
			t.Errorf("%d ran at the same time, want %d", most, limit)
		}
	}
}

func failing(ids ...string) *worker {
	return &worker{do: func(_ context.Context, id string, _ int) (any, error) {
		if slices.Contains(ids, id) {
			return nil, tea.Errorf(tea.QueryError, "no %s today", id)
		}
		return "r" + id, nil
	}}
}

func TestSkipPolicy(t *testing.T) {
	t.Parallel()
	w := failing("b")
	got, e := call(t, w.host(), "plan.execute", object{"plan": list("a", "b", "c<b", "d<c", "e<a"), "subtask_executor": executor, "on_subtask_failure": "skip"})
	if e != nil {
		t.Fatal(e)
	}
	if diff := cmp.Diff(map[string]string{"a": "completed", "b": "failed", "c": "skipped", "d": "skipped", "e": "completed"}, statuses(got)); diff != "" {
		t.Error(diff)
	}
	subtasks := got["plan"].(object)["subtasks"].([]any)
	for i, want := range map[int]string{
		1: "no b today",
		2: `not executed: it depends on "b", which failed: no b today`,
		3: `not executed: it depends on "c", which was skipped`,
	} {
		if message := subtasks[i].(object)["error"]; message != want {
			t.Errorf("%d: %v, want %q", i, message, want)
		}
	}
	if got["success"] != false {
		t.Error("a plan with a failed subtask is a success")
	}
}

func TestAbortPolicy(t *testing.T) {
	t.Parallel()
	w := failing("b")
	host := w.host()
	params := object{"plan": list("a", "b<a", "c<b", "d<a"), "subtask_executor": executor, "parallel": false}
	_, e := call(t, host, "plan.execute", params)
	if e == nil || e.Type != plan.Aborted || !strings.Contains(e.Message, `subtask "b" failed: no b today (1 of 4 subtasks are completed)`) {
		t.Fatal(e)
	}
	if diff := cmp.Diff(object{"a": "ra"}, e.Details["subtask_results"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "completed", "b": "failed", "c": "skipped", "d": "pending"}, statuses(e.Details)); diff != "" {
		t.Error(diff)
	}
	// A resumed call executes what failed again, and what is completed never.
	again := &worker{}
	next := again.host()
	next.Notes = host.Recorded().Notes
	got, e := call(t, next, "plan.execute", params)
	if e != nil || got["success"] != true {
		t.Fatal(got, e)
	}
	if diff := cmp.Diff([]string{"b", "c", "d"}, again.began); diff != "" {
		t.Error(diff)
	}
}

func TestRetryPolicy(t *testing.T) {
	t.Parallel()
	w := &worker{do: func(_ context.Context, id string, attempt int) (any, error) {
		if id == "b" && attempt < 3 {
			return nil, errors.New("boom")
		}
		return id, nil
	}}
	host := w.host()
	params := object{"plan": list("a", "b<a", "c<b"), "subtask_executor": executor, "on_subtask_failure": "retry", "max_retries": 2, "retry_delay": 0}
	got, e := call(t, host, "plan.execute", params)
	if e != nil || got["success"] != true {
		t.Fatal(got, e)
	}
	if n := got["plan"].(object)["subtasks"].([]any)[1].(object)["retry_count"]; n != int64(2) {
		t.Errorf("retry_count = %v", n)
	}
	var attempts []string
	for _, c := range host.Invocations() {
		attempts = append(attempts, fmt.Sprint(c.Key, c.Attempt))
	}
	if diff := cmp.Diff([]string{"a1", "b1", "b2", "b3", "c1"}, attempts); diff != "" {
		t.Error(diff)
	}
	params["max_retries"] = 1
	w.tries = nil
	if _, e := call(t, w.host(), "plan.execute", params); e == nil || e.Type != plan.Aborted {
		t.Error(e)
	}
}

func TestSeesAccumulatedResults(t *testing.T) {
	t.Parallel()
	seen := map[string]any{}
	w := &worker{}
	host := w.host()
	host.Render = func(_ any, roots object) (any, error) {
		id := roots["subtask"].(object)["id"].(string)
		seen[id] = roots["results"]
		return object{"id": id}, nil
	}
	params := object{"plan": list("a", "b", "c<b"), "parallel": false, "subtask_executor": object{"action": "test.work", "with": object{"all": "{{ results }}"}}}
	if _, e := call(t, host, "plan.execute", params); e != nil {
		t.Fatal(e)
	}
	want := map[string]any{
		"a": object{}, "b": object{"a": object{"out": "ra"}},
		"c": object{"a": object{"out": "ra"}, "b": object{"out": "rb"}},
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	w := &worker{}
	p := object{"goal": "house", "subtasks": []any{
		object{"id": "roof", "description": "roof", "dependencies": []any{"walls"}},
		object{"id": "walls", "description": "walls", "dependencies": []any{"plot"}, "subtasks": []any{
			object{"id": "brick", "description": "bricks"}, object{"id": "plaster", "description": "plaster", "dependencies": []any{"brick"}},
		}},
		object{"id": "plot", "description": "plot"},
	}}
	got, e := call(t, w.host(), "plan.execute", object{"plan": p, "subtask_executor": executor, "parallel": false})
	if e != nil || got["success"] != true {
		t.Fatal(got, e)
	}
	if diff := cmp.Diff([]string{"plot", "brick", "plaster", "roof"}, w.began); diff != "" {
		t.Error(diff)
	}
	status, e := call(t, nil, "plan.status", object{"plan": got["plan"], "include_tree": true})
	if e != nil {
		t.Fatal(e)
	}
	want := "house\n├─ ● roof: roof (after walls)\n├─ ● walls: walls (after plot)\n│  ├─ ● brick: bricks\n│  └─ ● plaster: plaster (after brick)\n└─ ● plot: plot\n"
	if diff := cmp.Diff(want, status["tree"]); diff != "" {
		t.Error(diff)
	}
	w = failing("brick")
	got, e = call(t, w.host(), "plan.execute", object{"plan": p, "subtask_executor": executor, "on_subtask_failure": "skip"})
	if e != nil {
		t.Fatal(e)
	}
	if diff := cmp.Diff(map[string]string{"plot": "completed", "brick": "failed", "plaster": "skipped", "walls": "failed", "roof": "skipped"}, statuses(got)); diff != "" {
		t.Error(diff)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	p := list("a", "b<a", "c<b", "d")
	for i, s := range []string{"completed", "failed", "skipped"} {
		p["subtasks"].([]any)[i].(object)["status"] = s
	}
	got, e := call(t, nil, "plan.status", object{"plan": p, "include_completed": false})
	if e != nil {
		t.Fatal(e)
	}
	delete(got, "plan_id")
	want := object{
		"success": true, "status": "in_progress", "goal": "test", "total": int64(4), "pending": int64(1), "in_progress": int64(0), "completed": int64(1), "failed": int64(1), "skipped": int64(1), "progress": 0.75,
		"subtasks": []any{object{"id": "b", "status": "failed"}, object{"id": "c", "status": "skipped"}, object{"id": "d", "status": "pending"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTree(t *testing.T) {
	t.Parallel()
	p := object{"goal": "Größe\n\x1b]0;x\a ändern 📏", "subtasks": []any{
		object{"id": "größe 📏", "description": "e\u0301 \x1b[2J 家族 👨‍👩‍👧 \u202etxt.exe"},
		object{"id": "b", "description": strings.Repeat("ß", 70), "dependencies": []any{"größe 📏"}, "subtasks": []any{object{"id": "c", "description": "in b", "status": "completed"}}},
	}}
	got, e := call(t, nil, "plan.status", object{"plan": p, "include_tree": true})
	if e != nil {
		t.Fatal(e)
	}
	want := "Größe ]0;x ändern 📏\n├─ ○ größe 📏: e\u0301 [2J 家族 👨‍👩‍👧 txt.exe\n└─ ○ b: " + strings.Repeat("ß", 59) + "… (after größe 📏)\n   └─ ● c: in b\n"
	if diff := cmp.Diff(want, got["tree"]); diff != "" {
		t.Error(diff)
	}
}

// Numbers, members of the author's own and unusual ids stay what they are.
func TestKeepsWhatThePlanHas(t *testing.T) {
	t.Parallel()
	w := &worker{}
	p := object{"id": "p", "goal": "g", "strategy": "flat", "metadata": object{"n": json.Number("9007199254740993")}, "subtasks": []any{
		object{"id": 1, "description": "one", "priority": 3, "params": object{"x": int64(9007199254740993), "f": 2.5}},
		object{"id": "zwei/ü!", "description": "two", "dependencies": []any{1}},
	}}
	host := w.host()
	got, e := call(t, host, "plan.execute", object{"plan": p, "subtask_executor": executor})
	if e != nil || got["success"] != true {
		t.Fatal(got, e)
	}
	made := got["plan"].(object)
	first := made["subtasks"].([]any)[0].(object)
	if first["id"] != "1" || first["priority"] != int64(3) || made["metadata"].(object)["n"] != int64(9007199254740993) {
		t.Error(made)
	}
	if diff := cmp.Diff(object{"x": int64(9007199254740993), "f": 2.5}, first["params"]); diff != "" {
		t.Error(diff)
	}
	for _, c := range host.Invocations() {
		if strings.ContainsAny(c.Key, "/!ü") {
			t.Errorf("key %q", c.Key)
		}
	}
}

// An answer's usage, message and so on are not kept for each subtask, unless the
// workflow says so.
func TestKeepsTheAnswerOfAModel(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]string{"llm.call": "result.content", "llm.tools": "result.content", "agent.run": "result.content", "test.work": "<nil>"} {
		host := (&worker{}).host()
		for _, model := range []string{"llm.call", "llm.tools", "agent.run"} {
			host.Actions[model] = host.Actions["test.work"]
		}
		if _, e := call(t, host, "plan.execute", object{"plan": list("a"), "subtask_executor": object{"action": action, "with": object{"id": "{{ subtask.id }}"}}}); e != nil {
			t.Fatal(e)
		}
		if output := fmt.Sprint(host.Invocations()[0].Output); !strings.Contains(output, want) {
			t.Errorf("%s: output %s, want %s", action, output, want)
		}
	}
}
