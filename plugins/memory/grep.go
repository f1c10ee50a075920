package memory

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const defaultSearchTime = 30 * time.Second

func searchActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("memory.grep", "Finds lines in stored files.", (*Memory).Grep, tea.Idempotent()),
		tea.NewMethod("memory.search_content", "Finds JSON documents by their fields.", (*Memory).SearchContent, tea.Idempotent()),
	}
}

// GrepParams are the parameters of memory.grep.
type GrepParams struct {
	Pattern         string  `json:"pattern" minLength:"1" doc:"text or pattern that a line must contain"`
	Mode            string  `json:"mode,omitempty" default:"like" doc:"like: % matches any text, _ one character, a backslash escapes the next one; regex: a regular expression (RE2)"`
	IgnoreCase      bool    `json:"ignore_case,omitempty" doc:"ignore upper and lower case"`
	Path            string  `json:"path,omitempty" doc:"pattern for the files, as in memory.file_list"`
	Context         int     `json:"context,omitempty" minimum:"0" maximum:"50" doc:"number of lines before and after each match"`
	Before          *int    `json:"before,omitempty" minimum:"0" maximum:"50" doc:"number of lines before each match; default context"`
	After           *int    `json:"after,omitempty" minimum:"0" maximum:"50" doc:"number of lines after each match; default context"`
	Limit           int     `json:"limit,omitempty" default:"100" minimum:"1" maximum:"10000" doc:"largest number of matches"`
	MaxBytes        int     `json:"max_bytes,omitempty" default:"1048576" minimum:"1" maximum:"16777216" doc:"largest size of the texts in the result"`
	SessionID       string  `json:"session_id,omitempty" doc:"restrict to files of this session; path is relative to it"`
	UserID          string  `json:"user_id,omitempty" doc:"user on whose behalf the call is made; a session of another user is refused, and files in such sessions are left out"`
	IncludeArchived bool    `json:"include_archived,omitempty" doc:"include files of archived sessions"`
	TimeoutSeconds  float64 `json:"timeout_seconds,omitempty" minimum:"0" doc:"time limit, after which the matches so far are returned; default 30"`
}

// GrepMatch is a line that was found.
type GrepMatch struct {
	Path   string   `json:"path"`
	Line   int      `json:"line" doc:"from 1"`
	Column int      `json:"column" doc:"first character of the match, from 1"`
	Text   string   `json:"text" doc:"the line; a long one is cut around the match"`
	Before []string `json:"before"`
	After  []string `json:"after"`
}

// GrepResult is the result of memory.grep.
type GrepResult struct {
	Success       bool        `json:"success"`
	Matches       []GrepMatch `json:"matches" doc:"ordered by path and line, one for each line"`
	Count         int         `json:"count"`
	Files         int         `json:"files" doc:"number of files with matches"`
	FilesSearched int         `json:"files_searched" doc:"number of text files that were read"`
	Damaged       []string    `json:"damaged,omitempty" doc:"paths of files that were not searched because their content is damaged"`
	Truncated     bool        `json:"truncated" doc:"true if a limit ended the search"`
}

