//go:build cozo && cgo

package cozo

/*
#cgo CFLAGS: -I${SRCDIR}/../../cozo
#cgo LDFLAGS: -lteacozo -lm -ldl -lpthread
#include "teacozo.h"

static teacozo_reply query(const teacozo *db, const uint8_t *script, size_t script_length, const uint8_t *params, size_t params_length,
		uint64_t token, uint64_t timeout_ms, uint64_t memory, uint64_t rows, bool write) {
	teacozo_query_arguments a = {script, script_length, params, params_length, token, timeout_ms, memory, rows, write};
	return teacozo_query(db, &a);
}
*/
import "C"

import (
	"context"
	"sync/atomic"
	"time"
	"unsafe"
)

// engine is an open database of the engine. It is safe for concurrent use until
// close.
type engine struct {
	db     *C.teacozo
	tokens atomic.Uint64
}

// bytes returns the pointer and the length of b for a call.
func bytes(b []byte) (*C.uint8_t, C.size_t) {
	return (*C.uint8_t)(unsafe.SliceData(b)), C.size_t(len(b))
}

// text is bytes for a string.
func text(s string) (*C.uint8_t, C.size_t) {
	return (*C.uint8_t)(unsafe.StringData(s)), C.size_t(len(s))
}

// read decodes a reply with f and releases it. f must copy what it keeps.
func read(r C.teacozo_reply, f func(*reader) error) error {
	defer C.teacozo_free(r)
	b := unsafe.Slice((*byte)(r.data), int(r.length))
	switch {
	case !bool(r.ok):
		return parseFailure(b)
	case f == nil:
		return nil
	}
	return f(&reader{b: b})
}

func openEngine(path string) (*engine, error) {
	e := &engine{}
	p, n := text(path)
	err := read(C.teacozo_open(p, n, &e.db), nil) // it sets db
	return e, err
}

func (e *engine) close() error {
	if e.db == nil {
		return nil
	}
	return read(C.teacozo_close(e.db), nil)
}

// run runs a script of this package and decodes its result with f.
func (e *engine) run(script string, params *writer, f func(*reader) error) error {
	s, n := text(script)
	p, m := bytes(params.b)
	return read(C.teacozo_run(e.db, s, n, p, m), f)
}

// lookup reads rows by the beginnings of their keys.
func (e *engine) lookup(request *writer, f func(*reader) error) error {
	b, n := bytes(request.b)
	return read(C.teacozo_lookup(e.db, b, n), f)
}

// withWords reads the ids of entities by words.
func (e *engine) withWords(request *writer, f func(*reader) error) error {
	b, n := bytes(request.b)
	return read(C.teacozo_having(e.db, b, n), f)
}

// apply writes a batch in one transaction.
func (e *engine) apply(batch *writer) error {
	b, n := bytes(batch.b)
	return read(C.teacozo_apply(e.db, b, n), nil)
}

func (e *engine) backup(path string) error {
	p, n := text(path)
	return read(C.teacozo_backup(e.db, p, n), nil)
}

// limits are the limits of a user's query.
type limits struct {
	timeout time.Duration
	memory  int64
	rows    int
	write   bool
}

// query runs a user's query. It returns soon after ctx is done.
func (e *engine) query(ctx context.Context, script string, params *writer, l limits, f func(*reader) error) error {
	token := e.tokens.Add(1)
	stop := context.AfterFunc(ctx, func() { C.teacozo_cancel(e.db, C.uint64_t(token)) })
	defer stop()
	if err := ctx.Err(); err != nil {
		return err
	}
	s, n := text(script)
	p, m := bytes(params.b)
	r := C.query(e.db, s, n, p, m, C.uint64_t(token), C.uint64_t(l.timeout.Milliseconds()), C.uint64_t(l.memory), C.uint64_t(l.rows), C.bool(l.write))
	return read(r, f)
}
