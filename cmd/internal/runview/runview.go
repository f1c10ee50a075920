// Package runview prepares what clients see of a run, and what they answer, for the
// programs that serve workflows. Start with [Describe] and [AnswersTo].
package runview

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
)

// ValidID reports whether a text can be the id of a run.
func ValidID(text string) bool { return validID().MatchString(text) }

var validID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$`) })

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
	var ids []string
	for _, i := range pending {
		ids = append(ids, i.ID)
		if len(given) == 0 && i.Kind != flow.InterruptAsk {
			answers[i.ID] = nil
		}
	}
	for name, answer := range given {
		matches := func(i flow.Interrupt) bool { return i.ID == name }
		if !slices.ContainsFunc(pending, matches) {
			matches = func(i flow.Interrupt) bool { return i.Path == name || i.Node == name }
		}
		at := slices.IndexFunc(pending, matches)
		switch {
		case at < 0:
			return nil, fmt.Errorf("the run does not wait for %q; pending: %s", name, listed(ids))
		case slices.ContainsFunc(pending[at+1:], matches):
			return nil, fmt.Errorf("several interrupts match %q; name one of %s", name, listed(ids))
		}
		if pending[at].Kind == flow.InterruptAsk {
			if err := pending[at].Check(answer); err != nil {
				return nil, fmt.Errorf("answer %s: %w", name, err)
			}
		}
		answers[pending[at].ID] = answer
	}
	return answers, nil
}

func listed(ids []string) string {
	if len(ids) == 0 {
		return "none"
	}
	return strings.Join(ids, ", ")
}
