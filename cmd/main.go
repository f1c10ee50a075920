package teacmd

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	_ "github.com/the-edge-agent/tea/cmd/internal/mainstack" // initialized before larger packages
	"github.com/the-edge-agent/tea/cmd/internal/report"
	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
)

// codeRunner is the hidden command of the child process of code.execute.
const codeRunner = "__run-code"

// Options configure the command line of a program.
type Options struct {
	// Release is the version of the build; "" is the version of the module.
	Release string
	// Commit of the source; "" if it is not known.
	Commit string
	// Bundles are linked in. Their actions take precedence over those of plugins
	// with the same name.
	Bundles []*tea.Bundle
	// Workflow is the name of the workflow that the program runs without a
	// command; "" for none. Files contains it below files/, with what it names.
	Workflow string
	Files    fs.FS
	// Commands are further commands; see [ServerCommand] and [WorkerCommand].
	Commands []Command
	// Remote are the commands for --host; nil runs another program, which has them.
	// See [RemoteCommands].
	Remote []Command
	// Engine runs workflows for --engine temporal; nil runs another program.
	Engine Engine
	// EngineCommands are the commands for runs of Engine; see [EngineCommands].
	EngineCommands []Command
	// Journal sends a message to the systemd journal, in place of the log on
	// stderr. nil logs to stderr.
	Journal func(message string, priority int, fields map[string]string) error
}

// Main executes the command line of the process and returns the exit code. It
// is called once.
func Main(o Options) int {
	args := os.Args[1:]
	if slices.Equal(args, []string{codeRunner}) {
		if err := host.RunCode(os.Stdin, os.Stdout); err != nil {
			return exitFailed
		}
		return exitDone
	}
	a := newApp(o)
	args = a.embedded.arguments(args)
	if len(args) > 1 && args[0] == completer {
		a.complete(args[1], args[2:])
		return exitDone
	}
	return a.exitCode(a.dispatch(args))
}

// dispatch parses the command line and runs the command.
func (a *app) dispatch(args []string) error {
	a.args = args
	if a.embedded.workflow == "" {
		var err error
		if args, err = a.onServer(args); err != nil {
			return err
		}
	}
	if a.server == "" {
		if err := a.onTemporal(args); err != nil {
			return err
		}
	}
	if len(args) > 0 {
		if c := a.find(args[0]); c != nil && c.grammar == nil {
			return runExternal(cmp.Or(c.program, c.name), args)
		}
	}
	parser, err := a.newParser(args,
		kong.Description("Runs AI-agent workflows: YAML state graphs with Lua, and actions in plugins."),
		kong.Help(printHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.Resolvers(configResolver{a}),
		kong.Writers(a.stdout.file, a.stderr), // kong asks the file for its width
	)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := a.parse(parser, args)
	if err != nil {
		return usageError(err)
	}
	if command == nil {
		return nil
	}
	if a.config.err != nil {
		return usageError(a.config.err)
	}
	if c, ok := command.(interface{ workflowFiles() []string }); ok {
		a.workflows = c.workflowFiles()
	}
	return command.Run(a)
}

// app is the state that commands share.
type app struct {
	version string
	commit  string
	bundles []*tea.Bundle
	// args are the arguments of the program.
	args []string
	// remote are the commands that run on a server. server is its address if
	// --host or TEA_HOST names one.
	remote []command
	server string
	// engine runs workflows elsewhere, and engineCommands are the commands for its runs.
	engine         Engine
	engineCommands []command
	// added are commands in addition to tea's own, or in place of them.
	added []command
	// embedded are the workflow files in the program.
	embedded embedded
	stdin    io.Reader
	stdout   *output
	// out is stdout without control characters, for text that people read.
	out    io.Writer
	stderr *os.File
	getenv func(string) string
	report *report.Report
	// quiet is set by -q.
	quiet  bool
	config *configFiles
	// projectPlugins reports whether the project's file names the plugin
	// directories.
	projectPlugins bool
	// broken reports whether an unusable plugin was found.
	broken bool
	// plugins are the plugins of the last host that was opened.
	plugins *pluginSet
	// workflows are the workflow files of the command.
	workflows []string
	// problems are the problems with plugins that were logged.
	problems []pluginProblem
	// mask removes the secrets of the run from all output.
	mask host.Mask
	// hide removes the secrets of several workflows from the log; nil if there are none.
	hide func(string) string
	// journal is [Options.Journal].
	journal func(message string, priority int, fields map[string]string) error
}

func newApp(o Options) *app {
	a := &app{version: version(o.Release), commit: o.Commit, bundles: o.Bundles, engine: o.Engine, journal: o.Journal, stdin: os.Stdin, stdout: &output{file: os.Stdout}, stderr: os.Stderr, getenv: os.Getenv}
	for _, c := range o.Commands {
		a.added = append(a.added, c.command)
	}
	for _, c := range o.EngineCommands {
		a.engineCommands = append(a.engineCommands, c.command)
	}
	for _, c := range o.Remote {
		a.remote = append(a.remote, c.command)
	}
	if o.Workflow != "" {
		a.embedded = embedded{o.Workflow, o.Files, []string{absolute(".")}}
	}
	a.out = plainText{a.stdout}
	a.config = &configFiles{getenv: a.getenv}
	a.setReport(reportFlags{})
	return a
}

// version returns the release, or the module's version for `go install`.
func version(release string) string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		return info.Main.Version[1:]
	}
	return "0.0.0-dev"
}

// source returns the words that name the source of the build: the commit or, for
// `go install`, the checksum of the module, as in go.sum files and the checksum
// database; nil if the go command recorded neither.
func (a *app) source() []string {
	if a.commit != "" {
		return []string{"commit", a.commit}
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return []string{"commit", s.Value}
		}
	}
	if info.Main.Sum == "" {
		return nil
	}
	return []string{"module", info.Main.Sum}
}

type versionCmd struct{}

// Run prints the version with the platform and the commit.
func (versionCmd) Run(a *app) error {
	words := []string{"tea", a.version, runtime.GOOS + "/" + runtime.GOARCH, runtime.Version()}
	words = append(words, a.source()...)
	_, err := fmt.Fprintln(a.out, strings.Join(words, " "))
	return err
}
