// Package process runs MCP servers as child processes, with a clean environment,
// in process groups, and kills the groups however this process ends. Start with
// [NewGroup].
package process
