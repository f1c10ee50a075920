package report

import (
	"errors"
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/host/flow"
)

// Summary prints the outcome of a run. mask masks the secrets in a text.
func (r *Report) Summary(res *flow.Result, mask func(string) string) {
	var b strings.Builder
	switch res.Status {
	case flow.Done:
		if r.o.Quiet {
			break
		}
		b.WriteString(r.style.paint(green, "done") + " in " + r.style.brief(res.Elapsed) + r.usage(res.Usage) + "\n")
	case flow.Waiting:
		b.WriteString(r.style.paint(yellow, "waiting") + r.style.dot + count(int64(len(res.Pending)), "interrupt", "interrupts") + r.usage(res.Usage) + "\n")
		for _, i := range res.Pending {
			b.WriteString(pendingText(i, mask))
		}
	case flow.Stopped:
		why := Printable(mask(res.Err.Error()))
		if by, ok := strings.CutPrefix(why, "stopped "); ok {
			why = " " + by
		} else {
			why = ": " + why
		}
		b.WriteString(r.style.paint(yellow, "stopped") + why + r.usage(res.Usage) + "\n")
	default:
		var node *flow.NodeError
		b.WriteString(r.style.paint(red, "failed") + ": ")
		if errors.As(res.Err, &node) && r.lines.failed == node.Path && !r.o.Quiet {
			fmt.Fprintf(&b, "%s: node %q failed\n", Printable(node.Pos.String()), node.Path) // its line has the reason
		} else {
			b.WriteString(Printable(mask(res.Err.Error())) + "\n")
		}
		if node != nil {
			b.WriteString(r.excerpt(sources{}, node.Pos))
		}
	}
	b.WriteString(failuresText(res, mask))
	if b.Len() > 0 {
		r.print(b.String())
	}
}

// failuresText names the failed branches and, if the run failed, the first
// failure. It does not repeat the reason why the run failed.
func failuresText(res *flow.Result, mask func(string) string) string {
	var b strings.Builder
	said := ""
	if node := (*flow.NodeError)(nil); errors.As(res.Err, &node) {
		said = node.Err.Error()
	}
	if len(res.Failures) > 0 && res.Err != nil {
		if first := res.Failures[0]; !first.Branch {
			fmt.Fprintf(&b, "first failure: %s\n", oneLine(mask(first.String())))
		}
	}
	if res.FailedBranches == 0 {
		return b.String()
	}
	fmt.Fprintf(&b, "%s failed:\n", count(int64(res.FailedBranches), "branch", "branches"))
	named := 0
	for _, f := range res.Failures {
		if f.Branch {
			text := f.String()
			if text == f.Path+": "+said {
				text = f.Path
			}
			fmt.Fprintf(&b, "  %s\n", oneLine(mask(text)))
			named++
		}
	}
	if more := res.FailedBranches - named; more > 0 {
		fmt.Fprintf(&b, "  and %d more\n", more)
	}
	return b.String()
}

func (r *Report) usage(u flow.Usage) string {
	out := r.style.dot + count(int64(u.Steps), "step", "steps")
	if u.Tokens > 0 {
		out += r.style.dot + count(u.Tokens, "token", "tokens")
	}
	if u.ToolCalls > 0 {
		out += r.style.dot + count(int64(u.ToolCalls), "tool call", "tool calls")
	}
	if u.USD > 0 {
		out += fmt.Sprintf("%s$%.4f", r.style.dot, u.USD)
	}
	return out
}

// pendingText describes one interrupt and its possible answers.
func pendingText(i flow.Interrupt, mask func(string) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %s", oneLine(i.ID))
	switch question := Printable(mask(strings.TrimSpace(i.Question))); {
	case strings.Contains(question, "\n"):
		b.WriteString(":\n      " + strings.ReplaceAll(question, "\n", "\n      "))
	case question != "":
		b.WriteString(": " + oneLine(question))
	}
	b.WriteByte('\n')
	if len(i.Choices) > 0 {
		fmt.Fprintf(&b, "    choices: %s\n", Printable(mask(compact(i.Choices))))
	}
	if i.Schema != nil {
		fmt.Fprintf(&b, "    schema: %s\n", Printable(mask(compact(i.Schema))))
	}
	if i.Default != nil {
		fmt.Fprintf(&b, "    default: %s\n", Printable(mask(compact(i.Default))))
	}
	if until := Deadline(i); until != "" {
		fmt.Fprintf(&b, "    answer by %s\n", Printable(mask(until)))
	}
	return b.String()
}

// Deadline describes until when an interrupt can be answered and what happens
// afterwards; "" if it has no deadline.
func Deadline(i flow.Interrupt) string {
	if i.Deadline.IsZero() {
		return ""
	}
	until := i.Deadline.Local().Format("2006-01-02 15:04:05 MST")
	switch i.OnTimeout {
	case "deny":
		return until + "; later a resume uses false"
	case "default":
		return until + "; later a resume uses " + compact(i.Default)
	}
	return until + "; later a resume fails the question"
}

// Checkpoint prints the path of the checkpoint of a run that has not ended, and
// the command that resumes it.
func (r *Report) Checkpoint(path, command string) {
	r.print("checkpoint: " + Printable(path) + "\nresume with: " + Printable(command) + "\n")
}

// Retry prints the command that runs failed branches again.
func (r *Report) Retry(command string) {
	if !r.o.Quiet {
		r.print("run them again with: " + Printable(command) + "\n")
	}
}
