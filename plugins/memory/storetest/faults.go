package storetest

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// ErrFault is the error of a call that [Faults] makes fail.
var ErrFault = errors.New("fault of the test")

// Faults makes changes fail. After a failed change all later ones fail too, until Heal. It is safe for concurrent use;
// the zero value lets all calls pass.
type Faults struct {
	mu    sync.Mutex
	left  int
	armed bool
	down  bool
}

// After lets n steps pass and makes all later ones fail. Each change, and each statement of a transaction, has a step
// before it and a step after it: a failure in the second simulates a crash before the caller gets the result.
func (f *Faults) After(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.armed, f.down = n, true, false
}

// Heal lets all calls pass again. It reports whether a call has failed.
func (f *Faults) Heal() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	down := f.down
	f.armed, f.down = false, false
	return down
}

func (f *Faults) step() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.down:
		return ErrFault
	case !f.armed:
		return nil
	case f.left == 0:
		f.down = true
		return ErrFault
	}
	f.left--
	return nil
}

// Around runs a change between its two steps.
func (f *Faults) Around(change func() error) error {
	if err := f.step(); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	return f.step()
}

// Engine returns e with faults in its writes.
func (f *Faults) Engine(e store.QueryEngine) store.QueryEngine { return &faultyEngine{e, f} }

// Blobs returns b with faults in its changes.
func (f *Faults) Blobs(b store.BlobStorage) store.BlobStorage { return &faultyBlobs{b, f} }

type faultyEngine struct {
	store.QueryEngine
	faults *Faults
}

func (e *faultyEngine) Write(ctx context.Context, fn func(ctx context.Context, tx store.Tx) error) error {
	return e.faults.Around(func() error {
		return e.QueryEngine.Write(ctx, func(ctx context.Context, tx store.Tx) error { return fn(ctx, &faultyTx{tx, e.faults}) })
	})
}

type faultyTx struct {
	store.Tx
	faults *Faults
}

func (t *faultyTx) Exec(ctx context.Context, query string, args ...any) (affected int64, err error) {
	err = t.faults.Around(func() (err error) { affected, err = t.Tx.Exec(ctx, query, args...); return err })
	return affected, err
}

func (t *faultyTx) Append(ctx context.Context, table string, rows ...[]any) error {
	return t.faults.Around(func() error { return t.Tx.Append(ctx, table, rows...) })
}

type faultyBlobs struct {
	store.BlobStorage
	faults *Faults
}

func (b *faultyBlobs) Put(ctx context.Context, name string, r io.Reader) (info store.BlobInfo, err error) {
	err = b.faults.Around(func() (err error) { info, err = b.BlobStorage.Put(ctx, name, r); return err })
	return info, err
}

func (b *faultyBlobs) Delete(ctx context.Context, name string) error {
	return b.faults.Around(func() error { return b.BlobStorage.Delete(ctx, name) })
}

func (b *faultyBlobs) Move(ctx context.Context, from, to string) error {
	return b.faults.Around(func() error { return b.BlobStorage.Move(ctx, from, to) })
}
