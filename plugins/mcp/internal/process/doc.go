// Package process runs MCP servers as child processes, with a clean environment and
// in process groups. It kills the groups however this process ends. Start with
// [NewGroup].
package process
