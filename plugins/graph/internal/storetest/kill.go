package storetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// writerFolder is the variable with the folder for a process that Kills starts.
const writerFolder = "TEA_GRAPH_KILL_FOLDER"

const (
	keys4kills   = 8
	defaultKills = 10
)

// Main runs the tests of a package that calls Kills.
func Main(m *testing.M, open Opener, run func(*testing.M)) {
	if dir := os.Getenv(writerFolder); dir != "" {
		fmt.Fprintln(os.Stderr, writeUntilKilled(dir, open))
		os.Exit(1)
	}
	run(m)
}

// version is the content of a key: an entity with words and an embedding, and a
// relation to the next key. Generation 0 is empty.
func version(key, generation int) (id string, b store.Batch) {
	id, next := "key"+strconv.Itoa(key), "key"+strconv.Itoa((key+1)%keys4kills)
	r := relation(id, "next", next)
	if generation == 0 {
		return id, store.Batch{DeleteEntities: []string{id}, DeleteRelations: []store.RelationKey{r.RelationKey}}
	}
	e := entity(id, id, "generation"+strconv.Itoa(generation))
	e.Embedding = embedding(generation)
	e.Properties = fmt.Appendf(nil, `{"generation":%d}`, generation)
	r.Weight = float64(generation)
	return id, store.Batch{Entities: []store.Entity{e}, Relations: []store.Relation{r}}
}

// embedding returns a vector whose direction differs between generations.
func embedding(generation int) []float32 {
	sin, cos := math.Sincos(float64(generation))
	return []float32{float32(cos), float32(sin)}
}

// writeUntilKilled writes to random keys. It prints each change before and after the
// write.
func writeUntilKilled(dir string, open Opener) error {
	ctx := context.Background()
	db, err := open(ctx, store.Options{Dir: dir, Create: true})
	if err != nil {
		return err
	}
	go func() {
		for {
			if _, err := db.Adjacent(ctx, ns, store.Adjacency{IDs: []string{"key0", "key1"}, Direction: store.Both, Max: 100}); err != nil {
				panic(err)
			}
		}
	}()
	var first int
	if _, err := fmt.Fscan(os.Stdin, &first); err != nil {
		return err
	}
	for generation := first; ; generation++ {
		key, g := rand.IntN(keys4kills), generation
		if rand.IntN(6) == 0 {
			g = 0
		}
		_, b := version(key, g)
		fmt.Fprintf(os.Stdout, "sent %d %d\n", key, g)
		if err := db.Apply(ctx, ns, b); err != nil {
			return err
		}
		fmt.Fprintf(os.Stdout, "done %d %d\n", key, g)
	}
}

// Kills kills a writing process with SIGKILL, TEA_KILLS times. Each time it checks that
// the database opens, that no acknowledged change is lost, and that the others are
// atomic, also in the databases of [Unused].
func Kills(t *testing.T, open Opener) {
	kills := defaultKills
	if text := os.Getenv("TEA_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatalf("TEA_KILLS: %v", err)
		}
	}
	dir := t.TempDir()
	var acknowledged [keys4kills]int
	generation, changes := 1, 0
	for kill := range kills {
		sent, n := killed(t, dir, &generation, &acknowledged)
		changes += n
		Unused(t, dir, open, func(t *testing.T, dir string) {
			t.Helper()
			checkAfterKill(t, dir, open, &acknowledged, sent)
		})
		if t.Failed() {
			t.Fatalf("after kill %d", kill+1)
		}
	}
	t.Logf("%d kills during %d changes", kills, changes)
}

// pending is an unacknowledged change.
type pending struct{ key, generation int }

// killed runs one process until it is killed.
func killed(t *testing.T, dir string, generation *int, acknowledged *[keys4kills]int) (sent *pending, changes int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), writerFolder+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, *generation)
	last := 2 * rand.IntN(40)
	if rand.IntN(2) == 0 {
		last++ // between sent and done
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		var word string
		var p pending
		if _, err := fmt.Sscan(lines.Text(), &word, &p.key, &p.generation); err != nil {
			break // the last line is incomplete
		}
		*generation = max(*generation, p.generation) + 1
		if word == "sent" {
			sent = &p
		} else {
			acknowledged[p.key], sent = p.generation, nil
			changes++
		}
		if n == last {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("the process ended by itself: %v", err)
	}
	_, _ = io.Copy(io.Discard, out)
	return sent, changes
}

func checkAfterKill(t *testing.T, dir string, open Opener, acknowledged *[keys4kills]int, sent *pending) {
	t.Helper()
	db, err := open(t.Context(), store.Options{Dir: dir, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	s := &suite{Store: db, t: t, open: open, dir: dir}
	if sent != nil {
		id, b := version(sent.key, sent.generation)
		found := s.entities(store.Fields{}, id)
		if len(found) == len(b.Entities) && (len(found) == 0 || string(found[0].Properties) == string(b.Entities[0].Properties)) {
			acknowledged[sent.key] = sent.generation
		}
	}
	for key, generation := range acknowledged {
		id, b := version(key, generation)
		for i := range b.Entities {
			b.Entities[i] = stored(b.Entities[i])
		}
		same(t, id, s.entities(store.Fields{Embeddings: true}, id), b.Entities)
		same(t, "relation of "+id, s.adjacent(store.Adjacency{IDs: []string{id}, Ever: true}), b.Relations)
		if generation > 0 {
			same(t, "words of "+id, s.search(nil, "generation"+strconv.Itoa(generation)), id)
			same(t, "embedding of "+id, s.nearest(1, nil, embedding(generation)...), id)
		} else {
			same(t, "words of "+id, s.search(nil, id), "")
		}
	}
}
