package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

func sorted(all []string) string {
	all = slices.Clone(all)
	slices.Sort(all)
	return strings.Join(all, " ")
}

func testEntities(t *testing.T, s *suite) {
	a, b := entity("a", "red"), entity("b", "blue")
	a.Properties, a.Text, a.Source, a.Facts, a.Embedding = []byte(`{"n":9007199254740993}`), "Red thing", "book", `{"f":1}`, []float32{0.5, -1}
	s.apply(store.Batch{Entities: []store.Entity{a, b}})
	same(t, "all fields", s.entities(store.Fields{Embeddings: true, Facts: true}, "b", "none", "a"), []store.Entity{stored(b), stored(a)})
	lean := stored(a)
	lean.Facts, lean.Embedding = "", nil
	same(t, "without costly fields", s.entities(store.Fields{}, "a"), []store.Entity{lean})

	a2 := entity("a", "green")
	a2.Type = "other"
	s.apply(store.Batch{Entities: []store.Entity{a2}})
	same(t, "replaced", s.entities(store.Fields{Embeddings: true, Facts: true}, "a"), []store.Entity{stored(a2)})

	s.apply(store.Batch{DeleteEntities: []string{"a", "none"}})
	same(t, "after deletion", s.entities(store.Fields{}, "a", "b"), []store.Entity{stored(b)})
	s.apply(store.Batch{Entities: []store.Entity{a}})
	same(t, "stored again", len(s.entities(store.Fields{}, "a")), 1)
	s.apply(store.Batch{DeleteEntities: []string{"a"}, Entities: []store.Entity{a2}})
	same(t, "deleted and stored in one batch", s.entities(store.Fields{}, "a"), []store.Entity{stored(a2)})
}

func testRelations(t *testing.T, s *suite) {
	r := relation("a", "knows", "b")
	r.ValidFrom, r.ValidTo, r.Properties, r.Weight, r.Source = -5, 10, []byte(`{"x":[1,2.5,null]}`), 2.5, "book"
	s.apply(store.Batch{Relations: []store.Relation{r}})
	out := store.Adjacency{IDs: []string{"a"}, Ever: true}
	same(t, "all fields", s.adjacent(out), []store.Relation{r})
	r.Weight, r.ValidTo = 3, store.Forever
	s.apply(store.Batch{Relations: []store.Relation{r}})
	same(t, "replaced", s.adjacent(out), []store.Relation{r})
	later := r
	later.ValidFrom = 20
	s.apply(store.Batch{Relations: []store.Relation{later}})
	same(t, "with another beginning", len(s.adjacent(out)), 2)
	s.apply(store.Batch{DeleteRelations: []store.RelationKey{r.RelationKey, {From: "x", Type: "y", To: "z"}}})
	same(t, "after deletion", s.adjacent(out), []store.Relation{later})
	same(t, "ends are not entities", len(s.entities(store.Fields{}, "a", "b")), 0)
}

func testAdjacent(t *testing.T, s *suite) {
	old := relation("a", "likes", "c")
	old.ValidFrom, old.ValidTo = 10, 20
	s.apply(store.Batch{Relations: []store.Relation{
		relation("a", "knows", "b"), relation("b", "knows", "a"), relation("a", "likes", "b"), relation("c", "likes", "a"),
		relation("b", "knows", "c"), relation("d", "knows", "d"), old,
	}})
	for name, c := range map[string]struct {
		a    store.Adjacency
		want string
	}{
		"out":            {store.Adjacency{IDs: []string{"a"}}, "a-knows-b a-likes-b"},
		"in":             {store.Adjacency{IDs: []string{"a"}, Direction: store.In}, "b-knows-a c-likes-a"},
		"both":           {store.Adjacency{IDs: []string{"a"}, Direction: store.Both}, "a-knows-b a-likes-b b-knows-a c-likes-a"},
		"both of two":    {store.Adjacency{IDs: []string{"a", "b"}, Direction: store.Both}, "a-knows-b a-likes-b b-knows-a b-knows-c c-likes-a"},
		"one type":       {store.Adjacency{IDs: []string{"a"}, Types: []string{"likes", "none"}, Direction: store.Both}, "a-likes-b c-likes-a"},
		"unknown type":   {store.Adjacency{IDs: []string{"a"}, Types: []string{"none"}, Direction: store.Both}, ""},
		"valid then":     {store.Adjacency{IDs: []string{"a"}, At: 10, Types: []string{"likes"}}, "a-likes-b a-likes-c"},
		"not valid then": {store.Adjacency{IDs: []string{"a"}, At: 20, Types: []string{"likes"}}, "a-likes-b"},
		"ever":           {store.Adjacency{IDs: []string{"a"}, Ever: true, Types: []string{"likes"}}, "a-likes-b a-likes-c"},
		"itself":         {store.Adjacency{IDs: []string{"d"}, Direction: store.Both}, "d-knows-d"},
		"lean":           {store.Adjacency{IDs: []string{"c"}, Lean: true}, "c-likes-a"},
		"nothing":        {store.Adjacency{IDs: []string{"x"}, Direction: store.Both}, ""},
	} {
		same(t, name, keys(s.adjacent(c.a)), c.want)
	}
	for limit, want := range map[int]int{1: 2, 3: 4, 4: 4, 10: 4} {
		same(t, fmt.Sprint("at most ", limit), len(s.adjacent(store.Adjacency{IDs: []string{"a"}, Direction: store.Both, Max: limit})), want)
	}
}

