package script

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yuin/gopher-lua/ast"
)

// Position is a position in a chunk's source: the line in the file, and the
// column, both from 1; the column is 0 if unknown.
type Position struct{ Line, Column int }

// Reference is an expression that reads a name. Path has the constant keys
// after it.
type Reference struct {
	Name string
	Path []string
	Position
}

// facts are the results of static analysis of a chunk.
type facts struct {
	assignments []Position
	reads       []Reference
	globals     []Reference
	returns     []string
	// named are the globals that are read, including the chunk's own and fields of _G.
	named    []string
	requires []string
	// otherReturns reports whether the chunk returns anything other than table
	// constructors.
	otherReturns bool
}

// StateAssignments returns the positions of assignments to the state without
// effect: the chunk neither returns the state or that key, nor passes the state
// on. The caller must not change the slice.
func (c *Chunk) StateAssignments() []Position { return c.facts.assignments }

// StateReads returns the expressions that read a constant key of the state. The
// caller must not change the slice.
func (c *Chunk) StateReads() []Reference { return c.facts.reads }

// ReturnKeys returns the keys of the tables that the chunk returns. all is false if
// it may return others too. The caller must not change the slice.
func (c *Chunk) ReturnKeys() (keys []string, all bool) { return c.facts.returns, !c.facts.otherReturns }

// Globals returns the expressions that read a global name other than state and
// the libraries, and that the chunk does not set itself. The caller must not
// change the slice.
func (c *Chunk) Globals() []Reference { return c.facts.globals }

// Reads reports whether the chunk reads a global name, by itself or as a field
// of _G.
func (c *Chunk) Reads(global string) bool { return slices.Contains(c.facts.named, global) }

// Calls reports whether the chunk can call actions, log, or run the code of
// modules.
func (c *Chunk) Calls() bool {
	return slices.ContainsFunc([]string{"tea", "print", "require", "_G"}, c.Reads)
}

// Requires returns the modules that the chunk requires by a constant name. The
// caller must not change the slice.
func (c *Chunk) Requires() []string { return c.facts.requires }

// libraries are the predefined global names of every script.
var libraries = func() map[string]bool {
	names := map[string]bool{"_G": true, "_VERSION": true, "string": true, "table": true, "math": true, "coroutine": true, "tea": true}
	for name := range baseFunctions() {
		names[name] = true
	}
	return names
}()

// shifted returns f with its positions moved; the copy shares the rest.
func (f facts) shifted(lines, columns int) facts {
	f.assignments = slices.Clone(f.assignments)
	for i := range f.assignments {
		f.assignments[i].shift(lines, columns)
	}
	f.reads, f.globals = slices.Clone(f.reads), slices.Clone(f.globals)
	for _, list := range [][]Reference{f.reads, f.globals} {
		for i := range list {
			list[i].shift(lines, columns)
		}
	}
	return f
}

func (p *Position) shift(lines, columns int) {
	p.Line = shiftedLine(p.Line, lines)
	if p.Column > 0 {
		p.Column += columns
	}
}

// observer walks a chunk and collects its facts.
type observer struct {
	lines []string
	facts
	// locals are the local names in scope, the innermost last.
	locals    []string
	functions int
	assigned  []assignment
	// own are the globals that the chunk sets itself.
	own map[string]bool
	// escapes reports whether the state as a whole is returned or passed on.
	escapes bool
}

type assignment struct {
	key string
	at  Position
}

// observe collects the facts of rewritten statements, whose nesting is bounded.
func observe(text string, stmts []ast.Stmt) facts {
	o := &observer{lines: strings.Split(text, "\n"), own: map[string]bool{}}
	o.block(stmts)
	slices.Sort(o.returns)
	o.returns = slices.Compact(o.returns)
	written := map[string]bool{}
	for _, a := range o.assigned {
		written[a.key] = true
		if _, returned := slices.BinarySearch(o.returns, a.key); !o.escapes && !returned {
			o.assignments = append(o.assignments, a.at)
		}
	}
	o.reads = slices.DeleteFunc(o.reads, func(r Reference) bool { return written[r.Name] || written[""] })
	o.globals = slices.DeleteFunc(o.globals, func(r Reference) bool { return o.own[r.Name] })
	return o.facts
}

