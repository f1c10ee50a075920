package main

import (
	"io"
	"os"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/the-edge-agent/tea/host"
)

// codeRunner is the hidden command that is the child process of code.execute.
const codeRunner = "__run-code"

func main() { os.Exit(run(os.Args[1:])) }

// run is the whole program; it gives the exit code.
func run(args []string) int {
	if slices.Equal(args, []string{codeRunner}) {
		if err := host.RunCode(os.Stdin, os.Stdout); err != nil {
			return exitFailed
		}
		return exitDone
	}
	a := newApp()
	return a.exitCode(a.dispatch(args))
}

// dispatch parses the command line and runs the command.
func (a *app) dispatch(args []string) error {
	exited := false
	parser, err := newParser(args,
		kong.Description("Runs AI-agent workflows: YAML state graphs with Lua, and actions in plugins."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.Resolvers(configResolver{a}),
		kong.Writers(a.stdout, a.stderr),
		// Help has been printed; what follows must not run.
		kong.Exit(func(int) { exited = true; panic(helpPrinted{}) }),
	)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parseArgs(parser, args)
	if exited {
		return nil
	}
	if err != nil {
		return usageError(err)
	}
	return command.Run(a)
}

// helpPrinted unwinds kong after --help and --version.
type helpPrinted struct{}

func parseArgs(parser *kong.Kong, args []string) (command *kong.Context, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil, helpPrinted:
		default:
			panic(p)
		}
	}()
	return parser.Parse(args)
}

// app is what commands share.
type app struct {
	stdin  io.Reader
	stdout *os.File
	// out is stdout for text that people read.
	out    io.Writer
	stderr *os.File
	getenv func(string) string
	report *host.Report
	config *configFiles
	// mask takes the secrets of the run out of everything that is printed.
	mask host.Mask
}

func newApp() *app {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}
	a.out = plainText{a.stdout}
	a.config = &configFiles{getenv: a.getenv}
	a.setReport(reportFlags{})
	return a
}
