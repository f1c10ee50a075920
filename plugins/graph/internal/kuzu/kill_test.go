//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// killedFolder is set in the process that TestKill kills.
const killedFolder = "TEA_KUZU_KILLED"

// generation is what a batch of TestKill stores: entities and relations that all
// have its number, and a deletion. Every fourth one is large, so that checkpoints
// take place.
func generation(n int) store.Batch {
	var b store.Batch
	size := 5
	if n%4 == 0 {
		size = 200
	}
	for i := range 200 {
		if i >= size && n%4 != 1 {
			break
		}
		e := entity(fmt.Sprintf("e%d", i), "thing", fmt.Sprintf(`{"n":%d}`, n))
		e.UpdatedAt, e.Words, e.Embedding = int64(n), []string{fmt.Sprintf("w%d", n)}, []float32{float32(n), 1}
		if i >= size {
			b.DeleteEntities = append(b.DeleteEntities, e.ID)
			b.DeleteRelations = append(b.DeleteRelations, relation(e.ID, "next", "e0").RelationKey)
			continue
		}
		r := relation(e.ID, "next", "e0")
		r.Weight = float64(n)
		b.Entities, b.Relations = append(b.Entities, e), append(b.Relations, r)
	}
	return b
}

// write stores generations until it is killed, and prints each after Apply
// returned.
func write(dir string) error {
	runtime.LockOSThread() // strace counts the calls of each thread
	ctx := context.Background()
	s, err := Open(ctx, store.Options{Dir: dir, Create: true})
	if err != nil {
		return err
	}
	found, err := s.Entities(ctx, "default", []string{"e0"}, store.Fields{})
	if err != nil {
		return err
	}
	n := 0
	if len(found) > 0 {
		n = int(found[0].UpdatedAt)
	}
	for {
		n++
		if err := s.Apply(ctx, "default", generation(n)); err != nil {
			return err
		}
		fmt.Println(n)
		if n%7 == 0 {
			if err := s.(*DB).writer.execute("CHECKPOINT"); err != nil {
				return err
			}
		}
	}
}

// Nothing that was acknowledged is lost, and no part of a batch is there.
// TEA_KILLS sets the number of kills.
func TestKill(t *testing.T) {
	t.Parallel()
	need(t)
	kills := 5
	if n, err := strconv.Atoi(os.Getenv("TEA_KILLS")); err == nil {
		kills = n
	}
	dir := t.TempDir()
	for range kills {
		last := killed(t, dir, syscall.SIGKILL, rand.IntN(30))
		checkGeneration(t, dir, last)
	}
}

// A crash of the library ends the process; the database opens again.
func TestACrashLosesNothing(t *testing.T) {
	t.Parallel()
	need(t)
	dir := t.TempDir()
	checkGeneration(t, dir, killed(t, dir, syscall.SIGSEGV, 10))
}

// killed runs write in a process, which gets the signal some time after it has
// acknowledged some generations, and returns the last of them.
func killed(t *testing.T, dir string, signal os.Signal, after int) (last int) {
	t.Helper()
	return runUntilKilled(t, dir, exec.Command(os.Args[0]), func(n int, process *os.Process) {
		if n == after {
			time.AfterFunc(time.Duration(rand.IntN(20))*time.Millisecond, func() { _ = process.Signal(signal) })
		}
	})
}

// runUntilKilled runs write by a command and calls f after each generation. It
// returns the last one that was acknowledged.
func runUntilKilled(t *testing.T, dir string, command *exec.Cmd, f func(n int, process *os.Process)) (last int) {
	t.Helper()
	command.Env = append(os.Environ(), killedFolder+"="+dir)
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(io.LimitReader(out, 1<<20))
	for n := 0; lines.Scan(); n++ {
		if last, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatalf("the process says %q", lines.Text())
		}
		f(n, command.Process)
	}
	if err := command.Wait(); err == nil {
		t.Fatal("the process ended by itself")
	}
	return last
}

// The kills are those of test/kill: before a system call that changes the disk.
// TEA_KILLS sets the number for each call; they are spread over the first calls, of
// which each is killed at most once.
func TestKillAtSystemCalls(t *testing.T) {
	t.Parallel()
	need(t)
	strace := needStrace(t)
	kills := 2
	if n, err := strconv.Atoi(os.Getenv("TEA_KILLS")); err == nil {
		kills = n
	}
	for call, most := range map[string]int{"pwrite64": 120, "fsync": 60, "/^rename": 3, "/^unlink": 3} { // the last ones at checkpoints
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			apply(t, opened(t, dir), generation(1))
			kills := min(kills, most)
			for kill := range kills {
				copied := t.TempDir()
				if err := os.CopyFS(copied, os.DirFS(dir)); err != nil { // with a log
					t.Fatal(err)
				}
				first, next := kill*most/kills, (kill+1)*most/kills
				inject := fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", call, 1+first+rand.IntN(next-first))
				command := exec.Command(strace, "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", "trace="+call, "-e", inject, os.Args[0])
				last := runUntilKilled(t, copied, command, func(n int, process *os.Process) {
					if n == 60 { // another thread makes the call
						_ = process.Kill()
					}
				})
				checkGeneration(t, copied, max(last, 1))
			}
		})
	}
}

// needStrace returns the path of a strace that can trace. In CI it is an error if
// there is none.
func needStrace(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("strace")
	if err == nil {
		err = exec.Command(path, "-o", "/dev/null", "true").Run()
	}
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("strace: %v; scripts/strace install installs it", err)
	}
	t.Skipf("skipped: the kills at system calls need strace (scripts/strace install) and the right to trace: %v", err)
	return ""
}

// checkGeneration checks that the database has a whole generation: the last one
// that was acknowledged, or the next.
func checkGeneration(t *testing.T, dir string, last int) {
	t.Helper()
	s, err := Open(t.Context(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := -1
	count := map[string]int{}
	err = s.EachEntity(t.Context(), "default", store.EntityScan{Embeddings: true}, func(e *store.Entity) error {
		if e.ID == "e0" {
			n = int(e.UpdatedAt)
		}
		if string(e.Properties) != fmt.Sprintf(`{"n":%d}`, e.UpdatedAt) || e.Embedding[0] != float32(e.UpdatedAt) {
			t.Errorf("%s is a mixture: %s, %v", e.ID, e.Properties, e.Embedding)
		}
		count[fmt.Sprint(e.UpdatedAt)]++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n != last && n != last+1 {
		t.Fatalf("generation %d was acknowledged, and the database has %d", last, n)
	}
	want := 5
	if n%4 == 0 {
		want = 200
	}
	if count[fmt.Sprint(n)] != want {
		t.Errorf("generation %d has %v entities by generation, want %d of its own", n, count, want)
	}
	relations := 0
	if err := s.EachRelation(t.Context(), "default", store.RelationScan{Ever: true}, func(r *store.Relation) error {
		if r.Weight == float64(n) {
			relations++
		}
		return nil
	}); err != nil || relations != want {
		t.Errorf("generation %d has %d relations, want %d: %v", n, relations, want, err)
	}
	found, err := s.Search(t.Context(), "default", store.TextQuery{Words: []string{fmt.Sprintf("w%d", n)}, Limit: 1000})
	if err != nil || len(found) != want {
		t.Errorf("the words of generation %d find %d entities, want %d: %v", n, len(found), want, err)
	}
}
