package checkpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
)

func TestGroupCommit(t *testing.T) {
	t.Parallel()
	for _, d := range []flow.Durability{flow.DurabilitySync, flow.DurabilityAsync, flow.DurabilityExit} {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			s := testStore(t)
			j, err := s.Create(testHeader(), d)
			if err != nil {
				t.Fatal(err)
			}
			const writers, each = 32, 25
			var group sync.WaitGroup
			for w := range writers {
				group.Go(func() {
					for n := range each {
						body := fmt.Appendf(nil, `{"w":%d,"n":%d}`, w, n)
						if err := j.Append(Record{Kind: "one", Body: body}, Record{Kind: "two", Body: body}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
			if err := j.Sync(); err != nil {
				t.Fatal(err)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			checkOrder(t, mustRead(t, j.Path()).Records, writers, each)
		})
	}
}

// checkOrder expects each writer's pairs, unparted and in the writer's order.
func checkOrder(t *testing.T, records []Record, writers, each int) {
	t.Helper()
	if want := 2 * writers * each; len(records) != want {
		t.Fatalf("%d records, want %d", len(records), want)
	}
	next := make([]int, writers)
	for i := 0; i < len(records); i += 2 {
		var body struct{ W, N int }
		if err := json.Unmarshal(records[i].Body, &body); err != nil {
			t.Fatal(err)
		}
		if records[i].Kind != "one" || records[i+1].Kind != "two" || string(records[i].Body) != string(records[i+1].Body) {
			t.Fatalf("records %d and %d were appended together with others between", i+1, i+2)
		}
		if body.N != next[body.W] {
			t.Fatalf("writer %d: %d comes where %d belongs", body.W, body.N, next[body.W])
		}
		next[body.W]++
	}
}

// slowDisk counts its syncs, and holds the first up until it is let go.
type slowDisk struct {
	file
	syncs   atomic.Int32
	started chan struct{}
	let     chan struct{}
}

func (d *slowDisk) Sync() error {
	if d.syncs.Add(1) == 1 {
		close(d.started)
		<-d.let
	}
	return d.file.Sync()
}

func TestConcurrentAppendsShareOneSync(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	j, err := s.Create(testHeader(), flow.DurabilitySync)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Append(testRecords()[0]); err != nil { // makes the file
		t.Fatal(err)
	}
	disk := &slowDisk{file: j.w.f, started: make(chan struct{}), let: make(chan struct{})}
	j.w.f = disk

	var group sync.WaitGroup
	appendOne := func() {
		if err := j.Append(Record{Kind: "finish"}); err != nil {
			t.Error(err)
		}
	}
	waits, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	giveUp := func(what string) {
		close(disk.let)
		t.Fatal(what)
	}
	group.Go(appendOne)
	select {
	case <-disk.started:
	case <-waits.Done():
		giveUp("an append syncs nothing")
	}
	const waiting = 31
	for range waiting {
		group.Go(appendOne)
	}
	for j.Seq() < 2+waiting { // until all of them are in the queue
		if waits.Err() != nil {
			giveUp("appends wait for the sync of another one before they are in the queue")
		}
		runtime.Gosched()
	}
	close(disk.let)
	group.Wait()
	if got := disk.syncs.Load(); got != 2 {
		t.Errorf("%d appends, of which %d waited for the first, took %d syncs, want 2", 1+waiting, waiting, got)
	}
}
