package stream

import (
	"bytes"
	"io"
)

// Event is one server-sent event.
type Event struct {
	// Name is the event's type, "" where the server named none.
	Name string
	// Data is what was sent; its bytes are valid until the next call of Next.
	Data []byte
}

// Events reads server-sent events. Comments (": keep-alive") and events
// without data are left out. Beyond the standard, an event at the end of the
// stream counts although no empty line follows it, and a line that begins with
// a brace is an event of its own: servers answer an event stream's request
// with bare JSON when something goes wrong.
type Events struct {
	in   lineReader
	data []byte
	// held is a bare JSON line found behind an event that was not yet closed.
	held []byte
}

// NewEvents reads from r. It buffers, so r belongs to it from then on.
func NewEvents(r io.Reader) *Events { return &Events{in: newLineReader(r)} }

// Next gives the next event; io.EOF after the last one.
func (e *Events) Next() (Event, error) {
	var event Event
	if e.held != nil {
		event.Data, e.held = e.held, nil
		return event, nil
	}
	e.data = e.data[:0]
	seen := false
	for {
		line, err := e.in.next()
		switch {
		case err == io.EOF && seen:
			return e.finish(event), nil
		case err != nil:
			return Event{}, err
		case len(line) == 0:
			if seen {
				return e.finish(event), nil
			}
			event.Name = ""
		case line[0] == '{':
			if seen {
				e.held = bytes.Clone(line)
				return e.finish(event), nil
			}
			event.Data = line
			return event, nil
		default:
			field, text := splitField(line)
			switch string(field) {
			case "event":
				event.Name = string(text)
			case "data":
				if seen {
					e.data = append(e.data, '\n')
				}
				if len(e.data)+len(text) > MaxRecord {
					return Event{}, ErrTooLong
				}
				seen = true
				e.data = append(e.data, text...)
			}
		}
	}
}

func (e *Events) finish(event Event) Event {
	event.Data = e.data
	return event
}

// splitField takes "name: text" apart; a comment has the empty name.
func splitField(line []byte) (name, text []byte) {
	name, text, _ = bytes.Cut(line, []byte(":"))
	return name, bytes.TrimPrefix(text, []byte(" "))
}
