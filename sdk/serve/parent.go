package serve

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/the-edge-agent/tea/sdk/internal/handshake"
)

// closeGrace bounds the time in which instances can close after the host has ended,
// so that a plugin ends within 2 s.
const closeGrace = time.Second

// watchParent starts watching the host. When the host has ended in any way, the
// process ends: it closes the instances, then kills the process group that the host
// has created for the plugin, including children.
func watchParent(s *server) {
	if fd, err := strconv.Atoi(os.Getenv(handshake.ParentFD)); err == nil {
		go func() {
			waitForEnd(fd)
			exitAfterHost(s)
		}()
		return
	}
	parent := os.Getppid() // now: later the host may have ended already
	go func() {
		waitForNewParent(parent, 500*time.Millisecond)
		exitAfterHost(s)
	}()
}

// exitAfterHost ends the process, within 2 s.
func exitAfterHost(s *server) {
	slog.Warn("the host has ended; the plugin exits")
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		ctx, cancel := context.WithTimeout(context.Background(), closeGrace/2)
		defer cancel()
		s.drain(ctx)
	}()
	select {
	case <-closed:
	case <-time.After(closeGrace):
	}
	killGroup()
	os.Exit(1)
}

// waitForEnd reads from a pipe whose other end only the host has open. Nothing
// is ever written to it.
func waitForEnd(fd int) {
	_, _ = io.Copy(io.Discard, openParent(fd))
}

// waitForNewParent waits until the process has another parent, for hosts without
// such a pipe.
func waitForNewParent(parent int, every time.Duration) {
	for tick := time.Tick(every); ; <-tick {
		if os.Getppid() != parent {
			return
		}
	}
}
