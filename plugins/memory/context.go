package memory

import (
	"cmp"
	"context"
	"log/slog"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/assemble"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
)

func contextActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("context.assemble", "Assembles the context for a question from files, long-term memory, sessions and tables.", (*Memory).AssembleContext, tea.Idempotent(), tea.Reads()),
	}
}

// AssembleParams are the parameters of context.assemble.
type AssembleParams struct {
	Query     string          `json:"query,omitempty" doc:"the question that the context is for; without one, only the priorities of the scopes count"`
	Namespace string          `json:"namespace,omitempty" maxLength:"256" doc:"namespace of the entries; files and sessions belong to all"`
	UserID    string          `json:"user_id,omitempty" doc:"user on whose behalf the call is made; a layer of another user's sessions is refused, and files, entries and metadata of such sessions are left out"`
	Config    *AssembleConfig `json:"config,omitempty" doc:"where to look and how much to take"`
	Variables map[string]any  `json:"variables,omitempty" doc:"values for {name} in entity_id, user_id, directory and sql"`
}

// AssembleConfig selects the sources of a context.
type AssembleConfig struct {
	MaxTokens  int                `json:"max_tokens,omitempty" default:"8000" minimum:"1" maximum:"10000000" doc:"maximum size of the context, counted as cl100k_base does, or settings.memory.vocabulary"`
	Layers     []AssembleLayer    `json:"layers,omitempty" doc:"where to look; without layers and tabular: everywhere, each in the scope that its path or key begins with"`
	Tabular    []AssembleTabular  `json:"tabular,omitempty" doc:"rows of tables for the context"`
	Priorities map[string]float64 `json:"priorities,omitempty" doc:"priorities of scopes, from 0 to 1, that replace the defaults: app 0.6, user 0.65, matter 0.75, firm 0.8, session 0.9, directory 1; another name defines a scope"`
	Threshold  *float64           `json:"threshold,omitempty" default:"0.7" minimum:"0" maximum:"1" doc:"minimum score, where the similarity of the most similar candidate counts as 1; 0 takes everything that fits"`
	Weights    *AssembleWeights   `json:"weights,omitempty" doc:"weights of similarity and priority in the score"`
	Similarity string             `json:"similarity,omitempty" default:"auto" enum:"auto,cosine,bm25" doc:"how texts are compared: by the vectors of memory.embed and memory.backfill_embeddings (cosine), or by their words (bm25); auto: by vectors where there are any"`
	Collection string             `json:"collection,omitempty" default:"ltm" doc:"where the vectors are"`
	Model      string             `json:"model,omitempty" doc:"model for embedding.create; the model of the vectors"`
}

// AssembleWeights are the weights of similarity and priority.
type AssembleWeights struct {
	Similarity float64 `json:"similarity" minimum:"0" maximum:"1" doc:"usually 0.7"`
	Priority   float64 `json:"priority" minimum:"0" maximum:"1" doc:"usually 0.3"`
}

// AssembleLayer selects candidates.
type AssembleLayer struct {
	Scope     string   `json:"scope" minLength:"1" doc:"app, user, matter, firm, session, directory, or one of priorities"`
	EntityID  *string  `json:"entity_id,omitempty" doc:"the entity: files below scope/entity_id/, such as firm/acme/ or firms/acme/, and entries of the long-term memory with that key or below it; for session the session_id; default all entities"`
	UserID    *string  `json:"user_id,omitempty" doc:"for session: all active sessions of this user"`
	Directory *string  `json:"directory,omitempty" doc:"folder of files that replaces the one of the scope; for the scope directory also the prefix of the entries' keys"`
	Pattern   string   `json:"pattern,omitempty" doc:"restricts the files, as in memory.file_list"`
	Priority  *float64 `json:"priority,omitempty" minimum:"0" maximum:"1" doc:"replaces the priority of the scope"`
	MaxTokens int      `json:"max_tokens,omitempty" minimum:"1" doc:"maximum size of the layer's part of the context; default all of it"`
}

// AssembleTabular is a query of tables.
type AssembleTabular struct {
	Table   string `json:"table" minLength:"1" doc:"name of the rows"`
	SQL     string `json:"sql,omitempty" doc:"a SELECT as in data.query; {name} is the value of a variable; default all rows of the table"`
	MaxRows int    `json:"max_rows,omitempty" default:"100" minimum:"1" maximum:"10000"`
}

// AssembleResult is the result of context.assemble.
type AssembleResult struct {
	Success    bool             `json:"success"`
	Context    string           `json:"context" doc:"tables, then the sources, each with a heading: ## scope: path"`
	Tokens     int              `json:"tokens" doc:"of the context; at most max_tokens"`
	Sources    []AssembleSource `json:"sources" doc:"the parts of the context in its order, the highest score first"`
	Tabular    []AssembleTable  `json:"tabular" doc:"the complete results of the queries"`
	Truncated  bool             `json:"truncated" doc:"something was cut or left out, because there was no room"`
	Similarity string           `json:"similarity" doc:"how texts were compared: cosine or bm25; empty if none were"`
	Notes      []string         `json:"notes,omitempty" doc:"layers that have no files, entries or sessions"`
}

