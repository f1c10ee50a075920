package serve

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/the-edge-agent/tea/sdk/internal/handshake"
)

// lastMoments is how long instances may take to close once the host is gone.
// With it, a plugin has ended well within 2 s.
const lastMoments = time.Second

// watchParent waits until the host is gone, however it ended, and ends the
// process: instances are closed, then the process group that the host made
// for the plugin is killed, children included.
func watchParent(s *server) {
	if fd, err := strconv.Atoi(os.Getenv(handshake.ParentFD)); err == nil {
		waitForEnd(fd)
	} else {
		waitForOrphanhood(500 * time.Millisecond)
	}
	slog.Warn("the host is gone; the plugin ends")
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
	if pid := os.Getpid(); syscall.Getpgrp() == pid {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
	os.Exit(1)
}

// waitForEnd reads from the pipe whose other end only the host holds. Nothing
// is ever written to it.
func waitForEnd(fd int) {
	syscall.CloseOnExec(fd)
	_ = syscall.SetNonblock(fd, true) // so that the wait costs no thread
	pipe := os.NewFile(uintptr(fd), "host")
	_, _ = io.Copy(io.Discard, pipe)
}

// waitForOrphanhood is for hosts that hand over no pipe: it waits until the
// process has another parent.
func waitForOrphanhood(every time.Duration) {
	parent := os.Getppid()
	for tick := time.Tick(every); ; <-tick {
		if os.Getppid() != parent {
			return
		}
	}
}
