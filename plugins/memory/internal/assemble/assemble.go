package assemble

import (
	"context"
	"log/slog"

	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/recall"
	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tokens"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// The defaults of a Request.
const (
	DefaultTokens     = 8000
	DefaultThreshold  = 0.7
	SimilarityWeight  = 0.7
	PriorityWeight    = 0.3
	DefaultCollection = "ltm"
)

// Options configure an Assembler. Tables, Vectors, Language and Logger are
// optional. The caller closes all fields, after the Assembler.
type Options struct {
	// Identity identifies the memory of the files.
	Identity func(ctx context.Context) (string, error)
	Files    *file.Files
	LTM      store.LongTermMemory
	Sessions *session.Sessions
	Vectors  store.VectorIndex
	Tables   Tables
	// IndexDir returns the folder of the text index of the files, in a folder named
	// after the database's identity. It is called when the index is needed.
	IndexDir func() (string, error)
	// Language is the language of the texts; see [fulltext.Languages].
	Language string
	// Tokens counts the tokens of contexts.
	Tokens *tokens.Encoding
	// ReadOnly reports whether IndexDir must not be written.
	ReadOnly bool
	Logger   *slog.Logger
}

// Tables runs the queries of a Request; see [store.TableStore].
type Tables interface {
	Query(ctx context.Context, q store.TableQuery) (store.TableAnswer, error)
}

// Assembler assembles contexts. It is safe for concurrent use.
type Assembler struct {
	o     Options
	texts *texts
}

// New creates an Assembler.
func New(o Options) *Assembler {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Assembler{o: o, texts: newTexts(o)}
}

// Close flushes and closes the text index.
func (a *Assembler) Close() error { return a.texts.close() }

// Method is how candidates are compared with the question.
type Method string

// The methods. Auto uses Cosine if there are vectors, else BM25.
const (
	Auto   Method = "auto"
	Cosine Method = "cosine"
	BM25   Method = "bm25"
)

// Request asks for a context.
type Request struct {
	// Query is the question, "" for none.
	Query string
	// Namespace is the namespace of the entries.
	Namespace string
	// UserID is the user whose sessions can be read, in addition to sessions
	// without a user; "" = all sessions.
	UserID string
	// Layers select the candidates; without layers, everything is selected.
	Layers []Layer
	// Priorities replaces and extends the default priorities of the scopes.
	Priorities map[string]float64
	// Threshold and the weights have no implicit defaults.
	Threshold, SimilarityWeight, PriorityWeight float64
	// MaxTokens is at least 1.
	MaxTokens int
	Tabular   []TableQuery
	// Variables fill the {name} in layers and queries of tables.
	Variables map[string]any
	Method    Method
	// Collection has the vectors of entries and files.
	Collection string
	// Embed returns the vector of the query; nil = there is no model.
	Embed func(ctx context.Context, query string) ([]float32, error)
	// Warn is called for a source that is left out because of an error.
	Warn func(message, name string, err error)
}

// Result is a context.
type Result struct {
	Context string
	// Tokens is the size of Context.
	Tokens int
	// Sources are in the order of the context, the highest score first.
	Sources []Source
	Tables  []Table
	// Truncated reports whether something was cut or left out for lack of room.
	Truncated bool
	// Method is Cosine or BM25, "" if nothing was compared.
	Method Method
	// Notes lists the layers that have nothing to compare.
	Notes []string
}

// Source is a part of a context.
type Source struct {
	// Path is the path, the key, or sessions/ID for the metadata of a session.
	Kind  Kind
	Path  string
	Scope string
	// Tokens is the size of the part, including its heading.
	Tokens            int
	Score, Similarity float64
	// Truncated reports whether only a part of the source is in the context: the
	// Passages, or, without any, the beginning.
	Truncated bool
	Passages  []Passage
}

// Passage is a part of a source, by its lines and the headings that lead to it.
type Passage struct {
	FirstLine, LastLine int
	Headings            []string
}

// Kind is the kind of a source.
type Kind string

// The kinds of sources.
const (
	File    Kind = recall.File
	Cloud   Kind = recall.Cloud
	Entry   Kind = recall.LTM
	Session Kind = "session"
)

// Assemble builds a context.
func (a *Assembler) Assemble(ctx context.Context, r Request) (*Result, error) {
	if r.Warn == nil {
		r.Warn = func(string, string, error) {}
	}
	// Files of expired sessions are hidden once these are archived.
	if _, err := a.o.Sessions.Sweep(ctx); err != nil {
		return nil, err
	}
	places, err := a.places(ctx, r)
	if err != nil {
		return nil, err
	}
	tables, err := a.tables(ctx, r)
	if err != nil {
		return nil, err
	}
	expired, err := a.o.Sessions.Expired(ctx)
	if err != nil {
		return nil, err
	}
	g := &gathering{a: a, r: r, places: places, found: map[name]*candidate{}, expired: expired, hidden: map[string]bool{}}
	if err := g.gather(ctx); err != nil {
		return nil, err
	}
	if err := g.compare(ctx); err != nil {
		return nil, err
	}
	notes, err := g.notes(ctx)
	if err != nil {
		return nil, err
	}
	made, err := a.fill(ctx, r, g, tables)
	if err == nil {
		made.Notes = notes
	}
	return made, err
}
