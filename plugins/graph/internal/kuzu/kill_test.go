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
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
	"github.com/the-edge-agent/tea/plugins/graph/internal/storetest"
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

// single is stored after each generation: one entity, for which the store needs no
// transaction.
func single(n int) store.Batch {
	e := entity("e", "thing", fmt.Sprintf(`{"n":%d}`, n))
	e.UpdatedAt, e.Words = int64(n), []string{fmt.Sprintf("w%d", n)}
	return store.Batch{Entities: []store.Entity{e}}
}

// singles is the namespace of single.
const singles = "singles"

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
		if err := s.Apply(ctx, singles, single(n)); err != nil {
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
		checkCrash(t, dir, last)
	}
}

// A crash of the library ends the process; the database opens again.
func TestACrashLosesNothing(t *testing.T) {
	t.Parallel()
	need(t)
	dir := t.TempDir()
	checkCrash(t, dir, killed(t, dir, syscall.SIGSEGV, 10))
}

// killed runs write in a process, which gets the signal some time after it has
// acknowledged some generations, and returns the last of them.
func killed(t *testing.T, dir string, signal os.Signal, after int) (last int) {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = os.Environ()
	return runUntilKilled(t, dir, command, func(n int, process *os.Process) {
		if n == after {
			time.AfterFunc(time.Duration(rand.IntN(20))*time.Millisecond, func() { _ = process.Signal(signal) })
		}
	})
}

// runUntilKilled runs write by a command and calls f after each generation. It
// returns the last one that was acknowledged.
func runUntilKilled(t *testing.T, dir string, command *exec.Cmd, f func(n int, process *os.Process)) (last int) {
	t.Helper()
	command.Env = append(command.Env, killedFolder+"="+dir)
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

// killedAt has the number of the call before which the process is killed.
const killedAt = "TEA_KUZU_KILL_AT"

// The kills are the same as in test/kill: before a call that changes the disk. Checkpoints
// have most of the 180 calls. TEA_KILLS sets the number of kills; they are spread over
// the calls, and each call is killed at most once.
func TestKillAtCallsOfTheEngine(t *testing.T) {
	t.Parallel()
	need(t)
	const most = 180
	kills := 8
	if n, err := strconv.Atoi(os.Getenv("TEA_KILLS")); err == nil {
		kills = min(n, most)
	}
	counter := compileCounter(t)
	dir := withLog(t)
	for kill := range kills {
		first, next := kill*most/kills, (kill+1)*most/kills
		at := strconv.Itoa(1 + first + rand.IntN(next-first))
		command := exec.Command(os.Args[0])
		command.Env = append(os.Environ(), "LD_PRELOAD="+counter, killedAt+"="+at)
		checkKill(t, "call "+at, dir, command)
	}
}

// compileCounter returns the library of testdata/kill.c.
func compileCounter(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kill.so")
	out, err := exec.Command("cc", "-shared", "-fPIC", "-o", path, "testdata/kill.c", "-ldl").CombinedOutput()
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("compile testdata/kill.c: %v\n%s", err, out)
	}
	t.Skipf("skipped: the kills at calls need a C compiler: %v\n%s", err, out)
	return ""
}

// The plugin's own calls are those of Go, which no library can count. They are the
// first ones of their threads.
func TestKillAtSystemCalls(t *testing.T) {
	t.Parallel()
	need(t)
	strace := needStrace(t)
	dir := withLog(t)
	for _, call := range []string{"pwrite64", "fsync", "/^rename", "/^unlink"} {
		inject := fmt.Sprintf("inject=%s:signal=SIGKILL:when=1", call)
		command := exec.Command(strace, "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", "trace="+call, "-e", inject, os.Args[0])
		command.Env = os.Environ()
		checkKill(t, call, dir, command)
	}
}

// withLog returns the folder of a closed database whose process has left a log.
func withLog(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := opened(t, dir)
	apply(t, s, generation(1))
	if err := s.Apply(t.Context(), singles, single(1)); err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return copied
}

// checkKill runs write on a copy of a database by a command that kills it.
func checkKill(t *testing.T, what, dir string, command *exec.Cmd) {
	t.Helper()
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	last := runUntilKilled(t, copied, command, func(n int, process *os.Process) {
		if n == 60 {
			t.Errorf("%s: 60 generations did not reach it", what)
			_ = process.Kill()
		}
	})
	checkCrash(t, copied, max(last, 1))
	if t.Failed() {
		t.Fatalf("killed at %s", what)
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

// checkCrash checks a database that a crash has left, also after it was opened and not
// used.
func checkCrash(t *testing.T, dir string, last int) {
	t.Helper()
	storetest.Unused(t, dir, Open, func(t *testing.T, dir string) {
		t.Helper()
		checkGeneration(t, dir, last)
	})
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
	alone, err := s.Entities(t.Context(), singles, []string{"e"}, store.Fields{})
	if err != nil || len(alone) != 1 {
		t.Fatalf("the single entity: %v, %v", alone, err)
	}
	e := &alone[0]
	if e.UpdatedAt < int64(last) || e.UpdatedAt > int64(n) || string(e.Properties) != fmt.Sprintf(`{"n":%d}`, e.UpdatedAt) {
		t.Errorf("generation %d was acknowledged, and the single entity is of %d: %s", last, e.UpdatedAt, e.Properties)
	}
}
