package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
)

const (
	// answerKey is the field of a form whose answer is not an object.
	answerKey = "answer"
	// maxWait is how long a client has to answer. Afterwards the run waits to be
	// resumed.
	maxWait = 15 * time.Minute
	// maxTries is how often a question is asked if the answers do not fit.
	maxTries = 3
	// roundTrips is the first version of the protocol in which questions are part of
	// a result, and the client answers them in its next call.
	roundTrips = "2026-07-28"
)

// form is the form of an interrupt for a client.
type form struct {
	flow.Interrupt
	params *mcp.ElicitParams
	// answer returns the answer in the fields of the form.
	answer func(fields map[string]any) (any, error)
}

// newForm returns the form for an interrupt. ok is false if a form cannot express
// the question: its fields have simple types only.
func newForm(mask host.Mask, workflow string, i flow.Interrupt) (f form, ok bool) {
	f = form{Interrupt: i, params: &mcp.ElicitParams{Mode: "form", Message: mask.Text(i.Question)}}
	object := map[string]any{"type": "object", "properties": map[string]any{}}
	f.answer = func(map[string]any) (any, error) { return nil, nil }
	if i.Kind != flow.InterruptAsk {
		f.params.Message = mask.Text(fmt.Sprintf("The workflow %s stops %s the node %s. Continue?", workflow, i.Kind, i.Path))
		f.params.RequestedSchema = object
		return f, true
	}
	schema, _ := i.Schema.(map[string]any)
	switch {
	case len(i.Choices) > 0:
		f.answer = choice(i.Choices)
		object = single(map[string]any{"type": "string", "enum": choiceTexts(i.Choices)})
	case i.Schema == nil:
		f.answer = field
		object = single(map[string]any{"type": "string"})
	case schema["type"] == "object":
		if object, ok = flatObject(schema); !ok {
			return f, false
		}
		f.answer = func(fields map[string]any) (any, error) { return fields, nil }
	default:
		property, ok := simple(schema)
		if !ok {
			return f, false
		}
		f.answer = field
		object = single(property)
	}
	f.params.RequestedSchema = mask.Value(object)
	return f, true
}

// field returns the answer of a form with one field.
func field(fields map[string]any) (any, error) {
	v, ok := fields[answerKey]
	if !ok {
		return nil, errors.New("an answer is needed")
	}
	return v, nil
}

// single returns the schema of a form with one field.
func single(property map[string]any) map[string]any {
	return map[string]any{"type": "object", "properties": map[string]any{answerKey: property}, "required": []any{answerKey}}
}

// choice returns the choice with the selected text.
func choice(choices []any) func(map[string]any) (any, error) {
	return func(fields map[string]any) (any, error) {
		v, err := field(fields)
		if err != nil {
			return nil, err
		}
		if at := slices.Index(choiceTexts(choices), v); at >= 0 {
			return choices[at], nil
		}
		return v, nil
	}
}

// choiceTexts returns choices as texts: strings as they are, others as JSON.
func choiceTexts(choices []any) []any {
	var texts []any
	for _, v := range choices {
		if _, isText := v.(string); !isText {
			if raw, err := value.Encode(v); err == nil {
				v = string(raw)
			}
		}
		texts = append(texts, v)
	}
	return texts
}

// flatObject converts the schema of an object to the schema of a form.
func flatObject(schema map[string]any) (map[string]any, bool) {
	properties, _ := schema["properties"].(map[string]any)
	if len(properties) == 0 {
		return nil, false
	}
	out := map[string]any{}
	for name, p := range properties {
		p, _ := p.(map[string]any)
		property, ok := simple(p)
		if !ok {
			return nil, false
		}
		out[name] = property
	}
	object := map[string]any{"type": "object", "properties": out}
	if required, ok := schema["required"].([]any); ok {
		object["required"] = required
	}
	return object, true
}

// simpleKeywords are the keywords that a field of a form may have.
var simpleKeywords = []string{"type", "title", "description", "enum", "default", "format", "minLength", "maxLength", "minimum", "maximum"}

// simple converts the schema of a value to the schema of a field. The answer is
// checked against the original schema.
func simple(schema map[string]any) (map[string]any, bool) {
	if !slices.Contains([]any{"string", "integer", "number", "boolean"}, schema["type"]) {
		return nil, false
	}
	property := map[string]any{}
	for _, key := range simpleKeywords {
		if v, ok := schema[key]; ok {
			property[key] = v
		}
	}
	if list, ok := property["enum"].([]any); ok && slices.ContainsFunc(list, func(v any) bool { _, isText := v.(string); return !isText }) {
		return nil, false
	}
	return property, true
}

// asked is the outcome of asking the questions of a run.
type asked struct {
	// answered reports whether the run can continue with answers.
	answered bool
	answers  map[string]any
	// note explains why it cannot.
	note string
	// result asks the client, in versions of the protocol in which the client calls
	// again with the answers.
	result *mcp.CallToolResult
}

