package teaproc

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// Log stores the output of a program. Create it with [NewLog]. It is safe for concurrent use, except Await, which one
// goroutine calls.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
	// seen counts the texts that were awaited.
	seen map[string]int
}

// NewLog returns an empty log.
func NewLog() *Log { return &Log{more: make(chan struct{}, 1), seen: map[string]int{}} }

// Write adds a text.
func (l *Log) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(text)
}

// More returns a channel with a value if something was written since the last one.
func (l *Log) More() <-chan struct{} { return l.more }

// String returns all texts.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Await waits for a text that was not awaited before.
func (l *Log) Await(t testing.TB, text string) {
	t.Helper()
	l.Until(t, text, func() bool { return strings.Count(l.String(), text) > l.seen[text] })
	l.seen[text]++
}

// testTimeout is how long a test waits for what must happen.
const testTimeout = 5 * time.Minute

// Poll calls done until it returns true, for at most five minutes. The state is part of the failure message.
func Poll(t testing.TB, done func() (ok bool, state any)) {
	t.Helper()
	for late := time.Now().Add(testTimeout); ; {
		ok, state := done()
		if ok {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("still %v", state)
		}
	}
}

// Until waits until done returns true, which is called after each text, for five
// minutes at most.
func (l *Log) Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	late := time.After(testTimeout)
	for !done() {
		select {
		case <-l.more:
		case <-late:
			t.Fatalf("no %q. The log:\n%s", what, l)
		}
	}
}
