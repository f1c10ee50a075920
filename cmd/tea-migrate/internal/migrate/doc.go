// Package migrate is the command migrate: it writes workflows of tea from those of other
// systems, each beside a report. Start with [Command]; file.go reads and writes files,
// legacy.go translates workflows of the_edge_agent, dagu.go those of Dagu. Both change
// the nodes of the YAML document in place, so comments and order stay.
package migrate
