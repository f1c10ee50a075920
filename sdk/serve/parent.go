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

// lastMoments bounds the time that instances have to close after the host has
// ended, so that a plugin ends within 2 s.
const lastMoments = time.Second

// watchParent waits until the host has ended in any way, and ends the process:
// it closes the instances, then kills the process group that the host has
// created for the plugin, including children.
func watchParent(s *server) {
	if fd, err := strconv.Atoi(os.Getenv(handshake.ParentFD)); err == nil {
		waitForEnd(fd)
	} else {
		waitForOrphanhood(500 * time.Millisecond)
	}
	slog.Warn("the host has ended; the plugin exits")
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		ctx, cancel := context.WithTimeout(context.Background(), lastMoments/2)
		defer cancel()
		s.drain(ctx)
	}()
	select {
	case <-closed:
	case <-time.After(lastMoments):
	}
	killGroup()
	os.Exit(1)
}

// waitForEnd reads from a pipe whose other end only the host has open. Nothing
// is ever written to it.
func waitForEnd(fd int) {
	_, _ = io.Copy(io.Discard, openParent(fd))
}

// waitForOrphanhood is for hosts without such a pipe: it waits until the
// process has another parent.
func waitForOrphanhood(every time.Duration) {
	parent := os.Getppid()
	for tick := time.Tick(every); ; <-tick {
		if os.Getppid() != parent {
			return
		}
	}
}
