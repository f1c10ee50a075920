package d1

import (
	"bufio"
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/servertest"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// server is a running server of Cloudflare D1.
type server struct {
	base string
	next atomic.Int64
	n    int64
}

// startServer starts a server with n databases. The test ends it.
func startServer(t testing.TB, n int) *server {
	t.Helper()
	dir := peertest.Dir(t, servertest.Root, "d1")
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, "node", filepath.Join(dir, "serve.mjs"), filepath.Join(dir, "node_modules"), strconv.Itoa(n))
	cmd.Dir = t.TempDir()
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Cancel = input.Close // ends the server
	cmd.WaitDelay = 10 * time.Second
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("start the D1 server: %v", err)
	}
	return &server{base: strings.TrimSuffix(strings.TrimSpace(line), "/") + "/cdn-cgi/explorer/api/d1/database/", n: int64(n)}
}

// create returns the URL of an unused database.
func (s *server) create(t testing.TB) string {
	t.Helper()
	n := s.next.Add(1)
	if n > s.n {
		t.Fatalf("the D1 server has only %d databases", s.n)
	}
	return s.base + "db" + strconv.FormatInt(n-1, 10)
}
