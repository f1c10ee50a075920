package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/the-edge-agent/tea/client"
	"github.com/the-edge-agent/tea/cmd/internal/webguard"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/sdk/value"
)

const (
	// maxBody is the maximum size of a request body.
	maxBody = 4 << 20
	// maxHooks is how many webhooks are served concurrently: their senders are unknown
	// until the body is read.
	maxHooks = 32
	// maxWait is how long a request can wait for the end of a run.
	maxWait = 10 * time.Minute
)

// route is a request that the API serves, and the role that it needs.
type route struct {
	pattern string
	role    role
}

// routes returns the handler of the API, and what it serves.
func (s *server) routes(a *access) (http.Handler, []route) {
	mux := http.NewServeMux()
	guard := webguard.Guard(refuse)
	var list []route
	raw := func(pattern string, r role, do func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
		list = append(list, route{pattern, r})
		return func(w http.ResponseWriter, req *http.Request) {
			if err := do(w, req); err != nil {
				s.fail(w, err)
			}
		}
	}
	handle := func(pattern string, r role, do func(http.ResponseWriter, *http.Request) error) {
		mux.Handle(pattern, a.require(r, guard.Read(raw(pattern, r, do), maxBody).ServeHTTP)) // unauthorized requests do not fill the memory
	}
	handle("GET /v1/workflows", roleView, s.getWorkflows)
	handle("GET /v1/workflows/{name}", roleView, s.getWorkflow)
	handle("GET /v1/workflows/{name}/graph.svg", roleView, s.getWorkflowGraph)
	handle("POST /v1/workflows/{name}/runs", roleRun, s.postRun)
	handle("POST /v1/workflows/{name}/triggers/{trigger}/run", roleRun, s.postTrigger)
	handle("POST /v1/workflows/{name}/triggers/{trigger}/pause", roleRun, s.setPaused(true))
	handle("POST /v1/workflows/{name}/triggers/{trigger}/resume", roleRun, s.setPaused(false))
	handle("POST /v1/workflows/{name}/memory/{action}", roleView, s.postMemory)
	handle("POST /v1/workflows/{name}/memory/ltm.delete", roleAdmin, s.postMemoryDelete)
	handle("GET /v1/schedule", roleView, s.getSchedule)
	handle("GET /v1/questions", roleView, s.getQuestions)
	handle("GET /v1/changes", roleView, s.awaitChange)
	s.runRoutes(handle)
	handle("POST /v1/chat/completions", roleRun, s.openAI(s.postChat))
	handle("GET /v1/models", roleView, s.openAI(s.getModels))
	handle("GET /v1/models/{name}", roleView, s.openAI(s.getModel))
	handle("GET /.well-known/agent-card.json", roleView, s.getAgentCard)
	handle("GET /a2a/{name}/.well-known/agent-card.json", roleView, s.getAgentCard)
	handle("POST /a2a/{name}", roleView, s.postA2A)
	handle("GET /v1/usage", roleView, s.getUsage)
	handle("GET /v1/push", roleAnswer, s.getPush)
	handle("POST /v1/push/subscribe", roleAnswer, s.postSubscribe)
	handle("POST /v1/push/unsubscribe", roleAnswer, s.postUnsubscribe)
	handle("GET /v1/actions", roleView, s.getActions)
	handle("GET /v1/plugins", roleView, s.getPlugins)
	mux.Handle("POST /v1/plugins", a.require(roleAdmin, raw("POST /v1/plugins", roleAdmin, s.postPlugin))) // the handler reads the body
	handle("POST /v1/plugins/{name}/rollback", roleAdmin, s.postRollback)
	handle("GET /metrics", roleView, s.getMetrics)
	open := func(pattern string, do http.HandlerFunc) {
		list = append(list, route{pattern, roleNone})
		mux.HandleFunc(pattern, do)
	}
	open("GET /v1/openapi.json", getOpenAPI)
	open("POST /hooks/{path...}", guard.Bounded(guard.Read(http.HandlerFunc(s.postHook), maxBody), maxHooks).ServeHTTP)
	open("GET /healthz", s.getHealth)
	open("GET /readyz", s.getReady)
	for _, pattern := range []string{"GET /{$}", "GET /page/{version}/{file}", "GET /worker.js"} {
		mux.HandleFunc(pattern, s.getPage)
	}
	mux.Handle("/answer/{token}", guard.Bounded(guard.Read(http.HandlerFunc(s.serveAnswer), maxAnswer), maxHooks))
	if s.static != "" {
		mux.Handle("GET /static/{path...}", s.static)
	}
	mux.HandleFunc("/", refuseOthers(mux))
	return mux, list
}

