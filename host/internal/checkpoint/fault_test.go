package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/the-edge-agent/tea/host/flow"
)

// faultyDisk is a file that fails as it is told to.
type faultyDisk struct {
	file
	mu       sync.Mutex
	room     int   // bytes that a write may still take before it fails
	write    error // of a write beyond room
	sync     error
	truncate error
}

func (d *faultyDisk) WriteAt(b []byte, off int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.write == nil || len(b) <= d.room {
		return d.file.WriteAt(b, off)
	}
	n, err := d.file.WriteAt(b[:d.room], off)
	if err == nil {
		err = d.write
	}
	return n, err
}

func (d *faultyDisk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sync != nil {
		return d.sync
	}
	return d.file.Sync()
}

func (d *faultyDisk) Truncate(size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.truncate != nil {
		return d.truncate
	}
	return d.file.Truncate(size)
}

func (d *faultyDisk) set(change func(*faultyDisk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}

// faultyJournal is a run with one record on a disk that does not fail yet.
func faultyJournal(t *testing.T, d flow.Durability) (*Journal, *faultyDisk) {
	t.Helper()
	s := testStore(t)
	createRun(t, s, testHeader(), testRecords()[0])
	j, _, err := s.Open("run", d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	disk := &faultyDisk{file: j.w.f}
	j.w.f = disk
	return j, disk
}

func TestFullDiskIsRolledBack(t *testing.T) {
	t.Parallel()
	for _, room := range []int{0, 1, 19, 20, 40} {
		j, disk := faultyJournal(t, flow.DurabilitySync)
		size := j.Size()
		disk.set(func(d *faultyDisk) { d.write, d.room = syscall.ENOSPC, room })
		if err := j.Append(testRecords()[1:3]...); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("room for %d: %v, want ENOSPC", room, err)
		}
		if info, err := os.Stat(j.Path()); err != nil || info.Size() != size || j.Size() != size || j.Seq() != 1 {
			t.Errorf("room for %d: file of %d bytes, journal of %d up to record %d; want %d and 1", room, info.Size(), j.Size(), j.Seq(), size)
		}
		disk.set(func(d *faultyDisk) { d.write = nil })
		if err := j.Append(testRecords()[1:]...); err != nil {
			t.Fatalf("retry: %v", err)
		}
		wantRecords(t, mustRead(t, j.Path()).Records, testRecords())
	}
}

// What queues behind a failed write must not leave a gap in the numbers.
func TestFullDiskUnderConcurrentAppends(t *testing.T) {
	t.Parallel()
	j, disk := faultyJournal(t, flow.DurabilitySync)
	var acknowledged sync.Map
	var group sync.WaitGroup
	for w := range 16 {
		group.Go(func() {
			for n := range 40 {
				if n == 20 {
					disk.set(func(d *faultyDisk) { d.write, d.room = syscall.ENOSPC, w })
				}
				path := fmt.Sprintf("w%d/%d", w, n)
				if err := j.Append(Record{Kind: "finish", Path: path}); err == nil {
					acknowledged.Store(path, true)
				}
				if n == 30 {
					disk.set(func(d *faultyDisk) { d.write = nil })
				}
			}
		})
	}
	group.Wait()
	found := map[string]bool{}
	for _, r := range mustRead(t, j.Path()).Records[1:] {
		found[r.Path] = true
		if _, ok := acknowledged.Load(r.Path); !ok {
			t.Errorf("%s is in the journal though its append failed", r.Path)
		}
	}
	acknowledged.Range(func(path, _ any) bool {
		if !found[path.(string)] {
			t.Errorf("%s was acknowledged and is not in the journal", path)
		}
		return true
	})
}

// heldDisk holds its first write up, and fails it when it is let go.
type heldDisk struct {
	file
	once    sync.Once
	started chan struct{}
	let     chan struct{}
}

func (d *heldDisk) WriteAt(b []byte, off int64) (int, error) {
	var err error
	d.once.Do(func() {
		close(d.started)
		<-d.let
		err = syscall.ENOSPC
	})
	if err != nil {
		return 0, err
	}
	return d.file.WriteAt(b, off)
}

func TestAppendsQueuedBehindAFailedWriteFail(t *testing.T) {
	t.Parallel()
	j, disk := faultyJournal(t, flow.DurabilitySync)
	held := &heldDisk{file: disk, started: make(chan struct{}), let: make(chan struct{})}
	j.w.f = held
	var group sync.WaitGroup
	appendOne := func() {
		if err := j.Append(Record{Kind: "lost"}); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got %v, want ENOSPC", err)
		}
	}
	group.Go(appendOne)
	<-held.started
	const waiting = 7
	for range waiting {
		group.Go(appendOne)
	}
	for j.Seq() < 2+waiting { // until all of them are in the queue
		runtime.Gosched()
	}
	close(held.let)
	group.Wait()
	if err := j.Append(testRecords()[1]); err != nil {
		t.Fatal(err)
	}
	wantRecords(t, mustRead(t, j.Path()).Records, testRecords()[:2])
}

