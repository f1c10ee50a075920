package plan_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/plan"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// model is an llm.call that returns answers in turn.
type model struct {
	answers []any // texts, objects (as data) or errors
	mu      sync.Mutex
	asked   []object
}

func (m *model) call(_ context.Context, params any) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, params.(object))
	if len(m.answers) < len(m.asked) {
		return nil, tea.Errorf(tea.InternalError, "question %d was not expected", len(m.asked))
	}
	switch a := m.answers[len(m.asked)-1].(type) {
	case error:
		return nil, a
	case string:
		return object{"content": a}, nil
	default:
		return object{"content": "", "data": a}, nil
	}
}

func (m *model) host(actions ...string) *teatest.Host {
	h := (&worker{}).host()
	h.Actions["llm.call"] = m.call
	h.Infos = map[string]tea.ActionInfo{}
	for _, name := range actions {
		h.Infos[name] = tea.ActionInfo{Name: name, Summary: "Does " + name + ".", Params: schema.Of[struct {
			Query string `json:"query" doc:"what to look for"`
		}]()}
	}
	return h
}

// said returns the texts of the messages of a question.
func said(question object) []string {
	var texts []string
	for _, m := range question["messages"].([]any) {
		texts = append(texts, m.(object)["content"].(string))
	}
	return texts
}

// ids are the subtasks of a result's plan with their dependencies and group.
func ids(result object) []string {
	var out []string
	for _, s := range result["plan"].(object)["subtasks"].([]any) {
		m := s.(object)
		text := m["id"].(string)
		for _, d := range m["dependencies"].([]any) {
			text += "<" + d.(string)
		}
		if m["parent"] != nil {
			text += " in " + m["parent"].(string)
		}
		out = append(out, text)
	}
	return out
}

func TestDecompose(t *testing.T) {
	t.Parallel()
	m := &model{answers: []any{list("a", "b<a")}}
	got, e := call(t, m.host("web.search"), "plan.decompose", object{
		"goal": "build a {{ house }}", "context": object{"budget": 5}, "actions": []any{"web.search"}, "model": "big", "planner": object{"temperature": 0, "api_key": "k"},
	})
	if e != nil {
		t.Fatal(e)
	}
	if diff := cmp.Diff([]string{"a", "b<a"}, ids(got)); diff != "" {
		t.Error(diff)
	}
	made := got["plan"].(object)
	if made["goal"] != "build a {{ house }}" || made["strategy"] != "flat" || !strings.HasPrefix(made["id"].(string), "plan-") {
		t.Error(made)
	}
	want := object{"attempts": int64(1), "max_subtasks": int64(20), "model": "big", "context": object{"budget": int64(5)}, "actions": []any{"web.search"}, "planner": object{"temperature": int64(0)}}
	if diff := cmp.Diff(want, made["metadata"]); diff != "" {
		t.Error(diff)
	}
	asked := m.asked[0]
	prompt := strings.Join(said(asked), "\n")
	for _, part := range []string{"build a {{ house }}", `{"budget":5}`, "web.search", "what to look for", "At most 20 subtasks"} {
		if !strings.Contains(prompt, part) {
			t.Errorf("the prompt lacks %q:\n%s", part, prompt)
		}
	}
	if asked["model"] != "big" || asked["temperature"] != int64(0) || asked["max_repairs"] != int64(0) || asked["schema"] == nil {
		t.Error(asked)
	}
}

func TestInvalidPlanIsRequestedAgain(t *testing.T) {
	t.Parallel()
	notJSON := tea.Errorf(tea.ValidationError, "the model's answer is not usable")
	notJSON.Details = map[string]any{"content": "I would love to help!"}
	m := &model{answers: []any{"no plan today", notJSON, list("a<b", "b<a"), "Here it is:\n```json\n{\"subtasks\": [{\"id\": 1, \"description\": \"x\"}]}\n```"}}
	got, e := call(t, m.host(), "plan.decompose", object{"goal": "g", "max_attempts": 4})
	if e != nil {
		t.Fatal(e)
	}
	if got["attempts"] != int64(4) || ids(got)[0] != "1" {
		t.Error(got)
	}
	for i, want := range []string{"the answer is not JSON", "the answer is not JSON", "the dependencies form a cycle: a -> b -> a"} {
		texts := said(m.asked[i+1])
		if last := texts[len(texts)-1]; !strings.Contains(last, want) {
			t.Errorf("question %d: %q does not name %q", i+2, last, want)
		}
	}
}