// runRoutes adds the requests for runs.
func (s *server) runRoutes(handle func(pattern string, r role, do func(http.ResponseWriter, *http.Request) error)) {
	handle("GET /v1/runs", roleView, s.getRuns)
	handle("POST /v1/runs/cancel", roleRun, s.bulk(s.cancel))
	handle("POST /v1/runs/retry", roleRun, s.bulk(s.retryOne))
	handle("POST /v1/runs/delete", roleRun, s.bulk(s.deleteOne))
	handle("GET /v1/runs/{id}", roleView, s.getRun)
	handle("GET /v1/runs/{id}/compare", roleView, s.getComparison)
	handle("GET /v1/runs/{id}/events", roleView, s.getEvents)
	handle("GET /v1/runs/{id}/state", roleView, s.getState)
	handle("GET /v1/runs/{id}/changes", roleView, s.getChanges)
	handle("GET /v1/runs/{id}/node", roleView, s.getNode)
	handle("GET /v1/runs/{id}/files", roleView, s.getFiles)
	handle("GET /v1/runs/{id}/files/content", roleView, s.getFile)
	handle("GET /v1/runs/{id}/graph.svg", roleView, s.getRunGraph)
	handle("GET /v1/runs/{id}/source", roleView, s.getRunSource)
	handle("POST /v1/runs/{id}/resume", roleAnswer, s.postResume)
	handle("POST /v1/runs/{id}/cancel", roleRun, s.postCancel)
	handle("POST /v1/runs/{id}/retry", roleRun, s.postRetry)
	handle("POST /v1/runs/{id}/fork", roleRun, s.postFork)
}

// refuseOthers returns the handler of the paths and methods that mux does not serve.
func refuseOthers(mux *http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if allowed := otherMethods(mux, r); len(allowed) > 0 {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			refuse(w, fmt.Sprintf("%s is not a method of %.200s; use %s", r.Method, r.URL.Path, strings.Join(allowed, " or ")), http.StatusMethodNotAllowed)
			return
		}
		refuse(w, fmt.Sprintf("there is nothing at %s %.200s", r.Method, r.URL.Path), http.StatusNotFound)
	}
}

// getPage serves a file of the page.
func (s *server) getPage(w http.ResponseWriter, r *http.Request) {
	if !s.page.Has(r) {
		refuse(w, fmt.Sprintf("there is nothing at GET %.200s", r.URL.Path), http.StatusNotFound)
		return
	}
	s.page.ServeHTTP(w, r)
}

// otherMethods returns the methods with which the path of a request is served.
func otherMethods(mux *http.ServeMux, r *http.Request) (list []string) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := *r
		other.Method = method
		if _, pattern := mux.Handler(&other); strings.HasPrefix(pattern, method) {
			list = append(list, method)
		}
	}
	return list
}

// reply sends a value as JSON.
func reply(w http.ResponseWriter, status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client is gone
	return nil
}

// readObject reads the body of a request, an object that may have only the given
// members. An empty body is an empty object.
func readObject(r *http.Request, members ...string) (map[string]any, []byte, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, nil, badRequest(err)
	}
	if len(text) == 0 {
		return map[string]any{}, text, nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, nil, &statusError{http.StatusUnsupportedMediaType, fmt.Errorf("the body must be application/json")}
	}
	if !utf8.Valid(text) {
		return nil, nil, badRequest(errors.New("body: it is not UTF-8"))
	}
	object, err := decodeObject(text)
	if err != nil {
		return nil, nil, badRequest(fmt.Errorf("body: %w", err))
	}
	for name := range object {
		known := false
		for _, m := range members {
			known = known || m == name
		}
		if !known {
			return nil, nil, badRequest(fmt.Errorf("body: unknown member %q; expected %s", name, strings.Join(members, ", ")))
		}
	}
	return object, text, nil
}

// objectIn returns a member that is an object; nil if it is absent.
func objectIn(body map[string]any, name string) (map[string]any, error) {
	switch v := body[name].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return v, nil
	default:
		return nil, badRequest(fmt.Errorf("%s: expected an object, got %s", name, value.TypeName(v)))
	}
}

// boolIn returns a member that is a boolean.
func boolIn(body map[string]any, name string) (bool, error) {
	switch v := body[name].(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	default:
		return false, badRequest(fmt.Errorf("%s: expected true or false, got %s", name, value.TypeName(v)))
	}
}

