package script

import (
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// maxMessage bounds the message of an error, as a script can raise any string.
const maxMessage = 4096

// failed is the value that code outside of Lua panics with; execute returns the error.
type failed struct{ error }

// must returns v, or panics.
func must[T any](v T, err error) T {
	if err != nil {
		panic(failed{err})
	}
	return v
}

// catch recovers the error of a panic.
func catch(err *error) {
	switch p := recover().(type) {
	case nil:
	case failed:
		*err = p.error
	default:
		panic(p)
	}
}

// missingName is the last undefined global that was read.
type missingName struct {
	name string
	line int
}

// errorObject returns the raised object, without a position in the sandbox's code,
// which the error of a library function has if pcall calls it directly.
func errorObject(err error) lua.LValue {
	var aerr *lua.ApiError
	if !errors.As(err, &aerr) || aerr.Object == nil {
		return lua.LString(err.Error())
	}
	if s, ok := aerr.Object.(lua.LString); ok {
		if _, _, rest, ok := splitPosition(string(s), []string{ownSource}); ok {
			return lua.LString(rest)
		}
	}
	return aerr.Object
}

func panicObject(p any) lua.LValue {
	if err, ok := p.(error); ok {
		return errorObject(err)
	}
	return lua.LString(fmt.Sprint(p))
}

func (r *run) stopError() *RunError {
	if r.stop.Load() == outOfMemory {
		return &RunError{Kind: MemoryError, File: r.name, Message: "the script exceeded its memory limit"}
	}
	return stoppedError(r.name, r.Err())
}

// failure returns the error for an object that a script raised.
func (r *run) failure(object lua.LValue) *RunError {
	if r.stopped() {
		return r.stopError()
	}
	out := &RunError{Kind: ScriptError, File: r.name}
	if t, ok := object.(*lua.LTable); ok {
		err := r.failures[t]
		if limit := limitError(""); errors.As(err, &limit) {
			out.Kind, out.Message = SizeError, limit.Error()
			return out
		}
		if err != nil {
			out.Kind, out.Message, out.cause = ActionError, err.Error(), err
			return out
		}
		out.Message = r.tableMessage(t)
		return out
	}
	out.Message = clip(object.String(), maxMessage)
	if file, line, rest, ok := splitPosition(out.Message, r.sourceNames()); ok {
		out.File, out.Line, out.Message = file, line, rest
	}
	return out
}

// tableMessage returns the message of a table that a script raised.
func (r *run) tableMessage(t *lua.LTable) string {
	if s, ok := t.RawGetString("message").(lua.LString); ok {
		return clip(string(s), maxMessage)
	}
	return "the script raised a table without a message"
}

// failureAt adds the position and traceback of th's stack.
func (r *run) failureAt(th *lua.LState, object lua.LValue) *RunError {
	out := r.failure(object)
	frames := stackFrames(th)
	if out.Line == 0 && len(frames) > 0 {
		out.File, out.Line = frames[0].file, frames[0].line
	}
	var trace strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&trace, "%s:%d\n", f.file, f.line)
	}
	out.Traceback = trace.String()
	if out.Kind == ScriptError && r.missing.name != "" && r.missing.line == out.Line {
		out.Message += " (" + explainMissing(r.missing.name) + ")"
	}
	return out
}

// sourceNames returns the file names with which positions in messages can
// begin.
func (r *run) sourceNames() []string {
	names := []string{r.name}
	for m := range r.modules {
		names = append(names, m.name)
	}
	return names
}

// splitPosition splits the "name:line: " of gopher-lua from a message.
func splitPosition(message string, names []string) (file string, line int, rest string, ok bool) {
	for _, name := range names {
		tail, found := strings.CutPrefix(message, name+":")
		if !found {
			continue
		}
		digits, rest, found := strings.Cut(tail, ": ")
		if !found || len(digits) > 9 || digits == "" {
			continue
		}
		line := 0
		for _, c := range digits {
			if c < '0' || c > '9' {
				return "", 0, "", false
			}
			line = line*10 + int(c-'0')
		}
		return name, line, rest, true
	}
	return "", 0, "", false
}

type frame struct {
	file string
	line int
}

// stackFrames returns the Lua functions on the stack of a failed thread.
func stackFrames(th *lua.LState) []frame {
	const most = 20
	var out []frame
	for level := 0; level < 10*most && len(out) < most; level++ {
		debug, ok := th.GetStack(level)
		if !ok {
			break
		}
		if _, err := th.GetInfo("Sl", debug, lua.LNil); err != nil || debug.Source == ownSource || debug.CurrentLine <= 0 {
			continue
		}
		out = append(out, frame{debug.Source, debug.CurrentLine})
	}
	return out
}
