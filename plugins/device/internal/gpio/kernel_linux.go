package gpio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	tea "github.com/the-edge-agent/tea/sdk"
)

// system makes the system calls.
type system interface {
	chips() ([]string, error)
	open(path string) (*os.File, error)
	ioctl(f *os.File, request uint, argument unsafe.Pointer) error
}

// kernel is the system of this machine.
type kernel struct{}

func (kernel) chips() ([]string, error) { return filepath.Glob("/dev/gpiochip*") }

func (kernel) open(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDWR, 0) }

func (kernel) ioctl(f *os.File, request uint, argument unsafe.Pointer) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var code unix.Errno
	err = raw.Control(func(fd uintptr) { _, _, code = unix.Syscall(unix.SYS_IOCTL, fd, uintptr(request), uintptr(argument)) })
	if err == nil && code != 0 {
		err = code
	}
	return err
}

// The flags of a line, from linux/gpio.h.
const (
	flagActiveLow    = 1 << 1
	flagInput        = 1 << 2
	flagOutput       = 1 << 3
	flagRising       = 1 << 4
	flagFalling      = 1 << 5
	flagOpenDrain    = 1 << 6
	flagOpenSource   = 1 << 7
	flagPullUp       = 1 << 8
	flagPullDown     = 1 << 9
	flagBiasDisabled = 1 << 10
)

// The uses of a line.
const (
	asIs     = 0
	asInput  = flagInput
	asOutput = flagOutput
	asEdges  = flagInput | flagRising | flagFalling
)

// flags returns the flags for a use of the line.
func (l Line) flags(use uint64) uint64 {
	if l.ActiveLow {
		use |= flagActiveLow
	}
	if use&(flagInput|flagOutput) != 0 {
		use |= map[string]uint64{"pull_up": flagPullUp, "pull_down": flagPullDown, "disabled": flagBiasDisabled}[l.Bias]
	}
	if use&flagOutput != 0 {
		use |= map[string]uint64{"open_drain": flagOpenDrain, "open_source": flagOpenSource}[l.Drive]
	}
	return use
}

// request returns a file for a line, which no other program can use until it is closed.
// v is the first level of an output.
func (c *client) request(l *output, use uint64, v bool) (*os.File, error) {
	chip, info, err := c.find(l.config)
	if err != nil {
		kind := tea.AsError(err).Type
		if errors.Is(err, fs.ErrPermission) {
			kind, err = tea.PermissionDenied, fmt.Errorf("%w; add the user to the group of the chip, such as gpio", err)
		}
		return nil, tea.Errorf(kind, "the GPIO line %q: %w", l.name, err)
	}
	defer chip.Close()
	r := unix.GPIOV2LineRequest{Num_lines: 1}
	r.Offsets[0], r.Config.Flags = info.Offset, l.config.flags(use)
	copy(r.Consumer[:], "tea")
	attribute := &r.Config.Attrs[0]
	switch debounce := l.config.DebounceSeconds; {
	case use == asOutput:
		attribute.Attr.Id, attribute.Attr.Flags = unix.GPIO_V2_LINE_ATTR_ID_OUTPUT_VALUES, bit(v)
	case use == asEdges && debounce > 0: // 32 bits at the beginning of the field
		binary.NativeEndian.PutUint32((*[8]byte)(unsafe.Pointer(&attribute.Attr.Flags))[:], uint32(debounce*1e6))
		attribute.Attr.Id = unix.GPIO_V2_LINE_ATTR_ID_DEBOUNCE
	}
	if attribute.Attr.Id != 0 {
		r.Config.Num_attrs, attribute.Mask = 1, 1
	}
	err = c.system.ioctl(chip, unix.GPIO_V2_GET_LINE_IOCTL, unsafe.Pointer(&r))
	if errors.Is(err, unix.EBUSY) {
		return nil, tea.Errorf(tea.ConnectionError, "the GPIO line %q is used by %q: %w", l.name, text(info.Consumer[:]), err)
	}
	if err == nil {
		err = unix.SetNonblock(int(r.Fd), true) // so that closing the file ends a read
	}
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "the GPIO line %q: the chip refuses the request: %w", l.name, err)
	}
	return os.NewFile(uintptr(r.Fd), l.name), nil
}

// find returns the open chip of a line, and what the kernel says about the line.
func (c *client) find(l Line) (*os.File, unix.GPIOV2LineInfo, error) {
	var line unix.GPIOV2LineInfo
	paths, err := c.system.chips()
	if err != nil {
		return nil, line, err
	}
	for _, path := range paths {
		f, err := c.system.open(path)
		if err != nil {
			return nil, line, tea.Errorf(tea.ConnectionError, "open the GPIO chip: %w", err)
		}
		var chip unix.GPIOChipInfo
		if err := c.system.ioctl(f, unix.GPIO_GET_CHIPINFO_IOCTL, unsafe.Pointer(&chip)); err == nil && (text(chip.Name[:]) == l.Chip || text(chip.Label[:]) == l.Chip) {
			for offset := range chip.Lines {
				line = unix.GPIOV2LineInfo{Offset: offset}
				if err := c.system.ioctl(f, unix.GPIO_V2_GET_LINEINFO_IOCTL, unsafe.Pointer(&line)); err != nil {
					return nil, line, errors.Join(err, f.Close())
				}
				if l.Offset != nil && uint32(*l.Offset) == offset || l.Offset == nil && text(line.Name[:]) == l.Line {
					return f, line, nil
				}
			}
		}
		_ = f.Close()
	}
	return nil, line, tea.Errorf(tea.NotFound, "this machine has no GPIO chip %q with that line", l.Chip)
}

// text returns the text in an array that ends with zeros.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}

func bit(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

// get returns the level of a requested line.
func (c *client) get(f *os.File) (bool, error) {
	values := unix.GPIOV2LineValues{Mask: 1}
	err := c.system.ioctl(f, unix.GPIO_V2_LINE_GET_VALUES_IOCTL, unsafe.Pointer(&values))
	return values.Bits&1 == 1, err
}

// put sets the level of a requested output.
func (c *client) put(f *os.File, v bool) error {
	values := unix.GPIOV2LineValues{Mask: 1, Bits: bit(v)}
	return c.system.ioctl(f, unix.GPIO_V2_LINE_SET_VALUES_IOCTL, unsafe.Pointer(&values))
}

// nextEdge waits for a change, and returns the level after it.
func nextEdge(f *os.File) (bool, error) {
	var event unix.GPIOV2LineEvent
	_, err := io.ReadFull(f, (*[unsafe.Sizeof(event)]byte)(unsafe.Pointer(&event))[:])
	return event.Id == unix.GPIO_V2_LINE_EVENT_RISING_EDGE, err
}
