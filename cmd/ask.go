package teacmd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/cmd/internal/report"
	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
)

// asker answers interrupts by asking the user at the terminal, one at a time.
type asker struct {
	app *app

	mu    sync.Mutex
	lines chan string
}

// ask repeats a question until an answer fits. At the end of the input the user
// has left: the run waits to be resumed.
func (k *asker) ask(ctx context.Context, i flow.Interrupt) (any, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	release := k.app.report.Hold()
	defer release()
	k.printQuestion(i)
	for {
		fmt.Fprint(k.app.stderr, "> ")
		text, err := k.line(ctx)
		if err != nil {
			fmt.Fprintln(k.app.stderr) // later output starts on a new line
			return nil, err
		}
		answer, err := runview.ParseAnswer(i, strings.TrimSpace(text))
		if err == nil {
			return answer, nil
		}
		fmt.Fprintf(k.out(), "%v\n", err)
	}
}

// out writes to the terminal, without secrets and control characters.
func (k *asker) out() io.Writer { return maskedText{k.app.mask, plainText{k.app.stderr}} }

// printQuestion prints the question and the possible answers.
func (k *asker) printQuestion(i flow.Interrupt) {
	w := k.out()
	if i.Kind != flow.InterruptAsk {
		fmt.Fprintf(w, "\n%s node %s: press Enter to continue, or enter a JSON object to merge into the state\n", i.Kind, i.Path)
		return
	}
	fmt.Fprintf(w, "\n%s\n", i.Question)
	if i.Context != nil {
		fmt.Fprintf(w, "  context: %s\n", shown(i.Context))
	}
	for _, one := range i.Attachments {
		fmt.Fprintf(w, "  attachment: %s\n", shown(one))
	}
	for n, choice := range i.Choices {
		fmt.Fprintf(w, "  %d) %s\n", n+1, shown(choice))
	}
	if i.Schema != nil {
		fmt.Fprintf(w, "  schema: %s\n", shown(i.Schema))
	}
	if i.Default != nil {
		fmt.Fprintf(w, "  default: %s\n", shown(i.Default))
	}
	if until := report.Deadline(i); until != "" {
		fmt.Fprintf(w, "  answer by %s\n", until)
	}
}

func shown(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	return encoded(v)
}

// encoded returns a value as JSON.
func encoded(v any) string {
	raw, err := value.Encode(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(escapeJSON(raw))
}

// line reads one line, or ends with ctx. A read that is abandoned continues
// until the program ends.
func (k *asker) line(ctx context.Context) (string, error) {
	if k.lines == nil {
		k.lines = make(chan string)
		go func() {
			defer close(k.lines)
			scan := bufio.NewScanner(k.app.stdin)
			scan.Buffer(nil, mostInput)
			for scan.Scan() {
				k.lines <- scan.Text()
			}
		}()
	}
	select {
	case text, ok := <-k.lines:
		if !ok {
			return "", flow.ErrNobody
		}
		return text, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