// AssembleSource is a part of a context.
type AssembleSource struct {
	Path       string  `json:"path" doc:"of a file; the key of an entry; sessions/ID for the metadata of a session"`
	Scope      string  `json:"scope"`
	Tokens     int     `json:"tokens" doc:"including the heading"`
	Score      float64 `json:"score" doc:"0.7 x similarity + 0.3 x priority of the scope"`
	Similarity float64 `json:"similarity" doc:"to the query, from 0 to 1"`
	Source     string  `json:"source" enum:"file,cloud,ltm,session" doc:"file for a file of memory.file_store, cloud for one of memory.cloud_store"`
	Truncated  bool    `json:"truncated" doc:"only a part is in the context: the passages, or, without any, its beginning"`

	Passages []AssemblePassage `json:"passages,omitempty" doc:"the parts of a long source that were chosen by the query, in its order"`
}

// AssemblePassage is a part of a source.
type AssemblePassage struct {
	FirstLine int      `json:"first_line" doc:"from 1"`
	LastLine  int      `json:"last_line"`
	Headings  []string `json:"headings" doc:"of Markdown, which lead to the passage, the outermost first"`
}

// AssembleTable is the result of a query of tables.
type AssembleTable struct {
	Table     string           `json:"table"`
	Columns   []string         `json:"columns"`
	Rows      []map[string]any `json:"rows"`
	RowCount  int              `json:"row_count"`
	Truncated bool             `json:"truncated" doc:"the query has more rows than max_rows"`
}

// AssembleContext is the action context.assemble.
func (m *Memory) AssembleContext(ctx context.Context, req *tea.Request, p AssembleParams) (*AssembleResult, error) {
	r, err := assembleRequest(p)
	if err != nil {
		return nil, err
	}
	model := m.model("")
	if p.Config != nil {
		model = m.model(p.Config.Model)
	}
	r.Embed = func(ctx context.Context, query string) ([]float32, error) {
		vectors, err := embed(ctx, req, []string{query}, model)
		if err != nil {
			return nil, err
		}
		return vectors[0], nil
	}
	r.Warn = func(message, name string, err error) {
		req.Host.Log(ctx, slog.LevelWarn, message, map[string]any{"name": name, "error": err.Error()})
	}
	made, err := m.folder.assembler.Assemble(ctx, r)
	if err != nil {
		return nil, err
	}
	return assembleResult(made), nil
}

// assembleRequest checks the parameters and fills in the defaults.
func assembleRequest(p AssembleParams) (assemble.Request, error) {
	config := p.Config
	if config == nil {
		config = &AssembleConfig{}
	}
	r := assemble.Request{
		Query: p.Query, Namespace: p.Namespace, UserID: p.UserID, Priorities: config.Priorities, MaxTokens: cmp.Or(config.MaxTokens, assemble.DefaultTokens),
		Threshold: assemble.DefaultThreshold, SimilarityWeight: assemble.SimilarityWeight, PriorityWeight: assemble.PriorityWeight,
		Method: assemble.Method(cmp.Or(config.Similarity, string(assemble.Auto))), Collection: cmp.Or(config.Collection, assemble.DefaultCollection),
	}
	if config.Threshold != nil {
		r.Threshold = *config.Threshold
	}
	if w := config.Weights; w != nil {
		r.SimilarityWeight, r.PriorityWeight = w.Similarity, w.Priority
	}
	for scope, priority := range config.Priorities {
		if priority < 0 || priority > 1 || scope == "" {
			return r, tea.Errorf(tea.ValidationError, "config.priorities: the priority of %q is %v, not from 0 to 1", scope, priority)
		}
	}
	if len(p.Variables) > 0 {
		v, err := value.From(p.Variables)
		if err != nil {
			return r, tea.Errorf(tea.ValidationError, "variables: %w", err)
		}
		r.Variables, _ = v.(map[string]any)
	}
	for _, l := range config.Layers {
		layer := assemble.Layer{Scope: l.Scope, EntityID: l.EntityID, UserID: l.UserID, Directory: l.Directory, Priority: l.Priority, MaxTokens: l.MaxTokens}
		if l.Pattern != "" {
			var err error
			if layer.Pattern, err = file.Compile(l.Pattern); err != nil {
				return r, err
			}
		}
		r.Layers = append(r.Layers, layer)
	}
	for _, t := range config.Tabular {
		r.Tabular = append(r.Tabular, assemble.TableQuery{Table: t.Table, SQL: t.SQL, MaxRows: t.MaxRows})
	}
	return r, nil
}

func assembleResult(made *assemble.Result) *AssembleResult {
	r := &AssembleResult{
		Success: true, Context: made.Context, Tokens: made.Tokens, Sources: make([]AssembleSource, len(made.Sources)), Tabular: make([]AssembleTable, len(made.Tables)),
		Truncated: made.Truncated, Similarity: string(made.Method), Notes: made.Notes,
	}
	for i, s := range made.Sources {
		r.Sources[i] = AssembleSource{
			Path: s.Path, Scope: s.Scope, Tokens: s.Tokens, Score: s.Score, Similarity: s.Similarity, Source: string(s.Kind), Truncated: s.Truncated,
		}
		for _, p := range s.Passages {
			r.Sources[i].Passages = append(r.Sources[i].Passages, AssemblePassage{FirstLine: p.FirstLine, LastLine: p.LastLine, Headings: append([]string{}, p.Headings...)})
		}
	}
	for i, t := range made.Tables {
		r.Tabular[i] = AssembleTable{Table: t.Name, Columns: t.Columns, Rows: t.Rows, RowCount: len(t.Rows), Truncated: t.Truncated}
	}
	return r
}
