// Package killtest kills the memory plugin with SIGKILL many times while it
// writes, and checks each time that the next start finds every acknowledged
// change, no partial changes, and no blob without an entry.
//
// TEA_KILLS sets the number of kills per engine, which is reduced with the race
// detector; TEA_MEMORY_PLUGIN is the path of a plugin to use instead of the test
// binary.
package killtest
