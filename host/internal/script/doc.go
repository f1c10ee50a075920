// Package script runs Lua from workflow files in a sandbox, on gopher-lua
// (Lua 5.1 with goto).
//
// Start with [New], which gives a [Runtime]. [Runtime.Compile] and
// [Runtime.CompileExpression] turn text into a [Chunk]; [Chunk.Run] runs it
// against an [Env]. [Runtime.LoadModule] loads a file of Lua actions.
//
// # What a run may do
//
// Every run has an environment table of its own over libraries it cannot
// change. Nothing a script does outlives its run. A run ends by its deadline,
// by its context, or when it has made the heap grow too far; a Lua state that
// was stopped that way is thrown away. Functions that make strings or tables
// check the size before they allocate, patterns run on a matcher that counts
// its steps, and calls cannot nest deeply enough to hurt the Go stack.
//
// # Values
//
// A run sees the value model (package sdk/value) as Lua values:
//
//   - A list is a table with the keys 1..n; a null inside it is tea.null, so
//     that the list keeps its length.
//   - An object is a table with string keys. A null field reads as nil, so
//     that `if state.x then` is false for it. The field comes back as null
//     when the table does, unless the script gave it a value.
//   - Integers beyond 2^53 are numbers like all others, rounded to a float in
//     arithmetic and comparisons. Passed on, printed or formatted they keep
//     their digits; a number that the script computes does not.
//
// On the way back, a table with exactly the keys 1..n is a list, one with
// only string keys an object. An empty table is what it came from, and an
// empty list where the script made it; tea.json.object({}) makes an empty
// object. tea.null is null. Whole floats that fit an int64 are integers.
// Everything else (functions, holes, mixed keys, NaN, cycles) is an error that
// names the place, such as result.items[3].
//
// # How it is laid out
//
// A [Runtime] keeps a pool of machines: a Lua state, its libraries and its
// threads. A run borrows a machine, and is itself the context that the
// machine's threads watch. Chunks and protected calls run on Lua threads of
// their own rather than through gopher-lua's PCall: PCall detaches the local
// variables of surrounding functions from their closures when an error passes,
// and builds a traceback whose size a script controls.
package script
