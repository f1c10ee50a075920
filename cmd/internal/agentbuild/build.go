package agentbuild

import (
	"context"
	_ "embed" // for noInline
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Options describe the program to build.
type Options struct {
	Bundles []Bundle
	// Workflow is the name of the workflow in Embed that the program runs by
	// default; "" for none.
	Workflow string
	// Embed are the contents of the workflow's files by slash-separated path,
	// relative to the directory of the workflow.
	Embed map[string][]byte
	// Version is the version of the program, without a leading v. Without Source
	// it is also the version of tea's modules.
	Version string
	// Source is the directory of a checkout of tea; "" for the released modules.
	Source string
	// OS and Arch are Go's names of the target platform; Arch can end with a
	// variant, as in "arm/v7".
	OS, Arch string
	// Processes keeps the host of plugin processes in the program.
	Processes bool
	// Output is the file to write.
	Output string
	// Log gets the output of the Go toolchain.
	Log io.Writer

	goVersion string
}

// Result describes the program that was built.
type Result struct {
	// File is the program's absolute path, and Size its size in bytes.
	File string
	Size int64
	// C lists the packages with C code. If it is empty, the program is static.
	C    []string
	Took time.Duration
	// Unchecked reports whether the workflow was not checked against the bundles, because
	// this machine cannot run the program.
	Unchecked bool
}

// noInline lists packages that run once in a process, in rare commands, or wait for a database or the network: TLS
// handshakes, descriptors of messages, archives. Without inlining, a program is
// half a megabyte smaller. scripts/build reads it too.
//
//go:embed noinline.txt
var noInline string

// ErrNoGo reports that this machine has no usable Go toolchain.
var ErrNoGo = errors.New("`tea build` needs Go 1.26 or later on this machine (https://go.dev/dl)")

// UsageError is a mistake in the options: a bundle or a platform that does not
// exist.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

// CompileError is a failure of the Go toolchain, which has written its messages
// to Options.Log.
type CompileError struct{ Err error }

func (e *CompileError) Error() string { return "build the program: " + e.Err.Error() }

func (e *CompileError) Unwrap() error { return e.Err }

// WorkflowError reports that the program cannot run its workflow, for example because a
// bundle is missing. Options.Log has the messages.
type WorkflowError struct{ Err error }

func (e *WorkflowError) Error() string {
	return "the program cannot run its workflow with the bundles that are linked in"
}

func (e *WorkflowError) Unwrap() error { return e.Err }

// Build compiles the program and lets it check its workflow if this machine can run it.
// Then it replaces Options.Output atomically. The error is [ErrNoGo], a [*UsageError], a
// [*CompileError], a [*WorkflowError], or an error of the file system.
func Build(ctx context.Context, o Options) (*Result, error) {
	start := time.Now()
	version, err := exec.CommandContext(ctx, "go", "env", "GOVERSION").Output()
	if err != nil {
		return nil, ErrNoGo
	}
	o.goVersion, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(version)), "go"), " ")
	output, err := filepath.Abs(o.Output)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tea-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	p := program{Options: o, dir: dir}
	platforms, err := p.check(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.write(); err != nil {
		return nil, err
	}
	if err := p.checkTags(ctx, platforms); err != nil {
		return nil, err
	}
	if err := p.buildLibraries(ctx); err != nil {
		return nil, err
	}
	// The program is built next to its target, so that a failure leaves the old one.
	built, err := os.CreateTemp(filepath.Dir(output), "."+filepath.Base(output)+"-*")
	if err != nil {
		return nil, err
	}
	built.Close()
	defer os.Remove(built.Name())
	if err := p.compile(ctx, built.Name()); err != nil {
		return nil, &CompileError{err}
	}
	res := &Result{File: output}
	if res.C, err = p.packagesInC(ctx); err != nil {
		return nil, &CompileError{err}
	}
	if err := os.Chmod(built.Name(), 0o755); err != nil {
		return nil, err
	}
	if res.Unchecked, err = p.checkWorkflow(ctx, built.Name()); err != nil {
		return nil, err
	}
	info, err := os.Stat(built.Name())
	if err != nil {
		return nil, err
	}
	res.Size = info.Size()
	if err := os.Rename(built.Name(), output); err != nil {
		return nil, err
	}
	res.Took = time.Since(start)
	return res, nil
}

func (p *program) compile(ctx context.Context, output string) error {
	// -mod=mod adds the modules that the bundles need.
	args := []string{"build", "-mod=mod", "-trimpath", "-buildvcs=false", "-tags", p.tags(), "-ldflags", "-s -w"}
	for pattern := range strings.FieldsSeq(noInline) {
		args = append(args, "-gcflags="+pattern+"=-l")
	}
	return p.run(ctx, append(args, "-o", output, ".")...)
}

