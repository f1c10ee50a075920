// Package script runs Lua from workflow files in a sandbox, on gopher-lua
// (Lua 5.1 with goto).
//
// Start with [New], which returns a [Runtime]. [Runtime.Compile] and
// [Runtime.CompileExpression] compile text to a [Chunk]; [Chunk.Run] runs it in
// an [Env]. [Runtime.CompileModule] compiles a file of Lua actions.
//
// # Limits of a run
//
// Every run has a separate environment table over libraries that it cannot
// change. Nothing that a script creates outlives its run. A run ends with its
// deadline, with its context, or when the heap grows too far; a Lua state that was
// stopped in this way is discarded. Functions that create strings or tables check
// the size before they allocate, patterns run on a matcher that counts its steps,
// and the nesting of calls is bounded to protect the Go stack.
//
// # Values
//
// The value model (package sdk/value) maps to Lua values:
//
//   - A list is a table with the keys 1..n; a null inside it is tea.null, so
//     that the list keeps its length.
//   - An object is a table with string keys. A null field reads as nil, so that
//     `if state.x then` is false for it. If the table is returned, the field is
//     null again, unless the script assigned a value.
//   - Integers beyond 2^53 are rounded to a float in arithmetic and comparisons.
//     Returned, printed or formatted unchanged they keep their digits;
//     computed numbers do not.
//
// In the result, a table with exactly the keys 1..n is a list, one with only
// string keys an object. An empty table keeps the type of its origin, and is an
// empty list if the script created it; tea.json.object({}) creates an empty
// object. tea.null is null. Whole floats that fit an int64 are integers.
// Anything else (functions, holes, mixed keys, NaN, cycles) is an error that
// names the path, such as result.items[3].
//
// # Design
//
// A [Runtime] has a pool of machines: a Lua state, its libraries and its
// threads. A run borrows a machine, and is itself the context of the machine's
// threads. Chunks and protected calls run on separate Lua threads rather than
// through gopher-lua's PCall, which detaches the local variables of surrounding
// functions from their closures when an error passes, and builds a traceback
// whose size a script controls.
package script
