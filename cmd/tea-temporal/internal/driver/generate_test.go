package driver

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// graphs returns the number of generated graphs: TEA_TEMPORAL_GRAPHS, or 60.
func graphs(t testing.TB) int {
	t.Helper()
	text := os.Getenv("TEA_TEMPORAL_GRAPHS")
	if text == "" {
		return 60
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// variants are the hand-overs that a graph is run with: one of them, or both where
// there is time.
func variants(seed uint64) []int {
	both := []int{0, everyThird}
	if os.Getenv("TEA_TEMPORAL_GRAPHS") != "" {
		return both
	}
	return both[seed%2:][:1]
}

// generator writes workflows.
type generator struct {
	*rand.Rand
	count int
}

// generate returns the files of a workflow.
func generate(seed uint64) map[string]string {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 15))} //nolint:gosec // not a secret
	var body strings.Builder
	body.WriteString("name: generated\nstate_schema:\n  log: {type: list, reducer: append}\n  sum: {type: int, reducer: add}\nnodes:\n")
	var edges []string
	last := ""
	next := func(name string) {
		if last != "" {
			edges = append(edges, fmt.Sprintf("  - {from: %s, to: %s}\n", last, name))
		}
		last = name
	}
	for range 3 + g.IntN(4) {
		if last == "" || g.IntN(4) > 0 {
			name := g.name()
			body.WriteString(g.node(name, "  "))
			next(name)
			continue
		}
		// A fan-out with a join.
		var branches []string
		for range 2 + g.IntN(3) {
			name := g.name()
			body.WriteString(g.leaf(name, "  "))
			branches = append(branches, name)
		}
		join := g.name()
		fmt.Fprintf(&body, "  - name: %s\n    run: |\n      local out = {}\n      for i, p in ipairs(parallel_results) do out[i] = p.branch .. tostring(p.success) .. (p.error_type or \"\") end\n      return {%s = out}\n", join, join)
		edges = append(edges, fmt.Sprintf("  - {from: %s, parallel: [%s], fan_in: %s}\n", last, strings.Join(branches, ", "), join))
		last = join
	}
	body.WriteString("edges:\n" + strings.Join(edges, "") + fmt.Sprintf("  - {from: %s, to: __end__}\n", last))
	return map[string]string{"flow.yaml": body.String(), "sub.yaml": subgraph}
}

const subgraph = `
name: sub
nodes:
  - name: inside
    uses: probe.call
    with: {value: "{{ state.of }}"}
  - name: twice
    run: "return {got = state.value}"
`

func (g *generator) name() string {
	g.count++
	return fmt.Sprintf("n%d", g.count)
}

// node returns any node.
func (g *generator) node(name, indent string) string {
	lines := func(text string) string {
		return indent + "- name: " + name + "\n" + indent + "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+indent+"  ") + "\n"
	}
	switch g.IntN(9) {
	case 0:
		return lines(fmt.Sprintf("type: dynamic_parallel\nitems: \"{{ range(%d) | list }}\"\nmax_concurrency: %d\naction: {uses: probe.call, with: {value: \"{{ item }}\"}, output: \"%s\"}", g.IntN(6), 1+g.IntN(3), name))
	case 1:
		return lines(fmt.Sprintf("type: while_loop\ncondition: \"(state.%s_i or 0) < %d\"\nmax_iterations: 9\nbody:\n  - name: step\n    run: \"return {%s_i = (state.%s_i or 0) + 1}\"\n  - name: act\n    uses: probe.call\n    with: {value: \"{{ state.%s_i }}\"}\n    output: %s", name, 1+g.IntN(3), name, name, name, name))
	case 2:
		return lines("subgraph: sub.yaml\ninput: {of: \"" + name + "\"}\noutput: {" + name + ": \"{{ result.got }}\"}")
	case 3:
		return lines("steps:\n  - uses: probe.call\n    with: {value: 1}\n    output: " + name + "\n  - run: \"return {sum = 2}\"")
	case 4:
		return lines("uses: human.ask\nwith: {question: \"go on?\", choices: [\"yes\", \"no\"]}\noutput: " + name)
	}
	return g.leaf(name, indent)
}

// leaf returns a node without nodes inside.
func (g *generator) leaf(name, indent string) string {
	head := indent + "- name: " + name + "\n" + indent + "  "
	switch g.IntN(8) {
	case 0:
		return head + "run: \"return {sum = " + strconv.Itoa(g.IntN(9)) + ", log = \\\"" + name + "\\\"}\"\n"
	case 1:
		return head + "run: \"local r = tea.action(\\\"probe.call\\\", {value = math.random(100)}) return {" + name + " = r.value, log = \\\"" + name + "\\\"}\"\n"
	case 2:
		return head + "uses: probe.call\n" + indent + "  with: {value: " + strconv.Itoa(g.IntN(9)) + ", failures: 1, type: connection_error}\n" + indent + "  retry: {max_retries: 2, backoff_base_ms: 1}\n" + indent + "  output: " + name + "\n"
	case 3:
		return head + "uses: probe.call\n" + indent + "  with: {failures: 9, type: not_found}\n" + indent + "  on_error: continue\n" + indent + "  output: " + name + "\n"
	case 4:
		return head + "uses: probe.through\n" + indent + "  with: {value: \"" + name + "\"}\n" + indent + "  output: " + name + "\n"
	case 5:
		return head + "run: \"error('broken')\"\n" + indent + "  on_error: continue\n"
	case 6:
		stop := ""
		if g.IntN(3) == 0 {
			stop = indent + "  interrupt: " + []string{"before", "after"}[g.IntN(2)] + "\n"
		}
		return head + "uses: json.parse\n" + indent + "  with: {text: \"[1, 2.5]\"}\n" + indent + "  output: " + name + "\n" + stop
	}
	fail := ""
	if g.IntN(12) == 0 {
		fail = ", failures: 9, type: query_error"
	}
	return head + "uses: probe.call\n" + indent + "  with: {value: \"{{ state.sum }}\"" + fail + "}\n" + indent + "  output: " + name + "\n"
}
