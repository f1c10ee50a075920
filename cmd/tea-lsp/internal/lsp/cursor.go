package lsp

import (
	"strings"
	"unicode/utf8"
)

// cursor is where the cursor is in a document. It is found from the indentation and the
// brackets of the line, so that a document which is not valid YAML has one too.
type cursor struct {
	doc    *document
	offset int
	// levels are the mappings and lists around the cursor, the outermost first.
	levels []level
	// key is the key whose value is at the cursor, "" if the cursor is at a key.
	key string
	// block reports whether the value is a block scalar that began on a line above.
	block bool
	// siblings are the plain values of the mapping around the cursor.
	siblings map[string]string
}

// level is the key of a mapping, or an item of a list.
type level struct {
	// key is "-" for an item.
	key string
	// siblings are the plain values of the mapping that has the key.
	siblings map[string]string
}

// path returns the keys of the levels.
func (c *cursor) path() []string {
	keys := make([]string, len(c.levels))
	for i, l := range c.levels {
		keys[i] = l.key
	}
	return keys
}

// mark is an item's dash or a key, with its column.
type mark struct {
	column int
	// key is "-" for a dash; value is the text after a key.
	key, value string
}

// marks returns what a line of a block begins with: dashes, and at most one key.
func marks(line string) []mark {
	var found []mark
	for at := 0; ; {
		rest := strings.TrimLeft(line[at:], " ")
		at = len(line) - len(rest)
		if rest == "" || rest[0] == '#' {
			return found
		}
		if rest == "-" || strings.HasPrefix(rest, "- ") {
			found = append(found, mark{at, "-", ""})
			at++
			continue
		}
		if key, value, ok := cutKey(rest); ok {
			found = append(found, mark{at, key, value})
		}
		return found
	}
}

// cutKey splits "key: value".
func cutKey(text string) (key, value string, ok bool) {
	if text[0] == '"' || text[0] == '\'' {
		end := strings.IndexByte(text[1:], text[0])
		if end < 0 || !strings.HasPrefix(strings.TrimLeft(text[end+2:], " "), ":") {
			return "", "", false
		}
		_, value, _ = strings.Cut(text[end+2:], ":")
		return text[1 : end+1], strings.TrimSpace(value), true
	}
	if strings.ContainsRune("{[|>&*!", rune(text[0])) {
		return "", "", false
	}
	end := strings.Index(text+" ", ": ")
	if end < 0 {
		return "", "", false
	}
	return text[:end], strings.TrimSpace(text[min(end+1, len(text)):]), true
}

// cursorAt finds the cursor.
func cursorAt(d *document, offset int) *cursor {
	c := &cursor{doc: d, offset: offset}
	row := d.lineOf(offset)
	start, end := d.line(row)
	offset = min(offset, end)
	line, head := d.text[start:end], d.text[start:offset]
	here := marks(head)
	column := len(line) - len(strings.TrimLeft(line, " "))
	if strings.TrimSpace(head) == "" {
		column = len(head)
	}
	if n := len(here); n > 0 {
		last := here[n-1]
		if last.key == "-" {
			rest := line[last.column+1:]
			column = last.column + 1 + len(rest) - len(strings.TrimLeft(rest, " "))
			column = min(column, len(head))
		} else {
			column, c.key = last.column, last.key
			here = here[:n-1]
		}
	}
	c.siblings = c.around(row, column)
	c.climb(row, column, here)
	if c.block {
		return c
	}
	value := 0
	if all := marks(line); len(all) > 0 {
		value = all[len(all)-1].column
		if c.key != "" {
			value += len(line[value:]) - len(strings.TrimLeft(strings.TrimPrefix(line[value:], c.key+":"), " "))
		} else {
			value++
		}
	}
	c.flow(line, min(value, len(line)), len(head))
	return c
}

// climb finds the levels from the marks before the cursor in its line, and in the lines
// above, which are indented less.
func (c *cursor) climb(row, column int, here []mark) {
	needs, afterDash := column, false
	add := func(row int, found []mark) {
		for i := len(found) - 1; i >= 0; i-- {
			m := found[i]
			if m.column > needs || m.column == needs && (!afterDash || m.key == "-") {
				continue
			}
			if m.key != "-" && m.value != "" {
				switch m.value[0] {
				case '|', '>':
					c.levels, c.key, c.block = nil, m.key, true
					c.siblings = c.around(row, m.column)
					needs, afterDash = m.column, false
					continue
				case '&', '!', '#':
				default:
					continue
				}
			}
			l := level{key: m.key}
			if m.key != "-" {
				l.siblings = c.around(row, m.column)
			}
			c.levels = append([]level{l}, c.levels...)
			needs, afterDash = m.column, m.key == "-"
		}
	}
	add(row, here)
	for row--; row >= 0 && (needs > 0 || afterDash); row-- {
		start, end := c.doc.line(row)
		add(row, marks(c.doc.text[start:end]))
	}
}

