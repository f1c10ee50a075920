// Command tea runs agent workflows. It turns flags into calls of package host
// and shows what comes back; there is no logic of workflows here.
//
// Start with [commands]: one struct per command, each in the file of its name. What the commands that run workflows share is in
// execute.go, exit codes are in exit.go.
package main