// A model answers with a list, for example because the prompt of an author asks for one.
func TestPlanThatIsAList(t *testing.T) {
	t.Parallel()
	text := `[{"id": 1, "description": "x"}, {"id": "b", "description": "y", "dependencies": [1]}]`
	misfit := tea.Errorf(tea.ValidationError, "the model's answer is not usable")
	misfit.Details = map[string]any{"content": text}
	for _, answer := range []any{text, "Here it is:\n```json\n" + text + "\n```", misfit, []any{object{"id": "1", "description": "x"}, object{"id": "b", "description": "y", "dependencies": []any{"1"}}}} {
		m := &model{answers: []any{answer}}
		got, e := call(t, m.host(), "plan.decompose", object{"goal": "g"})
		if e != nil {
			t.Errorf("%v: %v", answer, e)
			continue
		}
		if diff := cmp.Diff([]string{"1", "b<1"}, ids(got)); diff != "" || got["attempts"] != int64(1) {
			t.Errorf("%v: %d attempts\n%s", answer, got["attempts"], diff)
		}
	}
}

func TestLastErrorListsTheFaults(t *testing.T) {
	t.Parallel()
	m := &model{answers: []any{"no", list("a", "a", "b<x")}}
	_, e := call(t, m.host(), "plan.decompose", object{"goal": "g", "max_attempts": 2})
	if e == nil || e.Type != tea.ValidationError || !strings.Contains(e.Message, `after 2 attempts: duplicate subtask id "a"; subtask "b" depends on "x"`) {
		t.Fatal(e)
	}
	if diff := cmp.Diff([]any{`duplicate subtask id "a"`, `subtask "b" depends on "x", which does not exist`}, e.Details["faults"]); diff != "" {
		t.Error(diff)
	}
}

func TestLimitsOfAnAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		params object
		answer any
		want   string
	}{
		"too many":       {object{"max_subtasks": 2}, list("a", "b", "c"), "the plan has 3 subtasks; the limit is 2 (max_subtasks)"},
		"too deep":       {object{}, object{"subtasks": []any{nested(2)}}, `subtask "1" is 2 levels deep; the limit is 1 (max_depth)`},
		"unknown action": {object{"actions": []any{"web.search"}}, object{"subtasks": []any{object{"id": "a", "description": "d", "action": "file.delete"}}}, `subtask "a" uses the action "file.delete"`},
		"a number":       {object{}, "7 {", "the answer is not JSON"},
		"null":           {object{}, `{"subtasks": [null]}`, "after 1 attempts: a subtask is null"},
		"no list":        {object{}, `{"subtasks": [{"id": "a", "description": "d"}, {"id": "b", "description": "d", "dependencies": "a"}]}`, `subtask "b": dependencies must be a list of ids, got string`},
		"no group":       {object{}, `{"subtasks": [{"id": "a", "description": "d", "parent": ["b"]}]}`, `subtask "a": parent must be an id, got array`},
		"no members":     {object{}, `{"subtasks": [{"id": "a", "description": "d", "subtasks": {}}]}`, `subtask "a": subtasks must be a list of subtasks, got object`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &model{answers: []any{c.answer}}
			params := object{"goal": "g", "max_attempts": 1}
			maps.Copy(params, c.params)
			_, e := call(t, m.host("web.search"), "plan.decompose", params)
			if e == nil || !strings.Contains(e.Message, c.want) {
				t.Errorf("got %v, want %q", e, c.want)
			}
		})
	}
}

// A failure of the model itself is not a broken plan.
func TestModelThatFails(t *testing.T) {
	t.Parallel()
	m := &model{answers: []any{tea.Errorf(tea.RateLimited, "slow down")}}
	_, e := call(t, m.host(), "plan.decompose", object{"goal": "g"})
	if e == nil || e.Type != tea.RateLimited || !e.Retryable || len(m.asked) != 1 {
		t.Error(e)
	}
}

func TestHierarchical(t *testing.T) {
	t.Parallel()
	atomic := func(l object) object {
		for _, s := range l["subtasks"].([]any) {
			s.(object)["atomic"] = true
		}
		return l
	}
	m := &model{answers: []any{list("a", "b<a"), list("x", "y<x"), atomic(list("z")), atomic(list("p")), atomic(list("q"))}}
	got, e := call(t, m.host(), "plan.decompose", object{"goal": "g", "strategy": "hierarchical"})
	if e != nil {
		t.Fatal(e)
	}
	want := []string{"a", "b<a", "a.x in a", "a.y<a.x in a", "b.z in b", "a.x.p in a.x", "a.y.q in a.y"}
	if diff := cmp.Diff(want, ids(got)); diff != "" {
		t.Error(diff)
	}
	w := &worker{}
	result, e := call(t, w.host(), "plan.execute", object{"plan": got["plan"], "subtask_executor": executor, "parallel": false})
	if e != nil || result["success"] != true {
		t.Fatal(result, e)
	}
	if diff := cmp.Diff([]string{"a.x.p", "a.y.q", "b.z"}, w.began); diff != "" {
		t.Error(diff)
	}
}

