// Package checkpoint keeps the journal of a run: an ordered list of what
// finished and what each step changed, so that a run can be resumed after an
// interrupt, a kill or a power failure.
//
// Start with [OpenStore], a directory of runs. [Store.Create] begins a run,
// [Store.Open] opens an existing one and returns its records; both return a
// [Journal] to append to. [Read] reads a journal without owning it,
// [Store.List] lists all of them, [Store.GC] prunes them, [Store.Fork] begins one
// with the records of another. [EventLog] is the file of a run's events.
//
// The package is independent of graphs: a [Record] has a kind, a path and a
// body of JSON; the package interprets [KindStart] and [KindStatus] only.
//
// docs/design/002-checkpoints.md describes the file format, and how a torn tail
// differs from corruption.
package checkpoint
