package plan

import (
	"container/heap"
	"context"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

// The policies for a failed subtask.
const (
	onReplan = "replan"
	onRetry  = "retry"
	onSkip   = "skip"
)

// Aborted is the error type of plan.execute when a failed subtask ends
// it.
const Aborted tea.ErrorType = "plan_aborted"

// runner executes a plan. One goroutine changes the plan; those that execute subtasks
// report to it.
type runner struct {
	req     *tea.Request
	params  ExecuteParams
	plan    *Plan
	journal journal
	reads   reads
	planner *planner

	// revisions is the number of changes of the plan in this generation.
	revisions int
	nodes     map[string]*node
	ready     queue
	slots     int
	running   int
	ended     chan ending
	// settled counts ended subtasks, and reported is the last count that was
	// reported as progress.
	settled, reported int
	// waits reports whether a subtask waits for an answer, and stops whether no
	// further subtask begins; failed is the failure to handle, and broken the error
	// that ends the action.
	waits, stops bool
	// asked are the keys of subtasks that have asked a question. Like running
	// subtasks, they continue after a failure.
	asked  map[string]bool
	failed *Subtask
	broken error
}

// node is a subtask in the dependency graph.
type node struct {
	*Subtask
	place int
	// blockers is the number of subtasks that this one still waits for; next are
	// the subtasks that wait for this one.
	blockers int
	next     []*node
	// parent is the enclosing group. For a group, open is the number of members that
	// have not ended, and bad a member that did not complete.
	parent *node
	open   int
	bad    *node
}

// queue has the subtasks that can begin, in the order of the plan.
type queue []*node

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].place < q[j].place }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*node)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// ending is the end of the execution of a subtask.
type ending struct {
	node    *node
	outcome outcome
	// waits reports whether the subtask waits for an answer.
	waits bool
	// broken is an error that ends the whole action.
	broken error
}

// restore applies the notes of earlier attempts to the plan.
func (r *runner) restore(ctx context.Context) error {
	for _, s := range r.plan.Subtasks {
		s.key = keyOf(s.ID, 0)
		if !s.finished() {
			s.reset()
		}
	}
	resumed, err := r.journal.open(ctx, r.plan)
	if err != nil || !resumed {
		return err
	}
	if r.asked, err = r.journal.asked(ctx); err != nil {
		return err
	}
	if err := r.recall(ctx, r.plan.Subtasks); err != nil {
		return err
	}
	for {
		rev, found, err := r.journal.revision(ctx, r.revisions+1)
		if err != nil || !found {
			return err
		}
		r.revise(rev)
		if err := r.recall(ctx, rev.Add); err != nil {
			return err
		}
	}
}

