// Package python is the bundle of python.run and python.call, which run Python in worker
// processes of the interpreter of the machine.
//
// Start with [Bundle]. A [Client] has the workers of a workflow; worker.py is the other
// side of their pipes. requirements.go finds the interpreter and installs packages.
package python
