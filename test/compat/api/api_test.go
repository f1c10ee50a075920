// Package api compares the Go API of the SDK, and what programs that embed tea need of
// package host, with the API of earlier releases.
package api

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite next.txt")

const (
	root   = "github.com/the-edge-agent/tea/"
	module = root + "sdk"
)

// promised are the packages that follow semantic versioning. Of those of the host only the
// names in host.txt do: the others are for the programs of this repository.
var promised = []string{
	module, module + "/schema", module + "/serve", module + "/teatest", module + "/value",
	root + "host", root + "host/flow", root + "host/checkpoints", root + "client",
}

const ofHost = "host"

// TestPromise compares the API with the listings: next.txt is the current one,
// and each line of a released one (v1.2.3.txt) must still be there. What was
// released is never removed or changed within a major version.
func TestPromise(t *testing.T) {
	t.Parallel()
	now := listing(t)
	if *update {
		sdk := slices.DeleteFunc(slices.Clone(now), func(line string) bool { return strings.HasPrefix(line, ofHost) })
		if err := os.WriteFile("next.txt", []byte(strings.Join(sdk, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob("*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("listings: %v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		before := strings.Split(strings.TrimSpace(string(data)), "\n")
		for _, line := range before {
			if _, found := slices.BinarySearch(now, line); !found {
				t.Errorf("%s: removed or changed: %s", file, line)
			}
		}
		if file != "next.txt" {
			continue
		}
		for _, line := range now {
			if _, found := slices.BinarySearch(before, line); !found && !strings.HasPrefix(line, ofHost) {
				t.Errorf("new: %s; run this test with -update", line)
			}
		}
	}
}

// listing returns a sorted line for each exported name, field and method.
func listing(t *testing.T) []string {
	t.Helper()
	l := &lister{lines: map[string]bool{}}
	load := packages(t)
	for _, path := range promised {
		pkg, err := load(path)
		if err != nil {
			t.Fatal(err)
		}
		l.prefix = strings.TrimPrefix(path, root) + ": "
		for _, name := range pkg.Scope().Names() {
			if obj := pkg.Scope().Lookup(name); obj.Exported() {
				l.object(obj)
			}
		}
	}
	return slices.Sorted(maps.Keys(l.lines))
}

// packages returns a function that loads a package from the build cache.
func packages(t *testing.T) func(path string) (*types.Package, error) {
	t.Helper()
	args := append([]string{"list", "-export", "-deps", "-json=ImportPath,Export"}, promised...)
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	exports := map[string]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ ImportPath, Export string }
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
	}
	read := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return read.Import
}

// lister collects the lines of one package after the other.
type lister struct {
	prefix string
	lines  map[string]bool
}

func (l *lister) add(format string, args ...any) {
	l.lines[l.prefix+fmt.Sprintf(format, args...)] = true
}

// name returns a type with the paths of packages relative to the module.
func name(t types.Type) string {
	if s, ok := t.(*types.Signature); ok {
		t = unnamed(s)
	}
	return types.TypeString(t, func(p *types.Package) string {
		if p.Path() == module {
			return "tea"
		}
		return strings.TrimPrefix(strings.TrimPrefix(p.Path(), module+"/"), root)
	})
}

// unnamed returns a signature without the names of parameters, which can
// change.
func unnamed(s *types.Signature) *types.Signature {
	tuple := func(of *types.Tuple) *types.Tuple {
		var vars []*types.Var
		for v := range of.Variables() {
			vars = append(vars, types.NewParam(token.NoPos, nil, "", v.Type()))
		}
		return types.NewTuple(vars...)
	}
	return types.NewSignatureType(nil, nil, nil, tuple(s.Params()), tuple(s.Results()), s.Variadic())
}

func (l *lister) object(obj types.Object) {
	switch obj := obj.(type) {
	case *types.Const:
		l.add("const %s %s = %s", obj.Name(), name(obj.Type()), obj.Val().ExactString())
	case *types.Var:
		l.add("var %s %s", obj.Name(), name(obj.Type()))
	case *types.Func:
		var params []string
		for p := range obj.Signature().TypeParams().TypeParams() {
			params = append(params, p.Obj().Name()+" "+name(p.Constraint()))
		}
		l.add("func %s%s%s", obj.Name(), bracketed(params), strings.TrimPrefix(name(obj.Type()), "func"))
	case *types.TypeName:
		l.named(obj)
	}
}

// named lists a type. An alias is listed like the type that it names: authors
// see no difference.
func (l *lister) named(obj *types.TypeName) {
	t := types.Unalias(obj.Type())
	switch u := t.Underlying().(type) {
	case *types.Struct:
		l.add("type %s struct", obj.Name())
		for field := range u.Fields() {
			if field.Exported() {
				l.add("type %s struct: %s %s", obj.Name(), field.Name(), name(field.Type()))
			}
		}
	case *types.Interface:
		// One line: an implementation needs every method.
		var methods []string
		for method := range u.Methods() {
			methods = append(methods, method.Name()+strings.TrimPrefix(name(method.Type()), "func"))
		}
		slices.Sort(methods)
		l.add("type %s interface {%s}", obj.Name(), strings.Join(methods, "; "))
		return
	default:
		l.add("type %s %s", obj.Name(), name(u))
	}
	for method := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		if method.Obj().Exported() {
			l.add("method %s.%s%s", obj.Name(), method.Obj().Name(), strings.TrimPrefix(name(method.Type()), "func"))
		}
	}
}

// bracketed returns a list of type parameters; "" if there are none.
func bracketed(params []string) string {
	if len(params) == 0 {
		return ""
	}
	return "[" + strings.Join(params, ", ") + "]"
}
