package execpath

import "iter"

// Tree stores a value for each of a set of paths, in the order of the run: a path
// comes before the paths inside it, and sibling paths are in the order in which
// they were added. Finding, adding and removing take time proportional to a path's
// depth, independent of the number of paths. The zero value is an empty tree. It is
// not safe for concurrent use.
type Tree[T any] struct {
	root   place[T]
	byPath map[Path]*place[T]
	length int
}

// place is one path of the tree. Places without a value connect others.
type place[T any] struct {
	path          Path
	value         T
	held          bool
	reserved      bool
	outer         *place[T]
	first, last   *place[T] // parts
	before, after *place[T] // other parts of outer
}

// Len returns the number of values.
func (t *Tree[T]) Len() int { return t.length }

// Get returns the value at a path; ok is false if there is none.
func (t *Tree[T]) Get(path Path) (v T, ok bool) {
	if p := t.find(path); p != nil {
		return p.value, p.held
	}
	return v, false
}

// Set stores a value at a path.
func (t *Tree[T]) Set(path Path, v T) {
	p := t.at(path)
	if !p.held {
		p.held = true
		t.length++
	}
	p.value = v
}

// Reserve keeps the position of a path among its siblings until [Tree.Unreserve],
// with or without a value.
func (t *Tree[T]) Reserve(path Path) { t.at(path).reserved = true }

// Unreserve reverses [Tree.Reserve]. Values remain.
func (t *Tree[T]) Unreserve(path Path) {
	if p := t.find(path); p != nil {
		p.reserved = false
		t.prune(p)
	}
}

// Delete removes the value at a path, but not the values inside it.
func (t *Tree[T]) Delete(path Path) {
	if p := t.find(path); p != nil {
		t.release(p)
	}
}

// Nearest returns the innermost value at a path or outside it.
func (t *Tree[T]) Nearest(path Path) (v T, ok bool) {
	for {
		if v, ok := t.Get(path); ok || path == "" {
			return v, ok
		}
		path = path.Outer()
	}
}

// Below returns the values inside a path, in order. During the loop, only values
// that it has already yielded may be deleted.
func (t *Tree[T]) Below(path Path) iter.Seq2[Path, T] {
	return func(yield func(Path, T) bool) {
		top := t.find(path)
		if top == nil {
			return
		}
		for p := top.next(top); p != nil; {
			next := p.next(top)
			if p.held && !yield(p.path, p.value) {
				return
			}
			p = next
		}
	}
}

// Cut removes the values and reservations inside a path and returns the values,
// innermost first.
func (t *Tree[T]) Cut(path Path) []T {
	var out []T
	top := t.find(path)
	if top == nil {
		return nil
	}
	for p := top.first; p != nil; p = top.first {
		for p.first != nil {
			p = p.first
		}
		if p.held {
			out = append(out, p.value)
		}
		t.remove(p)
	}
	t.prune(top)
	return out
}

// next returns the next place in order, nil after the last one below top.
func (p *place[T]) next(top *place[T]) *place[T] {
	if p.first != nil {
		return p.first
	}
	for ; p != top; p = p.outer {
		if p.after != nil {
			return p.after
		}
	}
	return nil
}

func (t *Tree[T]) find(path Path) *place[T] {
	if path == "" {
		return &t.root
	}
	return t.byPath[path]
}

// at returns the place of a path, and adds it and its parents if necessary.
func (t *Tree[T]) at(path Path) *place[T] {
	if p := t.find(path); p != nil {
		return p
	}
	outer := t.at(path.Outer())
	p := &place[T]{path: path, outer: outer, before: outer.last}
	if outer.last != nil {
		outer.last.after = p
	} else {
		outer.first = p
	}
	outer.last = p
	if t.byPath == nil {
		t.byPath = map[Path]*place[T]{}
	}
	t.byPath[path] = p
	return p
}

// release drops a place's value, and the place if it is no longer needed.
func (t *Tree[T]) release(p *place[T]) {
	if p.held {
		t.length--
	}
	var none T
	p.value, p.held = none, false
	t.prune(p)
}

// prune removes a place that is not needed, and its parents that are not needed
// without it.
func (t *Tree[T]) prune(p *place[T]) {
	for p != &t.root && p.outer != nil && !p.held && !p.reserved && p.first == nil {
		outer := p.outer
		t.remove(p)
		p = outer
	}
}

// remove removes a place without children from the tree.
func (t *Tree[T]) remove(p *place[T]) {
	if p.held {
		t.length--
	}
	if p.before != nil {
		p.before.after = p.after
	} else {
		p.outer.first = p.after
	}
	if p.after != nil {
		p.after.before = p.before
	} else {
		p.outer.last = p.before
	}
	p.outer = nil
	delete(t.byPath, p.path)
}
