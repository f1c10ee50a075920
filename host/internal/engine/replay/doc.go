// Package replay reads and writes the records of a run's journal.
//
// Each kind of record has a struct: [Node] for one execution of a node,
// [Interrupt], [Answer], and so on. [Encode] encodes one. [New] reads the records
// of a run into a [Replay]. While the engine walks a resumed run again, it asks the
// Replay for the valid records at each path.
//
// docs/design/003-replay.md has the reasons. The bodies of the records are part
// of the journal's format: fields are added, never renamed.
package replay
