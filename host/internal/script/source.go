package script

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// maxSource bounds the length of a text, because compiling takes memory in
// proportion to it.
const maxSource = 1 << 20

// Source is Lua text and its position in a file.
type Source struct {
	Name string // file or path shown in messages
	Line int    // line of the first line of Text, from 1; 0 counts as 1
	// Column is the column of Text's first character, from 1; 0 counts as 1. It
	// applies to every line, as a YAML block has one indentation.
	Column int
	Text   string
}

// Chunk is compiled Lua. It is immutable and safe for concurrent use.
type Chunk struct {
	runtime *Runtime
	name    string
	shift   int // lines before the text in its file
	program *program
	facts   facts

	once  sync.Once
	proto *lua.FunctionProto
	err   error
}

// Compile compiles statements. The error is a [*SyntaxError]. A runtime
// compiles equal texts once.
func (rt *Runtime) Compile(src Source) (*Chunk, error) {
	p, err := rt.program(src, false)
	if err != nil {
		return nil, err
	}
	return rt.chunk(src, p), nil
}

// CompileExpression compiles a bare expression, such as `count > 3`. A text
// that is not an expression but a chunk with a return statement counts as that
// chunk. The error is a [*SyntaxError].
func (rt *Runtime) CompileExpression(src Source) (*Chunk, error) {
	p, err := rt.program(src, true)
	if err != nil {
		return nil, err
	}
	return rt.chunk(src, p), nil
}

func parseChunk(src Source) ([]ast.Stmt, error) { return parseText(src, "") }

func parseExpression(src Source) ([]ast.Stmt, error) {
	stmts, exprErr := parseText(src, "return ")
	if exprErr == nil {
		return stmts, checkSingleExpression(src, stmts)
	}
	stmts, err := parseText(src, "")
	switch {
	case err != nil:
		return nil, later(exprErr, err)
	case !hasReturn(stmts):
		return nil, exprErr
	}
	return stmts, nil
}

// later returns the syntax error that is further on in the text, from the parse
// that got further.
func later(a, b error) error {
	var ea, eb *SyntaxError
	if errors.As(a, &ea) && errors.As(b, &eb) && (eb.Line > ea.Line || eb.Line == ea.Line && eb.Column > ea.Column) {
		return b
	}
	return a
}

// Run runs the chunk and returns its first result in the value model; nil if
// there is none. The error is a [*RunError]. The result can share values with
// env and must not be changed.
func (c *Chunk) Run(ctx context.Context, env Env) (any, error) {
	return c.runtime.execute(ctx, env, c.name, func(r *run) any {
		return r.export(r.call(r.instantiate(must(c.code()), r.globals), r.m.hidden...), "result")
	})
}

// readers is a pool of readers for the parser, which uses a [bufio.Reader] of
// this size directly and otherwise allocates one.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 4096) }}

// parseText parses src with a prefix on its first line. The lines of the nodes
// count from 1.
func parseText(src Source, prefix string) ([]ast.Stmt, error) {
	if len(src.Text) > maxSource {
		return nil, &SyntaxError{File: src.Name, Line: src.Line, Message: fmt.Sprintf("the script has %d bytes; at most %d are allowed", len(src.Text), maxSource)}
	}
	reader := readers.Get().(*bufio.Reader)
	defer readers.Put(reader)
	reader.Reset(strings.NewReader(prefix + src.Text))
	stmts, err := parse.Parse(reader, src.Name)
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

// ownSource is the source name of the sandbox's Lua code, which is omitted from
// positions and tracebacks.
const ownSource = "[tea]"

// The Lua code of the sandbox, compiled on first use. applyProto is needed because
// a Go function cannot be the first frame of a gopher-lua thread.
var (
	applyProto = sync.OnceValue(func() *lua.FunctionProto { return compileOwn("function(f, ...) return f(...) end") })
	startProto = sync.OnceValue(func() *lua.FunctionProto { return compileOwn("function(yield, f) return f(yield()) end") })
)

func compileOwn(function string) *lua.FunctionProto {
	stmts, err := parse.Parse(strings.NewReader("return "+function), ownSource)
	if err != nil {
		panic(err)
	}
	proto, err := lua.Compile(stmts, ownSource)
	if err != nil {
		panic(err)
	}
	return proto.FunctionPrototypes[0]
}

// clip shortens text for a message.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "..."
}

// positioned rewords a parser error and sets its position to the start of the
// offending token.
func positioned(src Source, prefix string, perr *parse.Error) *SyntaxError {
	text := prefix + src.Text
	out := &SyntaxError{File: src.Name, Message: perr.Message}
	if perr.Token != "" {
		out.Message = fmt.Sprintf("%s near %q", perr.Message, clip(perr.Token, 40))
	}
	pos := errorToken(text, perr)
	atEnd := pos.Line == parse.EOF
	if atEnd {
		out.Message = "unexpected end of the script"
		text = strings.TrimRight(text, " \t\r\n")
		pos.Line = strings.Count(text, "\n") + 1
		pos.Column = len(text) - strings.LastIndexByte(text, '\n')
	}
	at := offset(text, pos) - len(prefix)
	if out.Hint = hintFor(src.Text, at); out.Hint == "" {
		out.Hint = hintOfBlocks(src, at, atEnd)
	}
	pos.Column = runeColumn(text, pos)
	if pos.Line == 1 {
		pos.Column -= len(prefix)
	}
	out.Line = pos.Line + max(src.Line, 1) - 1
	out.Column = max(pos.Column, 1) + max(src.Column-1, 0)
	return out
}

// errorToken finds the token of a parser error. The error's position is where the
// token ends, or where the parser stopped: on the next line for an unterminated
// string.
func errorToken(text string, perr *parse.Error) ast.Position {
	scanner := parse.NewScanner(strings.NewReader(text), "")
	lexer := &parse.Lexer{}
	for {
		tok, err := scanner.Scan(lexer)
		at := scanner.Pos
		if err != nil || tok.Type == parse.EOF || samePlace(at, perr.Pos) || samePlace(tok.Pos, perr.Pos) {
			return tok.Pos
		}
		lexer.PrevTokenType = tok.Type
	}
}

func samePlace(a, b ast.Position) bool { return a.Line == b.Line && a.Column == b.Column }

// offset returns the byte offset of a position in text.
func offset(text string, pos ast.Position) int {
	at := 0
	for range pos.Line - 1 {
		at += strings.IndexByte(text[at:], '\n') + 1
	}
	return min(at+max(pos.Column-1, 0), len(text))
}

// runeColumn converts a column in bytes to one in characters.
func runeColumn(text string, pos ast.Position) int {
	for range pos.Line - 1 {
		_, text, _ = strings.Cut(text, "\n")
	}
	return utf8.RuneCountInString(text[:min(max(pos.Column-1, 0), len(text))]) + 1
}
