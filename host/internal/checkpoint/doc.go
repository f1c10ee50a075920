// Package checkpoint keeps the journal of a run: the ordered list of what
// finished and what each step changed, so that a run can be resumed after an
// interrupt, a kill or a power cut.
//
// Start with [OpenStore], a directory of runs. [Store.Create] begins a run,
// [Store.Open] takes one up again and gives what it holds; both give a
// [Journal] to append to. [Read] looks at a journal without owning it,
// [Store.List] at all of them, [Store.GC] prunes them, [Store.Fork] begins one
// with the records of another. [EventLog] is the file of a run's events beside it.
//
// The package knows nothing of graphs: a [Record] has a kind, a path and a
// body of JSON, and only one kind means something here, [KindStatus].
//
// The file format, and which damage is a torn tail and which is corruption,
// stands in docs/design/002-checkpoints.md.
package checkpoint
