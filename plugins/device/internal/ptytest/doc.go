// Package ptytest makes pairs of pseudo-terminals for tests of serial lines.
package ptytest
