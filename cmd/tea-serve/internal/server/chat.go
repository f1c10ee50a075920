package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
)

// answerKeys are the keys of the state that may have the answer of a chat, highest
// precedence first.
var answerKeys = []string{"answer", "response", "content", "text"}

// chat is a request of the OpenAI API that a workflow answers.
type chat struct {
	s        *server
	w        http.ResponseWriter
	model    string
	messages []any
	stream   bool
	usage    bool // ends a stream with a chunk that has the usage
	options  map[string]any
	// id and created identify the answer.
	id      string
	created int64
	sent    int
}

// postChat runs the workflow that a chat names as its model.
func (s *server) postChat(w http.ResponseWriter, r *http.Request) error {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return badRequest(err)
	}
	body, err := decodeObject(text)
	if err != nil {
		return badRequest(fmt.Errorf("body: %w", err))
	}
	c := &chat{s: s, w: w, created: time.Now().Unix()}
	c.model, _ = body["model"].(string)
	c.messages, _ = body["messages"].([]any)
	if err := c.readOptions(body); err != nil {
		return badRequest(err)
	}
	if len(c.messages) == 0 {
		return badRequest(errors.New("messages: expected a list with at least one message"))
	}
	if c.model == "" {
		return badRequest(errors.New("model: expected the name of a workflow"))
	}
	v := s.catalog.use(c.model)
	if v == nil {
		return noWorkflow(c.model)
	}
	input := map[string]any{"messages": c.messages, "prompt": promptOf(c.messages), "chat_options": c.options}
	err = s.svc.CheckInput(v.Workflow, input)
	s.mu.Lock()
	if err == nil && s.budgetSpent(v) {
		err = errBudgetSpent // a client does not wait until tomorrow
	}
	s.mu.Unlock()
	v.uses.Done()
	if err != nil {
		return err
	}
	a, err := s.accept(request{workflow: c.model, trigger: "chat", input: input})
	if err != nil {
		return err
	}
	c.id = a.id
	return c.answer(r.Context(), a)
}

// forms are the members of a chat that change the form of its answer, with the values
// that a workflow can honour, besides null and an empty list.
var forms = []struct { //nolint:gochecknoglobals // a constant
	name    string
	allowed []any
	problem string
}{
	{"n", []any{int64(1)}, "a workflow returns one answer; remove n, or send several requests"},
	{"tools", nil, "a workflow calls its own tools; remove tools"},
	{"functions", nil, "a workflow calls its own tools; remove functions"},
	{"tool_choice", []any{"none", "auto"}, "a workflow calls its own tools; remove tool_choice"},
	{"function_call", []any{"none", "auto"}, "a workflow calls its own tools; remove function_call"},
	{"parallel_tool_calls", []any{false}, "a workflow calls its own tools; remove parallel_tool_calls"},
	{"web_search_options", nil, "a workflow calls its own tools; remove web_search_options"},
	{"response_format", []any{map[string]any{"type": "text"}}, "a workflow decides the format of its answer; remove response_format"},
	{"logprobs", []any{false}, "a workflow has no probabilities of tokens; remove logprobs"},
	{"top_logprobs", []any{int64(0)}, "a workflow has no probabilities of tokens; remove top_logprobs"},
	{"moderation", nil, "a workflow does not moderate its answer; remove moderation"},
	{"store", []any{false}, "answers cannot be retrieved later; remove store"},
	{"service_tier", []any{"auto", "default"}, "a workflow has no service tiers; remove service_tier"},
	{"modalities", []any{[]any{"text"}}, "a workflow answers with text; remove modalities"},
	{"audio", nil, "a workflow answers with text; remove audio"},
}

