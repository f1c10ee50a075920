package browser

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"syscall/js"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/jspromise"

	"github.com/the-edge-agent/tea/plugins/memory/internal/keyed"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// database is a database of IndexedDB. The first call opens it.
type database struct {
	name string

	mu     sync.Mutex
	handle js.Value
	closed bool
}

var _ keyed.DB = (*database)(nil)

// absent is the length of a part that does not exist.
const absent = 0xffffffff

// open returns the open database.
func (d *database) open(ctx context.Context) (js.Value, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return js.Value{}, tea.Errorf(tea.ConnectionError, "the memory is closed")
	case d.handle.Truthy() && !d.handle.Get("closed").Bool(): // else the browser has closed it
		return d.handle, nil
	}
	glue := js.Global().Get("teaMemory")
	if !glue.Truthy() {
		return js.Value{}, tea.Errorf(tea.DependencyMissing, "the memory needs memory.js of @tea/browser; load it in the worker before tea.wasm")
	}
	handle, err := await(ctx, glue.Call("open", d.name))
	if err != nil {
		return js.Value{}, fmt.Errorf("open the memory: %w", err)
	}
	d.handle = handle
	return handle, nil
}

// Get returns the values of keys.
func (d *database) Get(ctx context.Context, keys ...string) ([][]byte, error) {
	packed := []byte{}
	for _, key := range keys {
		packed = appendPart(packed, key)
	}
	raw, err := d.call(ctx, "get", toJS(packed))
	if err != nil {
		return nil, err
	}
	return parts(raw), nil
}

// Scan returns the pairs of a range.
func (d *database) Scan(ctx context.Context, from, to string, limit int) ([]keyed.Pair, error) {
	if from >= to { // IndexedDB refuses an empty range
		return nil, ctx.Err()
	}
	raw, err := d.call(ctx, "scan", toJS([]byte(from)), toJS([]byte(to)), limit)
	if err != nil {
		return nil, err
	}
	all := parts(raw)
	pairs := make([]keyed.Pair, len(all)/2)
	for i := range pairs {
		pairs[i] = keyed.Pair{Key: string(all[2*i]), Value: all[2*i+1]}
	}
	return pairs, nil
}

// Write does operations in a transaction with strict durability.
func (d *database) Write(ctx context.Context, ops []keyed.Op) error {
	size := 0
	for _, op := range ops {
		size += 12 + len(op.Key) + len(op.To) + len(op.Value)
	}
	packed := make([]byte, 0, size)
	for _, op := range ops {
		packed = appendPart(packed, op.Key)
		if op.To == "" {
			packed = binary.LittleEndian.AppendUint32(packed, absent)
		} else {
			packed = appendPart(packed, op.To)
		}
		if op.Value == nil {
			packed = binary.LittleEndian.AppendUint32(packed, absent)
		} else {
			packed = appendPart(packed, string(op.Value))
		}
	}
	_, err := d.call(ctx, "write", toJS(packed))
	return err
}

// Lock returns the tenure of this page or worker as the only writer.
func (d *database) Lock(ctx context.Context) (int64, error) {
	tenure, err := d.call(ctx, "lock")
	if err != nil {
		return 0, err
	}
	if tenure.Int() == 0 {
		e := tea.Errorf(tea.PermissionDenied, "the memory is %w: another tab or worker of this site writes to it; close that tab, or write there", store.ErrReadOnly)
		return 0, e
	}
	return int64(tenure.Int()), nil
}

// Close closes the database and releases the lock.
func (d *database) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.handle.Truthy() && !d.closed {
		d.handle.Call("close")
	}
	d.closed = true
	return nil
}

func (d *database) call(ctx context.Context, method string, args ...any) (js.Value, error) {
	if err := ctx.Err(); err != nil {
		return js.Value{}, err
	}
	handle, err := d.open(ctx)
	if err != nil {
		return js.Value{}, err
	}
	return await(ctx, handle.Call(method, args...))
}

func await(ctx context.Context, promise js.Value) (js.Value, error) {
	v, err := jspromise.Await(ctx, promise)
	if thrown := (*jspromise.Error)(nil); errors.As(err, &thrown) {
		err = toError(thrown)
	}
	return v, err
}

// toError returns the error of an exception.
func toError(thrown *jspromise.Error) error {
	switch thrown.Name {
	case "QuotaExceededError":
		return tea.Errorf(tea.ResourceExhausted, "the storage that the browser grants this site is full; delete entries, or free disk space: %s", thrown.Message)
	case "InvalidStateError", "AbortError":
		return tea.Errorf(tea.ConnectionError, "IndexedDB has closed the memory: %w", thrown)
	case "SecurityError":
		return tea.Errorf(tea.DependencyMissing, "the browser does not let this page store data: %s", thrown.Message)
	case "VersionError":
		return tea.Errorf(tea.DependencyMissing, "the memory was created by a newer version of tea: %s", thrown.Message)
	}
	return tea.Errorf(tea.InternalError, "IndexedDB: %w", thrown)
}

func toJS(b []byte) js.Value {
	array := js.Global().Get("Uint8Array").New(len(b))
	js.CopyBytesToJS(array, b)
	return array
}

func appendPart(b []byte, part string) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(part))), part...) //nolint:gosec // the memory has 32 bits
}

// parts returns the elements of an array, nil for undefined.
func parts(array js.Value) (all [][]byte) {
	raw := make([]byte, array.Length())
	js.CopyBytesToGo(raw, array)
	for len(raw) >= 4 {
		size := binary.LittleEndian.Uint32(raw)
		if raw = raw[4:]; size == absent {
			all = append(all, nil)
			continue
		}
		all, raw = append(all, raw[:size:size]), raw[size:]
	}
	return all
}
