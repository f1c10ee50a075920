// Package assemble puts the context for a question together: of the files, the
// entries of the long-term memory and the sessions that some layers name, those
// that are most like the question and come from the most important places, as
// one text of at most so many tokens. Start with [New].
//
// layer.go says where the candidates of a layer are, texts.go keeps the text
// index of the files, gather.go collects the candidates, likeness.go tells how
// like they are to the question, fill.go writes the text, table.go the tables.
//
// # Likeness
//
// All candidates are compared in the same way, wherever they come from. With
// vectors (see package recall) it is the cosine of the question's and the
// candidate's. Without, it is BM25 over the text index of the files and that of
// the entries as if they were one, divided by the best candidate's, so that the
// best one has 1: the same text has the same likeness in a file and an entry.
// The name counts for it too: the last part of a path, without its ending, or
// of a key. Where some candidates have a vector of their content and others do
// not, the others' BM25 is scaled to the best cosine. Without a question all
// are alike: 1.
//
// # Score
//
// A candidate's score is 0.7 x likeness + 0.3 x priority of its scope. Models
// differ much in what cosine they give to texts that belong together, so the
// threshold is compared with the score that the candidate would have if the
// most similar one had a likeness of 1; with BM25 that is the score itself.
package assemble
