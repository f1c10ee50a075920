package servertest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/the-edge-agent/tea/sdk/x/childproc"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// Firestore is a running emulator of Firestore, with any number of projects.
type Firestore struct {
	// Address is the address of the emulator, such as 127.0.0.1:8081.
	Address string

	next atomic.Int64
	stop func()
}

// Stop ends the emulator and discards its data, which are in memory. It does nothing for nil.
func (s *Firestore) Stop() {
	if s != nil {
		s.stop()
	}
}

// StartFirestore starts an emulator with further options, which takes seconds. The
// caller stops it.
func StartFirestore(t testing.TB, options ...string) *Firestore {
	t.Helper()
	peertest.Long(t, "it starts the Firestore emulator")
	output, err := exec.CommandContext(t.Context(), filepath.Join(root, "scripts", "firestore"), "jar").Output()
	jar := strings.TrimSpace(string(output))
	if err != nil || jar == "" {
		t.Skip("this machine does not have the Firestore emulator; see `scripts/firestore`")
	}
	for range startTries {
		address := freeAddress(t)
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		// The emulator does not run long enough for the second compiler: without it, the tests take two thirds of the time.
		args := append([]string{"-Duser.language=en", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", jar, "com.google.cloud.datastore.emulator.firestore.CloudFirestore", "start", "--host=" + host, "--port=" + port}, options...)
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "java", args...)
		cmd.Stdout, cmd.Stderr = &log, &log
		childproc.EndWithParent(cmd)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { defer close(ended); _ = cmd.Wait() }() // it returns the result of Kill
		if answers(ended, address) {
			return &Firestore{Address: address, stop: func() { _ = cmd.Process.Kill(); <-ended }}
		}
		t.Logf("start the Firestore emulator again: %s", log.String())
	}
	t.Fatal("the Firestore emulator does not start")
	return nil
}

// Create returns the URL of an empty database.
func (s *Firestore) Create() string { return fmt.Sprintf("firestore://project-%d", s.next.Add(1)) }
