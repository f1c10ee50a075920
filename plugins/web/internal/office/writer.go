package office

import (
	"html"
	"strings"
)

// writer writes HTML: paragraphs, nested lists and tables.
type writer struct {
	strings.Builder
	lists []string // the open lists, ul or ol
}

// block writes an element with HTML as its content.
func (w *writer) block(tag, content string) {
	w.endLists()
	if content = strings.TrimSpace(content); content == "" {
		return
	}
	w.WriteString("<" + tag + ">" + content + "</" + tag + ">\n")
}

const maxListDepth = 8

// item writes an item of a list. level counts from 0.
func (w *writer) item(list string, level int, content string) {
	level = min(max(level, 0), maxListDepth-1)
	for len(w.lists) > level+1 {
		w.endList()
	}
	if len(w.lists) == level+1 && w.lists[level] != list {
		w.endList()
	}
	if len(w.lists) == level+1 {
		w.WriteString("</li>\n")
	}
	for len(w.lists) <= level {
		w.lists = append(w.lists, list)
		w.WriteString("<" + list + ">")
		if len(w.lists) <= level {
			w.WriteString("<li>")
		}
	}
	w.WriteString("<li>" + strings.TrimSpace(content))
}

func (w *writer) endList() {
	last := len(w.lists) - 1
	w.WriteString("</li></" + w.lists[last] + ">\n")
	w.lists = w.lists[:last]
}

func (w *writer) endLists() {
	for len(w.lists) > 0 {
		w.endList()
	}
}

// start and end write the tags of tables.
func (w *writer) start(tag string) {
	w.endLists()
	w.WriteString("<" + tag + ">")
}

func (w *writer) end(tag string) {
	w.endLists()
	w.WriteString("</" + tag + ">")
}

// htmlDocument returns a document with a body.
func htmlDocument(body string) []byte {
	return []byte("<!doctype html><html><body>" + body + "</body></html>")
}

const htmlType = "text/html; charset=utf-8"

func escape(text string) string { return html.EscapeString(text) }
