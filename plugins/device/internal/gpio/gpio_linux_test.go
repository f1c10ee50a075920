package gpio

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/the-edge-agent/tea/plugins/device/internal/guard"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/value"
)

// recorded is a chip that answers the calls of linux/gpio.h as the kernel does, and
// records what was asked.
type recorded struct {
	dir string
	mu  sync.Mutex
	// level are the physical levels by offset.
	level map[uint32]bool
	// lines are the requests by the name of their file.
	lines map[uintptr]*unix.GPIOV2LineRequest
	log   []string
	// events is where the edges of a watched line are written; changed gets each level.
	events  *os.File
	changed chan bool
	fail    error
}

func newRecorded(t *testing.T) *recorded {
	r := &recorded{dir: t.TempDir(), level: map[uint32]bool{}, lines: map[uintptr]*unix.GPIOV2LineRequest{}, changed: make(chan bool, 100)}
	for _, name := range []string{"gpiochip0", "gpiochip1"} {
		if err := os.WriteFile(filepath.Join(r.dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *recorded) chips() ([]string, error) { return filepath.Glob(r.dir + "/*") }

func (r *recorded) open(path string) (*os.File, error) { return os.Open(path) }

func (r *recorded) ioctl(f *os.File, request uint, argument unsafe.Pointer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch request {
	case 0x8044b401: // GPIO_GET_CHIPINFO_IOCTL
		info := (*unix.GPIOChipInfo)(argument)
		copy(info.Name[:], filepath.Base(f.Name()))
		copy(info.Label[:], map[string]string{"gpiochip0": "soc", "gpiochip1": "expander"}[filepath.Base(f.Name())])
		info.Lines = 4
	case 0xc100b405: // GPIO_V2_GET_LINEINFO_IOCTL
		info := (*unix.GPIOV2LineInfo)(argument)
		if filepath.Base(f.Name()) == "gpiochip1" {
			copy(info.Name[:], fmt.Sprintf("EXP%d", info.Offset))
		}
		if info.Offset == 3 {
			copy(info.Consumer[:], "watchdog")
		}
	case 0xc250b407: // GPIO_V2_GET_LINE_IOCTL
		return r.request((*unix.GPIOV2LineRequest)(argument))
	case 0xc010b40e, 0xc010b40f: // GPIO_V2_LINE_GET_VALUES_IOCTL, GPIO_V2_LINE_SET_VALUES_IOCTL
		line, values := r.lines[descriptor(f)], (*unix.GPIOV2LineValues)(argument)
		if line == nil || values.Mask != 1 {
			return unix.EINVAL
		}
		low := line.Config.Flags&(1<<1) != 0
		if request == 0xc010b40e {
			values.Bits = bit(r.level[line.Offsets[0]] != low)
			return nil
		}
		if line.Config.Flags&(1<<3) == 0 {
			return unix.EPERM
		}
		if r.fail != nil {
			return r.fail
		}
		r.set(line.Offsets[0], (values.Bits&1 == 1) != low)
	default:
		return unix.ENOTTY
	}
	return nil
}

// descriptor returns the descriptor of a file, whose method Fd would make reads block.
func descriptor(f *os.File) (number uintptr) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { number = fd })
	}
	return number
}

func (r *recorded) set(offset uint32, high bool) {
	r.level[offset] = high
	r.log = append(r.log, fmt.Sprintf("%d=%v", offset, high))
	r.changed <- high
}

func (r *recorded) request(line *unix.GPIOV2LineRequest) error {
	flags, offset := line.Config.Flags, line.Offsets[0]
	if offset == 3 {
		return unix.EBUSY
	}
	if line.Num_lines != 1 || flags&(1<<2) != 0 && flags&(1<<3) != 0 || flags&(7<<8) != 0 && flags&(3<<2) == 0 {
		return unix.EINVAL
	}
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	line.Fd = int32(ends[0])
	r.events = os.NewFile(uintptr(ends[1]), "events")
	kept := *line
	r.lines[uintptr(ends[0])] = &kept
	what := fmt.Sprintf("request %d by %s, flags %#x", offset, text(line.Consumer[:]), flags)
	for _, a := range line.Config.Attrs[:line.Config.Num_attrs] {
		number := a.Attr.Flags
		if a.Attr.Id == 3 {
			number = uint64(binary.NativeEndian.Uint32((*[8]byte)(unsafe.Pointer(&a.Attr.Flags))[:]))
		}
		what += fmt.Sprintf(", attribute %d %d for %b", a.Attr.Id, number, a.Mask)
		if a.Attr.Id == 2 {
			r.level[offset] = (number == 1) != (flags&(1<<1) != 0)
		}
	}
	r.log = append(r.log, what)
	return nil
}

