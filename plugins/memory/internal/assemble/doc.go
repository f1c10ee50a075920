// Package assemble builds the context for a question: a text with a bounded
// number of tokens, from the files, the entries of the long-term memory and the
// sessions of some layers. It prefers what is most similar to the question and
// comes from the most important layers. Start with [New].
//
// layer.go locates the candidates of a layer, texts.go maintains the text index
// of the files, gather.go collects the candidates, similarity.go compares them with
// the question, passage.go splits long texts, fill.go and section.go write the
// text, table.go writes the tables.
//
// # Similarity
//
// Files and entries are compared in the same way. With vectors (see package
// recall), the similarity is the cosine between the vectors of the question and
// the candidate. Without vectors, it is BM25 over the text indexes of files and
// entries as if they were one index, divided by the best score: the same text
// has the same similarity in a file and in an entry. The last part of a path
// (without its extension) or key counts as text. A long text has the score of
// its best passage. If only some candidates have a vector of their content, the
// BM25 scores of the others are scaled to the best cosine. Without a question,
// the similarity is 1.
//
// # Score
//
// A candidate's score is 0.7 x similarity + 0.3 x priority of its scope. The
// cosines of similar texts differ between models, so the threshold applies to
// the score with similarities relative to the best one. With BM25, that is the
// score itself.
package assemble