// knownQuery returns an error for a query parameter that is not in names.
func knownQuery(query url.Values, names ...string) error {
	for name := range query {
		if slices.Contains(names, name) {
			continue
		}
		if len(names) == 0 {
			return badRequest(fmt.Errorf("the query has the parameter %.40q; the request takes none", name))
		}
		return badRequest(fmt.Errorf("the query has the unknown parameter %.40q; expected %s", name, strings.Join(names, ", ")))
	}
	return nil
}

// waitOf returns how long a request waits for the end of its run.
func waitOf(query url.Values) (time.Duration, error) {
	if err := knownQuery(query, "wait"); err != nil {
		return 0, err
	}
	text := query.Get("wait")
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 0) || seconds > maxWait.Seconds() {
		return 0, badRequest(fmt.Errorf("wait: expected a number of seconds up to %v, got %.40q", maxWait.Seconds(), text))
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// postRun starts a run.
func (s *server) postRun(w http.ResponseWriter, r *http.Request) error {
	wait, err := waitOf(r.URL.Query())
	if err != nil {
		return err
	}
	body, text, err := readObject(r, "input")
	if err != nil {
		return err
	}
	input, err := objectIn(body, "input")
	if err != nil {
		return err
	}
	v := s.catalog.use(r.PathValue("name"))
	if v == nil {
		return noWorkflow(r.PathValue("name"))
	}
	err = s.svc.CheckInput(v.Workflow, input)
	key, keyErr := v.serving.Key(r.Context(), -1, map[string]any{"type": "api", "body": input}, s.svc.Environment())
	v.uses.Done()
	if err = cmp.Or(err, keyErr); err != nil {
		return err
	}
	req := request{workflow: v.Name(), input: input, key: key}
	if key = r.Header.Get("Idempotency-Key"); key != "" {
		if len(key) > 255 {
			return badRequest(fmt.Errorf("the Idempotency-Key has more than 255 characters"))
		}
		sum := sha256.Sum256(text)
		req.key, req.hash = "request "+key, hex.EncodeToString(sum[:8])
	}
	a, err := s.accept(req)
	if err != nil {
		return err
	}
	return s.answer(w, r, a, wait)
}

// answer answers a request that has started or resumed a run: with the run if it
// ends in time, otherwise with its id.
func (s *server) answer(w http.ResponseWriter, r *http.Request, a accepted, wait time.Duration) error {
	w.Header().Set("Location", "/v1/runs/"+url.PathEscape(a.id))
	if a.replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	ended := a.done == nil
	if wait > 0 && !ended {
		ctx, cancel := context.WithTimeout(r.Context(), wait)
		defer cancel()
		select {
		case <-a.done:
			ended = true
		case <-ctx.Done():
		case <-s.runs.Done():
		}
	}
	if wait == 0 || !ended {
		return reply(w, http.StatusAccepted, map[string]any{"id": a.id, "status": s.statusOf(a.id)})
	}
	doc, err := s.finished(r.Context(), a)
	if errors.Is(err, errNoRun) && a.replayed { // it ended and was removed
		return reply(w, http.StatusOK, map[string]any{"id": a.id, "status": s.statusOf(a.id)})
	}
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, doc)
}

// getWorkflows lists the workflows.
func (s *server) getWorkflows(w http.ResponseWriter, _ *http.Request) error {
	list := []workflowDoc{}
	for _, name := range s.catalog.names() {
		if v := s.catalog.use(name); v != nil {
			list = append(list, s.describe(v))
			v.uses.Done()
		}
	}
	problems := []client.FileProblem{}
	for file, text := range s.catalog.Problems() {
		problems = append(problems, client.FileProblem{File: file, Detail: s.svc.Hide(text)})
	}
	return reply(w, http.StatusOK, map[string]any{"workflows": list, "problems": problems})
}

// workflowDoc is a workflow as clients see it.
type workflowDoc struct {
	client.Workflow
	InputSchema any `json:"input_schema,omitempty"`
}