func testBetween(t *testing.T, s *suite) {
	old := relation("a", "knows", "b")
	old.ValidFrom, old.ValidTo = 1, 2
	s.apply(store.Batch{Relations: []store.Relation{relation("a", "knows", "b"), old, relation("b", "knows", "a"), relation("a", "likes", "b")}})
	found, err := s.Between(t.Context(), ns, []store.RelationKey{{From: "a", Type: "knows", To: "b"}, {From: "a", Type: "knows", To: "b", ValidFrom: 7}, {From: "x", Type: "y", To: "z"}})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(found, func(a, b store.Relation) int { return a.Compare(b.RelationKey) })
	same(t, "relations", found, []store.Relation{relation("a", "knows", "b"), old})
}

func testScans(t *testing.T, s *suite) {
	var b store.Batch
	for _, id := range []string{"b", "a", "é", "B", "aa", "10", "9", "水"} {
		e := entity(id)
		if id == "aa" {
			e.Type = "other"
		}
		b.Entities = append(b.Entities, e)
	}
	late := relation("a", "k", "b")
	late.ValidFrom = 5
	b.Relations = []store.Relation{relation("b", "k", "a"), late, relation("a", "z", "a"), relation("a", "k", "b"), relation("a", "k", "9"), relation("10", "k", "a")}
	s.apply(b)
	scan := func(e store.EntityScan) string {
		var ids []string
		if err := s.EachEntity(t.Context(), ns, e, func(e *store.Entity) error { ids = append(ids, e.ID); return nil }); err != nil {
			t.Fatal(err)
		}
		return strings.Join(ids, " ")
	}
	same(t, "entities", scan(store.EntityScan{}), "10 9 B a aa b é 水")
	same(t, "entities after aa", scan(store.EntityScan{After: "aa"}), "b é 水")
	same(t, "keys of entities", scan(store.EntityScan{Keys: true, After: "é"}), "水")
	same(t, "entities of a type", scan(store.EntityScan{Types: []string{"other", "none"}}), "aa")
	relations := func(r store.RelationScan) string {
		var all []string
		if err := s.EachRelation(t.Context(), ns, r, func(r *store.Relation) error {
			all = append(all, r.From+"-"+r.Type+"-"+r.To)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return strings.Join(all, " ")
	}
	same(t, "relations", relations(store.RelationScan{Ever: true}), "10-k-a a-k-9 a-k-b a-k-b a-z-a b-k-a")
	same(t, "relations that are valid", relations(store.RelationScan{At: 4, Lean: true}), "10-k-a a-k-9 a-k-b a-z-a b-k-a")
	same(t, "relations of a type", relations(store.RelationScan{Ever: true, Types: []string{"z"}}), "a-z-a")
	stop := errors.New("stop")
	n := 0
	err := s.EachEntity(t.Context(), ns, store.EntityScan{}, func(*store.Entity) error {
		if n++; n == 2 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || n != 2 {
		t.Errorf("a scan that was stopped returned %v after %d entities", err, n)
	}
}

func testNamespaces(t *testing.T, s *suite) {
	a := entity("a", "red")
	a.Embedding = []float32{1, 0}
	s.apply(store.Batch{Entities: []store.Entity{a}, Relations: []store.Relation{relation("a", "knows", "b")}})
	other := entity("a", "red")
	other.Text, other.Embedding = "other", []float32{0, 1}
	if err := s.Apply(t.Context(), "ns2", store.Batch{Entities: []store.Entity{other}}); err != nil {
		t.Fatal(err)
	}
	same(t, "entity", s.entities(store.Fields{Embeddings: true}, "a"), []store.Entity{stored(a)})
	same(t, "words", s.search(nil, "red"), "a")
	same(t, "vectors", s.nearest(5, nil, 1, 0), "a")
	found, err := s.Adjacent(t.Context(), "ns2", store.Adjacency{IDs: []string{"a"}, Direction: store.Both, Max: 10})
	if err != nil || len(found) > 0 {
		t.Errorf("the other namespace has the relations %v, %v", found, err)
	}
	same(t, "namespaces", s.stats("none").Namespaces, []string{"default", "ns2"})
	if err := s.Apply(t.Context(), "ns2", store.Batch{DeleteEntities: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	same(t, "after deletion in the other namespace", s.search(nil, "red"), "a")
}

func testSearch(t *testing.T, s *suite) {
	c := entity("c", "acao", "東京", "red")
	c.Type = "other"
	s.apply(store.Batch{Entities: []store.Entity{entity("a", "red", "blue"), entity("b", "blue", "12", "or", "not"), c, entity("d")}})
	for words, want := range map[string]string{"red": "a c", "blue": "a b", "12": "b", "acao": "c", "東京": "c", "or": "b", "not": "b", "re": "", "none": ""} {
		same(t, words, s.search(nil, words), want)
	}
	same(t, "one of the words", s.search(nil, "red", "12", "none"), "a b c")
	same(t, "of a type", s.search([]string{"other"}, "red"), "c")
	same(t, "of an unknown type", s.search([]string{"none"}, "red"), "")
	same(t, "no words", s.search(nil), "")
	many := make([]string, 301)
	for i := range many {
		many[i] = fmt.Sprintf("a%d", i)
	}
	many[300] = "red"
	same(t, "the last of many words", s.search(nil, many...), "a c")
	ids, err := s.Search(t.Context(), ns, store.TextQuery{Words: []string{"red", "blue"}, Limit: 1, Enough: 1})
	if err != nil || len(ids) != 1 {
		t.Errorf("a search with limit 1 found %v, %v", ids, err)
	}
}

func testNearest(t *testing.T, s *suite) {
	var b store.Batch
	for id, v := range map[string][]float32{"a": {1, 0, 0}, "b": {2, 0.1, 0}, "b2": {2, 0.1, 0}, "c": {0, 1, 0}, "d": {-1, 0, 0}, "zero": {0, 0, 0}} {
		e := entity(id)
		e.Embedding = v
		if id == "c" {
			e.Type = "other"
		}
		b.Entities = append(b.Entities, e)
	}
	s.apply(b)
	same(t, "the nearest", s.nearest(3, nil, 10, 0, 0), "a b b2")
	same(t, "the nearest two", s.nearest(2, nil, 10, 0, 0), "a b")
	same(t, "of a type", s.nearest(3, []string{"other"}, 1, 0, 0), "c")
	same(t, "of another dimension", s.nearest(3, nil, 1, 0), "")
	moved := entity("d")
	moved.Embedding = []float32{1, 0, 0}
	s.apply(store.Batch{Entities: []store.Entity{moved, entity("b")}, DeleteEntities: []string{"a"}})
	same(t, "after changes", s.nearest(2, nil, 10, 0, 0), "d b2")
}

func testDimension(t *testing.T, s *suite) {
	a, b := entity("a"), entity("b")
	a.Embedding, b.Embedding = []float32{1, 2}, []float32{1, 2, 3}
	if err := s.Apply(t.Context(), ns, store.Batch{Entities: []store.Entity{a, b}}); err == nil {
		t.Error("embeddings of two dimensions were stored")
	}
	same(t, "after the failure", s.stats(ns).Entities, 0)
	s.apply(store.Batch{Entities: []store.Entity{b}})
	err := s.Apply(t.Context(), "ns2", store.Batch{Entities: []store.Entity{a}})
	if err == nil || !strings.Contains(err.Error(), "has 2 dimensions, and the embeddings of this graph have 3") {
		t.Errorf("an embedding of another dimension: %v", err)
	}
	same(t, "dimension", s.stats(ns).Dimension, 3)
}

func testAtomic(t *testing.T, s *suite) {
	a, b := entity("a", "red"), entity("b", "red")
	a.Embedding = []float32{1}
	s.apply(store.Batch{Entities: []store.Entity{a}})
	b.Embedding = []float32{1, 2}
	changed := entity("a", "blue")
	changed.Embedding = []float32{2}
	if err := s.Apply(t.Context(), ns, store.Batch{Entities: []store.Entity{changed, b}, Relations: []store.Relation{relation("a", "r", "b")}, DeleteEntities: []string{"a"}}); err == nil {
		t.Fatal("a batch with a wrong embedding was stored")
	}
	same(t, "entity", s.entities(store.Fields{Embeddings: true}, "a", "b"), []store.Entity{stored(a)})
	same(t, "words", s.search(nil, "red", "blue"), "a")
	same(t, "relations", len(s.adjacent(store.Adjacency{IDs: []string{"a"}, Ever: true})), 0)
}

func testValues(t *testing.T, s *suite) {
	long := strings.Repeat("é", 20_000)
	e := entity(`quote ' " \ $x -- ;`)
	e.Type, e.Text, e.Source = `type ' " \`, long+"\n\t\u0001 👍 🇧🇷 e\u0301", "a\u2028b"
	e.Properties = []byte(`{"big":123456789012345678901234567890,"f":2.0,"null":null,"list":[],"obj":{},"max":9223372036854775807,"small":-0.0,"e":1e308,"text":"` + "\\u0000" + `"}`)
	e.CreatedAt, e.UpdatedAt = -1, 1<<62
	s.apply(store.Batch{Entities: []store.Entity{e}})
	same(t, "entity", s.entities(store.Fields{}, e.ID), []store.Entity{stored(e)})
	r := relation(e.ID, `r ' " \`, "ünï 水")
	r.ValidFrom, r.ValidTo, r.Weight = store.Always+1, store.Forever-1, -1e-300
	s.apply(store.Batch{Relations: []store.Relation{r}})
	same(t, "relation", s.adjacent(store.Adjacency{IDs: []string{e.ID}, Direction: store.Both}), []store.Relation{r})
	same(t, "relation at its other end", s.adjacent(store.Adjacency{IDs: []string{"ünï 水"}, Direction: store.In, Types: []string{r.Type}}), []store.Relation{r})
}

func testStats(t *testing.T, s *suite) {
	a, b := entity("a"), entity("b")
	a.Embedding, b.Type = []float32{1, 2}, "other"
	s.apply(store.Batch{Entities: []store.Entity{a, b, entity("c")}, Relations: []store.Relation{relation("a", "k", "b"), relation("a", "k", "c"), relation("b", "z", "c")}})
	s.apply(store.Batch{DeleteEntities: []string{"c"}, DeleteRelations: []store.RelationKey{relation("b", "z", "c").RelationKey}})
	same(t, "stats", s.stats(ns), store.Stats{
		Entities: 2, Relations: 2, Embeddings: 1, Dimension: 2, Namespaces: []string{ns},
		EntityTypes: map[string]int64{"thing": 1, "other": 1}, RelationTypes: map[string]int64{"k": 2},
	})
}

func testIndexes(t *testing.T, s *suite) {
	a := entity("a", "red")
	a.Embedding = []float32{1, 2}
	s.apply(store.Batch{Entities: []store.Entity{a}})
	same(t, "words", s.search(nil, "red"), "a")
	same(t, "vectors", s.nearest(1, nil, 1, 2), "a")
	s.apply(store.Batch{DeleteEntities: []string{"a"}})
	same(t, "words after deletion", s.search(nil, "red"), "")
	same(t, "vectors after deletion", s.nearest(1, nil, 1, 2), "")
	s.apply(store.Batch{Entities: []store.Entity{entity("a", "blue")}})
	same(t, "words of the new one", s.search(nil, "red"), "")
	same(t, "vectors of the new one", s.nearest(1, nil, 1, 2), "")
}
