package teacmd

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// exampleIndent is what kong prints before the lines of an example.
const exampleIndent = "    "

// examples are command lines for the help, by command.
var examples = map[string]string{
	"run": `
    tea run flow.yaml
    tea run flow.yaml -i '{"city": "Rome"}' -o result.json
    tea run flow.yaml -c runs --interactive
    tea run flow.yaml --dry-run`,
	"resume": `
    tea resume flow.yaml
    tea resume flow.yaml --answer 'approve=true'
    tea resume RUN -c runs --retry-failed`,
	"fork": `
    tea fork RUN --at measure -i '{"limit": 5}'`,
	"call": `
    tea call file.read '{"path": "notes.txt"}'`,
	"validate": `
    tea validate flow.yaml
    tea validate *.yaml --strict`,
	"inspect": `
    tea inspect flow.yaml
    tea inspect RUN --format svg > run.svg`,
	"test": `
    tea test
    tea test flow_test.yaml --record`,
	"actions": `
    tea actions
    tea actions file.write`,
	"explain": `
    tea explain TEA1401
    tea explain file.write`,
	"runs": `
    tea runs
    tea runs show RUN
    tea runs events RUN`,
	"plugin": `
    tea plugin install llm.teab
    tea plugin list`,
	"build": `
    tea build --with 'llm,memory[lite]' --target linux/arm64 -o agent`,
	"init": `
    tea init my-agent`,
}

// printHelp prints the help of a command. kong reserves 30 columns for the flags;
// if the rest is too narrow, the texts go below the flags.
func printHelp(o kong.HelpOptions, ctx *kong.Context) error {
	out := ctx.Stdout
	o.WrapUpperBound = helpWidth(out)
	var text bytes.Buffer
	ctx.Stdout = &text
	err := kong.DefaultHelpPrinter(o, ctx)
	ctx.Stdout = out
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, fitWidth(text.String(), o.WrapUpperBound))
	return err
}

// helpWidth returns the columns for a help text: $COLUMNS, the width of the
// terminal, or 80.
func helpWidth(w io.Writer) int {
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		return columns
	}
	if f, ok := w.(*os.File); ok {
		columns, _ := terminalSize(f)
		return columns
	}
	return 80
}

// fitWidth returns a help text without lines that are wider than width: where
// flags or commands do not fit, their texts begin on the line below.
func fitWidth(text string, width int) string {
	below := false
	for line := range strings.Lines(text) {
		below = below || strings.HasPrefix(line, " ") && len(line) > width+1
	}
	var b strings.Builder
	column := 0
	words := func(text, indent string) {
		for _, word := range strings.Fields(text) {
			switch {
			case column+1+len(word) > width:
				b.WriteString("\n" + indent)
				column = len(indent)
			case column > 0:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += len(word)
		}
	}
	const indent = "      " // before the texts
	for line := range strings.Lines(text) {
		rest := strings.TrimLeft(line, " ")
		before := len(line) - len(rest)
		if below && strings.HasPrefix(line, exampleIndent+"tea ") {
			b.WriteByte('\n')
			column = 0
			words(exampleIndent[2:]+rest, indent)
			continue
		}
		if below && before > len(indent) { // the text continues
			words(rest, indent)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		column = 0
		switch {
		case before == 0:
			words(line, "")
		case below:
			name, description, _ := strings.Cut(rest, "  ")
			b.WriteString(line[:before] + strings.TrimSpace(name))
			column = width
			words(description, indent)
		default:
			b.WriteString(strings.TrimRight(line, "\n"))
		}
	}
	return b.String() + "\n"
}
