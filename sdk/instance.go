package tea

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path"
	"reflect"
	"runtime"
	"strings"
)

// Handover is implemented by an instance (see [Bundle.Open]) with state in memory
// that must survive the replacement of the plugin by a new version while the host
// runs. Both methods are called while no call is running.
type Handover interface {
	// Export writes the state. After an error the instance remains in use.
	Export(ctx context.Context, w io.Writer) error
	// Import reads the output of another version's Export. It is called before
	// the first call. After an error the other version remains in use.
	Import(ctx context.Context, r io.Reader) error
}

// MaxPayload is the maximum size in bytes of parameters and results between
// host and plugin; larger ones are refused with a validation_error.
const MaxPayload = 64 << 20

// Instance is a bundle that was opened for one set of settings. Every transport
// calls actions through it, so that they behave the same wherever the bundle
// runs. It is safe for concurrent use. The caller closes it after the last call
// has ended.
type Instance struct {
	bundle *Bundle
	value  any
	checks map[string]*ParamCheck
}

// NewInstance opens the bundle with the settings that it declares. The error is
// an [*Error]. The caller closes the instance.
func (b *Bundle) NewInstance(ctx context.Context, settings Settings) (inst *Instance, err error) {
	inst = &Instance{bundle: b, checks: make(map[string]*ParamCheck, len(b.Actions))}
	for _, a := range b.Actions {
		if inst.checks[a.Name] = a.check; a.check == nil {
			inst.checks[a.Name] = NewParamCheck(a.Params)
		}
	}
	if b.Open == nil {
		return inst, nil
	}
	if inst.value, err = inGoroutine("opening "+b.Name, func() (any, error) { return b.open(ctx, settings) }); failed(err) {
		return nil, AsError(err)
	}
	return inst, nil
}

func (b *Bundle) open(ctx context.Context, settings Settings) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			stack := panicStack()
			slog.ErrorContext(ctx, "panic while opening a bundle", "bundle", b.Name, "panic", fmt.Sprint(p), "stack", stack)
			value, err = nil, Errorf(InternalError, "panic while opening %s: %v, in %s", b.Name, p, stack[0])
		}
	}()
	return b.Open(ctx, settings.only(b.Settings))
}

// inGoroutine calls a function in a separate goroutine. If that goroutine ends before
// the function returns, the caller gets an error instead of ending too.
func inGoroutine[T any](what string, call func() (T, error)) (T, error) {
	var result T
	var err error = exitError(what)
	done := make(chan struct{})
	go func() {
		defer close(done)
		result, err = call()
	}()
	<-done
	return result, err
}

// exitError is the error for a function of a bundle that called runtime.Goexit.
// The host treats it as a panic.
func exitError(what string) *Error {
	e := Errorf(InternalError, "%s called runtime.Goexit, which ends its goroutine; return an error", what)
	e.Details = map[string]any{"panic": "runtime.Goexit"}
	return e
}

// Invoke calls the action that req names, in a separate goroutine. A missing action
// is a not_found error, parameters that do not match its schema are a
// validation_error, and a handler that panics or calls runtime.Goexit is an
// internal_error. Every error is an [*Error]. Either the response or the error is
// nil. req.Host must not be nil.
func (i *Instance) Invoke(ctx context.Context, req *Request) (*Response, error) {
	call := *req
	return inGoroutine(req.Action, func() (*Response, error) { return i.InvokeHere(ctx, &call) })
}

// InvokeHere is Invoke on the caller's goroutine. It saves some microseconds for
// starting a goroutine, but a handler that calls runtime.Goexit ends the caller. The
// handler receives req itself, so use a request for one call only.
func (i *Instance) InvokeHere(ctx context.Context, req *Request) (resp *Response, err error) {
	action := i.bundle.Find(req.Action)
	if action == nil && i.bundle.Manifest().IsDynamic(req.Action) {
		action = &Action{Name: req.Action, Handle: i.bundle.Dynamic.Handle}
	}
	if action == nil {
		return nil, Errorf(NotFound, "bundle %s has no action %s", i.bundle.Name, req.Action)
	}
	defer func() {
		if p := recover(); p != nil {
			stack := panicStack()
			req.Host.Log(ctx, slog.LevelError, "panic in "+req.Action, map[string]any{"panic": fmt.Sprint(p), "stack": stack})
			e := Errorf(InternalError, "panic in %s: %v, in %s", req.Action, p, stack[0])
			e.Details = map[string]any{"panic": fmt.Sprint(p), "stack": stack}
			resp, err = nil, e
		}
	}()
	req.ctx = hostContext{ctx, req.Host}
	req.Instance = i.value
	check := i.checks[action.Name]
	if check == nil { // a dynamic action
		check = &ParamCheck{}
	}
	if req.Params, err = check.Accept(req.Action, req.Params); err != nil {
		return nil, err
	}
	req.accepted = acceptance{check, req.Params}
	resp, err = action.Handle(&req.ctx, req)
	switch {
	case failed(err):
		return nil, AsError(err)
	case resp == nil:
		return &Response{}, nil
	}
	return resp, nil
}

// panicStack returns the calls in the bundle's code that led to a panic, the last
// one first. It is called by the deferred function that recovers, and is never
// empty.
func panicStack() []any {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers[:])])
	var stack []any
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if f.Function == own+".(*Instance).InvokeHere" || f.Function == own+".(*Bundle).open" {
			break
		}
		if !strings.HasPrefix(f.Function, "runtime.") || stack != nil { // these raise the panic
			stack = append(stack, fmt.Sprintf("%s (%s:%d)", path.Base(f.Function), f.File, f.Line))
		}
	}
	if stack == nil {
		return []any{"the runtime"}
	}
	return stack
}

// own is the path of this package in function names.
var own = reflect.TypeFor[Instance]().PkgPath()

// Handover returns the value that Open returned if it implements [Handover],
// otherwise nil.
func (i *Instance) Handover() Handover {
	h, _ := i.value.(Handover)
	return h
}

// Close closes the value that Open returned, if it is an io.Closer.
func (i *Instance) Close() error {
	if c, ok := i.value.(io.Closer); ok {
		if err := c.Close(); err != nil {
			return fmt.Errorf("close %s: %w", i.bundle.Name, err)
		}
	}
	return nil
}
