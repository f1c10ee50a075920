// Package runhtml writes a run as one HTML page that needs nothing else: the
// graph coloured by status, a timeline of the nodes, tokens, retries and errors.
//
// Start with [New], add the run's events in order, and call [Page.Write].
package runhtml
