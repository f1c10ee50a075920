package tea

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"

	"github.com/the-edge-agent/tea/sdk/schema"
)

// MaxPayload is the size in bytes up to which parameters and results pass
// between host and plugin; larger ones are refused with a validation_error.
const MaxPayload = 64 << 20

// Instance is a bundle opened for one set of settings. Every transport calls
// actions through it, so that they behave alike wherever the bundle runs. It
// is safe for concurrent use.
type Instance struct {
	bundle *Bundle
	value  any
}

// NewInstance opens the bundle. Only the settings that the bundle declares
// reach it. The error is an [*Error]; the caller closes the instance.
func (b *Bundle) NewInstance(ctx context.Context, settings Settings) (inst *Instance, err error) {
	inst = &Instance{bundle: b}
	if b.Open == nil {
		return inst, nil
	}
	defer func() {
		if p := recover(); p != nil {
			slog.ErrorContext(ctx, "panic while opening a bundle", "bundle", b.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			inst, err = nil, Errorf(InternalError, "panic while opening %s: %v", b.Name, p)
		}
	}()
	if inst.value, err = b.Open(ctx, settings.only(b.Settings)); err != nil {
		return nil, AsError(err)
	}
	return inst, nil
}

// only keeps the settings whose keys stand in declared.
func (s Settings) only(declared map[string]*schema.Schema) Settings {
	kept := Settings{}
	for key, raw := range s {
		if _, ok := declared[key]; ok {
			kept[key] = raw
		}
	}
	return kept
}

// Invoke calls the action that req names and fills in req's Instance. A
// missing action is a not_found error and a panic an internal_error; every
// error is an [*Error]. The response is not nil where the error is.
func (i *Instance) Invoke(ctx context.Context, req *Request) (resp *Response, err error) {
	action := i.bundle.Find(req.Action)
	if action == nil {
		return nil, Errorf(NotFound, "bundle %s has no action %s", i.bundle.Name, req.Action)
	}
	defer func() {
		if p := recover(); p != nil {
			req.Host.Log(ctx, slog.LevelError, "panic in "+req.Action, map[string]any{"panic": fmt.Sprint(p), "stack": string(debug.Stack())})
			resp, err = nil, Errorf(InternalError, "panic in %s: %v", req.Action, p)
		}
	}()
	call := *req
	call.Instance = i.value
	resp, err = action.Handle(ctx, &call)
	switch {
	case err != nil:
		return nil, AsError(err)
	case resp == nil:
		return &Response{}, nil
	}
	return resp, nil
}

// Close releases what Open made, where that can be closed.
func (i *Instance) Close() error {
	if c, ok := i.value.(io.Closer); ok {
		if err := c.Close(); err != nil {
			return fmt.Errorf("close %s: %w", i.bundle.Name, err)
		}
	}
	return nil
}
