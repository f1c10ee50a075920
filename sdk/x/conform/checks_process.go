package conform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/wire"
)

// ByHand is the name of the check that starts the program without a host.
const ByHand = "started by hand"

// processChecks are about the beginning and the end of the process. Each has a
// separate process.
func processChecks() []Check {
	return []Check{
		{Name: ByHand, Remote: true, Remedy: "without " + wire.CookieKey + " in the environment, print that this is a plugin and exit with a code other than 0", Run: checkByHand},
		{Name: "shutdown", Remote: true, Remedy: "answer shutdown and end the process within grace_ms", Run: checkShutdown},
		{Name: "end of the host", Remote: true, Remedy: "read from the descriptor in " + wire.ParentFD + " and end the process group at its end", Run: checkEndOfHost},
	}
}

// endTimeout is the time that a process has to end by itself.
const endTimeout = 3 * time.Second

func checkByHand(ctx context.Context, s *Subject) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cmd := s.Target.(*Process).command(ctx)
	cmd.Env = withoutCookie(cmd.Environ())
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the process still runs after %s", startTimeout)
	case err == nil:
		return errors.New("the process ended with code 0, as if it had done something")
	case len(out) == 0:
		return errors.New("the process prints nothing")
	}
	return nil
}

func withoutCookie(env []string) []string {
	var kept []string
	for _, entry := range env {
		if entry != wire.CookieKey+"="+wire.CookieValue {
			kept = append(kept, entry)
		}
	}
	return kept
}

func checkShutdown(ctx context.Context, s *Subject) error {
	p, err := s.Target.(*Process).another(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.client.Shutdown(ctx, time.Second); err != nil {
		return err
	}
	return p.awaitEnd(ctx, "shutdown")
}

// checkEndOfHost closes the pipe that tells the plugin about its host.
func checkEndOfHost(ctx context.Context, s *Subject) error {
	p, err := s.Target.(*Process).another(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.parent.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return p.awaitEnd(ctx, "the end of the host")
}

// endedBy reports whether the process has ended or is about to, after a call
// with this error.
func (p *Process) endedBy(err error) bool {
	var lost *wire.BrokenError
	if errors.As(err, &lost) && lost.Gone {
		_ = p.awaitEnd(context.Background(), "the call") // it is reported below
	}
	return p.ended()
}

// awaitEnd returns an error if the process does not end in time.
func (p *Process) awaitEnd(ctx context.Context, after string) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for !p.ended() {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("the process still runs %s after %s", endTimeout, after)
		}
	}
	return nil
}