func TestHierarchicalStopsAtItsLimits(t *testing.T) {
	t.Parallel()
	endless := func(n int) *model {
		m := &model{}
		for range n {
			m.answers = append(m.answers, list("a", "b"))
		}
		return m
	}
	m := endless(10)
	got, e := call(t, m.host(), "plan.decompose", object{"goal": "g", "strategy": "hierarchical", "max_depth": 2})
	if e != nil || len(ids(got)) != 6 || len(m.asked) != 3 {
		t.Errorf("%v %v, %d questions", ids(got), e, len(m.asked))
	}
	m = endless(10)
	got, e = call(t, m.host(), "plan.decompose", object{"goal": "g", "strategy": "hierarchical", "max_depth": 9, "max_subtasks": 6})
	if e != nil || len(ids(got)) != 6 {
		t.Fatal(got, e)
	}
	if diff := cmp.Diff([]any{"a.a", "a.b", "b.a", "b.b"}, got["plan"].(object)["metadata"].(object)["not_split"]); diff != "" {
		t.Error(diff)
	}
}

// The answers are noted: a call that is repeated asks only what is left.
func TestDecomposeContinuesFromItsNotes(t *testing.T) {
	t.Parallel()
	m := &model{answers: []any{list("a", "b"), list("x"), tea.Errorf(tea.ConnectionError, "gone")}}
	host := m.host()
	params := object{"goal": "g", "strategy": "hierarchical", "max_depth": 2}
	if _, e := call(t, host, "plan.decompose", params); e == nil {
		t.Fatal("no error")
	}
	rest := &model{answers: []any{list("y")}}
	next := rest.host()
	next.Notes = host.Recorded().Notes
	got, e := call(t, next, "plan.decompose", params)
	if e != nil {
		t.Fatal(e)
	}
	if diff := cmp.Diff([]string{"a", "b", "a.x in a", "b.y in b"}, ids(got)); diff != "" {
		t.Error(diff)
	}
}

func TestPromptTemplate(t *testing.T) {
	t.Parallel()
	m := &model{answers: []any{"{{ no }}", list("a")}}
	host := m.host()
	host.Render = func(params any, roots object) (any, error) {
		if result, ok := roots["result"]; ok {
			return result, nil
		}
		return object{"messages": params.(object)["messages"], "roots": roots}, nil
	}
	_, e := call(t, host, "plan.decompose", object{"goal": "g", "context": "{{ secrets.x }}", "planner": object{"prompt_template": "Plan {{ goal }} now", "system": "{% raw %}"}})
	if e != nil {
		t.Fatal(e)
	}
	second := m.asked[1]
	// What the model said is read from the names: it is not a template.
	if texts := said(second); texts[1] != "Plan {{ goal }} now" || !strings.HasPrefix(texts[2], "{{ verbatim[") {
		t.Error(texts)
	}
	roots := second["roots"].(object)
	if !slices.Contains(roots["verbatim"].([]any), any("{{ no }}")) || roots["goal"] != "g" {
		t.Error(roots)
	}
}

func TestIterative(t *testing.T) {
	t.Parallel()
	step := func(l object, done bool) object { l["done"] = done; return l }
	m := &model{answers: []any{list("a", "b"), list("c<a"), step(object{"subtasks": []any{}}, true)}}
	host := m.host()
	made, e := call(t, host, "plan.decompose", object{"goal": "g", "strategy": "iterative"})
	if e != nil {
		t.Fatal(e)
	}
	params := object{"plan": made["plan"], "subtask_executor": executor}
	got, e := call(t, host, "plan.execute", params)
	if e != nil || got["success"] != true {
		t.Fatal(got, e)
	}
	if diff := cmp.Diff([]string{"a", "b", "c<a"}, ids(got)); diff != "" {
		t.Error(diff)
	}
	if prompt := strings.Join(said(m.asked[1]), "\n"); !strings.Contains(prompt, `"result":"{\"out\":\"ra\"}"`) {
		t.Errorf("the model does not see the results: %s", prompt)
	}
	m = &model{}
	for i := range 10 {
		m.answers = append(m.answers, list(fmt.Sprint(i)))
	}
	params["max_subtasks"] = 4
	if _, e = call(t, m.host(), "plan.execute", params); e == nil || e.Type != plan.MaxSubtasks {
		t.Error(e)
	}
}

