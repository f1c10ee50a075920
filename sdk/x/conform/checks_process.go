package conform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/wire"
)

// ByHand is the name of the check that starts the program without a host.
const ByHand = "started by hand"

// processChecks are about the beginning and the end of the process. Each one uses a
// separate process.
func processChecks() []Check {
	return []Check{
		{Name: ByHand, Remote: true, Remedy: "without " + wire.CookieKey + " in the environment, print that this is a plugin and exit with a code other than 0", Run: checkStartedByHand},
		{Name: "swap", Remote: true, Remedy: "use files and other exclusive resources from configure on, not from the start; release them at the shutdown; write the state to export_path, and read it from import_path", Run: checkSwap},
		{Name: "shutdown", Remote: true, Remedy: "answer shutdown and end the process within grace_ms", Run: checkShutdown},
		{Name: "end of the host", Remote: true, Remedy: "read from the descriptor in " + wire.ParentFD + " and end the process group at its end", Run: checkEndOfHost},
	}
}

// endTimeout is the time in which a process must end by itself, also on a busy machine.
const endTimeout = 10 * time.Second

func checkStartedByHand(ctx context.Context, s *Subject) error {
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

// checkSwap replaces the process by another one, as a host does for a new version: it
// starts while the first process has its instance open, and opens its instance after the
// first process has ended. A plugin that hands state over keeps it.
func checkSwap(ctx context.Context, s *Subject) error {
	p := s.Target.(*Process)
	next, err := p.another(ctx)
	if err != nil {
		return fmt.Errorf("a second process, next to the first one: %w", err)
	}
	const kept = "the state of the first process"
	before := func() (any, error) {
		got, err := s.call(ctx, "probe.keep", map[string]any{"value": kept}, nil)
		fields, _ := got.(map[string]any)
		return fields["before"], err
	}
	keeps := p.client.HandsOver() && s.Manifest.Find("probe.keep") != nil
	if keeps {
		if _, err := before(); err != nil {
			next.Close()
			return err
		}
	}
	if err := s.moveTo(ctx, next); err != nil || !keeps {
		return err
	}
	got, err := before()
	if err != nil {
		return err
	}
	return equal(kept, got)
}

// moveTo replaces the subject's process and moves its instance. After an error
// the subject has no instance.
func (s *Subject) moveTo(ctx context.Context, next *Process) error {
	p := s.Target.(*Process)
	old := &Process{running: p.running, manifest: p.manifest}
	defer old.Close()
	inst := &remote{process: old, id: s.Instance.(*remote).id}
	p.running, s.Instance = next.running, nil
	path := ""
	if old.client.HandsOver() {
		dir, err := os.MkdirTemp("", "tea-state")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		path = filepath.Join(dir, "state")
		if err := inst.Export(ctx, path); err != nil {
			return fmt.Errorf("release with export_path: %w", err)
		}
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("release with export_path: %w", err)
		}
	} else if err := inst.Close(); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	if err := old.client.Shutdown(ctx, time.Second); err != nil {
		return fmt.Errorf("shutdown: %w", err)
	}
	if err := old.awaitEnd(ctx, "shutdown"); err != nil {
		return err
	}
	opened, err := p.Import(ctx, s.Settings, path)
	if err != nil {
		return fmt.Errorf("configure the second process, after the end of the first one: %w", err)
	}
	s.Instance = opened
	return nil
}

// checkEndOfHost closes the pipe by which the plugin watches its host.
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
