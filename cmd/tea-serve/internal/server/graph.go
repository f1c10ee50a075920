package server

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

// getWorkflowGraph draws a workflow.
func (s *server) getWorkflowGraph(w http.ResponseWriter, r *http.Request) error {
	v := s.catalog.use(r.PathValue("name"))
	if v == nil {
		return noWorkflow(r.PathValue("name"))
	}
	defer v.uses.Done()
	format, err := drawnAs(r)
	if err != nil {
		return err
	}
	svg, err := v.Inspect(format)
	if err != nil {
		return err
	}
	return drawing(w, svg)
}

// getRunGraph draws the workflow of a run with the statuses of its nodes.
func (s *server) getRunGraph(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	format, err := drawnAs(r)
	if err != nil {
		return err
	}
	wf, release, err := s.workflowOf(id)
	if err != nil {
		return err
	}
	defer release()
	g := wf.RunGraph()
	running, err := s.eachEvent(id, g.Add)
	if err != nil {
		return err
	}
	svg, err := g.Inspect(format, running)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-cache") // it changes while the run is running
	return drawing(w, svg)
}

// drawnAs returns the format that the query of a request selects.
func drawnAs(r *http.Request) (string, error) {
	query := r.URL.Query()
	if err := knownQuery(query, "horizontal", "collapsed"); err != nil {
		return "", err
	}
	format := "svg"
	for _, name := range []string{"horizontal", "collapsed"} {
		switch text := query.Get(name); text {
		case "", "false":
		case "true":
			format += "-" + name
		default:
			return "", badRequest(fmt.Errorf("%s: expected true or false, got %.40q", name, text))
		}
	}
	return format, nil
}

// getRunSource returns the text of the workflow of a run.
func (s *server) getRunSource(w http.ResponseWriter, r *http.Request) error {
	if err := knownQuery(r.URL.Query()); err != nil {
		return err
	}
	_, contents, err := s.contents(r.PathValue("id"))
	if err != nil {
		return err
	}
	var source *host.Source
	if v := s.catalog.use(contents.Header.Workflow); v != nil {
		source = v.source
		v.uses.Done()
	}
	wf, release, err := s.versionOf(contents)
	if err != nil {
		return err
	}
	defer release()
	mask, err := s.svc.Mask(wf)
	if err != nil {
		return err
	}
	listing, err := wf.Listing(contents.Header.Digest, source, mask)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, listing)
}

// workflowOf returns the workflow of a run: the version with which it began, or the
// current one if it is queued. The caller calls release.
func (s *server) workflowOf(id string) (wf *host.Workflow, release func(), err error) {
	_, contents, err := s.contents(id)
	if err == nil {
		return s.versionOf(contents)
	}
	if !errors.Is(err, errNoRun) {
		return nil, nil, err
	}
	name := ""
	s.mu.Lock()
	if it := s.led.state.items[id]; it != nil {
		name = it.Workflow
	} else if d := s.led.state.drops[id]; d != nil {
		name = d.Workflow
	}
	s.mu.Unlock()
	if v := s.catalog.use(name); v != nil {
		return v.Workflow, v.uses.Done, nil
	}
	return nil, nil, err
}

// eachEvent calls fn with the events of a run so far, and reports whether it is
// running.
func (s *server) eachEvent(id string, fn func(line []byte) error) (running bool, err error) {
	s.mu.Lock()
	lv := s.live[id]
	s.mu.Unlock()
	each := func(_ int64, line []byte) error { return fn(line) }
	if lv == nil {
		return false, s.storedEvents(id, 0, 0, each)
	}
	events, first, _ := lv.hub.after(0)
	if err := s.storedEvents(id, 0, first, each); err != nil {
		return true, err
	}
	return true, eachOf(events, fn)
}

// eachOf calls fn with each event as JSON.
func eachOf(events []flow.Event, fn func(line []byte) error) error {
	for _, e := range events {
		line, err := e.MarshalJSON()
		if err != nil {
			return err
		}
		if err := fn(line); err != nil {
			return err
		}
	}
	return nil
}

// drawing answers with a drawing.
func drawing(w http.ResponseWriter, svg []byte) error {
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(svg) // the client is gone
	return nil
}