// around returns the plain values of the block mapping whose keys are at a column.
func (c *cursor) around(row, column int) map[string]string {
	values := map[string]string{}
	for _, step := range []int{-1, 1} {
		at := row
		if step == 1 {
			at++
		}
		for ; at >= 0 && at < len(c.doc.lines); at += step {
			start, end := c.doc.line(at)
			found := marks(c.doc.text[start:end])
			if len(found) == 0 {
				continue
			}
			outside := found[0].column < column
			if outside && step == 1 {
				break
			}
			if last := found[len(found)-1]; last.column == column && last.key != "-" {
				values[last.key] = plain(last.value)
			}
			if outside && at != row {
				break
			}
			if outside && len(found) > 1 { // the dash of the item
				break
			}
		}
	}
	return values
}

func plain(value string) string {
	value, _, _ = strings.Cut(value, " #")
	return strings.Trim(value, `"' `)
}

// bracket is an open mapping or list in brackets.
type bracket struct {
	open byte
	// key is the key before the current value of a mapping.
	key      string
	siblings map[string]string
}

// flowReader reads a line with brackets.
type flowReader struct {
	line  string
	stack []*bracket
	// begin is where the current word begins, quote the quote that it is in.
	begin   int
	quote   byte
	escaped bool
}

// flow follows the brackets from the beginning of a value to the cursor, and to the end
// of the line for the siblings.
func (c *cursor) flow(line string, at, end int) {
	f := flowReader{line: line, begin: at}
	for ; at < len(line); at++ {
		if at == end {
			c.enter(f.stack)
		}
		f.read(at)
	}
	if end >= len(line) {
		c.enter(f.stack)
	}
}

// enter adds the levels of open brackets.
func (c *cursor) enter(stack []*bracket) {
	for _, b := range stack {
		if c.key != "" {
			c.levels = append(c.levels, level{c.key, c.siblings})
		}
		c.key, c.siblings = b.key, b.siblings
		if b.open == '[' {
			c.levels = append(c.levels, level{key: "-"})
		}
	}
}

// read reads the character at an offset of the line.
func (f *flowReader) read(at int) {
	ch := f.line[at]
	if f.quote != 0 {
		switch {
		case f.escaped:
			f.escaped = false
		case ch == '\\' && f.quote == '"':
			f.escaped = true
		case ch == f.quote:
			f.quote = 0
		}
		return
	}
	atBegin := strings.Trim(f.line[f.begin:at], " ") == ""
	var inner *bracket
	if n := len(f.stack); n > 0 {
		inner = f.stack[n-1]
	}
	switch ch {
	case '"', '\'':
		if atBegin {
			f.quote = ch
		}
		return
	case '{', '[':
		if !atBegin {
			return
		}
		f.stack = append(f.stack, &bracket{open: ch, siblings: map[string]string{}})
	case '}', ']', ',':
		if inner == nil {
			return
		}
		if inner.key != "" {
			inner.siblings[inner.key] = plain(f.line[f.begin:at])
		}
		if inner.key = ""; ch != ',' {
			f.stack = f.stack[:len(f.stack)-1]
		}
	case ':':
		if inner == nil || inner.open != '{' || !strings.HasPrefix(f.line[at+1:]+" ", " ") {
			return
		}
		inner.key = plain(f.line[f.begin:at])
	default:
		return
	}
	f.begin = at + 1
}

// word returns the offsets of the word around the cursor. is reports which characters
// belong to it.
func (c *cursor) word(is func(rune) bool) (start, end int) {
	first, last := c.doc.line(c.doc.lineOf(c.offset))
	start, end = min(c.offset, last), min(c.offset, last)
	for start > first {
		r, size := utf8.DecodeLastRuneInString(c.doc.text[first:start])
		if !is(r) {
			break
		}
		start -= size
	}
	for end < last {
		r, size := utf8.DecodeRuneInString(c.doc.text[end:last])
		if !is(r) {
			break
		}
		end += size
	}
	return start, end
}
