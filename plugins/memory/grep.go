package memory

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/assemble"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/recall"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const defaultSearchTime = 30 * time.Second

func searchActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("memory.grep", "Finds lines in stored files and entries of the long-term memory.", (*Memory).Grep, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("memory.search_content", "Finds JSON and YAML documents by their fields.", (*Memory).SearchContent, tea.Idempotent(), tea.Reads()),
	}
}

// GrepParams are the parameters of memory.grep.
type GrepParams struct {
	Pattern         string   `json:"pattern" minLength:"1" doc:"text or pattern that a line must contain"`
	Mode            string   `json:"mode,omitempty" default:"like" doc:"like: % matches any text, _ one character, a backslash escapes the next one; regex: a regular expression (RE2)"`
	IgnoreCase      bool     `json:"ignore_case,omitempty" doc:"ignore upper and lower case"`
	In              []string `json:"in,omitempty" doc:"where to search: files (those of memory.file_store and memory.cloud_store, the default), ltm (values of the long-term memory, with their keys as paths)"`
	Namespace       string   `json:"namespace,omitempty" maxLength:"256" doc:"namespace of the entries of the long-term memory"`
	Path            string   `json:"path,omitempty" doc:"pattern for paths and keys, as in memory.file_list"`
	Context         int      `json:"context,omitempty" minimum:"0" maximum:"50" doc:"number of lines before and after each match"`
	Before          *int     `json:"before,omitempty" minimum:"0" maximum:"50" doc:"number of lines before each match; default context"`
	After           *int     `json:"after,omitempty" minimum:"0" maximum:"50" doc:"number of lines after each match; default context"`
	Limit           int      `json:"limit,omitempty" default:"100" minimum:"1" maximum:"10000" doc:"largest number of matches"`
	MaxBytes        int      `json:"max_bytes,omitempty" default:"1048576" minimum:"1" maximum:"16777216" doc:"largest size of the texts in the result"`
	SessionID       string   `json:"session_id,omitempty" doc:"restrict to files of this session; path is relative to it"`
	UserID          string   `json:"user_id,omitempty" doc:"user on whose behalf the call is made; a session of another user is refused, and files in such sessions are left out"`
	IncludeArchived bool     `json:"include_archived,omitempty" doc:"include files of archived sessions"`
	TimeoutSeconds  float64  `json:"timeout_seconds,omitempty" minimum:"0" doc:"time limit, after which the matches so far are returned; default 30"`
}

// GrepMatch is a line that was found.
type GrepMatch struct {
	Source string   `json:"source,omitempty" enum:"cloud,ltm" doc:"cloud for a file of memory.cloud_store, ltm for an entry; absent for a file of memory.file_store"`
	Path   string   `json:"path" doc:"path of the file, or the key"`
	Line   int      `json:"line" doc:"from 1"`
	Column int      `json:"column" doc:"first character of the match, from 1"`
	Text   string   `json:"text" doc:"the line; a long one is cut around the match"`
	Before []string `json:"before"`
	After  []string `json:"after"`
}

// GrepResult is the result of memory.grep.
type GrepResult struct {
	Success       bool        `json:"success"`
	Matches       []GrepMatch `json:"matches" doc:"one for each line: files ordered by path and line, then entries ordered by key"`
	Count         int         `json:"count"`
	Files         int         `json:"files" doc:"number of files and entries with matches"`
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
	g.Archived, g.Shared = p.IncludeArchived, true
	if err := selectFiles(&g.Query, p.Path, nil); err != nil {
		return nil, err
	}
	files, ltm, err := searched(p.In)
	if err != nil {
		return nil, err
	}
	limited, cancel, err := searchTime(ctx, p.TimeoutSeconds)
	if err != nil {
		return nil, err
	}
	defer cancel()
	found := &file.Matches{}
	if files {
		err = m.within(ctx, p.SessionID, p.UserID, &g.Query, func() (err error) {
			found, err = m.folder.files.Grep(limited, g)
			return err
		})
	}
	if err == nil && ltm && p.SessionID == "" && !found.Truncated {
		err = m.grepEntries(limited, p, g, found)
	}
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err // the caller's own deadline has passed
	}
	r := &GrepResult{Success: true, Matches: make([]GrepMatch, len(found.Matches)), Count: len(found.Matches), FilesSearched: found.Searched, Damaged: found.Damaged, Truncated: found.Truncated}
	for i, f := range found.Matches {
		r.Matches[i] = GrepMatch{Path: f.Path, Line: f.Line, Column: f.Column, Text: f.Text, Before: f.Before, After: f.After}
		if f.Source != file.Own {
			r.Matches[i].Source = f.Source
		}
		if i == 0 || f.Path != found.Matches[i-1].Path || f.Source != found.Matches[i-1].Source {
			r.Files++
		}
	}
	return r, nil
}

// searched reports whether files and entries are searched.
func searched(in []string) (files, ltm bool, err error) {
	for _, where := range in {
		switch where {
		case "files":
			files = true
		case "ltm":
			ltm = true
		default:
			return false, false, tea.Errorf(tea.ValidationError, "memory.grep: in is a list of files and ltm, not %q", where)
		}
	}
	return files || !ltm, ltm, nil
}

// grepEntries searches the values of the long-term memory. Values other than
// texts have one line per member.
func (m *Memory) grepEntries(ctx context.Context, p GrepParams, g file.Grep, found *file.Matches) error {
	return m.eachEntry(ctx, p.Namespace, p.UserID, g.Query, &found.Truncated, func(e store.Memory) (bool, error) {
		if e.Damaged {
			found.Damaged = append(found.Damaged, e.Key)
			return true, nil
		}
		text, err := recall.Text(e.Value)
		if err != nil {
			return false, err
		}
		return g.Text(ctx, recall.LTM, e.Key, text, found)
	})
}

