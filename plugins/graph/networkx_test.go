package graph_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/networkx.json with NetworkX")

// A graph and what NetworkX says about it. The nodes are numbers.
type reference struct {
	Nodes int          `json:"nodes"`
	Edges [][3]float64 `json:"edges"`
	Want  struct {
		PageRank            []float64  `json:"pagerank"`
		WeightedPageRank    []float64  `json:"weighted_pagerank"`
		Betweenness         []float64  `json:"betweenness"`
		DirectedBetweenness []float64  `json:"directed_betweenness"`
		Closeness           []float64  `json:"closeness"`
		DirectedCloseness   []float64  `json:"directed_closeness"`
		Components          [][]int    `json:"components"`
		Distances           []*float64 `json:"distances"`
		WeightedDistances   []*float64 `json:"weighted_distances"`
		Modularity          float64    `json:"modularity"`
	} `json:"want"`
}

// graphsOf are a random, a scale-free and a grid graph.
func graphsOf(seed uint64, n int) map[string]*reference {
	random := rand.New(rand.NewPCG(seed, 1))
	all := map[string]*reference{}
	add := func(name string, nodes int, edges [][2]int) {
		g := &reference{Nodes: nodes, Edges: [][3]float64{}}
		seen := map[[2]int]bool{}
		for _, e := range edges {
			if e[0] != e[1] && !seen[e] {
				seen[e] = true
				g.Edges = append(g.Edges, [3]float64{float64(e[0]), float64(e[1]), float64(1 + random.IntN(9))})
			}
		}
		all[name] = g
	}
	var edges [][2]int
	for range 2 * n {
		edges = append(edges, [2]int{random.IntN(n), random.IntN(n)})
	}
	add("random", n+n/10, edges) // some nodes have no edges
	edges = nil
	for i := 1; i < n; i++ {
		for range 2 {
			to := random.IntN(i)
			if len(edges) > 0 && random.IntN(2) == 0 {
				to = edges[random.IntN(len(edges))][1] // preferably one that has edges
			}
			edges = append(edges, [2]int{i, to})
		}
	}
	add("scale-free", n, edges)
	edges = nil
	side := int(math.Sqrt(float64(n)))
	for x := range side {
		for y := range side {
			if x+1 < side {
				edges = append(edges, [2]int{x*side + y, (x+1)*side + y})
			}
			if y+1 < side {
				edges = append(edges, [2]int{x*side + y, x*side + y + 1})
			}
		}
	}
	add("grid", side*side, edges)
	return all
}

// networkX is a Python with NetworkX.
func networkX(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(cache, "tea", "networkx-3.6.1", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("NetworkX is missing; run scripts/networkx install")
		}
		t.Skip("NetworkX is missing; run scripts/networkx install")
	}
	return python
}

// askNetworkX completes the graphs with its results.
func askNetworkX(t *testing.T, graphs map[string]*reference) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), networkX(t), filepath.Join("testdata", "reference.py"))
	cmd.Stdin, cmd.Stderr = bytes.NewReader(encode(t, graphs)), os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return append(answer, '\n')
}

func TestAlgorithmsAreThoseOfNetworkX(t *testing.T) {
	const golden = "testdata/networkx.json"
	if *update {
		if err := os.WriteFile(golden, askNetworkX(t, graphsOf(1, 40)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	on(t, func(t *testing.T, g *opened) { compare(t, g, text) })
}

// Larger graphs, which are not stored.
func TestAlgorithmsOnLargerGraphsAreThoseOfNetworkX(t *testing.T) {
	text := askNetworkX(t, graphsOf(7, 200))
	on(t, func(t *testing.T, g *opened) { compare(t, g, text) })
}

// The packages of this repository with their imports, and the pages of its
// documentation with their links.
func TestAlgorithmsOnTheImportsAreThoseOfNetworkX(t *testing.T) {
	text := askNetworkX(t, map[string]*reference{"imports": importGraph(t)})
	on(t, func(t *testing.T, g *opened) { compare(t, g, text) })
}

// importGraph reads the repository. A weight is the number of files that import a
// package, or of links to a page.
func importGraph(t *testing.T) *reference {
	t.Helper()
	const module = "github.com/the-edge-agent/tea"
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#:]+\.md)`)
	numbers, weights := map[string]int{}, map[[2]int]float64{}
	number := func(name string) int {
		if _, ok := numbers[name]; !ok {
			numbers[name] = len(numbers)
		}
		return numbers[name]
	}
	add := func(from, to string) {
		if from != to {
			weights[[2]int{number(from), number(to)}]++
		}
	}
	err = filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			if err == nil && file != root && (strings.HasPrefix(e.Name(), ".") || slices.Contains([]string{"testdata", "bin", "node_modules", "target"}, e.Name())) {
				return fs.SkipDir
			}
			return err
		}
		switch {
		case strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go"):
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, i := range parsed.Imports {
				if to, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module); ok {
					add(filepath.Dir(file), filepath.Join(root, to))
				}
			}
		case strings.HasSuffix(file, ".md"):
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			for _, match := range link.FindAllSubmatch(text, -1) {
				add(file, filepath.Join(filepath.Dir(file), string(match[1])))
			}
		}
		return nil
	})
	if err != nil || len(numbers) < 200 || len(weights) < 500 {
		t.Fatalf("the repository has %d packages and pages, %d imports and links: %v", len(numbers), len(weights), err)
	}
	g := &reference{Nodes: len(numbers)}
	for edge, weight := range weights {
		g.Edges = append(g.Edges, [3]float64{float64(edge[0]), float64(edge[1]), weight})
	}
	slices.SortFunc(g.Edges, func(a, b [3]float64) int { return slices.Compare(a[:], b[:]) })
	return g
}