// block walks statements in a new scope.
func (o *observer) block(stmts []ast.Stmt, names ...string) {
	mark := len(o.locals)
	o.locals = append(o.locals, names...)
	for _, s := range stmts {
		o.stmt(s)
	}
	o.locals = o.locals[:mark]
}

func (o *observer) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		o.exprs(s.Rhs)
		for _, target := range s.Lhs {
			o.assign(target)
		}
	case *ast.LocalAssignStmt:
		if len(s.Exprs) == 1 && isFunction(s.Exprs[0]) {
			// `local function f` is visible inside itself.
			o.locals = append(o.locals, s.Names...)
			o.exprs(s.Exprs)
			return
		}
		o.exprs(s.Exprs)
		o.locals = append(o.locals, s.Names...)
	case *ast.FuncCallStmt:
		o.expr(s.Expr)
	case *ast.DoBlockStmt:
		o.block(s.Stmts)
	case *ast.WhileStmt:
		o.expr(s.Condition)
		o.block(s.Stmts)
	case *ast.RepeatStmt:
		mark := len(o.locals) // until sees the block's locals
		for _, inner := range s.Stmts {
			o.stmt(inner)
		}
		o.expr(s.Condition)
		o.locals = o.locals[:mark]
	case *ast.IfStmt:
		o.expr(s.Condition)
		o.block(s.Then)
		o.block(s.Else)
	case *ast.NumberForStmt:
		o.exprs([]ast.Expr{s.Init, s.Limit, s.Step})
		o.block(s.Stmts, s.Name)
	case *ast.GenericForStmt:
		o.exprs(s.Exprs)
		o.block(s.Stmts, s.Names...)
	case *ast.FuncDefStmt:
		if s.Name.Func != nil {
			o.assign(s.Name.Func)
		}
		o.expr(s.Name.Receiver)
		o.expr(s.Func)
	case *ast.ReturnStmt:
		o.exprs(s.Exprs)
		if o.functions == 0 {
			o.returned(s.Exprs)
		}
	}
}

func isFunction(e ast.Expr) bool {
	_, ok := e.(*ast.FunctionExpr)
	return ok
}

// assign records an assignment to the state, and walks the other parts of the
// target.
func (o *observer) assign(target ast.Expr) {
	var path []ast.Expr
	root := target
	for {
		get, ok := root.(*ast.AttrGetExpr)
		if !ok {
			break
		}
		path = append(path, get.Key)
		root = get.Object
	}
	if !o.isState(root) {
		if len(path) > 0 {
			o.expr(target)
		} else if ident, ok := root.(*ast.IdentExpr); ok && !slices.Contains(o.locals, ident.Value) {
			o.own[ident.Value] = true
		}
		return
	}
	o.exprs(path)
	key := ""
	if len(path) > 0 {
		key, _ = constantKey(path[len(path)-1])
	}
	o.assigned = append(o.assigned, assignment{key, o.position(target, "state")})
}

func (o *observer) isState(e ast.Expr) bool { return o.isGlobal(e, "state") }

func (o *observer) isGlobal(e ast.Expr, name string) bool {
	ident, ok := e.(*ast.IdentExpr)
	return ok && ident.Value == name && !slices.Contains(o.locals, name)
}

func constantKey(e ast.Expr) (string, bool) {
	text, ok := e.(*ast.StringExpr)
	if !ok {
		return "", false
	}
	return text.Value, true
}

// maxLine bounds the length of a line in which columns are searched.
const maxLine = 4 << 10