// open returns a client for lines of a recorded chip.
func open(t *testing.T, r *recorded, lines map[string]Line) *client {
	t.Helper()
	guards, err := guard.Open(tea.Settings{guard.SettingsKey: []byte(fmt.Sprintf(`{"state": %q}`, t.TempDir()))})
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range lines {
		if l.MaxPulseSeconds == 0 {
			l.MaxPulseSeconds = 10
			lines[name] = l
		}
	}
	c := newClient(Settings{lines}, guards, r)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func request() *tea.Request { return &tea.Request{Host: &teatest.Host{}} }

func effect(err error) any {
	if err == nil {
		return nil
	}
	return tea.AsError(err).Details["effect"]
}

func offset(n int) *int { return &n }

func TestLinesAreFoundAndSet(t *testing.T) {
	t.Parallel()
	r := newRecorded(t)
	c := open(t, r, map[string]Line{
		"valve":  {Chip: "expander", Line: "EXP2", ActiveLow: true, Drive: "open_drain", Bias: "pull_up", Write: &guard.Rule{}},
		"button": {Chip: "gpiochip0", Offset: offset(1), Bias: "pull_down"},
	})
	read := func(line string) bool {
		t.Helper()
		got, err := c.Read(t.Context(), request(), readParams{line})
		if err != nil {
			t.Fatal(err)
		}
		return got.Value
	}
	r.level[1], r.level[2] = true, true
	if !read("button") || read("valve") {
		t.Error("the levels are other ones")
	}
	for _, v := range []bool{true, false, true} {
		if _, err := c.Write(t.Context(), request(), writeParams{"valve", v}); err != nil {
			t.Fatal(err)
		}
		if read("valve") != v || r.level[2] == v {
			t.Errorf("the level after %v", v)
		}
	}
	want := []string{
		"request 1 by tea, flags 0x204", "request 2 by tea, flags 0x2", // a read leaves an output as it is
		"request 2 by tea, flags 0x14a, attribute 2 1 for 1", "2=true", "2=false",
	}
	if diff := cmp.Diff(want, r.log); diff != "" {
		t.Error(diff)
	}
}

func TestWhatALineRefuses(t *testing.T) {
	t.Parallel()
	r := newRecorded(t)
	zero := 0.0
	c := open(t, r, map[string]Line{
		"input": {Chip: "soc", Offset: offset(0)}, "low": {Chip: "soc", Offset: offset(1), Write: &guard.Rule{Max: &zero}}, "used": {Chip: "soc", Offset: offset(3), Write: &guard.Rule{}},
		"missing": {Chip: "soc", Line: "EXP2", Write: &guard.Rule{}}, "rate": {Chip: "soc", Offset: offset(2), Write: &guard.Rule{Limits: guard.Limits{PerMinute: 1}}}, "dry": {Chip: "soc", Offset: offset(2), Write: &guard.Rule{Limits: guard.Limits{DryRun: true}}},
	})
	for line, want := range map[string]tea.ErrorType{"input": tea.PermissionDenied, "low": tea.PermissionDenied, "used": tea.ConnectionError, "missing": tea.NotFound, "none": tea.NotFound, "gpiochip0": tea.NotFound} {
		_, err := c.Write(t.Context(), request(), writeParams{line, true})
		if e := tea.AsError(err); e == nil || e.Type != want || effect(err) != "none" {
			t.Errorf("%s: %v, %v, want %s", line, err, effect(err), want)
		}
		if line == "used" && !strings.Contains(err.Error(), `is used by "watchdog"`) {
			t.Error(err)
		}
		_, err = c.Pulse(t.Context(), request(), pulseParams{line, 0.001, true})
		if e := tea.AsError(err); e == nil || e.Type != want || effect(err) != "none" {
			t.Errorf("a pulse on %s: %v, %v, want %s", line, err, effect(err), want)
		}
	}
	if _, err := c.Pulse(t.Context(), request(), pulseParams{"rate", 11, true}); err == nil || tea.AsError(err).Type != tea.PermissionDenied {
		t.Errorf("a pulse that is too long: %v", err)
	}
	if _, err := c.Write(t.Context(), request(), writeParams{"rate", false}); err != nil {
		t.Error(err)
	}
	if _, err := c.Write(t.Context(), request(), writeParams{"rate", true}); err == nil || tea.AsError(err).Type != tea.RateLimited {
		t.Errorf("a second write in a minute: %v", err)
	}
	if got, err := c.Write(t.Context(), request(), writeParams{"dry", true}); err != nil || !got.DryRun || r.level[2] {
		t.Errorf("dry run: %v, %v", got, err)
	}
	r.fail = unix.EIO
	if _, err := c.Write(t.Context(), request(), writeParams{"low", false}); err != nil {
		t.Fatal(err) // the request sets the level
	}
	if _, err := c.Write(t.Context(), request(), writeParams{"low", false}); effect(err) != "refused" {
		t.Errorf("the chip fails: %v, %v", err, effect(err))
	}
}

// A pulse ends with the level before it, also when its call ends or the line is set by
// another call meanwhile.
func TestPulseReturnsToTheLevel(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{false, true} {
		r := newRecorded(t)
		r.level[1] = before
		c := open(t, r, map[string]Line{"l": {Chip: "soc", Offset: offset(1), Write: &guard.Rule{}}})
		if _, err := c.Pulse(t.Context(), request(), pulseParams{"l", 0.001, !before}); err != nil || r.level[1] != before {
			t.Errorf("after a pulse: %v, %v", err, r.level[1])
		}
		<-r.changed // back
		ctx, stop := context.WithCancel(t.Context())
		ended, written := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := c.Pulse(ctx, request(), pulseParams{"l", 10, !before})
			ended <- err
		}()
		if got := <-r.changed; got == before {
			t.Error("the pulse has no other level")
		}
		go func() {
			_, err := c.Write(t.Context(), request(), writeParams{"l", before}) // waits for the pulse
			written <- err
		}()
		stop()
		if err := <-ended; tea.AsError(err).Type != tea.Canceled || effect(err) != "unknown" {
			t.Errorf("a pulse that was cut short: %v, %v", err, effect(err))
		}
		if err := <-written; err != nil || r.level[1] != before {
			t.Errorf("after the call has ended: %v, %v", r.level[1], err)
		}
		_, err := c.Pulse(t.Context(), request(), pulseParams{"l", 1, before})
		if tea.AsError(err).Type != tea.ValidationError || effect(err) != "none" {
			t.Errorf("a pulse with the level of the line: %v", err)
		}
	}
}

