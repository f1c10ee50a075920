// Package expr compiles and evaluates Jinja2 templates and expressions on
// values of the value model (package sdk/value).
//
// Start with [Compile] for a string that may hold {{ }}, {% %} or {# #}, with
// [CompileExpression] for an expression without braces, such as an edge's
// condition, and with [CompileValue] for a whole tree of parameters. What is
// compiled is immutable and safe for concurrent use.
//
// The language is Jinja2's: its grammar, filters, tests, statements and
// Python's arithmetic. It differs where a workflow needs something else:
//
//   - Looking up what is not there gives null, at any depth.
//   - A string that is one single {{ expr }} keeps the value's type.
//   - In text null is empty, booleans are true and false, lists and objects
//     are JSON.
//   - Nothing is escaped, nothing is read from files, and only values of the
//     value model can be reached.
//   - `!x`, `a && b`, `a || b` and `null` are understood.
//
// The parser and evaluator are the package's own. The Go libraries for Jinja2
// wrap values by reflection, lose integers, follow Go's arithmetic, reject
// parts of the grammar such as (a if b else c), and cannot be bounded.
//
// Plain look-ups, alone or mixed with text, take a direct way that allocates
// nothing but the resulting text. Evaluation is bounded: by the context, by
// the size of each value and of the text it produces, and by nesting.
package expr