// recall reads the outcomes of subtasks from the notes.
func (r *runner) recall(ctx context.Context, list []*Subtask) error {
	for _, s := range list {
		if s.finished() {
			continue
		}
		if err := r.journal.recall(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// revise applies a change to the plan.
func (r *runner) revise(rev revision) {
	r.revisions++
	r.plan.drop(rev.Drop)
	for _, s := range rev.Add {
		s.key = keyOf(s.ID, r.revisions)
	}
	r.plan.Subtasks = append(r.plan.Subtasks, rev.Add...)
	for name, v := range rev.Meta {
		r.plan.Metadata[name] = v
	}
}

// pass executes all subtasks that can run, and then changes the plan if needed. It
// reports whether there is more to do.
func (r *runner) pass(ctx context.Context) (again bool, err error) {
	r.link()
	for {
		r.launch(ctx)
		if r.running == 0 {
			break
		}
		e := <-r.ended
		r.running--
		r.settle(e)
	}
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case r.broken != nil:
		return false, r.broken
	case r.waits && (r.failed == nil || r.params.OnSubtaskFailure == onReplan):
		return false, r.wait(ctx)
	case r.failed != nil && r.params.OnSubtaskFailure == onReplan:
		failed := r.failed
		r.failed, r.stops = nil, false
		return r.replan(ctx, failed)
	case r.failed != nil:
		return false, r.abort(ctx, r.failed)
	case r.plan.Strategy == iterative && r.plan.Metadata["done"] != true:
		return r.step(ctx)
	}
	return false, nil
}

// wait ends the execution until a question is answered. If the plan is about to change,
// it first notes which subtasks have asked.
func (r *runner) wait(ctx context.Context) error {
	if r.failed != nil {
		if err := r.journal.setAsked(ctx, r.asked); err != nil {
			return err
		}
	}
	return tea.Errorf(tea.Canceled, "the plan waits for an answer")
}

// link builds the dependency graph and finds the subtasks that can begin.
func (r *runner) link() {
	r.nodes = make(map[string]*node, len(r.plan.Subtasks))
	r.ready, r.settled = r.ready[:0], 0
	groups := r.plan.groups()
	nodes := make([]*node, len(r.plan.Subtasks))
	for i, s := range r.plan.Subtasks {
		if s.group = groups[s.ID]; s.group {
			s.reset() // derived from its members
		}
		nodes[i] = &node{Subtask: s, place: i}
		r.nodes[s.ID] = nodes[i]
	}
	for _, n := range nodes {
		if n.Parent != "" {
			n.parent = r.nodes[n.Parent]
			n.parent.open++
		}
		if n.group {
			continue // its members wait
		}
		for s := n; s != nil; s = r.nodes[s.Parent] {
			for _, d := range s.Dependencies {
				n.blockers++
				r.nodes[d].next = append(r.nodes[d].next, n)
			}
			if s.Parent == "" {
				break
			}
		}
	}
	for _, n := range nodes { // subtasks that ended in an earlier pass
		if n.group || n.Status == Pending || n.Status == Skipped {
			continue
		}
		if n.Status == Failed {
			r.fail(n)
		}
		r.release(n)
	}
	for _, n := range nodes {
		if !n.group && n.Status == Pending && n.blockers == 0 {
			heap.Push(&r.ready, n)
		}
	}
}

// launch begins as many subtasks as allowed.
func (r *runner) launch(ctx context.Context) {
	for r.broken == nil && r.running < r.slots && len(r.ready) > 0 && ctx.Err() == nil {
		n := heap.Pop(&r.ready).(*node)
		if n.Status != Pending || r.stops && !r.asked[n.key] { // skipped meanwhile, or must not begin
			continue
		}
		n.Status = InProgress
		r.running++
		task, err := r.task(ctx, n)
		if err != nil {
			go func() { r.ended <- ending{node: n, broken: err} }()
			continue
		}
		go func() { r.ended <- task.run(ctx) }()
	}
}

// settle handles the end of a subtask.
func (r *runner) settle(e ending) {
	n := e.node
	switch {
	case e.broken != nil:
		n.Status, r.stops = Pending, true
		if r.broken == nil {
			r.broken = e.broken
		}
		return
	case e.waits:
		n.Status, r.waits = Pending, true
		r.asked[n.key] = true
		return
	}
	r.journal.apply(n.Subtask, e.outcome)
	if n.Status == Failed {
		r.fail(n)
	}
	r.release(n)
	r.report()
}

// fail applies the failure policy.
func (r *runner) fail(n *node) {
	if r.params.OnSubtaskFailure == onSkip {
		return
	}
	r.stops = true
	if r.failed == nil {
		r.failed = n.Subtask
	}
}

// release unblocks the subtasks that wait for an ended one: they can begin, or are
// skipped.
func (r *runner) release(n *node) {
	r.settled++
	for _, next := range n.next {
		next.blockers--
		switch {
		case next.Status != Pending:
		case n.Status == Failed || n.Status == Skipped:
			r.skip(next, n)
		case next.blockers == 0:
			heap.Push(&r.ready, next)
		}
	}
	group := n.parent
	if group == nil {
		return
	}
	if n.Status == Failed || n.Status == Skipped && group.bad == nil {
		group.bad = n
	}
	if group.open--; group.open > 0 {
		return
	}
	group.Status = Completed
	if group.bad != nil {
		group.Status = group.bad.Status
		group.Error = fmt.Sprintf("%s: %s", group.bad.ID, group.bad.Error)
	}
	r.release(group)
}

// skip skips a subtask and its dependents.
func (r *runner) skip(n, because *node) {
	n.Status = Skipped
	if because.Status == Failed {
		n.Error = fmt.Sprintf("not executed: it depends on %q, which failed: %s", because.ID, because.Error)
	} else {
		n.Error = fmt.Sprintf("not executed: it depends on %q, which was skipped", because.ID)
	}
	r.release(n)
}

// report reports progress in steps of one percent.
func (r *runner) report() {
	total := len(r.plan.Subtasks)
	if r.settled-r.reported < total/100 && r.settled < total {
		return
	}
	r.reported = r.settled
	r.req.Host.Progress(context.Background(), float64(r.settled)/float64(total), fmt.Sprintf("%d of %d subtasks", r.settled, total))
}

// abort returns the error of an execution that a failure ended.
func (r *runner) abort(ctx context.Context, failed *Subtask) error {
	if err := r.journal.abort(ctx); err != nil {
		return err
	}
	counts := r.plan.counts()
	return r.partial(tea.Errorf(Aborted, "subtask %q failed: %s (%d of %d subtasks are completed)", failed.ID, failed.Error, counts.Completed, counts.Total), failed)
}

// partial returns an error that ends the execution. Its details have the results so far
// and, unless it is nil, the failed subtask.
func (r *runner) partial(e *tea.Error, failed *Subtask) error {
	result := r.result()
	with := map[string]any{"plan": result.Plan, "subtask_results": result.SubtaskResults, "plan_status": result.PlanStatus}
	if failed != nil {
		with["subtask"], with["subtask_error_type"] = failed.ID, string(failed.ErrorType)
	}
	maps.Copy(with, e.Details)
	details, err := value.From(with)
	if err != nil {
		return err
	}
	final := *e
	final.Details, _ = details.(map[string]any)
	return &final
}

// reads are the roots that the executor's templates read, besides subtask.
type reads struct{ results, plan, whole bool }

var (
	planName   = regexp.MustCompile(`\bplan\b`)
	planScalar = regexp.MustCompile(`\bplan\.(id|goal|strategy)\b`)
)

// readsOf searches any text for the names. A false match only costs time.
func readsOf(e Executor) reads {
	raw, _ := value.Encode([]any{e.With.value, e.Output.value}) // they came as JSON
	text := string(raw)
	return reads{
		results: strings.Contains(text, "results"),
		plan:    planName.MatchString(text),
		whole:   planName.MatchString(planScalar.ReplaceAllString(text, "")),
	}
}

// task is the execution of one subtask. It copies the parts of the plan that it needs.
type task struct {
	node     *node
	req      *tea.Request
	journal  *journal
	executor Executor
	roots    map[string]any
	retries  int
	limit    int
	delay    backoff.Policy
}

// task prepares the execution of a subtask. Its templates see the same state of other
// subtasks when it is repeated after a crash.
func (r *runner) task(ctx context.Context, n *node) (*task, error) {
	t := &task{
		node: n, req: r.req, journal: &r.journal, executor: r.params.SubtaskExecutor, retries: n.RetryCount,
		delay: backoff.Policy{Base: seconds(r.params.RetryDelay), Max: time.Minute, Multiplier: 2},
	}
	if t.executor.Output.IsZero() && (strings.HasPrefix(t.executor.Action, "llm.") || t.executor.Action == "agent.run") {
		t.executor.Output.value = answerOnly
	}
	if r.params.OnSubtaskFailure == onRetry {
		t.limit = n.base + r.params.MaxRetries
	}
	t.roots = map[string]any{"subtask": n.value()}
	if r.reads.plan && !r.reads.whole {
		t.roots["plan"] = map[string]any{"id": r.plan.ID, "goal": r.plan.Goal, "strategy": r.plan.Strategy}
	}
	if !r.reads.results && !r.reads.whole {
		return t, nil
	}
	seen, err := r.visible(ctx, n)
	if err != nil {
		return nil, err
	}
	t.roots["results"] = r.plan.results(seen)
	if r.reads.whole {
		t.roots["plan"] = r.plan.visibleTo(seen)
	}
	return t, nil
}

// answerOnly is the default output of an action that calls a model: the rest of its
// result, such as the answer as a message, would dominate a checkpoint.
const answerOnly = `{{ {"content": result.content, "data": result.data} if result.data is defined else {"content": result.content} }}`

// visible returns the places of the subtasks whose results a subtask sees: those that
// are completed when it first begins.
func (r *runner) visible(ctx context.Context, n *node) (bits, error) {
	text, found, err := r.journal.seen(ctx, n.Subtask)
	if err != nil {
		return nil, err
	}
	if found {
		return parseBits(text)
	}
	seen := bits{}
	for i, s := range r.plan.Subtasks {
		if s.Status == Completed {
			seen = seen.add(i)
		}
	}
	return seen, r.journal.setSeen(ctx, n.Subtask, seen.text())
}

// visibleTo returns the plan in the value model as a subtask sees it: the subtasks in the
// set are completed, the others pending.
func (p *Plan) visibleTo(seen bits) map[string]any {
	v := p.value()
	for i, s := range v["subtasks"].([]any) {
		if !seen.has(i) {
			m := s.(map[string]any)
			for _, name := range []string{"result", "error", "error_type", "started_at", "completed_at"} {
				delete(m, name)
			}
			m["status"], m["retry_count"] = string(Pending), int64(0)
		}
	}
	return v
}

// seconds returns a duration of at most an hour.
func seconds(s float64) time.Duration { return time.Duration(min(s, 3600) * float64(time.Second)) }

// run executes the subtask until it succeeds or its retries are exhausted. It notes
// each failure.
func (t *task) run(ctx context.Context) ending {
	for {
		started := now()
		result, err := t.once(ctx)
		e := tea.AsError(err)
		switch {
		case ctx.Err() != nil:
			return ending{node: t.node, broken: context.Cause(ctx)}
		case e != nil && e.Type == tea.Canceled:
			return ending{node: t.node, waits: true}
		case e != nil && e.Type == tea.BudgetExceeded:
			return ending{node: t.node, broken: e}
		}
		o := outcome{Status: Completed, Result: result, Retries: t.retries, Base: t.node.base, Started: started, Ended: now(), Aborts: t.journal.begun.Aborts}
		if e == nil {
			return ending{node: t.node, outcome: o} // the host has noted it
		}
		o.Status, o.Result, o.Error, o.Type = Failed, nil, e.Message, e.Type
		again := t.retries < t.limit
		if again {
			o.Status, o.Retries = Pending, t.retries+1
		}
		if err := t.journal.setOutcome(ctx, t.node.Subtask, o); err != nil {
			return ending{node: t.node, broken: err}
		}
		if !again {
			return ending{node: t.node, outcome: o}
		}
		t.retries++
		wait := max(t.delay.Wait(t.retries), min(e.RetryAfter, time.Minute))
		if err := backoff.Sleep(ctx, wait); err != nil {
			return ending{node: t.node, broken: err}
		}
	}
}

// once makes one call of the executor.
func (t *task) once(ctx context.Context) (any, error) {
	t.roots["subtask"].(map[string]any)["retry_count"] = int64(t.retries)
	with := t.executor.With.value
	if with == nil {
		with = map[string]any{}
	}
	resp, err := t.req.Invoke(ctx, tea.Invocation{
		Action: t.executor.Action, Params: with, Key: t.node.key, Attempt: t.retries + 1, Roots: t.roots, Output: t.executor.Output.value,
	})
	if err != nil {
		return nil, err
	}
	result, err := resp.Result.Value()
	if err != nil {
		return nil, tea.Errorf(tea.InternalError, "result of %s: %w", t.executor.Action, err)
	}
	return trimmed(result), nil
}

// trimmed returns a result without the member success, as in the state.
func trimmed(result any) any {
	if object, ok := result.(map[string]any); ok {
		delete(object, "success")
	}
	return result
}