// ask asks the user of the client the questions of a run, except declined ones.
func (c *call) ask(ctx context.Context, res *flow.Result) asked {
	caps := c.req.ClientCapabilities()
	if caps == nil || caps.Elicitation == nil || caps.Elicitation.Form == nil && caps.Elicitation.URL != nil {
		return asked{}
	}
	var forms []form
	var notes []string
	for _, i := range res.Pending {
		f, ok := newForm(c.mask, c.wf.Name(), i)
		switch declined := c.declined[i.ID]; {
		case declined != "":
			notes = append(notes, declined)
		case !ok:
			notes = append(notes, "a form cannot show the question "+i.ID)
		default:
			f.params.Message = c.problem + f.params.Message
			forms = append(forms, f)
		}
	}
	c.problem = ""
	switch {
	case len(forms) == 0:
		return asked{note: strings.Join(notes, "; ")}
	case c.req.ProtocolVersion() >= roundTrips:
		requests := mcp.InputRequestMap{}
		for _, f := range forms {
			requests[f.ID] = f.params
		}
		return asked{result: &mcp.CallToolResult{InputRequests: requests, RequestState: res.RunID}}
	}
	answers := map[string]any{}
	for _, f := range forms {
		answer, err := c.elicit(ctx, f)
		switch {
		case err == nil:
			answers[f.ID] = answer
		case !errors.Is(err, errOverdue): // after the deadline the run decides
			c.decline(f.ID, err)
		}
	}
	return asked{answered: true, answers: answers}
}

// decline leaves a question to the tool resume.
func (c *call) decline(id string, reason error) {
	if c.declined == nil {
		c.declined = map[string]string{}
	}
	c.declined[id] = fmt.Sprintf("the client did not answer %s: %s", id, c.mask.Text(reason.Error()))
}

// errOverdue reports that the deadline of a question has passed.
var errOverdue = errors.New("the deadline of the question has passed")

// elicit asks one question until the answer fits.
func (c *call) elicit(ctx context.Context, f form) (answer any, err error) {
	wait, cancel := context.WithTimeoutCause(ctx, maxWait, fmt.Errorf("no answer within %s", maxWait))
	defer cancel()
	if !f.Deadline.IsZero() {
		var stop context.CancelFunc
		wait, stop = context.WithDeadlineCause(wait, f.Deadline, errOverdue)
		defer stop()
	}
	params := *f.params
	for range maxTries {
		var res *mcp.ElicitResult
		_, err := c.req.Session.Elicit(context.WithValue(wait, formKey{}, &res), &params)
		switch {
		case err != nil && wait.Err() != nil:
			return nil, context.Cause(wait)
		case res == nil:
			return nil, err
		}
		answer, err := f.read(res)
		if err == nil || errors.As(err, new(declinedError)) {
			return answer, err
		}
		params.Message = c.mask.Text(fmt.Sprintf("%v. %s", err, f.params.Message))
	}
	return nil, fmt.Errorf("%d answers did not fit", maxTries)
}

// declinedError is the action of a user who does not answer: decline or cancel.
type declinedError string

func (e declinedError) Error() string { return string(e) }

// read returns the answer in the result of a form.
func (f form) read(res *mcp.ElicitResult) (any, error) {
	if res.Action != "accept" {
		return nil, declinedError(res.Action)
	}
	raw, err := json.Marshal(res.Content) // the SDK has decoded integers into float64
	if err != nil {
		return nil, err
	}
	content, err := value.Decode(raw)
	if err != nil {
		return nil, err
	}
	fields, _ := content.(map[string]any)
	answer, err := f.answer(fields)
	if err != nil || f.Kind != flow.InterruptAsk {
		return answer, err
	}
	return answer, f.Check(answer)
}

// continueRun resumes a run with the answers in the client's next call.
func (s *server) continueRun(ctx context.Context, req *mcp.CallToolRequest) *mcp.CallToolResult {
	c, contents, err := s.open(req, req.Params.RequestState)
	if err != nil {
		return failure(err)
	}
	defer s.closeWorkflow(c.wf)
	pending, err := checkpoints.Pending(contents)
	if err != nil {
		return failure(err)
	}
	answers := map[string]any{}
	for _, i := range pending {
		response, ok := req.Params.InputResponses[i.ID].(*mcp.ElicitResult)
		f, fits := newForm(c.mask, c.wf.Name(), i)
		if !ok || !fits {
			continue
		}
		answer, err := f.read(response)
		switch {
		case err == nil:
			answers[i.ID] = answer
		case errors.As(err, new(declinedError)):
			c.decline(i.ID, err)
		default:
			c.problem = c.mask.Text(err.Error()) + ". "
		}
	}
	return c.run(ctx, c.resumeWith(contents.Header.RunID, answers))
}