// readOptions reads the options of a chat. Options for a model, such as temperature,
// become part of the input, because the workflow applies them.
func (c *chat) readOptions(body map[string]any) error {
	c.options = maps.Clone(body)
	maps.DeleteFunc(c.options, func(name string, v any) bool {
		return v == nil || slices.Contains([]string{"messages", "model", "stream", "stream_options"}, name)
	})
	for _, f := range forms {
		v := body[f.name]
		delete(c.options, f.name)
		list, isList := v.([]any)
		if v != nil && (!isList || len(list) > 0) && !slices.ContainsFunc(f.allowed, func(allowed any) bool { return value.Equal(v, allowed) }) {
			return fmt.Errorf("%s: %s", f.name, f.problem)
		}
	}
	options, ok := body["stream_options"].(map[string]any)
	if body["stream_options"] != nil && !ok {
		return errors.New("stream_options: expected an object")
	}
	for name, v := range options {
		if name != "include_usage" && (name != "include_obfuscation" || v != false) && v != nil {
			return fmt.Errorf("stream_options.%s: not supported; remove it", name)
		}
	}
	for name, v := range map[string]any{"stream": body["stream"], "stream_options.include_usage": options["include_usage"]} {
		if _, ok := v.(bool); !ok && v != nil {
			return fmt.Errorf("%s: expected true or false", name)
		}
	}
	c.stream, _ = body["stream"].(bool)
	c.usage, _ = options["include_usage"].(bool)
	if ok && !c.stream {
		return errors.New("stream_options: only allowed with stream: true")
	}
	return nil
}

// openAI answers errors of a handler in the format of the OpenAI API, which its
// clients show.
func (s *server) openAI(do func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		err := do(w, r)
		if err == nil {
			return nil
		}
		status := s.prepare(w, err)
		kind := "invalid_request_error"
		if status >= http.StatusInternalServerError {
			kind = "server_error"
		}
		return reply(w, status, errorDoc(s.svc.Hide(err.Error()), kind))
	}
}

// errorDoc returns an error of the OpenAI API.
func errorDoc(message, kind string) map[string]any {
	return map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": nil}}
}

// promptOf returns the text of the last message.
func promptOf(messages []any) string {
	last, _ := messages[len(messages)-1].(map[string]any)
	switch content := last["content"].(type) {
	case string:
		return content
	case []any:
		var text strings.Builder
		for _, part := range content {
			part, _ := part.(map[string]any)
			piece, _ := part["text"].(string)
			text.WriteString(piece)
		}
		return text.String()
	}
	return ""
}

// answer waits for the run. If the client disconnects, the run is stopped, because
// nobody else reads its answer.
func (c *chat) answer(ctx context.Context, a accepted) error {
	gone := context.AfterFunc(ctx, func() {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		if lv := c.s.live[a.id]; lv != nil {
			lv.cancel(errCanceled)
		} else if c.s.led.state.items[a.id] != nil {
			_, _ = c.s.stopIdle(a.id, errCanceled) // the run has ended, or the server is about to end
		}
	})
	defer gone()
	if c.stream {
		e := &eventStream{s: c.s, w: c.w, control: http.NewResponseController(c.w), id: a.id, each: c.event}
		if err := e.start(); err != nil {
			return err
		}
		if err := e.run(ctx); err != nil {
			return nil //nolint:nilerr // the client is gone, or sees the end
		}
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		return nil
	case <-c.s.runs.Done():
		return errStopping
	}
	c.s.mu.Lock()
	res, failure := a.item.outcome, a.item.failure
	c.s.mu.Unlock()
	text, finish := c.text(res, failure)
	failed := res == nil || res.Status == flow.Failed || res.Status == flow.Stopped
	switch {
	case failed && c.stream:
		return c.fail(text)
	case failed:
		c.w.Header().Set("X-Should-Retry", "false") // OpenAI clients would run the workflow again
		return &statusError{http.StatusInternalServerError, errors.New(text)}
	case !c.stream:
		return reply(c.w, http.StatusOK, c.document("chat.completion", tokensOf(res), map[string]any{
			"index": 0, "message": map[string]any{"role": "assistant", "content": text}, "finish_reason": finish,
		}))
	}
	if c.sent == 0 {
		c.chunk(map[string]any{"role": "assistant", "content": text}, nil)
	}
	c.chunk(map[string]any{}, finish)
	if c.usage {
		_, _ = c.w.Write(c.encode(tokensOf(res))) // the client is gone
	}
	_, _ = fmt.Fprint(c.w, "data: [DONE]\n\n") // the client is gone
	return nil
}

