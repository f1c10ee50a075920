// Package expr compiles and evaluates Jinja2 templates and expressions on
// values of the value model (package sdk/value).
//
// Start with [Compile] for a string that can contain {{ }}, {% %} or {# #},
// with [CompileExpression] for an expression without braces, such as an edge's
// condition, and with [CompileTemplates] for a whole tree of parameters. The
// compiled forms are immutable and safe for concurrent use.
//
// The language is Jinja2: its grammar, filters, tests and statements, with
// Python's arithmetic. It differs as workflows need:
//
//   - A missing name or key is null, at any depth.
//   - A string that is one single {{ expr }} keeps the value's type.
//   - In text null is empty, booleans are true and false, lists and objects
//     are JSON.
//   - Nothing is escaped, no file is read, and only values of the value model
//     are accessible.
//   - `!x`, `a && b`, `a || b` and `null` are supported.
//
// The package has its own parser and evaluator. The Go libraries for Jinja2
// wrap values by reflection, lose integers, use Go's arithmetic, reject parts
// of the grammar such as (a if b else c), and cannot be bounded. As in
// text/template, the code inside stops with a panic, which [Compile] and
// [Template.Eval] turn into an error with a position.
//
// Plain look-ups, alone or mixed with text, have a fast path that allocates
// only the resulting text. Evaluation is bounded by the context, by the size of
// each value and of the resulting text, and by nesting.
package expr
