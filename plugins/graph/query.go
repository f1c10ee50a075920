package graph

import (
	"context"
	"errors"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

func queryActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("graph.query", "Runs a query: a pattern on every backend, or Datalog or Cypher.", (*Graph).Query),
	}
}

// QueryParams are the parameters of graph.query.
type QueryParams struct {
	Namespace
	When
	Pattern        map[string]any `json:"pattern,omitempty" doc:"relations to find: an object with from, relation and to, each an id (for relation: a type) or an object with id, type and properties (a filter as for graph.neighbors); without relation and to it finds entities"`
	Datalog        string         `json:"datalog,omitempty" doc:"query for the backend cozo"`
	Cypher         string         `json:"cypher,omitempty" doc:"query for the backend cypher"`
	Params         map[string]any `json:"params,omitempty" doc:"values for the names that begin with $ in the query; they are bound, never made part of its text"`
	ReadOnly       bool           `json:"read_only,omitempty" default:"true" doc:"refuse a query that would change something; otherwise it can change tables of its own, and not entities and relations"`
	Limit          int            `json:"limit,omitempty" default:"100" minimum:"1" maximum:"100000" doc:"largest number of rows"`
	TimeoutSeconds float64        `json:"timeout_seconds,omitempty" default:"30" minimum:"0.001" maximum:"3600" doc:"time after which the query is canceled"`
}

// QueryResult is the result of graph.query.
type QueryResult struct {
	Success   bool             `json:"success"`
	Results   []map[string]any `json:"results" doc:"an object for each row; an entity, a relation or a path in it has a member kind"`
	Count     int              `json:"count"`
	Columns   []string         `json:"columns"`
	Truncated bool             `json:"truncated" doc:"whether there are more rows than limit"`
	Query     any              `json:"query" doc:"the query or the pattern"`
	Notes     []string         `json:"notes,omitempty" doc:"without rows: which ids, types and properties of the pattern do not exist"`
}

// maxQueryBytes is the maximum size of a query's rows, as JSON.
const maxQueryBytes = 32 << 20

// Query is the action graph.query.
func (g *Graph) Query(ctx context.Context, _ *tea.Request, p QueryParams) (*QueryResult, error) {
	given := 0
	for _, ok := range []bool{p.Pattern != nil, p.Datalog != "", p.Cypher != ""} {
		if ok {
			given++
		}
	}
	if given != 1 {
		return nil, tea.Errorf(tea.ValidationError, "graph.query needs one of pattern, datalog and cypher")
	}
	begin := g.read
	if !p.ReadOnly && p.Pattern == nil {
		begin = g.write
	}
	v, err := begin(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	defer v.done()
	limit := time.Duration(p.TimeoutSeconds * float64(time.Second))
	running, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var r *QueryResult
	if p.Pattern != nil {
		r, err = v.pattern(running, &p)
	} else {
		r, err = g.native(running, v, &p)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(running.Err(), context.DeadlineExceeded) && err != nil:
		return nil, tea.Errorf(tea.Timeout, "the query took longer than %v; narrow it, or raise timeout_seconds", limit)
	case err != nil:
		return nil, err
	}
	return r, r.checkSize()
}

// native runs a query in the language of the backend.
func (g *Graph) native(ctx context.Context, v *view, p *QueryParams) (*QueryResult, error) {
	text, language, other := p.Datalog, "datalog", "cozo"
	if p.Cypher != "" {
		text, language, other = p.Cypher, "cypher", "cypher"
	}
	// Ignoring a parameter would return entities that were not asked for.
	switch {
	case p.AsOf != "":
		return nil, tea.Errorf(tea.ValidationError, "as_of is for a pattern; in %s compare valid_from and valid_to", language)
	case v.ns != defaultNamespace:
		return nil, tea.Errorf(tea.ValidationError, "namespace is for a pattern; %s sees all namespaces: compare the column namespace", language)
	}
	querier, ok := v.Store.(store.Querier)
	if !ok || querier.Language() != language {
		return nil, tea.Errorf(tea.ValidationError, "the backend %s of this graph does not support %s; use pattern, or a graph with settings.graph.backend: %s", g.db.used, language, other)
	}
	params := p.Params
	if params == nil {
		params = map[string]any{}
	}
	table, err := querier.Query(ctx, store.Query{Text: text, Params: params, ReadOnly: p.ReadOnly, MaxRows: p.Limit})
	if err != nil {
		return nil, err
	}
	r := &QueryResult{Success: true, Columns: table.Columns, Truncated: table.Truncated, Query: text, Results: make([]map[string]any, len(table.Rows)), Count: len(table.Rows)}
	for i, row := range table.Rows {
		r.Results[i] = make(map[string]any, len(row))
		for j, v := range row {
			r.Results[i][table.Columns[j]] = v
		}
	}
	return r, nil
}

func (r *QueryResult) checkSize() error {
	total := 0
	for _, row := range r.Results {
		for _, v := range row {
			total += value.Size(v)
		}
		if total > maxQueryBytes {
			return tea.Errorf(tea.ResourceExhausted, "the rows of the query have more than %d MB; select fewer columns, or set a lower limit", maxQueryBytes>>20)
		}
	}
	return nil
}

// bind replaces strings that begin with $ with parameters. $$ is an escaped $.
func bind(v any, params map[string]any) (any, error) {
	switch v := v.(type) {
	case string:
		if len(v) < 2 || v[0] != '$' {
			return v, nil
		}
		if v[1] == '$' {
			return v[1:], nil
		}
		bound, ok := params[v[1:]]
		if !ok {
			return nil, tea.Errorf(tea.ValidationError, "pattern: the parameter %s is not in params", v)
		}
		if bound == nil {
			return nil, tea.Errorf(tea.ValidationError, "pattern: the parameter %s is null, which would match everything; leave the member out for that", v)
		}
		return bound, nil
	case []any:
		all := make([]any, len(v))
		for i, item := range v {
			var err error
			if all[i], err = bind(item, params); err != nil {
				return nil, err
			}
		}
		return all, nil
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, member := range v {
			var err error
			if all[name], err = bind(member, params); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	return v, nil
}
