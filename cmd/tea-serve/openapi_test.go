package main

import (
	"fmt"
	"mime"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

// description is the OpenAPI document of the server. Each answer that a test gets is
// compared with it.
type description struct {
	doc map[string]any
	// schemas are compiled, by their place.
	mu      sync.Mutex
	schemas map[string]*jsonschema.Schema
}

var openAPI = sync.OnceValues(func() (*description, error) {
	text, err := os.ReadFile(path.Join("internal", "server", "openapi.json"))
	if err != nil {
		return nil, err
	}
	doc, err := value.Decode(text)
	if err != nil {
		return nil, err
	}
	return &description{doc: doc.(map[string]any), schemas: map[string]*jsonschema.Schema{}}, nil
})

// at returns a member of a member of a value; nil if there is none.
func at(v any, names ...string) any {
	for _, name := range names {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

// resolve replaces references by what they refer to. Objects have no members that
// are not described, unless they say so.
func (d *description) resolve(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = d.resolve(item)
		}
		return out
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			return d.resolve(at(d.doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...))
		}
		out := map[string]any{}
		if v["type"] == "object" {
			out["additionalProperties"] = false
		}
		for name, member := range v {
			out[name] = d.resolve(member)
		}
		return out
	}
	return v
}

// find returns the operation of a request, which need not exist.
func (d *description) find(method, path string) (operation map[string]any, place string) {
	paths, parts := at(d.doc, "paths").(map[string]any), strings.Split(path, "/")
	var templates []string
	for template := range paths {
		if want := strings.Split(template, "/"); len(want) == len(parts) && matches(want, parts) {
			templates = append(templates, template)
		}
	}
	slices.SortFunc(templates, func(a, b string) int { return strings.Count(a, "{") - strings.Count(b, "{") })
	for _, template := range templates {
		if methods := paths[template]; methods != nil {
			op, _ := at(methods, strings.ToLower(method)).(map[string]any)
			return op, method + " " + template
		}
	}
	return nil, ""
}

func matches(want, parts []string) bool {
	for i, part := range parts {
		if want[i] != part && !strings.HasPrefix(want[i], "{") {
			return false
		}
	}
	return true
}

// check returns what of an answer is not described.
func (d *description) check(method, target string, r response) error {
	u, err := url.Parse(target)
	if err != nil {
		return nil //nolint:nilerr // a test of wrong requests
	}
	op, place := d.find(method, u.EscapedPath())
	if op == nil {
		return nil
	}
	answer, _ := d.resolve(at(op, "responses", fmt.Sprint(r.status))).(map[string]any)
	if answer == nil {
		return fmt.Errorf("the status %d is not described", r.status)
	}
	if r.text == "" && answer["content"] == nil {
		return nil
	}
	kind, _, err := mime.ParseMediaType(r.header.Get("Content-Type"))
	if err != nil {
		return err
	}
	content, ok := at(answer, "content", kind).(map[string]any)
	if !ok {
		return fmt.Errorf("the content type %s of status %d is not described", kind, r.status)
	}
	if !strings.HasSuffix(kind, "json") {
		return nil
	}
	schema, err := d.compiled(fmt.Sprint(place, r.status, kind), content["schema"])
	if err != nil {
		return err
	}
	v, err := value.Decode([]byte(r.text))
	if err != nil {
		return err
	}
	if problems := schema.Validate(v); len(problems) > 0 {
		return fmt.Errorf("status %d: %s", r.status, jsonschema.Join(problems))
	}
	return nil
}

func (d *description) compiled(place string, schema any) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.schemas[place]; s != nil {
		return s, nil
	}
	s, err := jsonschema.Compile(schema)
	d.schemas[place] = s
	return s, err
}

// described reports an answer that is not described.
func (s *service) described(method, target string, r response) {
	s.t.Helper()
	d, err := openAPI()
	if err == nil {
		err = d.check(method, target, r)
	}
	if err != nil {
		s.t.Errorf("openapi.json: %s %s: %v\n%.2000s", method, target, err, r.text)
	}
}

func TestOpenAPIIsServed(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"greet.yaml": greet}).serve()
	want, err := os.ReadFile(path.Join("internal", "server", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	if r := s.request("GET", "/v1/openapi.json", ""); r.text != string(want) || r.header.Get("Content-Type") != "application/json" {
		t.Errorf("document: %d, %v", r.status, r.header)
	}
}

// An answer that is not described is noticed.
func TestAnswersAreComparedWithOpenAPI(t *testing.T) {
	t.Parallel()
	d, err := openAPI()
	if err != nil {
		t.Fatal(err)
	}
	json := map[string][]string{"Content-Type": {"application/json"}}
	for text, want := range map[string]string{
		`{"id": "1", "workflow": "w", "status": "done"}`:            "",
		`{"id": "1", "workflow": "w", "status": "done", "more": 1}`: "more",
		`{"id": "1", "workflow": "w", "status": "finished"}`:        "status",
		`{"id": "1", "status": "done"}`:                             "workflow",
	} {
		err := d.check("GET", "/v1/runs/1", response{status: 200, header: json, text: text})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", text, err, want)
		}
	}
	if err := d.check("GET", "/v1/runs/1", response{status: 418}); err == nil {
		t.Error("status 418 is described")
	}
}

