package firestore

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/servertest"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// Server is a running emulator of Firestore, with any number of projects.
type Server struct {
	*servertest.Process
	// Address is the address of the emulator, such as 127.0.0.1:8081.
	Address string

	next atomic.Int64
}

// StartServer starts an emulator with additional options; this takes seconds. Its data is in memory. The caller stops
// it.
func StartServer(t testing.TB, options ...string) *Server {
	t.Helper()
	peertest.Long(t, "it starts the Firestore emulator")
	output, err := exec.CommandContext(t.Context(), filepath.Join(servertest.Root, "scripts", "firestore"), "jar").Output()
	jar := strings.TrimSpace(string(output))
	if err != nil || jar == "" {
		t.Skip("this machine does not have the Firestore emulator; see `scripts/firestore`")
	}
	s := &Server{}
	s.Process = servertest.Start(t, "the Firestore emulator", func() (*exec.Cmd, []string) {
		s.Address = servertest.FreeAddress(t)
		host, port, _ := strings.Cut(s.Address, ":")
		// The emulator does not run long enough for the second compiler: without it, the tests take two thirds of the time.
		args := append([]string{"-Duser.language=en", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", jar, "com.google.cloud.datastore.emulator.firestore.CloudFirestore", "start", "--host=" + host, "--port=" + port}, options...)
		return exec.CommandContext(context.WithoutCancel(t.Context()), "java", args...), []string{s.Address}
	})
	return s
}

// Create returns the URL of an empty database.
func (s *Server) Create() string { return fmt.Sprintf("firestore://project-%d", s.next.Add(1)) }
