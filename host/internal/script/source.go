package script

import (
	"context"
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// maxSource is how long a text may be; compiling takes memory in proportion.
const maxSource = 1 << 20

// Source is Lua text and its place in a file.
type Source struct {
	Name string // file or path shown in messages
	Line int    // line of the first line of Text, from 1; 0 counts as 1
	// Column is the column of Text's first character, from 1; 0 counts as 1.
	// It is added on every line, as a YAML block has one indentation.
	Column int
	Text   string
}

// Chunk is compiled Lua. It is immutable and safe for concurrent use.
type Chunk struct {
	runtime *Runtime
	name    string
	proto   *lua.FunctionProto
	facts   facts
}

// Compile compiles statements. The error is a [*SyntaxError].
func (rt *Runtime) Compile(src Source) (*Chunk, error) {
	stmts, err := parseText(src, "")
	if err != nil {
		return nil, err
	}
	return rt.compile(src, stmts)
}

// CompileExpression compiles a bare expression, such as `count > 3`. A text
// that is none but a chunk with a return statement counts as that chunk. The
// error is a [*SyntaxError].
func (rt *Runtime) CompileExpression(src Source) (*Chunk, error) {
	stmts, exprErr := parseText(src, "return ")
	if exprErr == nil {
		if err := checkSingleExpression(src, stmts); err != nil {
			return nil, err
		}
		return rt.compile(src, stmts)
	}
	stmts, err := parseText(src, "")
	switch {
	case err != nil:
		return nil, later(exprErr, err)
	case !hasReturn(stmts):
		return nil, exprErr
	}
	return rt.compile(src, stmts)
}

// later is the syntax error that lies further on in the text: that reading of
// it made more sense.
func later(a, b error) error {
	var ea, eb *SyntaxError
	if errors.As(a, &ea) && errors.As(b, &eb) && (eb.Line > ea.Line || eb.Line == ea.Line && eb.Column > ea.Column) {
		return b
	}
	return a
}

// Run runs the chunk and gives the first value it returns, in the value
// model; nil where it returns nothing. The error is a [*RunError]. What the
// result holds may be shared with env and must not be changed.
func (c *Chunk) Run(ctx context.Context, env Env) (any, error) {
	return c.runtime.execute(ctx, env, c.name, func(r *run) (any, error) {
		v, err := r.call(r.instantiate(c.proto, r.globals), r.m.concat)
		if err != nil {
			return nil, err
		}
		return r.export(v, "result")
	})
}

// parseText parses src behind a prefix on its first line. The lines of the
// nodes count from 1, until rewrite has seen them.
func parseText(src Source, prefix string) ([]ast.Stmt, error) {
	if len(src.Text) > maxSource {
		return nil, &SyntaxError{File: src.Name, Line: src.Line, Message: fmt.Sprintf("the script has %d bytes; at most %d are allowed", len(src.Text), maxSource)}
	}
	text := prefix + src.Text
	stmts, err := parse.Parse(strings.NewReader(text), src.Name)
	if err == nil {
		return stmts, nil
	}
	var perr *parse.Error
	if !errors.As(err, &perr) {
		return nil, &SyntaxError{File: src.Name, Line: max(src.Line, 1), Message: err.Error()}
	}
	return nil, positioned(src, prefix, perr)
}

func checkSingleExpression(src Source, stmts []ast.Stmt) error {
	if len(stmts) == 1 {
		if ret, ok := stmts[0].(*ast.ReturnStmt); ok && len(ret.Exprs) == 1 {
			return nil
		}
	}
	return &SyntaxError{File: src.Name, Line: max(src.Line, 1), Column: max(src.Column, 1), Message: "not a single expression"}
}

// compile turns parsed statements, which it changes, into a chunk.
func (rt *Runtime) compile(src Source, stmts []ast.Stmt) (chunk *Chunk, err error) {
	stmts, err = rewrite(src, stmts)
	if err != nil {
		return nil, err
	}
	// Compile panics where it meets a tree it did not expect.
	defer func() {
		if p := recover(); p != nil {
			chunk, err = nil, &SyntaxError{File: src.Name, Line: max(src.Line, 1), Message: fmt.Sprint(p)}
		}
	}()
	proto, err := lua.Compile(stmts, src.Name)
	if err == nil {
		// Nobody reads the table `arg` that each call would make.
		proto.IsVarArg &^= lua.VarArgNeedsArg
		return &Chunk{runtime: rt, name: src.Name, proto: proto, facts: observe(src, stmts)}, nil
	}
	var cerr *lua.CompileError
	if errors.As(err, &cerr) {
		// A jump without a label is said to be behind the end of its function.
		last := max(src.Line, 1) + strings.Count(strings.TrimRight(src.Text, "\n"), "\n")
		return nil, &SyntaxError{File: src.Name, Line: min(max(cerr.Line, src.Line, 1), last), Message: cerr.Message}
	}
	return nil, &SyntaxError{File: src.Name, Line: max(src.Line, 1), Message: err.Error()}
}

// ownSource names the sandbox's own pieces of Lua; they are left out of
// positions and tracebacks.
const ownSource = "[tea]"

// programs are the pieces of Lua that the sandbox itself needs. A function of
// Go cannot be the first frame of a gopher-lua thread, hence apply.
type programs struct {
	apply *lua.FunctionProto // function(f, ...) return f(...) end
	start *lua.FunctionProto // function(yield, f) return f(yield()) end
}

func compilePrograms() programs {
	compile := func(text string) *lua.FunctionProto {
		stmts, err := parse.Parse(strings.NewReader("return "+text), ownSource)
		if err != nil {
			panic(err)
		}
		proto, err := lua.Compile(stmts, ownSource)
		if err != nil {
			panic(err)
		}
		return proto.FunctionPrototypes[0]
	}
	return programs{
		apply: compile("function(f, ...) return f(...) end"),
		start: compile("function(yield, f) return f(yield()) end"),
	}
}

// clip shortens text for a message.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "..."
}
