// Package place says where a path that a workflow gives leads: to a file of a
// session, or to one of none. It is the check of such paths; start with [Of].
package place
