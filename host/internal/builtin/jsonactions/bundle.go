package jsonactions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/builtin/jmespath"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Bundle returns the bundle json.
func Bundle(version string) *tea.Bundle {
	return &tea.Bundle{
		Name: "json", Version: version, Description: "Reads, queries and writes JSON.",
		Actions: []tea.Action{
			tea.NewAction("json.parse", "Reads JSON text.", parseAction, tea.Idempotent(), tea.Repeated()),
			tea.NewAction("json.transform", "Queries a value with a JMESPath expression.", transformAction, tea.Idempotent(), tea.Repeated()),
			tea.NewAction("json.stringify", "Writes a value as JSON text.", stringifyAction, tea.Idempotent(), tea.Repeated()),
		},
	}
}

type parseParams struct {
	Text    string          `json:"text" doc:"the JSON text"`
	Strict  bool            `json:"strict,omitempty" default:"true" doc:"true: strict JSON (RFC 8259), without an object that has a key twice; false: the last of such keys counts, and also comments, trailing commas, and the first value in other text, such as a fenced block in a model's answer"`
	Default json.RawMessage `json:"default,omitempty" doc:"the value of data if the text cannot be parsed; without it that is an error"`
}

type parseResult struct {
	Success bool `json:"success" doc:"always true"`
	Data    any  `json:"data" doc:"the value; integers keep all digits"`
}

func parseAction(_ context.Context, _ *tea.Request, p parseParams) (parseResult, error) {
	data, err := parse([]byte(p.Text), p.Strict)
	if err != nil && p.Default != nil {
		data, err = value.Decode(p.Default)
	}
	if err != nil {
		return parseResult{}, err
	}
	return parseResult{Success: true, Data: data}, nil
}

type transformParams struct {
	Data       any    `json:"data" doc:"the value to query"`
	Expression string `json:"expression" doc:"a JMESPath expression, such as items[?price > other].name"`
}

type transformResult struct {
	Success bool `json:"success" doc:"always true"`
	Result  any  `json:"result" doc:"the result of the expression; null if nothing matches"`
}

func transformAction(ctx context.Context, _ *tea.Request, p transformParams) (transformResult, error) {
	expression, err := jmespath.Compile(p.Expression)
	if err != nil {
		return transformResult{}, expressionError(p.Expression, err)
	}
	result, err := expression.Search(ctx, p.Data)
	if err != nil {
		if ctx.Err() != nil {
			return transformResult{}, tea.AsError(ctx.Err())
		}
		return transformResult{}, expressionError(p.Expression, err)
	}
	return transformResult{Success: true, Result: result}, nil
}

func expressionError(expression string, err error) error {
	e := tea.Errorf(tea.ValidationError, "JMESPath expression %q: %w", shortened(expression), err)
	e.Details = map[string]any{"expression": shortened(expression)}
	var syntax *jmespath.SyntaxError
	if errors.As(err, &syntax) && syntax.Offset >= 0 {
		e.Details["offset"] = syntax.Offset
		e.Details["column"] = syntax.Column
	}
	return e
}

// maxShown bounds the part of an expression in a message.
const maxShown = 200

func shortened(expression string) string {
	shown := 0
	for i := range expression {
		if shown == maxShown {
			return expression[:i] + "..."
		}
		shown++
	}
	return expression
}

type stringifyParams struct {
	Data     any  `json:"data" doc:"the value to write"`
	Pretty   bool `json:"pretty,omitempty" default:"false" doc:"one member or item per line"`
	Indent   *int `json:"indent,omitempty" minimum:"0" maximum:"16" doc:"spaces for each level; default 2 with pretty. A value above 0 implies pretty"`
	SortKeys bool `json:"sort_keys,omitempty" default:"true" doc:"accepted for compatibility: members are always sorted by name"`
}

type stringifyResult struct {
	Success bool   `json:"success" doc:"always true"`
	Text    string `json:"text" doc:"the JSON text"`
}

func stringifyAction(_ context.Context, _ *tea.Request, p stringifyParams) (stringifyResult, error) {
	indent := 0
	switch {
	case p.Indent != nil:
		indent = *p.Indent
	case p.Pretty:
		indent = 2
	}
	raw, err := value.Encode(p.Data)
	if err != nil {
		return stringifyResult{}, err
	}
	if indent > 0 {
		var b bytes.Buffer
		_ = json.Indent(&b, raw, "", strings.Repeat(" ", indent)) // it is valid
		raw = b.Bytes()
	}
	return stringifyResult{Success: true, Text: string(raw)}, nil
}
