//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"time"
	"unsafe"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// interruptInterval is the time between attempts to interrupt a query. A query that
// is being planned ignores them.
const interruptInterval = 5 * time.Millisecond

// limits bounds the result of a statement.
type limits struct{ rows, bytes int64 }

// engine is an open database.
type engine struct {
	library *library
	handle  unsafe.Pointer
	threads int
}

// openEngine opens or creates a database file.
func openEngine(l *library, path string, pool int64, threads int) (*engine, error) {
	e := &engine{library: l, threads: threads}
	err := l.call(func(out *unsafe.Pointer, size *int64) int32 {
		return l.open(path, pool, int64(threads), maxDatabase, &e.handle, out, size)
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// maxDatabase is the maximum size of a database in bytes: the engine reserves as many
// addresses. It must be a power of two.
const maxDatabase int64 = 1 << 36

// close closes the database. Its connections must be closed before.
func (e *engine) close() error {
	return e.library.call(func(out *unsafe.Pointer, size *int64) int32 { return e.library.close(e.handle, out, size) })
}

// connection runs one statement at a time. It is not safe for concurrent use.
type connection struct {
	library    *library
	handle     unsafe.Pointer
	statements map[string]unsafe.Pointer
}

func (e *engine) connect() (*connection, error) {
	c := &connection{library: e.library, statements: map[string]unsafe.Pointer{}}
	err := e.library.call(func(out *unsafe.Pointer, size *int64) int32 {
		return e.library.connect(e.handle, int64(e.threads), &c.handle, out, size)
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (c *connection) close() {
	for _, s := range c.statements {
		c.library.finalize(s)
	}
	c.library.disconnect(c.handle)
}

// execute runs a statement without parameters and result.
func (c *connection) execute(query string) error {
	return c.library.call(func(out *unsafe.Pointer, size *int64) int32 {
		return c.library.execute(c.handle, unsafe.StringData(query), int64(len(query)), out, size)
	})
}

// memory returns the bytes of the database's buffers that are in use until the next
// checkpoint.
func (c *connection) memory() int64 { return c.library.memory(c.handle) }

// query runs a statement of this package. A connection parses it once.
func (c *connection) query(ctx context.Context, text string, p params) (*result, error) {
	encoded, err := p.encode()
	if err != nil {
		return nil, err
	}
	statement := c.statements[text]
	if statement == nil {
		if statement, err = c.prepare(ctx, text, accessAll, encoded); err != nil {
			return nil, err
		}
		c.statements[text] = statement
	}
	return c.run(ctx, statement, encoded, limits{rows: 1 << 40, bytes: 1 << 40})
}

// access is the permission of a statement, as in kuzu/guard.h.
type access int64

const (
	accessAll access = iota
	accessRead
	accessWrite
)

// prepare parses and plans a statement. The caller finalizes it.
func (c *connection) prepare(ctx context.Context, text string, a access, encoded []byte) (unsafe.Pointer, error) {
	finish := c.interruptAfter(ctx)
	defer finish()
	var statement unsafe.Pointer
	err := c.library.call(func(out *unsafe.Pointer, size *int64) int32 {
		return c.library.prepare(c.handle, unsafe.StringData(text), int64(len(text)), int64(a), unsafe.SliceData(encoded), int64(len(encoded)), &statement, out, size)
	})
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return statement, err
}

// run executes a statement. When ctx ends, the engine stops it.
func (c *connection) run(ctx context.Context, statement unsafe.Pointer, encoded []byte, l limits) (*result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	finish := c.interruptAfter(ctx)
	var data []byte
	err := c.library.fetch(&data, func(out *unsafe.Pointer, size *int64) int32 {
		return c.library.run(c.handle, statement, unsafe.SliceData(encoded), int64(len(encoded)), 0, l.rows, l.bytes, out, size)
	})
	finish()
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	return decode(data), nil
}

// entities returns columns of the entities with the keys, in their order. Entities that
// do not exist are left out.
func (c *connection) entities(ctx context.Context, keys, columns []string) (*result, error) {
	arguments := appendTexts(appendTexts(nil, keys), columns)
	return c.lookup(ctx, func(out *unsafe.Pointer, size *int64) int32 {
		return c.library.entities(c.handle, &arguments[0], int64(len(arguments)), out, size)
	})
}

// adjacent returns columns of the relations of the entities with the keys, at most a.Max
// and one more. The columns begin with leanColumns. With both directions, relations
// between two of the entities appear twice.
func (c *connection) adjacent(ctx context.Context, keys, columns []string, a store.Adjacency) (*result, error) {
	arguments := appendTexts(appendTexts(appendTexts(nil, keys), columns), a.Types)
	return c.lookup(ctx, func(out *unsafe.Pointer, size *int64) int32 {
		return c.library.adjacent(c.handle, &arguments[0], int64(len(arguments)), flag(a.Direction != store.In), flag(a.Direction != store.Out), flag(a.Ever), toColumn(a.At), int64(a.Max), out, size)
	})
}

// withWords returns the ids of entities, with the places of their words: entities that have
// all words, in order, or those that have each word, at most limit per word.
func (c *connection) withWords(ctx context.Context, namespace string, words, types []string, all bool, limit int) (*result, error) {
	spaced := make([]string, len(words))
	for i, word := range words {
		spaced[i] = " " + word + " "
	}
	arguments := appendTexts(appendTexts(appendTexts(nil, []string{key(namespace, "")}), spaced), types)
	return c.lookup(ctx, func(out *unsafe.Pointer, size *int64) int32 {
		return c.library.withWords(c.handle, &arguments[0], int64(len(arguments)), flag(all), int64(limit), out, size)
	})
}

// lookup calls a function of kuzu/lookup.h or words.h.
func (c *connection) lookup(ctx context.Context, f func(out *unsafe.Pointer, size *int64) int32) (*result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	finish := c.interruptAfter(ctx)
	defer finish()
	var data []byte
	if err := c.library.fetch(&data, f); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	return decode(data), nil
}

func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}

func appendTexts(to []byte, texts []string) []byte {
	to = appendSize(to, len(texts))
	for _, s := range texts {
		to = appendText(to, s)
	}
	return to
}

// interruptAfter interrupts the connection's statement when ctx ends, until finish is
// called.
func (c *connection) interruptAfter(ctx context.Context) (finish func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	finished, ended := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		ticker := time.NewTicker(interruptInterval)
		defer ticker.Stop()
		for {
			c.library.interrupt(c.handle)
			select {
			case <-finished:
				return
			case <-ticker.C:
			}
		}
	})
	return sync.OnceFunc(func() {
		close(finished)
		if !stop() {
			<-ended
		}
	})
}

// call calls a function that may report an error in out.
func (l *library) call(f func(out *unsafe.Pointer, size *int64) int32) error {
	return l.fetch(new([]byte), f)
}

// fetch calls a function that reports a result or an error in out.
func (l *library) fetch(data *[]byte, f func(out *unsafe.Pointer, size *int64) int32) error {
	var out unsafe.Pointer
	var size int64
	var pinner runtime.Pinner
	pinner.Pin(&out)
	pinner.Pin(&size)
	code := f(&out, &size)
	pinner.Unpin()
	var content []byte
	if out != nil {
		content = append(content, unsafe.Slice((*byte)(out), size)...)
		l.free(out)
	}
	if code == 0 {
		*data = content
		return nil
	}
	return fault(code, string(content))
}

// The codes of a failure, as in kuzu/engine.cpp.
const (
	codeQuery = 1 + iota
	codeRefused
	codeInterrupted
	codeMemory
	codeFile
	codeInternal
	codeParameter
	codeDamaged
)

// damaged describes the damage of a log.
type damaged string

func (d damaged) Error() string { return string(d) }

// fault converts an error of the library.
func fault(code int32, message string) error {
	message = strings.TrimSpace(message)
	switch code {
	case codeQuery:
		for _, text := range []string{"Assertion failed in file", "a vector with ANY type", "ANY is neither an internal type"} {
			if strings.Contains(message, text) {
				return tea.Errorf(tea.QueryError, "the engine does not support a parameter, a null or an empty list where the query has one")
			}
		}
		return tea.Errorf(tea.QueryError, "%s", message)
	case codeRefused:
		return tea.Errorf(tea.PermissionDenied, "%s", message)
	case codeInterrupted:
		return tea.Errorf(tea.Timeout, "the query was interrupted")
	case codeMemory:
		return tea.Errorf(tea.ResourceExhausted, "this needs more memory than the database's buffers have; raise settings.graph.memory_mb, or select less in a query, or store less in one call: %s", message)
	case codeFile:
		// The engine reports an incomplete write, as on a disk that becomes full, as a
		// success.
		if strings.Contains(message, "No space left on device") || strings.HasSuffix(message, "Error: Success") {
			return tea.Errorf(tea.ResourceExhausted, "the disk of the graph is full: %s", message)
		}
		return tea.Errorf(tea.InternalError, "%s", message)
	case codeDamaged:
		return damaged(message)
	case codeParameter:
		return tea.Errorf(tea.ValidationError, "%s", message)
	}
	return tea.Errorf(tea.InternalError, "the library of the graph backend cypher: %s", message)
}
