//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"

	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	// version is the version of Kuzu, interfaceVersion the version of kuzu/engine.cpp.
	version          = "0.11.3"
	interfaceVersion = 3
	// bridgeFile is compiled by scripts/kuzu and loads the engine's file.
	bridgeFile = "libtea-kuzu.so"
	sumsFile   = "SHA256SUMS"
	remedy     = "install the package tea-plugin-graph-kuzu of the release, or run scripts/kuzu install in the source of tea, or set the environment variable " + LibraryVariable + " to the file " + bridgeFile + " of one of them"
)

// release is a file of a released package and its SHA-256 digest.
type release struct {
	file, digest string
	// machine is the architecture in the file's header.
	machine uint16
}

var releases = map[string]release{
	"amd64": {file: "_kuzu.cpython-311-x86_64-linux-gnu.so", digest: "eb35bef3d9ed3032afad673426930fb59af85430c7640f56cb8dc0ab327f6248", machine: 62},
	"arm64": {file: "_kuzu.cpython-311-aarch64-linux-gnu.so", digest: "74a9ce7e8efe2e8be90c2f8b5beecc821d043068f8944c0380ae5b12ef710421", machine: 183},
}

// library holds the functions of kuzu/engine.cpp.
type library struct {
	version    func() int64
	free       func(p unsafe.Pointer)
	open       func(path string, pool, threads, largest int64, database *unsafe.Pointer, out *unsafe.Pointer, size *int64) int32
	close      func(database unsafe.Pointer, out *unsafe.Pointer, size *int64) int32
	connect    func(database unsafe.Pointer, threads int64, connection, out *unsafe.Pointer, size *int64) int32
	disconnect func(connection unsafe.Pointer)
	memory     func(connection unsafe.Pointer) int64
	interrupt  func(connection unsafe.Pointer)
	prepare    func(connection unsafe.Pointer, query *byte, length, rights int64, params *byte, paramsLength int64, statement, out *unsafe.Pointer, size *int64) int32
	finalize   func(statement unsafe.Pointer)
	run        func(connection, statement unsafe.Pointer, params *byte, length, timeout, rows, bytes int64, out *unsafe.Pointer, size *int64) int32
	entities   func(connection unsafe.Pointer, arguments *byte, length int64, out *unsafe.Pointer, size *int64) int32
	adjacent   func(connection unsafe.Pointer, arguments *byte, length, forward, backward, ever, at, most int64, out *unsafe.Pointer, size *int64) int32
	withWords  func(connection unsafe.Pointer, arguments *byte, length, all, limit int64, out *unsafe.Pointer, size *int64) int32
	execute    func(connection unsafe.Pointer, query *byte, length int64, out *unsafe.Pointer, size *int64) int32
}

// loaded is the library of this process. There is only one, because the engine's
// symbols are global.
var loaded struct {
	sync.Mutex
	path    string
	library *library
}

// Missing returns nil: the build can open a database. Open reports whether the library
// can be loaded.
func Missing() error { return nil }

// Installed reports whether the library is installed. Open checks its files.
func Installed() bool {
	_, err := find("")
	return err == nil
}

// load returns the library in a file; "" searches the usual places.
func load(file string) (*library, error) {
	path, err := find(file)
	if err != nil {
		return nil, err
	}
	loaded.Lock()
	defer loaded.Unlock()
	switch {
	case loaded.library == nil:
	case loaded.path == path:
		return loaded.library, nil
	default:
		return nil, tea.Errorf(tea.ValidationError, "this process has already loaded %s and cannot load %s too", loaded.path, path)
	}
	if err := verify(path); err != nil {
		return nil, err
	}
	l, err := bind(path)
	if err != nil {
		return nil, err
	}
	loaded.path, loaded.library = path, l
	return l, nil
}

