// Package command has the action command.run. Start with [Part]. A workflow names a
// command of the settings and the values of its parameters (arguments.go); no shell is
// involved.
package command
