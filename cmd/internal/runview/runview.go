// Package runview prepares runs for clients and converts their answers. Start
// with [Describe], [AnswersTo] and [ParseAnswer].
package runview

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
)

// ValidID reports whether a text can be the id of a run.
func ValidID(text string) bool {
	const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	return text != "" && len(text) <= 100 && text[0] != '-' && strings.TrimLeft(text, characters) == ""
}

// MaskedFailures returns failures without secrets.
func MaskedFailures(mask host.Mask, list []flow.Failure) []flow.Failure {
	var out []flow.Failure
	for _, f := range list {
		f.Message = mask.Text(f.Message)
		out = append(out, f)
	}
	return out
}

// Describe returns an interrupt as clients see it.
func Describe(mask host.Mask, i flow.Interrupt) any {
	raw, err := json.Marshal(i)
	if err != nil {
		return map[string]any{"id": i.ID}
	}
	v, err := value.Decode(raw)
	if err != nil {
		return map[string]any{"id": i.ID}
	}
	return mask.Value(v)
}

// AnswersTo returns the answers by interrupt id. Without answers, all stops are
// passed.
func AnswersTo(pending []flow.Interrupt, given map[string]any) (map[string]any, error) {
	answers := map[string]any{}
	for _, i := range pending {
		if len(given) == 0 && i.Kind != flow.InterruptAsk {
			answers[i.ID] = nil
		}
	}
	for name, answer := range given {
		i, err := Find(pending, name)
		if err != nil {
			return nil, err
		}
		if _, twice := answers[i.ID]; twice {
			return nil, fmt.Errorf("%s is answered twice", i.ID)
		}
		if i.Kind == flow.InterruptAsk {
			if err := i.Check(answer); err != nil {
				return nil, fmt.Errorf("answer %s: %w", name, err)
			}
		}
		answers[i.ID] = answer
	}
	return answers, nil
}

// Find returns the interrupt with an id, or the only one with a path or node of
// that name.
func Find(pending []flow.Interrupt, name string) (flow.Interrupt, error) {
	var ids []string
	var found []flow.Interrupt
	for _, i := range pending {
		if i.ID == name {
			return i, nil
		}
		ids = append(ids, i.ID)
		if i.Path == name || i.Node == name {
			found = append(found, i)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return flow.Interrupt{}, fmt.Errorf("several interrupts match %q; name one of %s", name, strings.Join(ids, ", "))
	case len(ids) == 0:
		ids = []string{"none"}
	}
	return flow.Interrupt{}, fmt.Errorf("no pending interrupt %q; pending: %s", name, strings.Join(ids, ", "))
}

// ParseAnswer reads a typed text as the number of a choice, as JSON, as text
// or as yes or no, whichever fits first. An empty line is the default.
func ParseAnswer(i flow.Interrupt, text string) (any, error) {
	if text == "" {
		if i.Kind == flow.InterruptAsk && i.Default == nil {
			return nil, errors.New("an answer is needed")
		}
		return i.Default, nil
	}
	if i.Kind != flow.InterruptAsk {
		v, err := value.Decode([]byte(text))
		if _, ok := v.(map[string]any); err != nil || !ok {
			return nil, errors.New("expected a JSON object, or an empty line")
		}
		return v, nil
	}
	var failed error
	for _, v := range readings(i, text) {
		err := i.Check(v)
		if err == nil {
			return v, nil
		}
		if failed == nil {
			failed = err
		}
	}
	return nil, failed
}

// readings returns the values that a typed text can mean.
func readings(i flow.Interrupt, text string) []any {
	var all []any
	v, err := value.Decode([]byte(text))
	if err == nil {
		all = append(all, v)
	}
	all = append(all, text)
	if n, ok := v.(int64); ok && n >= 1 && int(n) <= len(i.Choices) {
		all = append(all, i.Choices[n-1])
	}
	switch strings.ToLower(text) {
	case "y", "yes":
		all = append(all, true)
	case "n", "no":
		all = append(all, false)
	}
	return all
}
