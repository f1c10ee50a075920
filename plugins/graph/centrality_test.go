package graph_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

// TestCentralityIsThatOfNetworkX compares graphs with relations from an entity to itself, and
// with several relations between two entities.
func TestCentralityIsThatOfNetworkX(t *testing.T) {
	type edge struct {
		From, To int
		Weight   float64
	}
	graphs := map[string]any{"one": object{"nodes": 1, "edges": []edge{}}, "loop": object{"nodes": 2, "edges": []edge{{0, 0, 1}, {0, 1, 2}}}}
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 3))
		nodes, edges := 12+4*int(seed), []edge{}
		for range 4 * nodes {
			edges = append(edges, edge{random.IntN(nodes), random.IntN(nodes), []float64{0.5, 1, 2, 3.5}[random.IntN(4)]})
		}
		graphs[fmt.Sprint("random", seed)] = object{"nodes": nodes + 2, "edges": edges}
	}
	cmd := exec.CommandContext(t.Context(), networkX(t), filepath.Join("testdata", "centrality.py"))
	cmd.Stdin, cmd.Stderr = bytes.NewReader(encode(t, graphs)), os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var wants map[string]map[string][]float64
	if err := json.Unmarshal(answer, &wants); err != nil {
		t.Fatal(err)
	}
	on(t, func(t *testing.T, g *opened) {
		for name, contents := range graphs {
			nodes := contents.(object)["nodes"].(int)
			var entities, relations []any
			for i := range nodes {
				entities = append(entities, object{"entity_id": id(i)})
			}
			for i, e := range contents.(object)["edges"].([]edge) {
				relations = append(relations, object{"from_entity": id(e.From), "to_entity": id(e.To), "relation_type": fmt.Sprint("r", i), "weight": e.Weight})
			}
			g.call("store_entities", object{"namespace": name, "entities": entities})
			g.call("store_relations", object{"namespace": name, "relations": relations})
			for what, want := range wants[name] {
				p := object{"namespace": name, "algorithm": "centrality", "limit": 1000}
				var measure, direction string
				if _, err := fmt.Sscan(what, &measure, &direction); err != nil {
					t.Fatal(err)
				}
				p["measure"], p["direction"], p["weighted"] = measure, direction, strings.HasSuffix(what, " weighted")
				for _, item := range g.call("algorithm", p)["results"].([]any) {
					var i int
					if _, err := fmt.Sscanf(item.(object)["id"].(string), "n%d", &i); err != nil {
						t.Fatal(err)
					}
					if got := item.(object)["score"].(float64); math.Abs(got-want[i]) > 1e-9 {
						t.Errorf("%s: %s of %d is %v, NetworkX %v", name, what, i, got, want[i])
					}
				}
			}
		}
		g.call("store_relation", object{"from_entity": "a", "to_entity": "b", "relation_type": "r", "weight": 0, "create_missing": true})
		g.fails("algorithm", object{"algorithm": "centrality", "weighted": true}, tea.ValidationError, "the measure degree counts relations and does not use weights")
		g.fails("algorithm", object{"algorithm": "centrality", "measure": "betweenness", "weighted": true}, tea.ValidationError, "a relation has the weight 0")
		g.call("algorithm", object{"algorithm": "centrality", "measure": "closeness", "weighted": true})
	})
}

func TestAnAlgorithmRefusesWhatItDoesNotUse(t *testing.T) {
	t.Parallel()
	g := open(t, object{"backend": "memory", "path": t.TempDir()})
	g.link("a-knows-b")
	g.fails("algorithm", object{"algorithm": "connected_components", "weighted": true}, tea.ValidationError, "connected_components does not use weights")
	g.fails("algorithm", object{"algorithm": "shortest_paths"}, tea.ValidationError, "shortest_paths need entity_id")
	g.fails("algorithm", object{"algorithm": "pagerank", "entity_id": "a"}, tea.ValidationError, "entity_id is where shortest_paths start")
}