// Grep is the action memory.grep.
func (m *Memory) Grep(ctx context.Context, _ *tea.Request, p GrepParams) (*GrepResult, error) {
	mode := strings.ToLower(p.Mode)
	if mode != "like" && mode != "regex" {
		return nil, tea.Errorf(tea.ValidationError, "memory.grep: the mode is like or regex, not %q", p.Mode)
	}
	lines, err := file.LinePattern(p.Pattern, mode == "like", p.IgnoreCase)
	if err != nil {
		return nil, err
	}
	g := file.Grep{Lines: lines, Before: p.Context, Behind: p.Context, MaxMatches: p.Limit, MaxBytes: p.MaxBytes}
	if p.Before != nil {
		g.Before = *p.Before
	}
	if p.After != nil {
		g.Behind = *p.After
	}
	g.Archived = p.IncludeArchived
	if err := selectFiles(&g.Query, p.Path, nil); err != nil {
		return nil, err
	}
	limited, cancel, err := searchTime(ctx, p.TimeoutSeconds)
	if err != nil {
		return nil, err
	}
	defer cancel()
	var found *file.Matches
	err = m.within(ctx, p.SessionID, p.UserID, &g.Query, func() (err error) {
		found, err = m.folder.files.Grep(limited, g)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err // the caller's own time is over
	}
	r := &GrepResult{Success: true, Matches: make([]GrepMatch, len(found.Matches)), Count: len(found.Matches), FilesSearched: found.Searched, Damaged: found.Damaged, Truncated: found.Truncated}
	for i, f := range found.Matches {
		r.Matches[i] = GrepMatch{Path: f.Path, Line: f.Line, Column: f.Column, Text: f.Text, Before: f.Before, After: f.After}
		if i == 0 || f.Path != found.Matches[i-1].Path {
			r.Files++
		}
	}
	return r, nil
}

// searchTime bounds a search.
func searchTime(ctx context.Context, given float64) (context.Context, context.CancelFunc, error) {
	limit, err := seconds("timeout_seconds", given)
	if limit == 0 {
		limit = defaultSearchTime
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	return limited, cancel, err
}

// ContentCondition compares a field of a document.
type ContentCondition struct {
	Path  string          `json:"path" minLength:"1" doc:"$ followed by .name, [\"name\"], [0], [*] or .*"`
	Op    string          `json:"op,omitempty" default:"eq" doc:"eq, ne, gt, gte, lt, lte, in, not_in, contains, startswith, endswith or exists"`
	Value json.RawMessage `json:"value,omitempty"`
}

// SearchContentParams are the parameters of memory.search_content.
type SearchContentParams struct {
	Fields          map[string]json.RawMessage `json:"fields,omitempty" doc:"values that fields must have, by JSON path: {\"$.unit.name\": \"pump\"}"`
	Conditions      []ContentCondition         `json:"conditions,omitempty" doc:"comparisons that must all match, each for one of the nodes that its path selects"`
	Source          string                     `json:"source,omitempty" default:"files" enum:"files,ltm,all" doc:"files: JSON files, and each line of JSON Lines files; ltm: values of the long-term memory, with their keys as paths"`
	Namespace       string                     `json:"namespace,omitempty" maxLength:"256" doc:"namespace of the entries of the long-term memory"`
	Path            string                     `json:"path,omitempty" doc:"pattern for paths and keys, as in memory.file_list"`
	SessionID       string                     `json:"session_id,omitempty" doc:"restrict to files of this session; path is relative to it"`
	UserID          string                     `json:"user_id,omitempty" doc:"user on whose behalf the call is made; a session of another user is refused, and files in such sessions are left out"`
	IncludeArchived bool                       `json:"include_archived,omitempty" doc:"include files of archived sessions"`
	Limit           int                        `json:"limit,omitempty" default:"100" minimum:"1" maximum:"1000"`
	TimeoutSeconds  float64                    `json:"timeout_seconds,omitempty" minimum:"0" doc:"time limit, after which the matches so far are returned; default 30"`
}

// ContentMatch is a node that a condition found.
type ContentMatch struct {
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// ContentFound is a document that fits the conditions.
type ContentFound struct {
	Source  string         `json:"source" enum:"files,ltm"`
	Path    string         `json:"path" doc:"path of the file, or the key"`
	Line    int            `json:"line,omitempty" doc:"line of the document in a JSON Lines file"`
	Matches []ContentMatch `json:"matches" doc:"nodes that satisfy the conditions, at most 100"`
}

// SearchContentResult is the result of memory.search_content.
type SearchContentResult struct {
	Success       bool           `json:"success"`
	Results       []ContentFound `json:"results" doc:"files ordered by path and line, then entries ordered by key"`
	Count         int            `json:"count"`
	FilesSearched int            `json:"files_searched"`
	FilesSkipped  int            `json:"files_skipped" doc:"number of files and entries that were skipped: not valid JSON, larger than 2 MiB, or damaged"`
	Truncated     bool           `json:"truncated" doc:"true if a limit ended the search"`
}

// SearchContent is the action memory.search_content.
func (m *Memory) SearchContent(ctx context.Context, _ *tea.Request, p SearchContentParams) (*SearchContentResult, error) {
	conditions, err := conditionsOf(p)
	if err != nil {
		return nil, err
	}
	s := file.DocumentSearch{Conditions: conditions, Limit: p.Limit}
	s.Archived = p.IncludeArchived
	if err := selectFiles(&s.Query, p.Path, nil); err != nil {
		return nil, err
	}
	limited, cancel, err := searchTime(ctx, p.TimeoutSeconds)
	if err != nil {
		return nil, err
	}
	defer cancel()
	r := &SearchContentResult{Success: true, Results: []ContentFound{}}
	if p.Source != "ltm" {
		if err := m.searchFiles(limited, p, s, r); err != nil {
			return nil, err
		}
	}
	if p.Source != "files" && p.SessionID == "" && !r.Truncated {
		if err := m.searchMemories(limited, p.Namespace, s, r); err != nil {
			return nil, err
		}
	}
	r.Count = len(r.Results)
	return r, ctx.Err() // the caller's own deadline can have passed
}

func conditionsOf(p SearchContentParams) (all []file.Condition, err error) {
	given := p.Conditions
	for path, raw := range p.Fields {
		given = append(given, ContentCondition{Path: path, Op: "eq", Value: raw})
	}
	if len(given) == 0 || len(given) > maxConditions {
		return nil, tea.Errorf(tea.ValidationError, "memory.search_content needs 1 to %d fields or conditions, not %d", maxConditions, len(given))
	}
	for _, c := range given {
		var v any
		if c.Value != nil {
			if v, err = value.Decode(c.Value); err != nil {
				return nil, tea.Errorf(tea.ValidationError, "the value for %s: %w", c.Path, err)
			}
		}
		condition, err := file.NewCondition(c.Path, c.Op, v)
		if err != nil {
			return nil, err
		}
		all = append(all, condition)
	}
	return all, nil
}

const maxConditions = 50

func (m *Memory) searchFiles(ctx context.Context, p SearchContentParams, s file.DocumentSearch, r *SearchContentResult) error {
	return m.within(ctx, p.SessionID, p.UserID, &s.Query, func() error {
		found, err := m.folder.files.Search(ctx, s)
		if err != nil {
			return err
		}
		for _, d := range found.Documents {
			r.Results = append(r.Results, ContentFound{Source: "files", Path: d.Path, Line: d.Line, Matches: matchesOf(d.Nodes)})
		}
		r.FilesSearched, r.FilesSkipped, r.Truncated = found.Searched, found.Skipped, found.Truncated
		return nil
	})
}

func matchesOf(nodes []file.Node) []ContentMatch {
	matches := make([]ContentMatch, len(nodes))
	for i, n := range nodes {
		matches[i] = ContentMatch(n)
	}
	return matches
}

// searchMemories looks through the values of the long-term memory.
func (m *Memory) searchMemories(ctx context.Context, namespace string, s file.DocumentSearch, r *SearchContentResult) error {
	const page = 100
	for after := ""; ; {
		found, err := m.folder.longterm.List(ctx, store.List{Namespace: namespace, After: after, Limit: page})
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			r.Truncated = true
			return nil
		}
		if err != nil {
			return err
		}
		for _, entry := range found.Entries {
			after = entry.Key
			if s.Pattern != nil && !s.Pattern.Match(entry.Key) {
				continue
			}
			if entry.Damaged {
				r.FilesSkipped++
				continue
			}
			document, err := value.Decode(entry.Value)
			if err != nil {
				return err
			}
			nodes, fits := file.Fits(s.Conditions, document)
			if !fits {
				continue
			}
			if len(r.Results) == s.Limit {
				r.Truncated = true
				return nil
			}
			r.Results = append(r.Results, ContentFound{Source: "ltm", Path: entry.Key, Matches: matchesOf(nodes)})
		}
		if !found.More {
			return nil
		}
	}
}
