package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// memoryTimeout bounds the call of a memory action.
const memoryTimeout = 30 * time.Second

// memoryReads are the actions of the plugins memory and graph that any client that can see
// runs may call.
var memoryReads = []string{"memory.inspect", "ltm.list", "ltm.search", "vector.list", "vector.query", "session.list", "graph.search", "graph.subgraph"}

// postMemory reads the memory of a workflow.
func (s *server) postMemory(w http.ResponseWriter, r *http.Request) error {
	action := r.PathValue("action")
	if !slices.Contains(memoryReads, action) {
		return &statusError{http.StatusNotFound, fmt.Errorf("%.100q is not one of %s", action, strings.Join(memoryReads, ", "))}
	}
	return s.callMemory(w, r, action)
}

// postMemoryDelete removes an entry of the memory of a workflow.
func (s *server) postMemoryDelete(w http.ResponseWriter, r *http.Request) error {
	return s.callMemory(w, r, "ltm.delete")
}

// callMemory calls an action with the settings of a workflow. With drawn=true, it answers
// with a drawing of the graph.
func (s *server) callMemory(w http.ResponseWriter, r *http.Request, action string) error {
	if err := knownQuery(r.URL.Query(), "drawn"); err != nil {
		return err
	}
	_, text, err := readObject(r, "namespace", "key", "prefix", "limit", "cursor", "query", "mode", "collection", "embedding", "include_embeddings", "k", "entity_id", "depth")
	if err != nil {
		return err
	}
	params := map[string]any{}
	if len(text) > 0 {
		if params, err = decodeObject(text); err != nil {
			return badRequest(err)
		}
	}
	v := s.catalog.use(r.PathValue("name"))
	if v == nil {
		return noWorkflow(r.PathValue("name"))
	}
	defer v.uses.Done()
	ctx, cancel := context.WithTimeout(r.Context(), memoryTimeout)
	defer cancel()
	res, err := v.Invoke(ctx, s.svc.Secrets(), &tea.Request{Action: action, Params: tea.ValuePayload(params), Call: tea.Call{Attempt: 1}})
	if err != nil {
		return memoryError(v.mask, err)
	}
	result, err := res.Result.Value()
	if err != nil {
		return err
	}
	if text, err = value.Encode(v.mask.Value(result)); err != nil {
		return err
	}
	if r.URL.Query().Get("drawn") != "true" {
		return reply(w, http.StatusOK, json.RawMessage(text))
	}
	svg, err := drawEntities(text)
	if err != nil {
		return &statusError{http.StatusUnprocessableEntity, err}
	}
	return drawing(w, svg)
}

// memoryError adds a status to the error of an action, and masks its secrets.
func memoryError(mask host.Mask, err error) error {
	status := http.StatusUnprocessableEntity
	if typed := (*tea.Error)(nil); errors.As(err, &typed) && typed.Type == tea.NotFound {
		status = http.StatusNotFound
	}
	return &statusError{status, errors.New(mask.Text(err.Error()))}
}

// drawEntities draws the result of graph.subgraph.
func drawEntities(text []byte) ([]byte, error) {
	var found struct {
		Entities  []struct{ ID, Type string }
		Relations []struct{ From, To, Type string }
	}
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, err
	}
	nodes, edges := []any{}, []any{}
	for _, e := range found.Entities {
		nodes = append(nodes, map[string]any{"data": map[string]any{"id": e.ID, "type": e.Type}})
	}
	for _, e := range found.Relations {
		edges = append(edges, map[string]any{"data": map[string]any{"source": e.From, "target": e.To, "type": e.Type}})
	}
	drawn, err := json.Marshal(map[string]any{"elements": map[string]any{"nodes": nodes, "edges": edges}})
	if err != nil {
		return nil, err
	}
	return host.DrawGraph("graph", drawn, "svg-horizontal")
}