func TestBufferedRecordsSurviveAFullDisk(t *testing.T) {
	t.Parallel()
	for _, d := range []flow.Durability{flow.DurabilityAsync, flow.DurabilityExit} {
		j, disk := faultyJournal(t, d)
		disk.set(func(d *faultyDisk) { d.write, d.room = syscall.ENOSPC, 7 })
		if err := j.Append(testRecords()[1:3]...); err != nil {
			t.Fatal(err)
		}
		if err := j.Sync(); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%s: Sync: %v, want ENOSPC", d, err)
		}
		err := j.Append(testRecords()[3])
		if d == flow.DurabilityAsync {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%s: Append while the disk is full: %v", d, err)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		disk.set(func(d *faultyDisk) { d.write = nil })
		if err := j.Sync(); err != nil {
			t.Fatal(err)
		}
		if d == flow.DurabilityAsync {
			if err := j.Append(testRecords()[3]); err != nil {
				t.Fatalf("Append after the disk had room again: %v", err)
			}
			if err := j.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		wantRecords(t, mustRead(t, j.Path()).Records, testRecords())
	}
}

func TestSpillFailureKeepsTheJournal(t *testing.T) {
	t.Parallel()
	j, disk := faultyJournal(t, flow.DurabilityExit)
	disk.set(func(d *faultyDisk) { d.write = syscall.ENOSPC })
	big := Record{Kind: "finish", Body: make([]byte, spillSize+1)}
	if err := j.Append(big); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(big); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v, want ENOSPC", err)
	}
	disk.set(func(d *faultyDisk) { d.write = nil })
	if err := j.Append(big); err != nil {
		t.Fatal(err)
	}
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	if n := len(mustRead(t, j.Path()).Records); n != 3 {
		t.Errorf("%d records, want 3", n)
	}
}

func TestFailedSyncIsFinal(t *testing.T) {
	t.Parallel()
	for _, d := range []flow.Durability{flow.DurabilitySync, flow.DurabilityAsync, flow.DurabilityExit} {
		j, disk := faultyJournal(t, d)
		disk.set(func(d *faultyDisk) { d.sync = syscall.EIO })
		err := j.Append(testRecords()[1])
		if err == nil {
			err = j.Sync()
		}
		var poisoned *PoisonedError
		if !errors.As(err, &poisoned) || !errors.Is(err, syscall.EIO) {
			t.Fatalf("%s: %v, want a PoisonedError of EIO", d, err)
		}
		disk.set(func(d *faultyDisk) { d.sync = nil })
		if err := j.Sync(); !errors.As(err, &poisoned) {
			t.Errorf("%s: second Sync: %v, want the PoisonedError", d, err)
		}
		if err := j.Append(testRecords()[1]); d != flow.DurabilityExit && !errors.As(err, &poisoned) {
			t.Errorf("%s: Append afterwards: %v, want the PoisonedError", d, err)
		}
		wantRecords(t, mustRead(t, j.Path()).Records, testRecords()[:1])
	}
}

func TestFailedRollbackIsFinal(t *testing.T) {
	t.Parallel()
	j, disk := faultyJournal(t, flow.DurabilitySync)
	disk.set(func(d *faultyDisk) { d.write, d.room, d.truncate = syscall.ENOSPC, 30, syscall.EIO })
	var poisoned *PoisonedError
	if err := j.Append(testRecords()[1]); !errors.As(err, &poisoned) || !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("got %v, want a PoisonedError of both", err)
	}
	if err := j.Append(testRecords()[1]); !errors.As(err, &poisoned) {
		t.Errorf("Append afterwards: %v", err)
	}
	c := mustRead(t, j.Path())
	wantRecords(t, c.Records, testRecords()[:1])
	if len(c.Notes) != 1 {
		t.Errorf("notes %q, want one of the torn tail", c.Notes)
	}
}
