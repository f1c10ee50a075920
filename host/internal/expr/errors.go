package expr

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// SyntaxError is a mistake in a template or expression. Line and Column count
// from 1 within the text; a column is a character, not a byte.
type SyntaxError struct {
	Line, Column int
	Message      string
	// Hint is the remedy; it can be empty.
	Hint string
}

// Error returns the message with its position.
func (e *SyntaxError) Error() string { return describe(e.Line, e.Column, e.Message, e.Hint) }

// EvalError is a failed evaluation. It unwraps to its cause, which is the
// context's error if the context ended.
type EvalError struct {
	Line, Column int
	Message      string
	// Hint is the remedy; it can be empty.
	Hint string
	Err  error
}

// Error returns the message with its position.
func (e *EvalError) Error() string { return describe(e.Line, e.Column, e.Message, e.Hint) }

// Unwrap returns the cause.
func (e *EvalError) Unwrap() error { return e.Err }

// failure is what an evaluation panics with: the code that evaluates a template
// returns no errors, and [Template.Eval] adds the position.
type failure struct {
	err  error
	hint string
}

func failf(format string, args ...any) failure { return failure{err: fmt.Errorf(format, args...)} }

func (f failure) hinted(hint string) failure {
	f.hint = hint
	return f
}

// must returns v, or fails with the error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(failure{err: err})
	}
	return v
}

func describe(line, column int, message, hint string) string {
	text := fmt.Sprintf("line %d, column %d: %s", line, column, message)
	if hint != "" {
		text += " (" + hint + ")"
	}
	return text
}

// lineColumn returns the position of a byte offset, both from 1.
func lineColumn(text string, offset int) (line, column int) {
	before := text[:min(offset, len(text))]
	line = strings.Count(before, "\n") + 1
	column = utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return line, column
}
