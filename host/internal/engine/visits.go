package engine

import "slices"

// visits are the nodes of a frame by name, with their number of visits and their
// last result. It is a list while it is short, because most frames have few nodes.
type visits struct {
	list []entry
	// own backs a list of one or two entries.
	own [2]entry
	// index finds an entry of a long list.
	index map[string]int
}

type entry struct {
	name   string
	visits int
	result any
	// ended reports whether there is a result.
	ended bool
}

// indexThreshold is the length from which there is an index.
const indexThreshold = 8

// grow makes room for n more entries.
func (l *visits) grow(n int) {
	if l.list == nil && n <= len(l.own) {
		l.list = l.own[:0]
	}
	l.list = slices.Grow(l.list, n)
}

// at returns the entry of a node, and adds it if necessary.
func (l *visits) at(name string) *entry {
	if e := l.find(name); e != nil {
		return e
	}
	l.grow(1)
	l.list = append(l.list, entry{name: name})
	switch n := len(l.list); {
	case l.index != nil:
		l.index[name] = n - 1
	case n > indexThreshold:
		l.index = make(map[string]int, 2*n)
		for i, e := range l.list {
			l.index[e.name] = i
		}
	}
	return &l.list[len(l.list)-1]
}

// find returns the entry of a node, nil if there is none. It is valid until a node
// is added.
func (l *visits) find(name string) *entry {
	if l.index != nil {
		if i, ok := l.index[name]; ok {
			return &l.list[i]
		}
		return nil
	}
	for i := range l.list {
		if l.list[i].name == name {
			return &l.list[i]
		}
	}
	return nil
}

// visit counts a visit of a node and returns its number.
func (l *visits) visit(name string) int {
	e := l.at(name)
	e.visits++
	return e.visits
}

// resetVisits resets the counts.
func (l *visits) resetVisits() {
	for i := range l.list {
		l.list[i].visits = 0
	}
}

func (l *visits) setResult(name string, v any) {
	e := l.at(name)
	e.result, e.ended = v, true
}

// result returns the last result of a node; ok is false if there is none.
func (l *visits) result(name string) (v any, ok bool) {
	if e := l.find(name); e != nil && e.ended {
		return e.result, true
	}
	return nil, false
}

// addResults adds the results of another frame.
func (l *visits) addResults(from *visits) {
	for _, e := range from.list {
		if e.ended {
			l.setResult(e.name, e.result)
		}
	}
}

// copyResults copies the results to m.
func (l *visits) copyResults(m map[string]any) {
	for _, e := range l.list {
		if e.ended {
			m[e.name] = e.result
		}
	}
}
