package script

import (
	"slices"

	lua "github.com/yuin/gopher-lua"
)

func coroutineFunctions() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"create":  coroutineCreate,
		"resume":  coroutineResume,
		"running": coroutineRunning,
		"status":  coroutineStatus,
		"wrap":    coroutineWrap,
		"yield":   coroutineYield,
	}
}

func coroutineCreate(L *lua.LState) int { return push(L, runOf(L).newCoroutine(L, L.CheckFunction(1))) }

// newCoroutine creates a thread and runs it up to a first yield before fn, as
// gopher-lua cannot represent a function that has not begun.
func (r *run) newCoroutine(L *lua.LState, fn *lua.LFunction) *lua.LState {
	th := r.m.thread(coroutineDepth)
	th.SetContext(r)
	saved := r.beginResume(L, th)
	// Only the end of the run can make this fail, which check reports.
	_, _, _ = L.Resume(th, r.instantiate(startProto(), r.globals), r.m.yield, fn)
	r.unnest(saved)
	r.check(L)
	return th
}

func (r *run) beginResume(L *lua.LState, th *lua.LState) nesting {
	saved := r.nest(L)
	r.coroutines = append(r.coroutines, th)
	r.boundaries = append(r.boundaries, r.callbacks)
	return saved
}

// resume continues th; it returns the error object if th fails.
func (r *run) resume(L, th *lua.LState, args []lua.LValue) (results []lua.LValue, failure lua.LValue) {
	switch r.status(th) {
	case "dead":
		return nil, lua.LString("cannot resume dead coroutine")
	case "running", "normal":
		return nil, lua.LString("cannot resume non-suspended coroutine")
	}
	saved := r.beginResume(L, th)
	r.yielded = nil
	state, err, results := L.Resume(th, nil, args...)
	r.unnest(saved)
	r.check(L)
	switch {
	case err != nil:
		return nil, errorObject(err)
	case r.yielded == th && state != lua.ResumeYield:
		// gopher-lua continues although it should have stopped.
		return nil, lua.LString("attempt to yield across a metamethod or an iterator")
	}
	return results, nil
}

func coroutineResume(L *lua.LState) int {
	results, failure := runOf(L).resume(L, L.CheckThread(1), arguments(L, 2))
	return pushOutcome(L, results, failure)
}

func coroutineWrap(L *lua.LState) int {
	th := runOf(L).newCoroutine(L, L.CheckFunction(1))
	L.Push(L.NewFunction(func(L *lua.LState) int {
		results, failure := runOf(L).resume(L, th, arguments(L, 1))
		if failure != nil {
			L.Error(failure, 0)
		}
		return push(L, results...)
	}))
	return 1
}

func coroutineYield(L *lua.LState) int {
	r := runOf(L)
	n := len(r.coroutines)
	if n == 0 || r.coroutines[n-1] != L || r.boundaries[n-1] != r.callbacks {
		L.RaiseError("attempt to yield from outside a coroutine, or across a call from a library function")
	}
	r.yielded = L
	return -1
}

func coroutineRunning(L *lua.LState) int {
	r := runOf(L)
	if n := len(r.coroutines); n > 0 {
		L.Push(r.coroutines[n-1])
	} else {
		L.Push(lua.LNil)
	}
	return 1
}

func coroutineStatus(L *lua.LState) int {
	return push(L, lua.LString(runOf(L).status(L.CheckThread(1))))
}

func (r *run) status(th *lua.LState) string {
	n := len(r.coroutines)
	switch {
	case th.Dead:
		return "dead"
	case n > 0 && r.coroutines[n-1] == th:
		return "running"
	case slices.Contains(r.coroutines, th):
		return "normal"
	}
	return "suspended"
}
