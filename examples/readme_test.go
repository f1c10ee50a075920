package examples

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// command is a block of shell commands on a page and the output shown behind
// it, or a file that the page has its reader write.
type command struct {
	line int // of the block's fence, from 1
	// file is where script is to be written; "" runs it.
	file   string
	script string
	exit   int
	// output is what the README shows; shown is false where it shows nothing.
	output string
	shown  bool
	// first and last are the lines of the output within the fences.
	first, last int
}

var (
	fence = regexp.MustCompile("^```(.*)$")
	exit  = regexp.MustCompile(`\bexit=(\d+)\b`)
	named = regexp.MustCompile(`\bfile=(\S+)`)
)

// commands reads the ```sh blocks of a page. `sh norun` is for people only,
// `sh exit=130` ends with that code. A ```json or ```text block right behind
// shows the output. A block of any language with file=NAME is a file.
func commands(file string) ([]command, []string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	lines := strings.Split(string(data), "\n")
	var all []command
	for i := 0; i < len(lines); i++ {
		info := fence.FindStringSubmatch(lines[i])
		if info == nil {
			continue
		}
		end := i + 1 + slices.Index(lines[i+1:], "```")
		if end <= i {
			return nil, nil, fmt.Errorf("%s:%d: the block has no end", file, i+1)
		}
		words := strings.Fields(info[1])
		text := strings.Join(lines[i+1:end], "\n")
		if name := named.FindStringSubmatch(info[1]); name != nil {
			all = append(all, command{line: i + 1, file: name[1], script: text + "\n"})
		}
		if len(words) > 0 && words[0] == "sh" && !slices.Contains(words, "norun") {
			c := command{line: i + 1, script: text}
			if code := exit.FindStringSubmatch(info[1]); code != nil {
				fmt.Sscan(code[1], &c.exit)
			}
			c.readOutput(lines, end+1)
			all = append(all, c)
		}
		i = end
	}
	return all, lines, nil
}

// readOutput takes the block that follows, after empty lines.
func (c *command) readOutput(lines []string, from int) {
	for from < len(lines) && lines[from] == "" {
		from++
	}
	if from >= len(lines) || lines[from] != "```json" && lines[from] != "```text" {
		return
	}
	c.shown, c.first = true, from+1
	c.last = c.first + slices.Index(lines[c.first:], "```")
	c.output = strings.Join(lines[c.first:c.last], "\n")
}

var changing = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\b\d{8}-\d{6}-[0-9a-z]{6}\b`), "RUN"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\.\d+`), "TIME"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(µs|ms|s)\b`), "SPAN"},
	{regexp.MustCompile(`"(duration_ms|timing_ms|latency_ms|execution_time_ms)":\s*[0-9.]+`), `"$1":N`},
	{regexp.MustCompile(`(no such file or directory: )/\S*/`), "$1/DIR/"},
	{regexp.MustCompile(`[ \t]+`), " "},
}

// normalize hides what differs from run to run.
func normalize(text string) string {
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.by)
	}
	return strings.TrimSpace(text)
}
