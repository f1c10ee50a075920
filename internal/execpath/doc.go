// Package execpath defines the paths that identify a run's executions:
//
//	fetch            the node fetch
//	fetch#2          its second visit in the same sequence of nodes
//	sub/fetch        a node of a subgraph
//	loop[0]/fetch    in the first pass of a loop
//	each[3]          the fourth item of a map, and the node that it runs
//	n/check          the step check of the node n
//	a>b/clean        in the branch that begins at b, of the fan-out behind a
//	a>b~2/clean      in its second attempt
//	n!act:1f/fetch   in the workflow that a call made by n runs
//
// Start with [Path]. A [Tree] stores a value for each of a set of paths.
package execpath
