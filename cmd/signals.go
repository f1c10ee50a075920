package teacmd

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// stopped is the cancellation cause of a run that a signal stopped.
type stopped struct{ by string }

func (s *stopped) Error() string { return "stopped by " + s.by }

// Unwrap classifies the error as canceled.
func (s *stopped) Unwrap() error { return context.Canceled }

// stoppable returns a context that the first SIGINT, SIGTERM or SIGHUP cancels;
// the second signal exits immediately, except for a SIGHUP: when a terminal
// closes, both the kernel and the shell send one. Writing to a closed pipe is an
// error and does not kill the process.
func stoppable() (context.Context, context.CancelCauseFunc) { return reloadable(nil) }

// reloadable is like stoppable, but a SIGHUP calls reload unless the terminal has
// closed.
func reloadable(reload func(context.Context)) (context.Context, context.CancelCauseFunc) {
	ctx, stop := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	attached := hasTerminal()
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	stops := func() os.Signal {
		for {
			s := <-signals
			if s != syscall.SIGHUP || reload == nil || attached && !hasTerminal() {
				return s
			}
			go reload(ctx)
		}
	}
	go func() {
		stop(&stopped{signalName(stops())})
		for s := range signals {
			if s != syscall.SIGHUP {
				os.Exit(exitStopped)
			}
		}
	}()
	return ctx, stop
}

// hasTerminal reports whether the process has a controlling terminal.
func hasTerminal() bool {
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR|noTerminal, 0)
	if err == nil {
		terminal.Close()
	}
	return err == nil
}

func signalName(s os.Signal) string {
	switch s {
	case os.Interrupt:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGHUP:
		return "SIGHUP"
	}
	return s.String()
}