// find returns the file of the library.
func find(file string) (string, error) {
	folder := "kuzu-" + version
	var places []string
	if file != "" {
		if !filepath.IsAbs(file) {
			return "", tea.Errorf(tea.ValidationError, "%s: %q is not an absolute path", LibraryVariable, file)
		}
		places = []string{file}
	} else {
		program, err := os.Executable()
		if err != nil { // without /proc; tea starts a plugin by its path
			program, err = filepath.Abs(os.Args[0])
		}
		if err == nil {
			if target, err := filepath.EvalSymlinks(program); err == nil {
				program = target
			}
			places = append(places, filepath.Join(filepath.Dir(program), folder, bridgeFile))
		}
		if cache, err := os.UserCacheDir(); err == nil {
			places = append(places, filepath.Join(cache, "tea", folder+"-"+runtime.GOARCH, bridgeFile))
		}
	}
	for _, place := range places {
		if path, err := filepath.EvalSymlinks(place); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", tea.Errorf(tea.DependencyMissing, "the library of the graph backend cypher is not installed (looked for %s); %s", strings.Join(places, " and "), remedy)
}

// verify checks the files before any of their code runs.
func verify(bridge string) error {
	engine := releases[runtime.GOARCH]
	dir := filepath.Dir(bridge)
	for _, path := range []string{dir, filepath.Join(dir, sumsFile), filepath.Join(dir, engine.file), bridge} {
		if err := trusted(path); err != nil {
			return err
		}
	}
	sums, err := readSums(filepath.Join(dir, sumsFile))
	if err != nil {
		return err
	}
	for _, f := range []struct{ path, digest string }{
		{filepath.Join(dir, engine.file), engine.digest},
		{bridge, sums[bridgeFile]},
	} {
		if err := verifyFile(f.path, f.digest, engine.machine); err != nil {
			return err
		}
	}
	return nil
}

// trusted returns an error for a file or folder that a user other than root and this one can write to: with the
// library, such a user could also replace its digest.
func trusted(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return missing(path, err)
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	switch {
	case owner != 0 && owner != uint32(os.Geteuid()):
		return tea.Errorf(tea.PermissionDenied, "the library of the graph backend cypher is not loaded: %s belongs to another user (uid %d); chown it to root or to this user", path, owner)
	case info.Mode().Perm()&0o022 != 0:
		return tea.Errorf(tea.PermissionDenied, "the library of the graph backend cypher is not loaded: other users can change %s (mode %v); chmod go-w it", path, info.Mode())
	}
	return nil
}

// readSums reads the digests that scripts/kuzu wrote.
func readSums(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, missing(path, err)
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if digest, name, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
			sums[name] = digest
		}
	}
	return sums, nil
}

func verifyFile(path, digest string, machine uint16) error {
	file, err := os.Open(path)
	if err != nil {
		return missing(path, err)
	}
	defer file.Close()
	hash := sha256.New()
	var header [20]byte
	if _, err := io.ReadFull(io.TeeReader(file, hash), header[:]); err != nil || string(header[:4]) != "\x7fELF" {
		return tea.Errorf(tea.DependencyMissing, "%s is not a library; %s", path, remedy)
	}
	if m := binary.LittleEndian.Uint16(header[18:]); m != machine {
		return tea.Errorf(tea.DependencyMissing, "%s is for a different architecture than %s (ELF machine %d); %s", path, runtime.GOARCH, m, remedy)
	}
	if _, err := io.Copy(hash, file); err != nil {
		return missing(path, err)
	}
	if hex.EncodeToString(hash.Sum(nil)) != digest {
		return tea.Errorf(tea.PermissionDenied, "%s is not loaded: it is not the file of Kuzu %s that this version of the plugin uses (its SHA-256 digest differs); %s", path, version, remedy)
	}
	return nil
}

// missing is the error for a file that cannot be read.
func missing(path string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return tea.Errorf(tea.PermissionDenied, "read the library of the graph backend cypher: %w", err)
	}
	return tea.Errorf(tea.DependencyMissing, "the library of the graph backend cypher is incomplete: %s cannot be read; %s: %w", path, remedy, err)
}

// bind loads the library and looks up its functions.
func bind(path string) (l *library, err error) {
	handle, err := purego.Dlopen(path, purego.RTLD_LAZY|purego.RTLD_LOCAL)
	if err != nil {
		return nil, tea.Errorf(tea.DependencyMissing, "load the library of the graph backend cypher, which needs glibc 2.28 and libstdc++ 11: %w", err)
	}
	l = &library{}
	for name, function := range map[string]any{
		"interface": &l.version, "free": &l.free, "open": &l.open, "close": &l.close, "connect": &l.connect, "disconnect": &l.disconnect, "memory": &l.memory,
		"interrupt": &l.interrupt, "prepare": &l.prepare, "finalize": &l.finalize, "run": &l.run, "execute": &l.execute,
		"entities": &l.entities, "adjacent": &l.adjacent, "having": &l.withWords,
	} {
		symbol, err := purego.Dlsym(handle, "tea_kuzu_"+name)
		if err != nil {
			return nil, wrongVersion(path, fmt.Sprintf("it does not define tea_kuzu_%s", name))
		}
		purego.RegisterFunc(function, symbol)
	}
	if v := l.version(); v != interfaceVersion {
		return nil, wrongVersion(path, fmt.Sprintf("its interface has version %d instead of %d", v, interfaceVersion))
	}
	return l, nil
}

func wrongVersion(path, why string) error {
	return tea.Errorf(tea.DependencyMissing, "%s was prepared for another version of the plugin: %s; %s", path, why, remedy)
}
