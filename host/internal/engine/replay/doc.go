// Package replay reads and writes the records of a run's journal.
//
// Each kind of record has a struct: [Node] for one execution of a node,
// [Interrupt], [Answer], and so on. [Encode] makes a record of one. [New] reads
// the records of a run into a [Replay], which the engine consults while it
// walks a resumed run again: what is recorded at a path, and whether it still
// counts.
//
// docs/design/003-replay.md has the reasons. The bodies of the records are part
// of the journal's format: fields are added, never renamed.
package replay