func TestReplanPolicy(t *testing.T) {
	t.Parallel()
	m := &model{answers: []any{list("a", "b"), list("b2<a", "d<b2")}}
	w := failing("b")
	host := w.host()
	host.Actions["llm.call"] = m.call
	params := object{"plan": list("a", "b<a", "c<b"), "subtask_executor": executor, "on_subtask_failure": "replan"}
	got, e := call(t, host, "plan.execute", params)
	if e != nil || got["success"] != true {
		t.Fatal(got, e)
	}
	if diff := cmp.Diff([]string{"a", "b2<a", "d<b2"}, ids(got)); diff != "" {
		t.Error(diff)
	}
	if w.tries["a"] != 1 {
		t.Errorf("a was executed %d times", w.tries["a"])
	}
	// A new plan with the id of a completed subtask is a fault.
	if texts := said(m.asked[1]); !strings.Contains(texts[len(texts)-1], `duplicate subtask id "a"`) {
		t.Error(texts)
	}
	if prompt := strings.Join(said(m.asked[0]), "\n"); !strings.Contains(prompt, `subtask "b" (do b) failed: no b today`) {
		t.Error(prompt)
	}
	meta := got["plan"].(object)["metadata"].(object)
	if meta["replans"] != int64(1) || len(meta["replaced"].([]any)) != 2 {
		t.Error(meta)
	}
}