// eachEntry calls fn with the entries that a query of files selects by their keys,
// until fn returns false. At the deadline it sets truncated. It leaves out entries of
// archived sessions and, if a user is given, of other users' sessions.
func (m *Memory) eachEntry(ctx context.Context, namespace, userID string, q file.Query, truncated *bool, fn func(store.Memory) (bool, error)) error {
	const page = 100
	for after := ""; ; {
		found, err := m.folder.longterm.List(ctx, store.List{Namespace: namespace, After: after, Limit: page})
		var hidden map[string]bool
		if err == nil {
			hidden, err = m.hiddenEntries(ctx, found.Entries, userID, q.Archived)
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			*truncated = true
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range found.Entries {
			if after = e.Key; q.Pattern != nil && !q.Pattern.Match(e.Key) || hidden[assemble.SessionOf(e.Key)] {
				continue
			}
			if more, err := fn(e); err != nil || !more {
				return err
			}
		}
		if !found.More {
			return nil
		}
	}
}

// hiddenEntries returns the sessions of the entries that are archived or belong to
// another user.
func (m *Memory) hiddenEntries(ctx context.Context, entries []store.Memory, userID string, archived bool) (map[string]bool, error) {
	var ids []string
	for _, e := range entries {
		if id := assemble.SessionOf(e.Key); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 || !archived {
		return m.folder.sessions.Hidden(ctx, ids, userID)
	}
	hidden := map[string]bool{}
	for _, id := range ids {
		err := m.checkOwner(ctx, id, userID)
		if hidden[id] = err != nil && tea.AsError(err).Type == tea.PermissionDenied; err != nil && !refused(err) {
			return nil, err
		}
	}
	return hidden, nil
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
	Source          string                     `json:"source,omitempty" default:"files" enum:"files,ltm,all" doc:"files: JSON and YAML files, and each line of JSON Lines files; ltm: values of the long-term memory, with their keys as paths"`
	Namespace       string                     `json:"namespace,omitempty" maxLength:"256" doc:"namespace of the entries of the long-term memory"`
	Path            string                     `json:"path,omitempty" doc:"pattern for paths and keys, as in memory.file_list"`
	SessionID       string                     `json:"session_id,omitempty" doc:"restrict to files of this session; path is relative to it"`
	UserID          string                     `json:"user_id,omitempty" doc:"user on whose behalf the call is made; a session of another user is refused, and files in such sessions are left out"`
	IncludeArchived bool                       `json:"include_archived,omitempty" doc:"include files of archived sessions"`
	Limit           int                        `json:"limit,omitempty" default:"100" minimum:"1" maximum:"1000"`
	TimeoutSeconds  float64                    `json:"timeout_seconds,omitempty" minimum:"0" doc:"time limit, after which the matches so far are returned; default 30"`
}

// ContentMatch is a node that matches a condition.
type ContentMatch struct {
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// ContentFound is a document that matches the conditions.
type ContentFound struct {
	Source  string         `json:"source" enum:"files,cloud,ltm" doc:"files for a file of memory.file_store, cloud for one of memory.cloud_store"`
	Path    string         `json:"path" doc:"path of the file, or the key"`
	Line    int            `json:"line,omitempty" doc:"line of the document in a JSON Lines file, or in a YAML file with several documents"`
	Matches []ContentMatch `json:"matches" doc:"nodes that satisfy the conditions, at most 100"`
}

// SearchContentResult is the result of memory.search_content.
type SearchContentResult struct {
	Success       bool           `json:"success"`
	Results       []ContentFound `json:"results" doc:"files ordered by path and line, then entries ordered by key"`
	Count         int            `json:"count"`
	FilesSearched int            `json:"files_searched"`
	FilesSkipped  int            `json:"files_skipped" doc:"number of files and entries that were skipped: not valid JSON or YAML, larger than 2 MiB, or damaged"`
	Truncated     bool           `json:"truncated" doc:"true if a limit ended the search"`
}

// SearchContent is the action memory.search_content.
func (m *Memory) SearchContent(ctx context.Context, _ *tea.Request, p SearchContentParams) (*SearchContentResult, error) {
	conditions, err := conditionsOf(p)
	if err != nil {
		return nil, err
	}
	s := file.DocumentSearch{Conditions: conditions, Limit: p.Limit}
	s.Archived, s.Shared = p.IncludeArchived, true
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
		if err := m.searchMemories(limited, p, s, r); err != nil {
			return nil, err
		}
	}
	r.Count = len(r.Results)
	return r, ctx.Err() // the caller's own deadline may have passed
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
			source := "files"
			if d.Source == file.Cloud {
				source = d.Source
			}
			r.Results = append(r.Results, ContentFound{Source: source, Path: d.Path, Line: d.Line, Matches: matchesOf(d.Nodes)})
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
func (m *Memory) searchMemories(ctx context.Context, p SearchContentParams, s file.DocumentSearch, r *SearchContentResult) error {
	return m.eachEntry(ctx, p.Namespace, p.UserID, s.Query, &r.Truncated, func(e store.Memory) (bool, error) {
		if e.Damaged {
			r.FilesSkipped++
			return true, nil
		}
		document, err := value.Decode(e.Value)
		if err != nil {
			return false, err
		}
		nodes, fits := file.MatchConditions(s.Conditions, document)
		switch {
		case !fits:
			return true, nil
		case len(r.Results) == s.Limit:
			r.Truncated = true
			return false, nil
		}
		r.Results = append(r.Results, ContentFound{Source: "ltm", Path: e.Key, Matches: matchesOf(nodes)})
		return true, nil
	})
}