func compare(t *testing.T, g *opened, text []byte) {
	t.Helper()
	var graphs map[string]*reference
	if err := json.Unmarshal(text, &graphs); err != nil {
		t.Fatal(err)
	}
	for name, r := range graphs {
		c := &comparison{opened: g, t: t, name: name, r: r}
		c.store()
		c.scores("pagerank", object{"algorithm": "pagerank"}, r.Want.PageRank)
		c.scores("weighted pagerank", object{"algorithm": "pagerank", "weighted": true}, r.Want.WeightedPageRank)
		c.scores("betweenness", object{"algorithm": "centrality", "measure": "betweenness"}, r.Want.Betweenness)
		c.scores("directed betweenness", object{"algorithm": "centrality", "measure": "betweenness", "direction": "out"}, r.Want.DirectedBetweenness)
		c.scores("closeness", object{"algorithm": "centrality", "measure": "closeness"}, r.Want.Closeness)
		c.scores("directed closeness", object{"algorithm": "centrality", "measure": "closeness", "direction": "out"}, r.Want.DirectedCloseness)
		c.distances("distances", object{}, r.Want.Distances)
		c.distances("weighted distances", object{"weighted": true}, r.Want.WeightedDistances)
		c.components()
		if got := c.run(object{"algorithm": "community", "weighted": true})["modularity"].(float64); got < r.Want.Modularity-0.03 {
			t.Errorf("%s: modularity %v, NetworkX %v", name, got, r.Want.Modularity)
		}
		c.traversals()
	}
}

// comparison compares one graph.
type comparison struct {
	*opened
	t    *testing.T
	name string
	r    *reference
}

func id(n int) string { return fmt.Sprintf("n%04d", n) }

func (c *comparison) store() {
	var entities, relations []any
	for i := range c.r.Nodes {
		entities = append(entities, object{"entity_id": id(i)})
	}
	for _, e := range c.r.Edges {
		relations = append(relations, object{"from_entity": id(int(e[0])), "to_entity": id(int(e[1])), "relation_type": "r", "weight": e[2]})
	}
	c.call("store_entities", object{"namespace": c.name, "entities": entities})
	c.call("store_relations", object{"namespace": c.name, "relations": relations})
}

func (c *comparison) run(p object) object {
	p["namespace"], p["limit"] = c.name, 10_000
	return c.call("algorithm", p)
}

// numbers collects a field by node.
func (c *comparison) numbers(p object, name string) []*float64 {
	all := make([]*float64, c.r.Nodes)
	for _, item := range c.run(p)["results"].([]any) {
		var n int
		if _, err := fmt.Sscanf(item.(object)["id"].(string), "n%d", &n); err != nil {
			c.t.Fatal(err)
		}
		f := item.(object)[name].(float64)
		all[n] = &f
	}
	return all
}

func (c *comparison) scores(what string, p object, want []float64) {
	c.t.Helper()
	for i, got := range c.numbers(p, "score") {
		if want != nil && math.Abs(*got-want[i]) > 1e-8 {
			c.t.Errorf("%s: %s of %d is %v, NetworkX %v", c.name, what, i, *got, want[i])
		}
	}
}

func (c *comparison) distances(what string, p object, want []*float64) {
	c.t.Helper()
	p["algorithm"], p["entity_id"] = "shortest_paths", id(0)
	same(c.t, c.name+": "+what, c.numbers(p, "distance"), want)
}

func (c *comparison) components() {
	groups := map[int64][]int{}
	for _, item := range c.run(object{"algorithm": "connected_components"})["results"].([]any) {
		var n int
		if _, err := fmt.Sscanf(item.(object)["id"].(string), "n%d", &n); err != nil {
			c.t.Fatal(err)
		}
		group := item.(object)["group"].(int64)
		groups[group] = append(groups[group], n)
	}
	got := make([][]int, len(groups))
	for group, nodes := range groups {
		slices.Sort(nodes)
		got[group] = nodes
	}
	same(c.t, c.name+": components", got, c.r.Want.Components)
}

// traversals compares neighbors and paths with the distances.
func (c *comparison) traversals() {
	for _, depth := range []int{1, 2, 3, 6} {
		var want []string
		for hops := 1; hops <= depth; hops++ {
			for i, d := range c.r.Want.Distances {
				if d != nil && int(*d) == hops {
					want = append(want, id(i))
				}
			}
		}
		r := c.call("neighbors", object{"namespace": c.name, "entity_id": id(0), "depth": depth, "direction": "out", "limit": 10_000})
		got := []string{}
		for _, item := range r["neighbors"].([]any) {
			got = append(got, item.(object)["id"].(string))
		}
		same(c.t, fmt.Sprintf("%s: neighbors within %d hops", c.name, depth), got, append([]string{}, want...))
	}
	for i := range c.r.Nodes {
		p := object{"namespace": c.name, "from_entity": id(0), "to_entity": id(i), "direction": "out", "max_depth": 1000}
		r := c.call("shortest_path", p)
		if d := c.r.Want.Distances[i]; (d != nil) != r["found"].(bool) || d != nil && int64(*d) != r["length"] {
			c.t.Errorf("%s: a path to %d of length %v, found %v", c.name, i, r["length"], r["found"])
		}
		if i%7 == 0 {
			p["weighted"] = true
			r = c.call("shortest_path", p)
			if d := c.r.Want.WeightedDistances[i]; d != nil && *d != r["weight"] {
				c.t.Errorf("%s: a path to %d of weight %v, NetworkX %v", c.name, i, r["weight"], *d)
			}
		}
	}
}
