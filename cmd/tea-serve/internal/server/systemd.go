package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/coreos/go-systemd/v22/journal"
)

// maxSilence is how long the scheduler may be silent before the watchdog considers
// the server stuck.
const maxSilence = 4 * maxSleep

// notify sends the state of the server to systemd. Without systemd it has no
// effect.
func (s *server) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.svc.Log.Warn("systemd cannot be notified", "error", err)
	}
}

// Journal returns a function that sends log messages to the systemd journal; nil if
// stderr is not connected to it.
func Journal() func(message string, priority int, fields map[string]string) error {
	if connected, err := journal.StderrIsJournalStream(); err != nil || !connected {
		return nil
	}
	return func(message string, priority int, fields map[string]string) error {
		return journal.Send(message, journal.Priority(priority), fields)
	}
}

// watchdog notifies systemd while the server makes progress: the scheduler runs, and
// the mutex of the state can be locked.
func (s *server) watchdog() {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil || interval <= 0 {
		return
	}
	ticker := time.NewTicker(interval / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.mu.Lock() // blocks if another goroutine holds it forever
			stopping := s.ctx.Err() != nil
			s.mu.Unlock()
			if stopping || time.Since(time.Unix(0, s.lastBeat.Load())) < maxSilence {
				s.notify(daemon.SdNotifyWatchdog)
			}
		case <-s.ended:
			return
		}
	}
}

// activated returns the socket that systemd opened, or nil.
func activated() (net.Listener, error) {
	if os.Getenv("LISTEN_FDS") == "" {
		return nil, nil
	}
	listeners, err := activation.Listeners()
	if err != nil {
		return nil, fmt.Errorf("take the socket of systemd: %w", err)
	}
	var found net.Listener
	for _, l := range listeners {
		switch {
		case l == nil:
		case found != nil:
			return nil, errors.Join(errors.New("systemd passes several sockets; tea serve takes one"), l.Close())
		default:
			found = l
		}
	}
	return found, nil
}
