package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
)

const (
	// runsURI is the resource with the list of runs.
	runsURI = "tea://runs"
	// runsPage and eventsPage are the maximum entries of a page.
	runsPage, eventsPage = 50, 100
	// maxEvents is the maximum size of the events of a page, and maxEvent of one event.
	maxEvents, maxEvent = 1 << 20, 256 << 10
	mimeJSON            = "application/json"
)

// addResources adds the list of runs, and templates for its further pages and for
// single runs.
func (s *server) addResources() {
	s.mcp.AddResource(&mcp.Resource{
		URI: runsURI, Name: "runs", Title: "Runs", MIMEType: mimeJSON,
		Description: "The runs of the workflows, the newest first, with the URI of the next page.",
	}, s.readRuns)
	for _, t := range []*mcp.ResourceTemplate{
		{URITemplate: runsURI + "{?after}", Name: "runs-after", Title: "Further runs", Description: "The runs that are older than the one with the id after."},
		{URITemplate: runsURI + "/{id}", Name: "run", Title: "A run", Description: "A run: its status, its state, what it waits for and its first events."},
		{URITemplate: runsURI + "/{id}{?after}", Name: "run-events", Title: "Further events of a run", Description: "A run with its events after the one with the number after."},
	} {
		t.MIMEType = mimeJSON
		s.mcp.AddResourceTemplate(t, s.readResource)
	}
}

// readResource reads a resource of a template.
func (s *server) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	u, err := url.Parse(req.Params.URI)
	if err != nil {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	id := strings.TrimPrefix(u.Path, "/")
	if id == "" {
		return s.readRuns(ctx, req)
	}
	return s.readRun(ctx, req.Params.URI, id, u.Query().Get("after"))
}

// runsList is a page of the list of runs.
type runsList struct {
	Runs []runSummary `json:"runs"`
	Next string       `json:"next,omitempty"`
}

// runSummary is a run in the list.
type runSummary struct {
	ID       string      `json:"id"`
	URI      string      `json:"uri"`
	Workflow string      `json:"workflow"`
	Status   flow.Status `json:"status"`
	Node     string      `json:"node,omitempty"`
	Started  string      `json:"started_at"`
	Updated  string      `json:"updated_at"`
	Parent   string      `json:"parent_run,omitempty"`
	Problem  string      `json:"problem,omitempty"`
}

// summary describes a run without paths of the server's machine.
func summary(e checkpoints.Entry) runSummary {
	const layout = "2006-01-02T15:04:05.000Z07:00"
	return runSummary{
		ID: e.ID, URI: runURI(e.ID), Workflow: e.Workflow, Status: e.Status, Node: e.Node, Parent: e.ParentRun, Problem: e.Problem,
		Started: e.StartedAt.UTC().Format(layout), Updated: e.UpdatedAt.UTC().Format(layout),
	}
}

func runURI(id string) string { return runsURI + "/" + url.PathEscape(id) }

// readRuns reads a page of the list of runs.
func (s *server) readRuns(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	u, err := url.Parse(req.Params.URI)
	if err != nil {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	page := runsList{Runs: []runSummary{}}
	runs, err := checkpoints.Open(s.svc.Runs)
	if errors.Is(err, fs.ErrNotExist) {
		return contentsOf(req.Params.URI, page)
	}
	if err != nil {
		return nil, err
	}
	list, err := runs.List()
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(e checkpoints.Entry) bool { return !s.catalog.Owns(e.WorkflowFile) })
	if after := u.Query().Get("after"); after != "" {
		at := slices.IndexFunc(list, func(e checkpoints.Entry) bool { return e.ID == after })
		if at < 0 {
			return nil, mcp.ResourceNotFoundError(req.Params.URI)
		}
		list = list[at+1:]
	}
	for _, e := range list[:min(len(list), runsPage)] {
		page.Runs = append(page.Runs, summary(e))
	}
	if len(list) > runsPage {
		page.Next = runsURI + "?after=" + url.QueryEscape(list[runsPage-1].ID)
	}
	return contentsOf(req.Params.URI, page)
}

