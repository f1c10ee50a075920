// Package runhtml renders a run as one self-contained HTML page: the graph
// coloured by status, a timeline of the nodes, tokens, retries and errors.
//
// Start with [New], add the run's events in order, and call [Page.Write].
package runhtml