type host struct {
	teatest.Host
	tokens chan string
}

func (h *host) Token(_ context.Context, text string) { h.tokens <- text }

func TestWatchPassesOnEdges(t *testing.T) {
	t.Parallel()
	r := newRecorded(t)
	c := open(t, r, map[string]Line{"button": {Chip: "soc", Offset: offset(1), DebounceSeconds: 0.02}, "out": {Chip: "soc", Offset: offset(2), Write: &guard.Rule{}}})
	if _, err := c.Watch(t.Context(), request(), readParams{"out"}); err == nil || tea.AsError(err).Type != tea.ValidationError {
		t.Errorf("an output is watched: %v", err)
	}
	for _, end := range []string{"the call ends", "the chip is removed", "half an event"} {
		ctx, stop := context.WithCancel(t.Context())
		h, ended := &host{tokens: make(chan string)}, make(chan error, 1)
		go func() {
			_, err := c.Watch(ctx, &tea.Request{Host: h}, readParams{"button"})
			ended <- err
		}()
		for i, id := range []uint32{0, unix.GPIO_V2_LINE_EVENT_RISING_EDGE, unix.GPIO_V2_LINE_EVENT_FALLING_EDGE} {
			if id != 0 {
				event := unix.GPIOV2LineEvent{Id: id, Offset: 1, Seqno: uint32(i)}
				if _, err := r.events.Write((*[48]byte)(unsafe.Pointer(&event))[:]); err != nil {
					t.Fatal(err)
				}
			}
			got, err := value.Decode([]byte(<-h.tokens))
			if diff := cmp.Diff(map[string]any{"success": true, "line": "button", "value": i == 1}, got); diff != "" || err != nil {
				t.Error(diff, err)
			}
		}
		switch end {
		case "the call ends":
			stop()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", end, err)
			}
		case "half an event":
			_, _ = r.events.Write(make([]byte, 20))
			fallthrough
		default:
			_ = r.events.Close()
			if err := <-ended; tea.AsError(err).Type != tea.ConnectionError {
				t.Errorf("%s: %v", end, err)
			}
		}
		stop()
	}
	if want := "request 1 by tea, flags 0x34, attribute 3 20000 for 1"; r.log[0] != want {
		t.Errorf("got %q, want %q", r.log[0], want)
	}
}
