package chunk

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// By is where a text can be split.
type By string

// The ways to split.
const (
	// Tokens splits between words.
	Tokens By = "tokens"
	// Sentences splits between sentences (Unicode Standard Annex #29), and inside
	// a sentence that is larger than a chunk.
	Sentences By = "sentences"
	// Headings splits at the headings of Markdown, and between sentences in a section that is larger than a chunk. A
	// chunk never spans two sections.
	Headings By = "headings"
)

// Options select how to split. Size and Overlap are in tokens; Overlap is less than Size.
type Options struct {
	By            By
	Size, Overlap int
	// Count counts the tokens of a text.
	Count func(text string) int
}

// Chunk is a piece of a text: the bytes from Start to End.
type Chunk struct {
	Text       string
	Start, End int
	Tokens     int
	// Headings are the headings that the chunk is under, the outermost first.
	Headings []string
}

// Split splits a text. The chunks cover the text, except for white space at their ends. A chunk exceeds Size only if it
// is a single word. The time is proportional to the length of the text.
func Split(text string, o Options) []Chunk {
	var chunks []Chunk
	all := []Section{{0, len(text), nil}}
	if o.By == Headings {
		all = Sections(text)
	}
	for _, s := range all {
		chunks = append(chunks, s.pack(text, o)...)
	}
	return chunks
}

// Section is a part of a text from one heading of Markdown to the next: the
// bytes from Start to End.
type Section struct {
	Start, End int
	// Headings are the headings that the section is under, the outermost first.
	Headings []string
}

// Sections splits a text at its headings.
func Sections(text string) []Section {
	var (
		out    []Section
		path   []string
		levels []int
		fence  string
		at     = Section{}
	)
	for offset := 0; offset < len(text); {
		line := text[offset:]
		if i := strings.IndexByte(line, '\n'); i >= 0 {
			line = line[:i+1]
		}
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			fence = trimmed[:3]
		default:
			level, title := heading(line)
			if level == 0 {
				break
			}
			if at.End = offset; at.End > at.Start {
				out = append(out, at)
			}
			for len(levels) > 0 && levels[len(levels)-1] >= level {
				levels, path = levels[:len(levels)-1], path[:len(path)-1]
			}
			levels, path = append(levels, level), append(path[:len(path):len(path)], title)
			at = Section{Start: offset, Headings: path}
		}
		offset += len(line)
	}
	if at.End = len(text); at.End > at.Start {
		out = append(out, at)
	}
	return out
}

// heading parses an ATX heading of CommonMark; level 0 = it is not a heading.
func heading(line string) (level int, title string) {
	rest := strings.TrimLeft(line, " ")
	if len(line)-len(rest) > 3 {
		return 0, ""
	}
	rest = strings.TrimRight(rest, " \t\r\n")
	title = strings.TrimLeft(rest, "#")
	level = len(rest) - len(title)
	if level == 0 || level > 6 || title != "" && title[0] != ' ' && title[0] != '\t' {
		return 0, ""
	}
	return level, strings.TrimSpace(strings.TrimRight(title, "#"))
}

// atom is the smallest part of a chunk: a sentence or a word, with the white
// space after it.
type atom struct{ start, end, tokens int }

// pack combines the atoms of a section to chunks.
func (s Section) pack(text string, o Options) []Chunk {
	atoms := s.atoms(text, o)
	var chunks []Chunk
	for first := 0; first < len(atoms); {
		tokens, next := atoms[first].tokens, first+1
		for next < len(atoms) && tokens+atoms[next].tokens <= o.Size {
			tokens += atoms[next].tokens
			next++
		}
		if c, ok := s.chunk(text, atoms[first].start, atoms[next-1].end, o); ok {
			chunks = append(chunks, c)
		}
		if next == len(atoms) {
			break
		}
		// The next chunk repeats the last atoms, but not all: it must advance.
		back, repeated := next, 0
		for back-1 > first && repeated+atoms[back-1].tokens <= o.Overlap {
			back--
			repeated += atoms[back].tokens
		}
		first = back
	}
	return chunks
}

// chunk returns the part of the text without white space at its ends; false if
// nothing is left.
func (s Section) chunk(text string, start, end int, o Options) (Chunk, bool) {
	part := text[start:end]
	start += len(part) - len(strings.TrimLeftFunc(part, unicode.IsSpace))
	part = strings.TrimSpace(part)
	if part == "" {
		return Chunk{}, false
	}
	return Chunk{Text: part, Start: start, End: start + len(part), Tokens: o.Count(part), Headings: s.Headings}, true
}

func (s Section) atoms(text string, o Options) []atom {
	if o.By == Tokens {
		return words(text, s.Start, s.End, o)
	}
	var atoms []atom
	state := -1
	for offset := s.Start; offset < s.End; {
		sentence, _, next := uniseg.FirstSentenceInString(text[offset:s.End], state)
		state = next
		end := offset + len(sentence)
		if tokens := o.Count(sentence); tokens <= o.Size {
			atoms = append(atoms, atom{offset, end, tokens})
		} else {
			atoms = append(atoms, words(text, offset, end, o)...)
		}
		offset = end
	}
	return atoms
}

// longWord is the size in bytes from which a word is split: scripts without
// spaces have no other break.
const longWord = 48

// words splits a text after white space, and a word that is larger than a chunk
// between its characters.
func words(text string, start, end int, o Options) []atom {
	var atoms []atom
	for at := start; at < end; {
		next := at
		for next < end && next-at < longWord && !isSpace(text[next]) {
			next += character(text[next:end])
		}
		for next < end && isSpace(text[next]) {
			next++
		}
		word := atom{at, next, o.Count(text[at:next])}
		if word.tokens <= o.Size {
			atoms = append(atoms, word)
		}
		for at < next && word.tokens > o.Size {
			size := character(text[at:next])
			atoms = append(atoms, atom{at, at + size, o.Count(text[at : at+size])})
			at += size
		}
		at = next
	}
	return atoms
}

// character returns the length of the first user-perceived character, such as an
// emoji of several code points.
func character(text string) int {
	if text[0] < utf8.RuneSelf && (len(text) == 1 || text[1] < utf8.RuneSelf) {
		return 1
	}
	cluster, _, _, _ := uniseg.FirstGraphemeClusterInString(text, -1)
	return len(cluster)
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
