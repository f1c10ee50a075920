package checkpoint

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/the-edge-agent/tea/host/flow"
)

func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	path := createRun(t, s, testHeader())
	acknowledged := 1 // the start record
	for round := range 30 {
		c := startChild(t, "append", s.Dir())
		for range 1 + rand.IntN(60) {
			n, err := strconv.Atoi(c.line(t))
			if err != nil || n != acknowledged+1 && n <= acknowledged {
				t.Fatalf("round %d: the child says %d (%v) after %d", round, n, err, acknowledged)
			}
			acknowledged = n
		}
		c.cmd.Process.Kill()
		for c.lines.Scan() { // what it said before it died
			acknowledged, _ = strconv.Atoi(c.lines.Text())
		}
		c.cmd.Wait()
		if got := len(mustRead(t, path).Records); got < acknowledged {
			t.Fatalf("round %d: %d records, %d were acknowledged", round, got, acknowledged)
		}
	}
}

func TestSecondOwnerIsRefused(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	path := createRun(t, s, testHeader(), testRecords()[0])
	c := startChild(t, "own", s.Dir())
	c.line(t)

	_, _, err := s.Open("run", flow.DurabilitySync)
	var locked *InUseError
	if !errors.As(err, &locked) || locked.PID != c.cmd.Process.Pid || locked.Path != path {
		t.Fatalf("got %v, want that process %d uses %s", err, c.cmd.Process.Pid, path)
	}
	if err := s.Remove("run"); !errors.As(err, &locked) {
		t.Errorf("Remove: %v, want an InUseError", err)
	}
	if info, err := s.Info("run"); err != nil || info.Status != flow.Running {
		t.Errorf("status %q, %v; want running", info.Status, err)
	}
	wantRecords(t, mustRead(t, path).Records, testRecords()[:1])

	c.cmd.Process.Kill()
	c.cmd.Wait()
	if info, err := s.Info("run"); err != nil || info.Status != flow.Stopped {
		t.Errorf("after the owner was killed: status %q, %v; want stopped", info.Status, err)
	}
	j, _, err := s.Open("run", flow.DurabilitySync)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	_, _, err = s.Open("run", flow.DurabilitySync)
	if !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Errorf("twice in one process: %v, want an InUseError", err)
	}
}

func TestFileSizeLimitIsRolledBack(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	c := startChild(t, "limited", s.Dir())
	n, err := strconv.Atoi(c.line(t))
	if err != nil {
		t.Fatal(err)
	}
	records := mustRead(t, filepath.Join(s.Dir(), "run.tea")).Records
	if len(records) != n+1 || n < 10 || records[n].Kind != "after" {
		t.Errorf("%d records, want the %d that fitted and one after", len(records), n)
	}
}

// A child that is being started holds copies of all open files for a moment.
func TestClosedRunIsFreeWhileAChildStarts(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	createRun(t, s, testHeader())
	j, _, err := s.Open("run", flow.DurabilitySync)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := unix.Dup(int(j.w.f.(journalFile).Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(copied)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, _, err = s.Open("run", flow.DurabilitySync)
	if err != nil {
		t.Fatal(err)
	}
	j.Close()
}

func TestAResumedRunIsRunningBeforeItsFirstRecord(t *testing.T) {
	t.Parallel()
	for _, status := range []flow.Status{flow.Stopped, flow.Failed, flow.Waiting} {
		s := testStore(t)
		createRun(t, s, testHeader(), testRecords()[0], statusRecord(status, "fetch"))
		j, _, err := s.Open("run", flow.DurabilitySync)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := s.Info("run"); err != nil || info.Status != flow.Running || info.Node != "fetch" {
			t.Errorf("%s and open: %s at %q, %v; want running", status, info.Status, info.Node, err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if info, err := s.Info("run"); err != nil || info.Status != status {
			t.Errorf("closed: %s, %v; want %s", info.Status, err, status)
		}
	}
}
