package stream

import (
	"bytes"
	"io"
)

// Event is one server-sent event.
type Event struct {
	// Name is the event's type; "" if none was sent.
	Name string
	// Data is the event's data. It is valid until the next call of Next.
	Data []byte
}

// Events reads server-sent events. It skips comments (": keep-alive") and events without
// data. It is more lenient than the standard: an event at the end of the stream need not
// end with an empty line; a line that begins with a brace or a bracket starts a separate
// event that ends where its JSON is complete, because servers report failures as bare
// JSON; and a field named error is an event of that name.
type Events struct {
	in   lineReader
	data []byte
	// held is the first line of bare JSON after an unfinished event.
	held []byte
}

// NewEvents reads events of up to limit bytes from r. It buffers, so the caller must
// not read from r.
func NewEvents(r io.Reader, limit int) *Events { return &Events{in: newLineReader(r, limit)} }

// Next returns the next event. It returns io.EOF after the last one.
func (e *Events) Next() (Event, error) {
	var event Event
	e.data = e.data[:0]
	if first := e.held; first != nil {
		e.held = nil
		return e.unframed(first)
	}
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
		case beginsJSON(line):
			if seen {
				e.held = bytes.Clone(line)
				return e.finish(event), nil
			}
			return e.unframed(line)
		default:
			field, text := splitField(line)
			switch string(field) {
			case "event":
				event.Name = string(text)
			case "data", "error":
				if string(field) == "error" {
					event.Name = "error"
				}
				if seen {
					e.data = append(e.data, '\n')
				}
				if len(e.data)+len(text) > e.in.limit {
					return Event{}, ErrTooLong
				}
				seen = true
				e.data = append(e.data, text...)
			}
		}
	}
}

func beginsJSON(line []byte) bool {
	line = bytes.TrimLeft(line, " \t")
	return len(line) > 0 && (line[0] == '{' || line[0] == '[')
}

// unframed reads JSON that begins with a line outside of any event. Incomplete JSON extends
// to the end of the stream.
func (e *Events) unframed(line []byte) (Event, error) {
	var n nesting
	for {
		if len(e.data)+len(line) > e.in.limit {
			return Event{}, ErrTooLong
		}
		e.data = append(e.data, line...)
		if n.closed(line) {
			return Event{Data: e.data}, nil
		}
		var err error
		if line, err = e.in.next(); err == io.EOF {
			return Event{Data: e.data}, nil
		} else if err != nil {
			return Event{}, err
		}
		e.data = append(e.data, '\n')
	}
}

// nesting tracks the brackets of a JSON text line by line.
type nesting struct {
	depth           int
	inText, escaped bool
}

// closed consumes the next line and reports whether every bracket is closed.
func (n *nesting) closed(line []byte) bool {
	for _, c := range line {
		switch {
		case n.escaped:
			n.escaped = false
		case n.inText && c == '\\':
			n.escaped = true
		case c == '"':
			n.inText = !n.inText
		case n.inText:
		case c == '{' || c == '[':
			n.depth++
		case c == '}' || c == ']':
			n.depth--
		}
	}
	return n.depth <= 0
}

func (e *Events) finish(event Event) Event {
	event.Data = e.data
	return event
}

// splitField splits "name: text". A comment has an empty name.
func splitField(line []byte) (name, text []byte) {
	name, text, _ = bytes.Cut(line, []byte(":"))
	return name, bytes.TrimPrefix(text, []byte(" "))
}