// text returns the answer of a run, and its finish reason.
func (c *chat) text(res *flow.Result, failure error) (text, finish string) {
	v := c.s.catalog.use(c.model)
	if v == nil || res == nil {
		return c.s.svc.Hide(fmt.Sprint("the run could not start: ", failure)), "stop"
	}
	defer v.uses.Done()
	if res.Status == flow.Waiting && len(res.Pending) > 0 {
		return v.mask.Text(res.Pending[0].Question), "stop"
	}
	if res.Err != nil {
		return v.mask.Text(res.Err.Error()), "stop"
	}
	state, _ := v.mask.Value(res.State).(map[string]any)
	return answerText(state), "stop"
}

// answerText returns the answer in the final state of a run: the first of [answerKeys]
// that is text, otherwise JSON.
func answerText(state map[string]any) string {
	for _, key := range answerKeys {
		if text, ok := state[key].(string); ok {
			return text
		}
	}
	var answer any = withoutChat(state)
	for _, key := range slices.Backward(answerKeys) {
		if v := state[key]; v != nil {
			answer = v
		}
	}
	encoded, err := value.Encode(answer)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

// withoutChat returns a state without the chat's input.
func withoutChat(state map[string]any) map[string]any {
	out := maps.Clone(state)
	delete(out, "messages")
	delete(out, "prompt")
	delete(out, "chat_options")
	return out
}

// event sends a token to the client.
func (c *chat) event(line []byte) []byte {
	var e struct{ Event, Text string }
	if json.Unmarshal(line, &e) != nil || e.Event != string(flow.EventToken) {
		return nil
	}
	delta := map[string]any{"content": e.Text}
	if c.sent == 0 {
		delta["role"] = "assistant"
	}
	c.sent++
	return c.encode(nil, choice(delta, nil))
}

// fail ends a stream with an error in the format of the OpenAI API.
func (c *chat) fail(message string) error {
	text, err := json.Marshal(errorDoc(message, "server_error"))
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(c.w, "data: %s\n\ndata: [DONE]\n\n", text) // the client is gone
	return nil
}

// chunk sends a part of the answer.
func (c *chat) chunk(delta map[string]any, finish any) {
	_, _ = c.w.Write(c.encode(nil, choice(delta, finish))) // the client is gone
}

func choice(delta map[string]any, finish any) map[string]any {
	return map[string]any{"index": 0, "delta": delta, "finish_reason": finish}
}

// tokensOf returns the tokens of a run. Prompt tokens are not counted separately.
func tokensOf(res *flow.Result) map[string]any {
	return map[string]any{"prompt_tokens": 0, "completion_tokens": res.Usage.Tokens, "total_tokens": res.Usage.Tokens}
}

func (c *chat) encode(usage map[string]any, choices ...any) []byte {
	text, err := json.Marshal(c.document("chat.completion.chunk", usage, choices...))
	if err != nil {
		return nil // the texts are valid
	}
	return fmt.Appendf(nil, "data: %s\n\n", text)
}

// document returns an answer, or a chunk. As in OpenAI's API, the usage is in a chunk
// without choices; in the other chunks it is null if it was requested.
func (c *chat) document(kind string, usage map[string]any, choices ...any) map[string]any {
	doc := map[string]any{"id": "chatcmpl-" + c.id, "object": kind, "created": c.created, "model": c.model, "choices": append([]any{}, choices...)}
	if usage != nil {
		doc["usage"] = usage
	} else if c.usage {
		doc["usage"] = nil
	}
	return doc
}

// getModels lists the workflows as models.
func (s *server) getModels(w http.ResponseWriter, _ *http.Request) error {
	list := []any{}
	for _, name := range s.catalog.names() {
		list = append(list, s.model(name))
	}
	return reply(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

// getModel describes a workflow as a model.
func (s *server) getModel(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if !slices.Contains(s.catalog.names(), name) {
		return noWorkflow(name)
	}
	return reply(w, http.StatusOK, s.model(name))
}

func (s *server) model(name string) map[string]any {
	return map[string]any{"id": name, "object": "model", "created": s.started.Unix(), "owned_by": "tea"}
}