// runDetails is the resource of a run.
type runDetails struct {
	runSummary
	Error    string            `json:"error,omitempty"`
	Failures []flow.Failure    `json:"failures,omitempty"`
	Pending  []any             `json:"pending"`
	State    json.RawMessage   `json:"state,omitempty"`
	Events   []json.RawMessage `json:"events"`
	// Next is the URI of the next page of events.
	Next  string   `json:"next,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// readRun reads a run with a page of its events.
func (s *server) readRun(ctx context.Context, uri, id, after string) (*mcp.ReadResourceResult, error) {
	contents, err := s.contents(id)
	if errors.As(err, new(*unknownRunError)) {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	if err != nil {
		return nil, err
	}
	first := int64(0)
	if after != "" {
		if first, err = strconv.ParseInt(after, 10, 64); err != nil {
			return nil, invalid("after: expected the number of an event, got %q", after)
		}
	}
	runs, err := checkpoints.Open(s.svc.Runs)
	if err != nil {
		return nil, err
	}
	id = contents.Header.RunID
	entry, err := runs.Entry(id)
	if err != nil {
		return nil, err
	}
	out := runDetails{runSummary: summary(entry), Pending: []any{}, Events: []json.RawMessage{}, Notes: slices.Clone(contents.Notes)}
	failed, err := checkpoints.FailureOf(contents)
	if err != nil {
		return nil, err
	}
	out.Error, out.Failures = failed.Error, failed.Failures
	pending, err := checkpoints.Pending(contents)
	if err != nil {
		return nil, err
	}
	for _, i := range pending {
		out.Pending = append(out.Pending, runview.Describe(host.Mask{}, i)) // masked already
	}
	if err := out.readEvents(runs, id, first); err != nil {
		return nil, err
	}
	if first == 0 {
		out.readState(ctx, s, contents)
	}
	return contentsOf(uri, out)
}

// readEvents adds a page of the stored events, in which secrets are masked.
func (d *runDetails) readEvents(runs *checkpoints.Dir, id string, after int64) error {
	errFull := errors.New("the page is full")
	size, last := 0, after
	err := runs.Events(id, after, func(seq int64, line []byte) error {
		if len(d.Events) == eventsPage || size+len(line) > maxEvents {
			return errFull
		}
		if len(line) > maxEvent {
			d.Notes = append(d.Notes, fmt.Sprintf("event %d has %d bytes and is not in this page", seq, len(line)))
		} else {
			d.Events = append(d.Events, json.RawMessage(slices.Clone(line)))
			size += len(line)
		}
		last = seq
		return nil
	})
	switch {
	case errors.Is(err, errFull):
		d.Next = runURI(id) + "?after=" + strconv.FormatInt(last, 10)
	case err != nil && !errors.Is(err, fs.ErrNotExist): // a run killed at its start has no events
		return err
	}
	return nil
}

// readState adds the state after the last record. The workflow may be missing or
// changed.
func (d *runDetails) readState(ctx context.Context, s *server, contents *checkpoints.Contents) {
	state, mask, err := s.stateOf(ctx, contents)
	if err != nil {
		d.Notes = append(d.Notes, "the state is missing: "+mask.Text(err.Error()))
		return
	}
	var note string
	if d.State, note = encodeState(mask, state); note != "" {
		d.Notes = append(d.Notes, note)
	}
}

// stateOf computes the state of a run from its checkpoint.
func (s *server) stateOf(ctx context.Context, contents *checkpoints.Contents) (map[string]any, host.Mask, error) {
	info, err := host.FindRun(s.svc.Runs, contents.Header.RunID)
	if err != nil {
		return nil, host.Mask{}, err
	}
	wf, err := s.svc.LoadRun(info, true)
	if err != nil {
		return nil, host.Mask{}, err
	}
	defer s.closeWorkflow(wf)
	mask, err := s.svc.Mask(wf)
	if err != nil {
		return nil, mask, err
	}
	if len(contents.Records) == 0 {
		return nil, mask, errors.New("the run has no records yet")
	}
	state, err := wf.StateAt(ctx, contents, contents.Records[len(contents.Records)-1].Seq)
	return state, mask, err
}

func contentsOf(uri string, v any) (*mcp.ReadResourceResult, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: mimeJSON, Text: string(text)}}}, nil
}

func invalid(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}
