package plan

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	tea "github.com/the-edge-agent/tea/sdk"
)

// StatusParams are the parameters of plan.status.
type StatusParams struct {
	Plan             Document `json:"plan" doc:"the plan"`
	IncludeCompleted bool     `json:"include_completed,omitempty" default:"true" doc:"list completed subtasks too"`
	IncludeDetails   bool     `json:"include_details,omitempty" doc:"list the subtasks with description, dependencies, result and error"`
	IncludeTree      bool     `json:"include_tree,omitempty" doc:"draw the subtasks as text"`
}

// Counts are the numbers of subtasks by status.
type Counts struct {
	Status     string  `json:"status" doc:"completed, failed (a subtask failed or was skipped and none is left), in_progress or pending"`
	Total      int     `json:"total"`
	Pending    int     `json:"pending"`
	InProgress int     `json:"in_progress"`
	Completed  int     `json:"completed"`
	Failed     int     `json:"failed"`
	Skipped    int     `json:"skipped"`
	Progress   float64 `json:"progress" doc:"the fraction that has ended, from 0 to 1"`
}

// StatusResult is the result of plan.status.
type StatusResult struct {
	Success bool `json:"success"`
	Counts
	PlanID   string `json:"plan_id"`
	Goal     string `json:"goal"`
	Subtasks []any  `json:"subtasks" doc:"id and status of each subtask, or all of it with include_details"`
	Tree     string `json:"tree,omitempty" doc:"with include_tree"`
}

// counts counts the subtasks.
func (p *Plan) counts() Counts {
	c := Counts{Total: len(p.Subtasks)}
	for _, s := range p.Subtasks {
		switch s.Status {
		case Completed:
			c.Completed++
		case Failed:
			c.Failed++
		case Skipped:
			c.Skipped++
		case InProgress:
			c.InProgress++
		default:
			c.Pending++
		}
	}
	ended := c.Completed + c.Failed + c.Skipped
	if c.Total > 0 {
		c.Progress = float64(ended) / float64(c.Total)
	}
	switch {
	case c.Total > 0 && c.Completed == c.Total:
		c.Status = string(Completed)
	case c.Total > 0 && ended == c.Total:
		c.Status = string(Failed)
	case c.InProgress > 0 || ended > 0:
		c.Status = string(InProgress)
	default:
		c.Status = string(Pending)
	}
	return c
}

// status is the action plan.status.
func status(_ context.Context, _ *tea.Request, p StatusParams) (*StatusResult, error) {
	plan, err := p.Plan.plan()
	if err != nil {
		return nil, err
	}
	if len(plan.Subtasks) > 0 {
		if err := plan.check(limits{Depth: maxLevels}); err != nil {
			return nil, err
		}
	}
	r := &StatusResult{Success: true, Counts: plan.counts(), PlanID: plan.ID, Goal: plan.Goal, Subtasks: []any{}}
	for _, s := range plan.Subtasks {
		switch {
		case s.Status == Completed && !p.IncludeCompleted:
		case p.IncludeDetails:
			r.Subtasks = append(r.Subtasks, s.value())
		default:
			r.Subtasks = append(r.Subtasks, map[string]any{"id": s.ID, "status": string(s.Status)})
		}
	}
	if p.IncludeTree {
		r.Tree = plan.tree(p.IncludeCompleted)
	}
	return r, nil
}

// signs are the symbols for the statuses.
var signs = map[Status]string{Pending: "○", InProgress: "◐", Completed: "●", Failed: "✗", Skipped: "–"}

// maxDrawn bounds the length of a text in the tree.
const maxDrawn = 60

// tree draws the plan: groups with their members, and the dependencies of subtasks.
func (p *Plan) tree(withCompleted bool) string {
	members := map[string][]*Subtask{}
	for _, s := range p.Subtasks {
		if withCompleted || s.Status != Completed {
			members[s.Parent] = append(members[s.Parent], s)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", oneLine(p.Goal))
	var draw func(list []*Subtask, indent string)
	draw = func(list []*Subtask, indent string) {
		for i, s := range list {
			branch, below := "├─ ", "│  "
			if i == len(list)-1 {
				branch, below = "└─ ", "   "
			}
			fmt.Fprintf(&b, "%s%s%s %s: %s", indent, branch, signs[s.Status], oneLine(s.ID), oneLine(s.Description))
			if len(s.Dependencies) > 0 {
				fmt.Fprintf(&b, " (after %s)", oneLine(strings.Join(s.Dependencies, ", ")))
			}
			if s.Error != "" {
				fmt.Fprintf(&b, ": %s", oneLine(s.Error))
			}
			b.WriteByte('\n')
			draw(members[s.ID], indent+below)
		}
	}
	draw(members[""], "")
	return b.String()
}

// oneLine shortens a text to a part of a line, without characters that control a
// terminal: a model may have written it.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxDrawn {
		return string(runes[:maxDrawn-1]) + "…"
	}
	return text
}
