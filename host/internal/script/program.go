package script

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// program is a parsed and checked text, independent of its position: its lines
// and columns count from 1. Chunks with equal texts share it.
type program struct {
	facts facts

	once  sync.Once
	stmts []ast.Stmt // nil after code generation
	proto *lua.FunctionProto
	err   error // a [*SyntaxError] without a file, or a panic of the compiler
}

// programKey identifies a program: a text can be both a chunk and an
// expression, with different meanings.
type programKey struct {
	text         string
	isExpression bool
}

// chunk returns a chunk of a program at a position in a file.
func (rt *Runtime) chunk(src Source, p *program) *Chunk {
	c := &Chunk{runtime: rt, name: src.Name, shift: max(src.Line, 1) - 1, program: p}
	c.facts = p.facts.shifted(c.shift, max(src.Column, 1)-1)
	return c
}

// program returns the program of a text. It parses a text only once per runtime.
func (rt *Runtime) program(src Source, isExpression bool) (*program, error) {
	key := programKey{src.Text, isExpression}
	rt.mu.Lock()
	p := rt.compiled[key]
	rt.mu.Unlock()
	if p != nil {
		return p, nil
	}
	parse := parseChunk
	if isExpression {
		parse = parseExpression
	}
	stmts, err := parse(src)
	if err != nil {
		return nil, err
	}
	if p, err = newProgram(src, stmts); err != nil {
		return nil, err
	}
	rt.mu.Lock()
	rt.compiled[key] = p
	rt.mu.Unlock()
	return p, nil
}

// CompileAll compiles statements in parallel. A later Compile of an equal text
// uses the result. CompileAll skips texts with mistakes, which Compile reports.
func (rt *Runtime) CompileAll(sources []Source) {
	var group sync.WaitGroup
	var next atomic.Int64
	const batch = 16 // fewer are not worth a goroutine
	for range min(runtime.GOMAXPROCS(0), len(sources)/batch) {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(sources) {
					return
				}
				_, _ = rt.program(sources[i], false)
			}
		})
	}
	group.Wait()
}

// newProgram checks parsed statements, which it takes over. It defers generating
// code to the first run if that cannot fail, and otherwise generates it now, so
// that every mistake is found before a workflow runs.
func newProgram(src Source, stmts []ast.Stmt) (*program, error) {
	stmts, canFail, err := rewrite(src, stmts)
	if err != nil {
		return nil, err
	}
	p := &program{stmts: stmts, facts: observe(src.Text, stmts)}
	if canFail {
		if _, err := p.code(); err != nil {
			return nil, placed(src, err)
		}
	}
	return p, nil
}

// code generates the program's code, once.
func (p *program) code() (*lua.FunctionProto, error) {
	p.once.Do(func() {
		defer func() { // the compiler panics on unexpected trees
			if r := recover(); r != nil {
				p.err = fmt.Errorf("%v", r)
			}
		}()
		if p.proto, p.err = lua.Compile(p.stmts, ""); p.err == nil {
			// Scripts cannot read the table `arg` that each call would create.
			p.proto.IsVarArg &^= lua.VarArgNeedsArg
			trim(p.proto)
		}
		p.stmts = nil
	})
	return p.proto, p.err
}

// placed converts an error of code generation to one with a position in the file.
func placed(src Source, err error) *SyntaxError {
	first := max(src.Line, 1)
	var cerr *lua.CompileError
	if !errors.As(err, &cerr) {
		return &SyntaxError{File: src.Name, Line: first, Message: err.Error()}
	}
	// A jump without a label is reported after the end of its function.
	last := first + strings.Count(strings.TrimRight(src.Text, "\n"), "\n")
	message := lineInMessage().ReplaceAllStringFunc(cerr.Message, func(text string) string {
		line, _ := strconv.Atoi(text[len("line "):])
		return "line " + strconv.Itoa(line+first-1)
	})
	return &SyntaxError{File: src.Name, Line: min(max(cerr.Line+first-1, first), last), Message: message}
}

// lineInMessage matches the line numbers in the compiler's messages about goto.
var lineInMessage = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bline \d+`) })

// code returns the program's code with the name and lines of the chunk's file.
func (c *Chunk) code() (*lua.FunctionProto, error) {
	c.once.Do(func() {
		proto, err := c.program.code()
		if err != nil {
			c.err = placed(Source{Name: c.name, Line: c.shift + 1}, err)
			return
		}
		c.proto = placedProto(proto, c.name, c.shift)
	})
	return c.proto, c.err
}

// trim releases the memory that the compiler allocates for a large function.
func trim(proto *lua.FunctionProto) {
	proto.Code, proto.Constants = slices.Clone(proto.Code), slices.Clone(proto.Constants)
	proto.DbgSourcePositions, proto.DbgCalls = slices.Clone(proto.DbgSourcePositions), slices.Clone(proto.DbgCalls)
	proto.DbgLocals, proto.DbgUpvalues = slices.Clone(proto.DbgLocals), slices.Clone(proto.DbgUpvalues)
	proto.FunctionPrototypes = slices.Clone(proto.FunctionPrototypes)
	for _, inner := range proto.FunctionPrototypes {
		trim(inner)
	}
}

// placedProto copies the fields that depend on a function's position; the copy
// shares the rest.
func placedProto(proto *lua.FunctionProto, name string, shift int) *lua.FunctionProto {
	at := *proto
	at.SourceName = name
	at.LineDefined, at.LastLineDefined = shiftedLine(at.LineDefined, shift), shiftedLine(at.LastLineDefined, shift)
	at.DbgSourcePositions = slices.Clone(proto.DbgSourcePositions)
	for i, line := range at.DbgSourcePositions {
		at.DbgSourcePositions[i] = shiftedLine(line, shift)
	}
	at.FunctionPrototypes = make([]*lua.FunctionProto, len(proto.FunctionPrototypes))
	for i, inner := range proto.FunctionPrototypes {
		at.FunctionPrototypes[i] = placedProto(inner, name, shift)
	}
	return &at
}

// shiftedLine adds shift to a line; 0 is an unknown line and stays 0.
func shiftedLine(line, shift int) int {
	if line <= 0 {
		return line
	}
	return line + shift
}