func (s *server) describe(v *version) workflowDoc {
	problems, values := map[*trigger]string{}, map[*trigger]string{}
	for _, t := range v.triggers {
		switch t.Kind {
		case host.TriggerMQTT:
			problems[t] = s.brokers.problem(t)
		case host.TriggerPoll, host.TriggerStream:
			problems[t], values[t] = s.watches.status(t)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := s.line(v.Name())
	doc := client.Workflow{
		Name: v.Name(), Description: v.mask.Text(v.Description()), File: v.file, Digest: v.Digest(), Triggers: []client.Trigger{},
		Running: len(ln.running), Queued: len(ln.ready) + ln.entering, MaxRunning: maxRunning(v.serving.Config()),
	}
	used := s.led.state.used[v.Name()]
	today := used.on(day(time.Now()))
	doc.TokensToday, doc.USDToday, doc.LastRun = today.Tokens, today.USD, (*client.LastRun)(used.last())
	for _, t := range v.triggers {
		d := client.Trigger{Name: t.Name, Kind: string(t.Kind), Paused: s.pausedAt(t), Skipped: s.skips.of(t.id)}
		if last, ok := s.led.state.fired[t.id]; ok && t.next != nil {
			if d.Last = &last; d.Paused == nil {
				d.Next = new(t.next(last))
			}
		}
		if t.Values != nil {
			if at := s.positionOf(t.id); !at.Last.IsZero() {
				d.Last, d.Active = &at.Last, at.Active
			}
		}
		d.Problem, d.Value = cmp.Or(problems[t], s.unwatched[t.id]), values[t]
		doc.Triggers = append(doc.Triggers, d)
	}
	return workflowDoc{Workflow: doc}
}

// getWorkflow describes a workflow with its input.
func (s *server) getWorkflow(w http.ResponseWriter, r *http.Request) error {
	v := s.catalog.use(r.PathValue("name"))
	if v == nil {
		return noWorkflow(r.PathValue("name"))
	}
	defer v.uses.Done()
	doc := s.describe(v)
	doc.InputSchema = v.mask.Value(v.InputSchema())
	return reply(w, http.StatusOK, doc)
}

// getUsage lists what runs have used, the newest day first.
func (s *server) getUsage(w http.ResponseWriter, r *http.Request) error {
	if err := knownQuery(r.URL.Query()); err != nil {
		return err
	}
	s.mu.Lock()
	list := slices.Concat(slices.Collect(maps.Values(s.led.state.used))...)
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b *dayUse) int {
		return cmp.Or(cmp.Compare(b.Day, a.Day), cmp.Compare(a.Workflow, b.Workflow))
	})
	days := []client.DayUsage{}
	for _, u := range list {
		days = append(days, client.DayUsage{Day: u.Day, Workflow: u.Workflow, Runs: u.Runs, Failed: u.Failed, Tokens: u.Tokens, USD: u.USD, Seconds: u.Seconds})
	}
	return reply(w, http.StatusOK, map[string]any{"days": days})
}

// getActions lists the actions.
func (s *server) getActions(w http.ResponseWriter, _ *http.Request) error {
	actions, err := s.svc.Host.Actions()
	if err != nil {
		return err
	}
	type actionDoc struct {
		Name    string `json:"name"`
		Summary string `json:"summary"`
		Bundle  string `json:"bundle"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
	}
	list := []actionDoc{}
	for _, a := range actions {
		list = append(list, actionDoc{a.Name, a.Summary, a.Bundle, a.Version, a.Kind})
	}
	return reply(w, http.StatusOK, map[string]any{"actions": list})
}

// getMetrics answers with the metrics of Prometheus.
func (s *server) getMetrics(w http.ResponseWriter, r *http.Request) error {
	promhttp.HandlerFor(s.metrics.gatherer(r.Context()), promhttp.HandlerOpts{}).ServeHTTP(w, r)
	return nil
}

// getHealth reports that the server is alive.
func (s *server) getHealth(w http.ResponseWriter, _ *http.Request) {
	_ = reply(w, http.StatusOK, map[string]string{"status": "ok"}) // cannot fail
}

// getReady reports whether the server accepts work.
func (s *server) getReady(w http.ResponseWriter, _ *http.Request) {
	if s.ctx.Err() != nil {
		refuse(w, errStopping.Error(), http.StatusServiceUnavailable)
		return
	}
	s.mu.Lock()
	err := s.led.check()
	if err == nil && s.diskFull.err != nil {
		err = fmt.Errorf("runs cannot be recorded: %w", s.diskFull.err)
	}
	s.mu.Unlock()
	if err == nil {
		if _, dirErr := os.Stat(s.catalog.Path()); dirErr != nil {
			err = fmt.Errorf("the directory of the workflows cannot be read: %w", withoutPath(dirErr))
		}
	}
	if err != nil {
		refuse(w, s.svc.Hide(err.Error()), http.StatusServiceUnavailable)
		return
	}
	_ = reply(w, http.StatusOK, map[string]string{"status": "ready"}) // cannot fail
}

// openAPI describes the API in the format OpenAPI 3.1. Tests compare it with the
// routes and with the responses of the server.
//
//go:embed openapi.json
var openAPI []byte

// getOpenAPI answers with the OpenAPI document.
func getOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(openAPI) // the client is gone
}
