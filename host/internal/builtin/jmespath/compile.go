package jmespath

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jmespath-community/go-jmespath/pkg/parsing"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// maxLength bounds an expression in bytes, and thereby its nesting.
const maxLength = 16 << 10

// Expression is a compiled expression. It is immutable and safe for concurrent use.
type Expression struct {
	root      parsing.ASTNode
	functions map[string]function
}

// SyntaxError is a mistake in an expression.
type SyntaxError struct {
	Expression string
	// Offset is the byte offset of the mistake, -1 if unknown; Column is its
	// position in characters from 1, 0 if unknown.
	Offset, Column int
	Message        string
}

func (e *SyntaxError) Error() string {
	if e.Offset < 0 {
		return e.Message
	}
	return fmt.Sprintf("column %d: %s", e.Column, e.Message)
}

// Compile compiles an expression. The error is a [*SyntaxError].
func Compile(expression string) (compiled *Expression, err error) {
	if len(expression) > maxLength {
		return nil, syntaxError(expression, -1, fmt.Sprintf("the expression is longer than %d bytes", maxLength))
	}
	if !utf8.ValidString(expression) {
		return nil, syntaxError(expression, -1, "the expression is not valid UTF-8")
	}
	marked, literals, err := markLiterals(expression)
	if err != nil {
		return nil, err
	}
	root, err := parse(marked)
	if err != nil {
		var syntax parsing.SyntaxError
		if errors.As(err, &syntax) {
			offset := len(expression)
			if syntax.Offset < len(marked) {
				offset = min(literals.unmark(syntax.Offset), len(expression))
			}
			return nil, syntaxError(expression, offset, reworded(syntax.Error()))
		}
		if errors.Is(err, strconv.ErrRange) {
			return nil, syntaxError(expression, -1, "an index is too large")
		}
		return nil, syntaxError(expression, -1, err.Error())
	}
	c := &checker{expression: expression, literals: literals.values, functions: functions()}
	defer func() {
		if p := recover(); p != nil {
			err = p.(*SyntaxError)
		}
	}()
	c.check(&root, false)
	return &Expression{root: root, functions: c.functions}, nil
}

// parse calls the parser, which panics on some expressions that end too early.
func parse(expression string) (root parsing.ASTNode, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the expression is incomplete")
		}
	}()
	return parsing.NewParser().Parse(expression)
}

func syntaxError(expression string, offset int, message string) *SyntaxError {
	e := &SyntaxError{Expression: expression, Offset: offset, Message: message}
	if offset >= 0 {
		e.Column = utf8.RuneCountInString(expression[:offset]) + 1
	}
	return e
}

// checker reports mistakes that the parser accepts, and restores the exact
// literals.
type checker struct {
	expression string
	literals   []any
	functions  map[string]function
}

// check panics on the first mistake.
func (c *checker) check(n *parsing.ASTNode, isArgument bool) {
	switch n.NodeType {
	case parsing.ASTLiteral:
		n.Value = c.literal(n.Value)
	case parsing.ASTExpRef:
		if !isArgument {
			panic(c.failure("&", "an expression reference (&...) can only be a function's argument"))
		}
	case parsing.ASTBinding:
		panic(c.failure("=", "= binds a variable only in let; compare with =="))
	case parsing.ASTLetExpression:
		c.checkLet(n)
		return
	case parsing.ASTFunctionExpression:
		c.checkCall(n)
	}
	for i := range n.Children {
		c.check(&n.Children[i], n.NodeType == parsing.ASTFunctionExpression)
	}
}

func (c *checker) checkLet(n *parsing.ASTNode) {
	bindings := n.Children[0].Children
	for i := range bindings {
		b := &bindings[i]
		if b.NodeType != parsing.ASTBinding || b.Children[0].NodeType != parsing.ASTVariable {
			panic(c.failure("let", "let needs bindings such as $name = expression"))
		}
		c.check(&b.Children[1], false)
	}
	c.check(&n.Children[1], false)
}

func (c *checker) checkCall(n *parsing.ASTNode) {
	name := n.Value.(string)
	f, ok := c.functions[name]
	if !ok {
		panic(c.failure(name, "unknown function "+name+diag.Ending(name, slices.Sorted(maps.Keys(c.functions)))))
	}
	if problem := f.countProblem(name, len(n.Children)); problem != "" {
		panic(c.failure(name, problem))
	}
}

// failure returns a mistake at the first occurrence of text.
func (c *checker) failure(text, message string) *SyntaxError {
	return syntaxError(c.expression, strings.Index(c.expression, text), message)
}

// reworded replaces the token names in the parser's messages, such as
// TOKRbracket. If one name is a prefix of another, the longer one comes first.
func reworded(message string) string {
	return strings.NewReplacer(
		"SyntaxError: ", "", "Expected tQuotedIdentifier or tUnquotedIdentifier", "expected a name",
		"Expected tColon or tNumber", "expected : or a number", "Expected identifier, lbracket, or lbrace", "expected a name, [ or {", "Expected ", "expected ", ", received: ", ", found ",
		"Unexpected token: ", "unexpected ", "Invalid token: ", "unexpected ", "Incomplete expression", "the expression is incomplete", "Unknown char: ", "unknown character ",
		"TOKEOF", "the end", "TOKUnquotedIdentifier", "a name", "TOKQuotedIdentifier", "a quoted name", "TOKNumber", "a number",
		"TOKJSONLiteral", "a literal", "TOKStringLiteral", "a text", "TOKVarref", "a variable", "TOKUnknown", "something unknown",
		"TOKStar", "*", "TOKDot", ".", "TOKFilter", "[?", "TOKFlatten", "[]", "TOKLparen", "(", "TOKRparen", ")", "TOKLbracket", "[", "TOKRbracket", "]",
		"TOKLbrace", "{", "TOKRbrace", "}", "TOKOr", "||", "TOKPipe", "|", "TOKComma", ",", "TOKColon", ":", "TOKPlus", "+", "TOKMinus", "-",
		"TOKMultiply", "*", "TOKDivide", "/", "TOKDiv", "//", "TOKModulo", "%", "TOKLTE", "<=", "TOKLT", "<", "TOKGTE", ">=", "TOKGT", ">",
		"TOKEQ", "==", "TOKNE", "!=", "TOKCurrent", "@", "TOKRoot", "$", "TOKExpref", "&", "TOKAnd", "&&", "TOKNot", "!", "TOKAssign", "=",
	).Replace(message)
}
