package script

import (
	"fmt"
	"math"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// Local variables of the sandbox's functions: the bounded concatenation, and the
// conversion of text in a loop. They are not valid names in a script.
const (
	concatName = "(concat)"
	boundName  = "(bound)"
)

// maxNesting bounds the nesting of a script's syntax, because the compiler recurses.
const maxNesting = 1000

// maxConstants bounds the different names, strings and numbers in one function,
// because the compiler searches all of them for each one.
const maxConstants = 1 << 14

// maxPlain is the largest size of a chunk that certainly stays within the compiler's
// limits. The smallest limit is 200 registers.
const maxPlain = 100

// rewriter replaces expressions for which gopher-lua has no hook. Concatenations become
// calls of a function that checks the size first, and the bounds of loops, which can be
// text, become calls that convert them.
type rewriter struct {
	src       Source
	depth     int
	functions int                 // number of function bodies around the node
	calls     bool                // whether the code calls a sandbox function
	constants map[string]struct{} // of the function around the node
	// size counts nodes and local variables. jumps reports whether the chunk has
	// statements that the compiler rejects in some places, such as break and
	// `...`.
	size  int
	jumps bool
}

// rewrite changes stmts in place. A chunk with such calls starts with `local
// (concat), (bound) = ...`; its caller passes the functions. canFail reports
// whether the compiler can reject the result.
func rewrite(src Source, stmts []ast.Stmt) (out []ast.Stmt, canFail bool, err error) {
	w := &rewriter{src: src, constants: map[string]struct{}{}}
	defer func() {
		if p := recover(); p != nil {
			serr, ok := p.(*SyntaxError)
			if !ok {
				panic(p)
			}
			out, err = nil, serr
		}
	}()
	w.block(stmts)
	canFail = w.jumps || w.size > maxPlain
	if !w.calls {
		return stmts, canFail, nil
	}
	bind := &ast.LocalAssignStmt{Names: []string{concatName, boundName}, Exprs: []ast.Expr{&ast.Comma3Expr{}}}
	bind.SetLine(1)
	bind.Exprs[0].SetLine(1)
	return append([]ast.Stmt{bind}, stmts...), canFail, nil
}

func (w *rewriter) fail(at ast.PositionHolder, format string, args ...any) {
	panic(&SyntaxError{File: w.src.Name, Line: max(at.Line(), 1) + max(w.src.Line, 1) - 1, Message: fmt.Sprintf(format, args...)})
}

// enter begins a node. Each node is entered once.
func (w *rewriter) enter(at ast.PositionHolder) {
	w.size++
	if w.depth++; w.depth > maxNesting {
		w.fail(at, "the script nests more than %d levels deep", maxNesting)
	}
}

func (w *rewriter) constant(at ast.PositionHolder, text string) {
	if w.constants[text] = struct{}{}; len(w.constants) > maxConstants {
		w.fail(at, "one function has more than %d different names, strings and numbers; put data into the state or a file", maxConstants)
	}
}

func (w *rewriter) block(stmts []ast.Stmt) {
	for _, s := range stmts {
		w.stmt(s)
	}
}

func (w *rewriter) stmt(s ast.Stmt) {
	w.enter(s)
	defer func() { w.depth-- }()
	switch s := s.(type) {
	case *ast.AssignStmt:
		w.exprs(s.Lhs)
		w.exprs(s.Rhs)
	case *ast.LocalAssignStmt:
		w.size += len(s.Names)
		w.exprs(s.Exprs)
	case *ast.FuncCallStmt:
		s.Expr = w.expr(s.Expr)
	case *ast.DoBlockStmt:
		w.block(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = w.expr(s.Condition)
		w.block(s.Stmts)
	case *ast.RepeatStmt:
		s.Condition = w.expr(s.Condition)
		w.block(s.Stmts)
	case *ast.IfStmt:
		s.Condition = w.expr(s.Condition)
		w.block(s.Then)
		w.block(s.Else)
	case *ast.NumberForStmt:
		w.size += 4 // the compiler adds three to the name
		s.Init, s.Limit, s.Step = w.bound(s.Init), w.bound(s.Limit), w.bound(s.Step)
		w.block(s.Stmts)
	case *ast.GenericForStmt:
		w.size += 3 + len(s.Names)
		w.exprs(s.Exprs)
		threeValues(s)
		w.block(s.Stmts)
	case *ast.FuncDefStmt:
		s.Name.Func = w.expr(s.Name.Func)
		s.Name.Receiver = w.expr(s.Name.Receiver)
		w.expr(s.Func)
	case *ast.ReturnStmt:
		w.exprs(s.Exprs)
	case *ast.BreakStmt, *ast.LabelStmt, *ast.GotoStmt:
		w.jumps = true
	default:
		// An unknown statement could contain a concatenation.
		w.fail(s, "unsupported statement %T", s)
	}
}

func (w *rewriter) exprs(list []ast.Expr) {
	for i, e := range list {
		list[i] = w.expr(e)
	}
}

// expr returns the replacement of e; nil stays nil.
func (w *rewriter) expr(e ast.Expr) ast.Expr {
	if e == nil {
		return nil
	}
	w.enter(e)
	defer func() { w.depth-- }()
	switch e := e.(type) {
	case *ast.StringConcatOpExpr:
		return w.concat(e)
	case *ast.TrueExpr, *ast.FalseExpr, *ast.NilExpr:
	case *ast.NumberExpr:
		w.number(e)
		w.constant(e, e.Value)
	case *ast.StringExpr:
		w.constant(e, e.Value)
	case *ast.IdentExpr:
		w.constant(e, e.Value)
	case *ast.Comma3Expr:
		if w.functions == 0 {
			w.fail(e, "cannot use '...' outside a vararg function")
		}
		w.jumps = true // the enclosing function may not have ...
	case *ast.AttrGetExpr:
		e.Object, e.Key = w.expr(e.Object), w.expr(e.Key)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			f.Key, f.Value = w.expr(f.Key), w.expr(f.Value)
		}
	case *ast.FuncCallExpr:
		w.constant(e, e.Method)
		e.Func, e.Receiver = w.expr(e.Func), w.expr(e.Receiver)
		w.exprs(e.Args)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = w.expr(e.Lhs), w.expr(e.Rhs)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = w.expr(e.Lhs), w.expr(e.Rhs)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = w.expr(e.Lhs), w.expr(e.Rhs)
	case *ast.UnaryMinusOpExpr:
		e.Expr = w.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = w.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		e.Expr = w.expr(e.Expr)
	case *ast.FunctionExpr:
		w.function(e)
	default:
		w.fail(e, "unsupported expression %T", e)
	}
	return e
}

func (w *rewriter) function(e *ast.FunctionExpr) {
	outer := w.constants
	w.constants = map[string]struct{}{}
	w.size += len(e.ParList.Names)
	w.functions++
	w.block(e.Stmts)
	w.functions--
	w.constants = outer
}

// concat turns a .. b .. c into one call with three arguments.
func (w *rewriter) concat(e *ast.StringConcatOpExpr) ast.Expr {
	var parts []ast.Expr
	var rest ast.Expr = e
	for {
		op, ok := rest.(*ast.StringConcatOpExpr)
		if !ok {
			break
		}
		parts = append(parts, w.expr(op.Lhs))
		rest = op.Rhs
	}
	return w.call(e, concatName, append(parts, single(w.expr(rest))))
}

// call returns a call of a sandbox function that replaces e.
func (w *rewriter) call(e ast.Expr, name string, args []ast.Expr) ast.Expr {
	w.calls = true
	fn := &ast.IdentExpr{Value: name}
	call := &ast.FuncCallExpr{Func: fn, Args: args, AdjustRet: true}
	for _, n := range []ast.PositionHolder{fn, call} {
		n.SetLine(e.Line())
		n.SetLastLine(e.LastLine())
	}
	return call
}

// threeValues completes `in next, t` to `in next, t, nil`: the compiler does not set
// the third value.
func threeValues(s *ast.GenericForStmt) {
	last := s.Exprs[len(s.Exprs)-1]
	switch e := last.(type) {
	case *ast.FuncCallExpr:
		if !e.AdjustRet {
			last = nil
		}
	case *ast.Comma3Expr:
		if !e.AdjustRet {
			last = nil
		}
	}
	if last == nil { // it can have several values
		for len(s.Names) < len(s.Exprs) {
			s.Names = append(s.Names, "(unused)")
		}
		return
	}
	for len(s.Exprs) < 3 {
		empty := &ast.NilExpr{}
		empty.SetLine(last.Line())
		s.Exprs = append(s.Exprs, empty)
	}
}

// bound returns a call that converts a loop bound that is text.
func (w *rewriter) bound(e ast.Expr) ast.Expr {
	e = w.expr(e)
	switch e.(type) {
	case nil, *ast.NumberExpr, *ast.UnaryLenOpExpr, *ast.UnaryMinusOpExpr, *ast.ArithmeticOpExpr:
		return e
	}
	return w.call(e, boundName, []ast.Expr{single(e)})
}

// number changes a literal that gopher-lua reads differently from Lua: one that has
// leading zeros or is too large.
func (w *rewriter) number(e *ast.NumberExpr) {
	v, ok := parseNumber(e.Value)
	if !ok {
		w.fail(e, "malformed number near %q", clip(e.Value, 40))
	}
	if e.Value[0] == '0' && len(e.Value) > 1 || math.IsInf(float64(v), 0) {
		e.Value = strconv.FormatFloat(float64(v), 'g', -1, 64)
	}
}

// single truncates an expression to one value, as an operand.
func single(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return e
}

// hasReturn reports whether a chunk has a return statement outside its
// functions.
func hasReturn(stmts []ast.Stmt) bool {
	for _, s := range stmts {
		var inner [][]ast.Stmt
		switch s := s.(type) {
		case *ast.ReturnStmt:
			return true
		case *ast.DoBlockStmt:
			inner = [][]ast.Stmt{s.Stmts}
		case *ast.WhileStmt:
			inner = [][]ast.Stmt{s.Stmts}
		case *ast.RepeatStmt:
			inner = [][]ast.Stmt{s.Stmts}
		case *ast.IfStmt:
			inner = [][]ast.Stmt{s.Then, s.Else}
		case *ast.NumberForStmt:
			inner = [][]ast.Stmt{s.Stmts}
		case *ast.GenericForStmt:
			inner = [][]ast.Stmt{s.Stmts}
		}
		for _, block := range inner {
			if hasReturn(block) {
				return true
			}
		}
	}
	return false
}