// Each operation answers as described when it succeeds.
func TestEachOperationIsDescribed(t *testing.T) {
	t.Parallel()
	d, err := openAPI()
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for template, methods := range at(d.doc, "paths").(map[string]any) {
		for method := range methods.(map[string]any) {
			left[strings.ToUpper(method)+" "+template] = true
		}
	}
	project, push := newProject(t, map[string]string{
		"ask.yaml":  ask,
		"hook.yaml": "nodes: [{name: n, run: 'return {answer = \"yes\"}'}]\nserve: {triggers: [{webhook: in, signature: none}, {name: hourly, every: 1h}]}\n",
		"bad.yaml":  "nodes: 7\n",
		"fail.yaml": "nodes: [{name: n, run: 'error(\"broken\")'}]\n",
		"note.yaml": "nodes: [{name: n, uses: file.write, with: {path: note.txt, content: hot}, output: {}}]\n",
	}), startPushService(t)
	push.trusted(project)
	s := project.serveAdmin("--allow-private-push")
	do := func(status int, method, target, body string, header ...string) response {
		t.Helper()
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		_, place := d.find(method, u.EscapedPath())
		delete(left, place)
		r := s.request(method, target, body, header...)
		if r.status != status {
			t.Errorf("%s %s: %s, expected %d", method, target, r, status)
		}
		return r
	}
	id := do(200, "POST", "/v1/workflows/ask/runs?wait=600", `{"input": {"a": 1}}`, "Idempotency-Key", "k").body["id"].(string)
	for _, target := range []string{
		"/healthz", "/readyz", "/metrics", "/v1/openapi.json", "/v1/actions", "/v1/usage", "/v1/plugins", "/v1/models", "/v1/models/ask", "/v1/workflows", "/v1/workflows/hook", "/v1/workflows/ask/graph.svg", "/v1/questions", "/v1/changes", "/v1/schedule",
		"/v1/runs?limit=1&status=waiting&q=ask&since=2026-01-01", "/v1/runs/" + id, "/v1/runs/" + id + "?state=true", "/v1/runs/" + id + "/state", "/v1/runs/" + id + "/changes", "/v1/runs/" + id + "/node?at=first", "/v1/runs/" + id + "/graph.svg", "/v1/runs/" + id + "/source", "/v1/runs/" + id + "/events",
	} {
		do(200, "GET", target, "")
	}
	do(200, "POST", "/v1/runs/"+id+"/resume?wait=600", `{"answers": {"q": "yes"}}`)
	fork := do(200, "POST", "/v1/runs/"+id+"/fork?wait=600", `{"at": "first", "input": {}}`).body["id"].(string)
	do(200, "POST", "/v1/runs/"+fork+"/cancel", "")
	failed := do(200, "POST", "/v1/workflows/fail/runs?wait=600", "{}").body["id"].(string)
	do(200, "GET", "/v1/runs/"+failed, "")
	do(202, "POST", "/v1/runs/"+failed+"/retry", "")
	do(200, "GET", "/v1/runs/"+id+"/compare?with="+fork, "")
	noted := do(200, "POST", "/v1/workflows/note/runs?wait=600", "{}").body["id"].(string)
	do(200, "GET", "/v1/runs/"+noted+"/files", "")
	do(200, "GET", "/v1/runs/"+noted+"/files/content?file=note.txt", "")
	do(404, "POST", "/v1/workflows/note/memory/ltm.list", "{}") // without the plugin
	do(404, "POST", "/v1/workflows/note/memory/ltm.delete", `{"key": "a"}`)
	both := fmt.Sprintf(`{"ids": [%q, %q]}`, fork, failed)
	for _, action := range []string{"cancel", "retry", "delete"} {
		do(200, "POST", "/v1/runs/"+action, both)
	}
	do(202, "POST", "/v1/workflows/hook/triggers/hourly/run", "")
	do(200, "POST", "/v1/workflows/hook/triggers/hourly/pause", "")
	do(200, "POST", "/v1/workflows/hook/triggers/hourly/resume", "")
	do(202, "POST", "/hooks/in", "{}")
	do(200, "POST", "/v1/chat/completions", `{"model": "hook", "messages": [{"role": "user", "content": "Hello"}]}`)
	do(200, "POST", "/v1/chat/completions", `{"model": "hook", "stream": true, "messages": [{"role": "user", "content": "Hello"}]}`)
	do(404, "POST", "/v1/chat/completions", `{"model": "gone", "messages": [{"role": "user", "content": "Hello"}]}`)
	do(404, "GET", "/.well-known/agent-card.json", "") // there are several
	do(200, "GET", "/a2a/hook/.well-known/agent-card.json", "")
	do(200, "POST", "/a2a/hook", `{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {"messageId": "m", "parts": [{"text": "Hello"}]}}}`)
	do(204, "GET", "/v1/runs/"+id+"/events?after=1000", "")
	do(200, "GET", "/v1/runs?limit=500", "")
	for _, version := range []string{"1.0.0", "2.0.0"} {
		text, err := os.ReadFile(pack(t, version, false))
		if err != nil {
			t.Fatal(err)
		}
		form, kind := formOf(t, "bundle", string(text))
		do(200, "POST", "/v1/plugins", form, "Content-Type", kind)
	}
	do(200, "POST", "/v1/plugins/echo/rollback", "")
	do(200, "GET", "/v1/push", "")
	browser := push.browser("a").subscription()
	do(201, "POST", "/v1/push/subscribe", browser)
	do(200, "POST", "/v1/push/unsubscribe", browser)
	for place := range left {
		t.Errorf("no request is made for %s", place)
	}
}