// An execution that ends because a model makes no usable plan has the results so
// far in its error, and names the failure that the plan was for.
func TestModelThatMakesNoFurtherPlan(t *testing.T) {
	t.Parallel()
	down := tea.Errorf(tea.RateLimited, "slow down")
	for name, c := range map[string]struct {
		params object
		answer any
		kind   tea.ErrorType
		want   string
	}{
		"replan": {object{"on_subtask_failure": "replan"}, down, tea.RateLimited, `subtask "b" failed: no b today; the rest cannot be planned again: slow down`},
		"faults": {object{"on_subtask_failure": "replan", "max_attempts": 1}, "no", tea.ValidationError, `subtask "b" failed: no b today; the rest cannot be planned again: the model's plan is not valid after 1 attempts`},
		"step":   {object{"on_subtask_failure": "skip"}, down, tea.RateLimited, "the next step cannot be planned: slow down"},
		"limit":  {object{"on_subtask_failure": "skip", "max_subtasks": 2, "max_attempts": 1}, list("c"), plan.MaxSubtasks, "the plan is not done after 2 subtasks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := failing("b").host()
			host.Actions["llm.call"] = (&model{answers: []any{c.answer}}).call
			document := list("a", "b<a")
			if c.params["on_subtask_failure"] == "skip" {
				document["strategy"] = "iterative"
			}
			params := object{"plan": document, "subtask_executor": executor}
			maps.Copy(params, c.params)
			_, e := call(t, host, "plan.execute", params)
			if e == nil || e.Type != c.kind || e.Retryable != (c.answer == down) || !strings.Contains(e.Message, c.want) {
				t.Fatalf("got %v, want %q", e, c.want)
			}
			if diff := cmp.Diff(object{"a": "ra"}, e.Details["subtask_results"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMaxReplans(t *testing.T) {
	t.Parallel()
	m := &model{answers: []any{list("b"), list("b"), list("b")}}
	w := failing("b")
	host := w.host()
	host.Actions["llm.call"] = m.call
	params := object{"plan": list("a", "b"), "subtask_executor": executor, "on_subtask_failure": "replan", "max_replans": 2}
	_, e := call(t, host, "plan.execute", params)
	if e == nil || e.Type != plan.MaxReplans || !strings.Contains(e.Message, "the plan has changed 2 times; the limit is 2 (max_replans)") || w.tries["b"] != 3 {
		t.Fatal(e, w.tries)
	}
	if diff := cmp.Diff(object{"a": "ra"}, e.Details["subtask_results"]); diff != "" {
		t.Error(diff)
	}
	// The same id in a new plan is another subtask: its calls have other keys.
	var keys []string
	for _, c := range host.Invocations() {
		if c.Action == "test.work" && c.Key != "a" {
			keys = append(keys, c.Key)
		}
	}
	if diff := cmp.Diff([]string{"b", "b@1", "b@2"}, keys); diff != "" {
		t.Error(diff)
	}
}

func TestReplan(t *testing.T) {
	t.Parallel()
	p := list("a", "b<a", "c")
	p["subtasks"].([]any)[0].(object)["status"] = "completed"
	p["subtasks"].([]any)[1].(object)["status"] = "failed"
	m := &model{answers: []any{list("d<a")}}
	got, e := call(t, m.host(), "plan.replan", object{"plan": p, "reason": "it rains"})
	if e != nil {
		t.Fatal(e)
	}
	if diff := cmp.Diff([]string{"a", "d<a"}, ids(got)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "completed", "d": "pending"}, statuses(got)); diff != "" {
		t.Error(diff)
	}
	if prompt := strings.Join(said(m.asked[0]), "\n"); !strings.Contains(prompt, "it rains") {
		t.Error(prompt)
	}
	_, e = call(t, m.host(), "plan.replan", object{"plan": got["plan"], "max_replans": 1})
	if e == nil || e.Type != plan.MaxReplans {
		t.Error(e)
	}
}

// Execution is cut off after every note in turn and continued: each subtask is
// executed once to its end, and a cut-off one has the same key again.
func TestContinuesFromEveryNote(t *testing.T) {
	t.Parallel()
	for cut := 1; ; cut++ {
		m := &model{answers: []any{list("e<a", "f<e"), list("e<a", "f<e")}}
		w := failing("b")
		host := w.host()
		host.Actions["llm.call"] = m.call
		params := object{"plan": list("a", "b<a", "c<a"), "subtask_executor": object{"action": "test.work", "with": object{"id": "{{ results }}"}}, "on_subtask_failure": "replan", "parallel": false}
		first := &cutHost{Host: host, left: cut}
		if got, e := invoke(t, first, params); e == nil {
			if cut < 8 {
				t.Fatalf("only %d notes: %v", cut, got)
			}
			return
		}
		next := &cutHost{Host: host, left: 1 << 20}
		got, e := invoke(t, next, params)
		if e != nil || got["success"] != true {
			t.Fatalf("after %d notes: %v %v", cut, got, e)
		}
		seen := map[string]object{}
		for _, c := range host.Invocations() {
			if c.Action != "test.work" || c.Key == "" {
				continue
			}
			results := c.Roots["results"].(object)
			if before, ok := seen[c.Key]; ok && cmp.Diff(before, results) != "" {
				t.Errorf("after %d notes %s saw %v, then %v", cut, c.Key, before, results)
			}
			seen[c.Key] = results
		}
		again := 0
		for _, n := range w.tries {
			again += n - 1
		}
		if again > 1 || len(m.asked) > 2 {
			t.Errorf("after %d notes: executed %v, asked %d times", cut, w.tries, len(m.asked))
		}
	}
}

// cutHost fails after a number of notes, as a host that is killed.
type cutHost struct {
	*teatest.Host
	left int
}

func (h *cutHost) SetNote(ctx context.Context, key string, note any) error {
	if h.left--; h.left < 0 {
		return tea.Errorf(tea.BudgetExceeded, "killed")
	}
	return h.Host.SetNote(ctx, key, note)
}

// InvokeAs makes the last call, and is killed before its result is noted.
func (h *cutHost) InvokeAs(ctx context.Context, call tea.Invocation) (*tea.Response, error) {
	if _, done, _ := h.Note(ctx, tea.CallNote+call.Key); done {
		return h.Host.InvokeAs(ctx, call)
	}
	if h.left--; h.left >= 0 {
		return h.Host.InvokeAs(ctx, call)
	}
	call.Key = ""
	if _, err := h.Host.InvokeAs(ctx, call); err != nil {
		return nil, err
	}
	return nil, tea.Errorf(tea.BudgetExceeded, "killed")
}

func invoke(t *testing.T, host tea.Host, params object) (object, *tea.Error) {
	t.Helper()
	bundle := plan.Bundle()
	instance, err := bundle.NewInstance(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := instance.Invoke(t.Context(), &tea.Request{Action: "plan.execute", Params: tea.ValuePayload(params), Host: host})
	if err != nil {
		return nil, tea.AsError(err)
	}
	v, err := resp.Result.Value()
	if err != nil {
		t.Fatal(err)
	}
	return v.(object), nil
}
