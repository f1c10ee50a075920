package assemble

import (
	"context"
	"log/slog"

	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/recall"
	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
)

// The defaults of a Request.
const (
	DefaultTokens     = 8000
	DefaultThreshold  = 0.7
	SimilarityWeight  = 0.7
	PriorityWeight    = 0.3
	DefaultCollection = "ltm"
)

// Options configure an Assembler. All but Tables, Vectors, Language and Logger
// are needed; what they name belongs to the caller.
type Options struct {
	Engine   store.QueryEngine
	Files    *file.Files
	LTM      store.LongTermMemory
	Sessions *session.Sessions
	Vectors  store.VectorIndex
	Tables   Tables
	// IndexDir is the folder of the text index of the files, which lies in a
	// folder of the database's identity.
	IndexDir string
	// Language of the texts; see [fulltext.Languages].
	Language string
	// ReadOnly says that IndexDir is only read.
	ReadOnly bool
	Logger   *slog.Logger
}

// Tables answer the queries of a Request; [tabular.Tables] is one.
type Tables interface {
	Query(ctx context.Context, q tabular.Query) (tabular.Answer, error)
}

// Assembler puts contexts together. It is safe for concurrent use.
type Assembler struct {
	o     Options
	texts *texts
}

// New makes an Assembler. It is closed before what the options name.
func New(o Options) *Assembler {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Assembler{o: o, texts: newTexts(o)}
}

// Close writes the text index.
func (a *Assembler) Close() error { return a.texts.close() }

// Method is how likeness is told.
type Method string

// The methods. Auto takes Cosine where it can, else BM25.
const (
	Auto   Method = "auto"
	Cosine Method = "cosine"
	BM25   Method = "bm25"
)

// Request asks for a context.
type Request struct {
	// Query is the question, "" for none.
	Query string
	// Namespace is that of the entries.
	Namespace string
	// Layers say where candidates are; none means everything.
	Layers []Layer
	// Priorities of scopes that differ from the default ones, or of more scopes.
	Priorities map[string]float64
	// Threshold and the weights are as they are given; see the defaults.
	Threshold, SimilarityWeight, PriorityWeight float64
	// MaxTokens is at least 1.
	MaxTokens int
	Tabular   []TableQuery
	// Variables fill the {name} in layers and queries of tables.
	Variables map[string]any
	Method    Method
	// Collection is where the vectors of entries and files are.
	Collection string
	// Embed makes the query's vector; nil = it cannot be made.
	Embed func(ctx context.Context, query string) ([]float32, error)
	// Warn is told what was left out, and why.
	Warn func(message, name string, err error)
}

// Result is a context.
type Result struct {
	Context string
	// Tokens are those of Context.
	Tokens int
	// Sources are in the order of the context, the highest score first.
	Sources []Source
	Tables  []Table
	// Truncated says that something that should have been in the context was
	// cut or left out, since there was no room.
	Truncated bool
	// Method is Cosine or BM25, "" where nothing was compared.
	Method Method
}

// Source is a part of a context.
type Source struct {
	// Kind says what it is, Path which one: the path, the key, or
	// sessions/ID for what is known about a session.
	Kind  Kind
	Path  string
	Scope string
	// Tokens are those of the part, its heading included.
	Tokens            int
	Score, Similarity float64
	// Truncated says that only a part of it is in the context: the Passages, or,
	// without any, the beginning.
	Truncated bool
	Passages  []Passage
}

// Passage is a part of a source, by its lines and the headings that lead to it.
type Passage struct {
	FirstLine, LastLine int
	Headings            []string
}

// Kind says what a source is.
type Kind string

// The kinds of sources.
const (
	File    Kind = recall.File
	Entry   Kind = recall.LTM
	Session Kind = "session"
)

// Assemble puts a context together.
func (a *Assembler) Assemble(ctx context.Context, r Request) (*Result, error) {
	if r.Warn == nil {
		r.Warn = func(string, string, error) {}
	}
	// What has expired is archived now, so that its files are out of sight.
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
	g := &gathering{a: a, r: r, places: places, found: map[name]*candidate{}, expired: expired}
	if err := g.gather(ctx); err != nil {
		return nil, err
	}
	if err := g.compare(ctx); err != nil {
		return nil, err
	}
	return a.fill(ctx, r, g, tables)
}