// position finds the column of a word, which is not in the syntax tree.
func (o *observer) position(at ast.PositionHolder, word string) Position {
	pos := Position{Line: at.Line()}
	if i := at.Line() - 1; i >= 0 && i < len(o.lines) && len(o.lines[i]) <= maxLine {
		if column := strings.Index(o.lines[i], word); column >= 0 {
			pos.Column = utf8.RuneCountInString(o.lines[i][:column]) + 1
		}
	}
	return pos
}

func (o *observer) exprs(list []ast.Expr) {
	for _, e := range list {
		o.expr(e)
	}
}

func (o *observer) expr(e ast.Expr) {
	switch e := e.(type) {
	case *ast.IdentExpr:
		o.ident(e)
	case *ast.AttrGetExpr:
		if o.field(e) {
			return
		}
		o.expr(e.Key)
		if key, ok := constantKey(e.Key); ok && o.isGlobal(e.Object, "_G") {
			o.named = append(o.named, key)
		}
		if !o.isState(e.Object) {
			o.expr(e.Object)
		} else if key, ok := constantKey(e.Key); ok {
			at := o.position(e.Object, "state."+key)
			if at.Column == 0 {
				at = o.position(e.Object, "state")
			}
			o.reads = append(o.reads, Reference{Name: key, Position: at})
		}
	case *ast.TableExpr:
		for _, f := range e.Fields {
			o.exprs([]ast.Expr{f.Key, f.Value})
		}
	case *ast.FuncCallExpr:
		o.exprs([]ast.Expr{e.Func, e.Receiver})
		o.exprs(e.Args)
		if len(e.Args) > 0 && o.isGlobal(e.Func, "require") {
			if name, ok := constantKey(e.Args[0]); ok {
				o.requires = append(o.requires, name)
			}
		}
	case *ast.LogicalOpExpr:
		o.exprs([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.RelationalOpExpr:
		o.exprs([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.ArithmeticOpExpr:
		o.exprs([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.UnaryMinusOpExpr:
		o.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		o.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		o.expr(e.Expr)
	case *ast.FunctionExpr:
		o.functions++
		o.block(e.Stmts, e.ParList.Names...)
		o.functions--
	}
}

// field records a field of a global name with the path to it.
func (o *observer) field(e *ast.AttrGetExpr) bool {
	var path []string
	var keys []ast.Expr
	object := ast.Expr(e)
	for {
		get, ok := object.(*ast.AttrGetExpr)
		if !ok {
			break
		}
		if key, ok := constantKey(get.Key); ok {
			path = append(path, key)
		} else {
			path = nil // the rest is not constant
		}
		keys, object = append(keys, get.Key), get.Object
	}
	root, ok := object.(*ast.IdentExpr)
	if !ok || root.Value == "state" || libraries[root.Value] || slices.Contains(o.locals, root.Value) {
		return false
	}
	o.exprs(keys)
	slices.Reverse(path)
	o.named = append(o.named, root.Value)
	o.globals = append(o.globals, Reference{Name: root.Value, Path: path, Position: o.position(root, root.Value)})
	return true
}

func (o *observer) ident(e *ast.IdentExpr) {
	if slices.Contains(o.locals, e.Value) {
		return
	}
	if e.Value == "state" {
		o.escapes = true
		return
	}
	o.named = append(o.named, e.Value)
	if !libraries[e.Value] {
		o.globals = append(o.globals, Reference{Name: e.Value, Position: o.position(e, e.Value)})
	}
}

// returned records the keys of a table constructor.
func (o *observer) returned(exprs []ast.Expr) {
	if len(exprs) == 0 {
		return
	}
	switch e := exprs[0].(type) {
	case *ast.NilExpr:
		return
	case *ast.TableExpr:
		for _, f := range e.Fields {
			if f.Key == nil {
				continue // a list, which is stored under the node's name
			}
			key, ok := constantKey(f.Key)
			if !ok {
				o.otherReturns = true
				continue
			}
			o.returns = append(o.returns, key)
		}
		return
	}
	o.otherReturns = true
}
