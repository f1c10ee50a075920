package script

import (
	lua "github.com/yuin/gopher-lua"
)

// maxProtected bounds the nesting of protected calls and coroutines, which use
// the Go stack.
const maxProtected = 64

// call runs fn from outside Lua and returns its first result. It panics on
// failure, which nil and a text are too, as in `return nil, "not found"`.
func (r *run) call(fn *lua.LFunction, args ...lua.LValue) lua.LValue {
	th := r.m.borrow(r)
	_, err, results := r.m.root.Resume(th, fn, args...)
	if r.stopped() {
		panic(failed{r.stopError()})
	}
	if err != nil {
		panic(failed{r.failureAt(th, errorObject(err))})
	}
	if len(results) > 1 && results[0] == lua.LNil && results[1].Type() == lua.LTString {
		panic(failed{r.failure(results[1])})
	}
	r.m.release(th)
	return results[0]
}

// protect calls fn on a separate thread. It returns the error object if fn fails.
func (r *run) protect(L *lua.LState, fn *lua.LFunction, args []lua.LValue) (results []lua.LValue, failure lua.LValue) {
	saved := r.nest(L)
	th := r.m.borrow(r)
	if fn.IsG {
		args = append([]lua.LValue{fn}, args...)
		fn = r.instantiate(applyProto(), r.globals)
	}
	_, err, results := L.Resume(th, fn, args...)
	r.unnest(saved)
	r.check(L)
	if err != nil {
		return nil, errorObject(err)
	}
	r.m.release(th)
	return results, nil
}

// nesting is the state to restore after an error.
type nesting struct{ protected, coroutines, callbacks int }

func (r *run) nest(L *lua.LState) nesting {
	if r.protected >= maxProtected {
		L.RaiseError("stack overflow (protected calls and coroutines nest more than %d deep)", maxProtected)
	}
	saved := nesting{r.protected, len(r.coroutines), r.callbacks}
	r.protected++
	return saved
}

func (r *run) unnest(saved nesting) {
	r.protected, r.callbacks = saved.protected, saved.callbacks
	r.coroutines, r.boundaries = r.coroutines[:saved.coroutines], r.boundaries[:saved.coroutines]
}

// callback calls a Lua function from a library function and returns its first
// result.
func (r *run) callback(L *lua.LState, fn lua.LValue, args ...lua.LValue) lua.LValue {
	r.check(L)
	r.callbacks++
	L.Push(fn)
	for _, a := range args {
		L.Push(a)
	}
	L.Call(len(args), 1)
	r.callbacks--
	v := L.Get(-1)
	L.Pop(1)
	return v
}
