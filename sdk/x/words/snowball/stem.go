// Package snowball has the stemmers of Snowball for the languages of package words. The algorithms are
// generated: see scripts/snowball.
package snowball

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Stemmer returns the function that returns the stem of a word of a language, nil for an unknown language. The
// word is in lower case and composed. The function is safe for concurrent use. It can panic on unusual words,
// because the algorithms are not written for them.
func Stemmer(language string) func(word string) string {
	run, ok := stemmers[language]
	if !ok {
		return nil
	}
	return func(word string) string {
		e := env{word: []rune(word)}
		e.limit = len(e.word)
		e.ket = e.limit
		run(&e)
		return string(e.word)
	}
}

// Languages returns the names of the languages, unsorted.
func Languages() []string { return slices.Collect(maps.Keys(stemmers)) }

// env is the state of a stemmer. Its fields are the registers of Snowball.
type env struct {
	word                          []rune
	cursor, limit, back, bra, ket int
	variables
}

// among is an ending or beginning of a word. The entries of a table are sorted, those of
// findBack by their reversed texts.
type among struct {
	text    string
	shorter int16 // the longest entry that is contained in this one, or -1
	result  int16
	accepts func(*env) bool // nil: always
}

// letter moves behind a character, letterBack before it. next and previous move over any one.
func (e *env) letter(r rune) bool {
	return e.cursor < e.limit && e.word[e.cursor] == r && e.next()
}

func (e *env) letterBack(r rune) bool {
	return e.cursor > e.back && e.word[e.cursor-1] == r && e.previous()
}

func (e *env) next() bool {
	if e.cursor >= e.limit {
		return false
	}
	e.cursor++
	return true
}

func (e *env) previous() bool {
	if e.cursor <= e.back {
		return false
	}
	e.cursor--
	return true
}

// at moves to a position, atBack to one that is counted from the limit. Both return true.
func (e *env) at(position int) bool {
	e.cursor = position
	return true
}

func (e *env) atBack(position int) bool { return e.at(e.limit - position) }

// do runs a step and moves back to where it began; doBack counts from the limit.
func (e *env) do(step func(*env) bool) {
	cursor := e.cursor
	step(e)
	e.cursor = cursor
}

func (e *env) doBack(step func(*env) bool) {
	position := e.limit - e.cursor
	step(e)
	e.cursor = e.limit - position
}

// braHere begins the slice at the cursor, ketHere ends it there. Both return true.
func (e *env) braHere() bool {
	e.bra = e.cursor
	return true
}

func (e *env) ketHere() bool {
	e.ket = e.cursor
	return true
}

// in moves behind the next character if the group has it. The other methods without Back do the same with
// characters outside of the group (out), or move to the first one that the group does not have (goIn) or has (goOut).
func (e *env) in(group string) bool {
	if e.cursor >= e.limit || !strings.ContainsRune(group, e.word[e.cursor]) {
		return false
	}
	e.cursor++
	return true
}

func (e *env) out(group string) bool {
	if e.cursor >= e.limit || strings.ContainsRune(group, e.word[e.cursor]) {
		return false
	}
	e.cursor++
	return true
}

func (e *env) goIn(group string) bool {
	for e.in(group) {
	}
	return e.cursor < e.limit
}

func (e *env) goOut(group string) bool {
	for e.out(group) {
	}
	return e.cursor < e.limit
}

func (e *env) inBack(group string) bool {
	if e.cursor <= e.back || !strings.ContainsRune(group, e.word[e.cursor-1]) {
		return false
	}
	e.cursor--
	return true
}

func (e *env) outBack(group string) bool {
	if e.cursor <= e.back || strings.ContainsRune(group, e.word[e.cursor-1]) {
		return false
	}
	e.cursor--
	return true
}

func (e *env) goInBack(group string) bool {
	for e.inBack(group) {
	}
	return e.cursor > e.back
}

func (e *env) goOutBack(group string) bool {
	for e.outBack(group) {
	}
	return e.cursor > e.back
}

// eq moves behind a text, eqBack before it.
func (e *env) eq(text string) bool {
	n, diff := e.compare(text)
	if diff == 0 {
		e.cursor += n
	}
	return diff == 0
}

func (e *env) eqBack(text string) bool {
	n, diff := e.compareBack(text)
	if diff == 0 {
		e.cursor -= n
	}
	return diff == 0
}

// compare compares the characters after the cursor with a text, whose length in characters it returns if they are equal.
func (e *env) compare(text string) (n int, diff rune) {
	for _, r := range text {
		if e.cursor+n >= e.limit {
			return n, -1
		}
		if diff := e.word[e.cursor+n] - r; diff != 0 {
			return n, diff
		}
		n++
	}
	return n, 0
}

func (e *env) compareBack(text string) (n int, diff rune) {
	for text != "" {
		r, size := utf8.DecodeLastRuneInString(text)
		if e.cursor-n <= e.back {
			return n, -1
		}
		if diff := e.word[e.cursor-n-1] - r; diff != 0 {
			return n, diff
		}
		n, text = n+1, text[:len(text)-size]
	}
	return n, 0
}

// find moves behind the longest entry of a table and returns its result, 0 if there is none; findBack moves before it.
func (e *env) find(table []among) int { return e.longest(table, (*env).compare, 1) }

func (e *env) findBack(table []among) int { return e.longest(table, (*env).compareBack, -1) }

func (e *env) longest(table []among, compare func(*env, string) (int, rune), step int) int {
	at := e.cursor
	low, high := 0, len(table)
	for low < high {
		middle := (low + high) / 2
		if _, diff := compare(e, table[middle].text); diff < 0 {
			high = middle
		} else {
			low = middle + 1
		}
	}
	for i := low - 1; i >= 0; i = int(table[i].shorter) {
		entry := &table[i]
		n, diff := compare(e, entry.text)
		if diff != 0 {
			continue
		}
		e.cursor = at + step*n
		if entry.accepts == nil {
			return int(entry.result)
		}
		if ok := entry.accepts(e); ok {
			e.cursor = at + step*n
			return int(entry.result)
		}
		e.cursor = at
	}
	return 0
}

// replace replaces the slice from bra to ket.
func (e *env) replace(text string) {
	e.ket += e.splice(e.bra, e.ket, text)
}

func (e *env) remove() { e.replace("") }

func (e *env) slice() string { return string(e.word[e.bra:e.ket]) }

// insert replaces the characters between two positions and leaves the slice as it is.
func (e *env) insert(bra, ket int, text string) {
	grown := e.splice(bra, ket, text)
	if bra <= e.bra {
		e.bra += grown
	}
	if bra <= e.ket {
		e.ket += grown
	}
}

func (e *env) splice(bra, ket int, text string) (grown int) {
	fresh := []rune(text)
	grown = len(fresh) - (ket - bra)
	e.word = slices.Replace(e.word, bra, ket, fresh...)
	e.limit += grown
	if e.cursor >= ket {
		e.cursor += grown
	} else if e.cursor > bra {
		e.cursor = bra
	}
	return grown
}