// checkWorkflow lets the program check its workflow, unless plugins of the device can
// add actions. unchecked reports whether this machine cannot run the program.
func (p *program) checkWorkflow(ctx context.Context, built string) (unchecked bool, err error) {
	if p.Workflow == "" || p.Processes {
		return false, nil
	}
	if p.OS != runtime.GOOS || p.Arch != runtime.GOARCH {
		return true, nil
	}
	check := exec.CommandContext(ctx, built, "validate", p.Workflow)
	check.Dir, check.Stderr = p.dir, p.Log // where only the program has the workflow
	if err := check.Run(); err != nil {
		return false, &WorkflowError{err}
	}
	return false, nil
}

// check reports a bundle that the checkout of tea does not have, and a platform
// that Go does not support. It returns Go's names of systems and processors.
func (p *program) check(ctx context.Context) ([]string, error) {
	for module, dir := range p.directories() {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
			others, _ := filepath.Glob(filepath.Join(p.Source, "plugins", "*", "go.mod")) // the pattern is valid
			var names []string
			for _, other := range others {
				names = append(names, filepath.Base(filepath.Dir(other)))
			}
			return nil, &UsageError{fmt.Errorf("there is no bundle %s (%s); %s has %s", strings.TrimPrefix(module, own+"/plugins/"), module, p.Source, strings.Join(names, ", "))}
		}
	}
	list, err := exec.CommandContext(ctx, "go", "tool", "dist", "list").Output()
	if err != nil {
		return nil, ErrNoGo
	}
	platforms := strings.Fields(string(list))
	arch, _, _ := strings.Cut(p.Arch, "/")
	if !slices.Contains(platforms, p.OS+"/"+arch) {
		return nil, &UsageError{fmt.Errorf("target %s/%s does not exist; `go tool dist list` lists the platforms", p.OS, p.Arch)}
	}
	return strings.FieldsFunc(strings.Join(platforms, "/"), func(r rune) bool { return r == '/' }), nil
}

// tags returns the build tags: pure Go network and user lookups, so that only a
// bundle with C code makes the program dynamic.
func (p *program) tags() string {
	tags := []string{"grpcnotrace", "nethttpomithttp2", "netgo", "osusergo"}
	if !p.Processes {
		tags = append(tags, "noplugins")
	}
	for _, b := range p.Bundles {
		tags = append(tags, b.Tags...)
	}
	slices.Sort(tags)
	return strings.Join(slices.Compact(tags), ",")
}

// command returns a command of the Go toolchain for the target.
func (p *program) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = p.dir
	// Settings for the user's own projects must not change this build.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOOS="+p.OS)
	arch, variant, _ := strings.Cut(p.Arch, "/")
	cmd.Env = append(cmd.Env, "GOARCH="+arch)
	if variant != "" {
		cmd.Env = append(cmd.Env, variants[arch].variable+"="+variants[arch].values[variant])
	}
	cmd.Env = append(cmd.Env, p.env...)
	return cmd
}

func (p *program) run(ctx context.Context, args ...string) error {
	cmd := p.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = p.Log, p.Log
	return cmd.Run()
}

// packagesInC lists the packages outside of the standard library that link C.
func (p *program) packagesInC(ctx context.Context) ([]string, error) {
	cmd := p.command(ctx, "list", "-mod=mod", "-tags", p.tags(), "-deps", "-f", "{{if and .CgoFiles (not .Standard)}}{{.ImportPath}}{{end}}", ".")
	out, err := cmd.Output()
	return strings.Fields(string(out)), err
}

// variants are the variants of a processor, named as in the platforms of
// containers, with Go's variable for them and its values.
var variants = map[string]struct {
	variable string
	values   map[string]string
}{
	"amd64":   {"GOAMD64", map[string]string{"v1": "v1", "v2": "v2", "v3": "v3", "v4": "v4"}},
	"arm":     {"GOARM", map[string]string{"v5": "5", "v6": "6", "v7": "7", "5": "5", "6": "6", "7": "7"}},
	"arm64":   {"GOARM64", map[string]string{"v8": "v8.0", "v9": "v9.0"}},
	"riscv64": {"GORISCV64", map[string]string{"rva20u64": "rva20u64", "rva22u64": "rva22u64", "rva23u64": "rva23u64"}},
}

// ParseTarget reads OS/ARCH or OS/ARCH/VARIANT; "" is this machine.
func ParseTarget(target string) (goos, goarch string, err error) {
	if target == "" {
		return runtime.GOOS, runtime.GOARCH, nil
	}
	goos, goarch, ok := strings.Cut(target, "/")
	if !ok || goos == "" || goarch == "" {
		return "", "", fmt.Errorf("target %q is not valid: expected OS/ARCH such as linux/arm64 or linux/arm/v7", target)
	}
	arch, variant, has := strings.Cut(goarch, "/")
	of := variants[arch]
	if _, known := of.values[variant]; has && !known {
		return "", "", fmt.Errorf("target %q: %s has no variant %q; %s", target, arch, variant, listed(slices.Sorted(maps.Keys(of.values))))
	}
	return goos, goarch, nil
}

// listed joins the available names for a message.
func listed(names []string) string {
	if len(names) == 0 {
		return "it has none"
	}
	return "it has " + strings.Join(names, ", ")
}
